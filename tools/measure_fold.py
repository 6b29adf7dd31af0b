"""Follow the fold of the Tiny-ImageNet model's positions through its attention, on test photos.

    python tools/measure_fold.py --data-dir DEST [--images 2000] [--runs FOLDER ...]

Its positions are folded left on right (chapter 15). So a head that is local by position looks at a patch's
mirror image, too; its mean distance grows; and a rollout, which multiplies such heads, is the more symmetric.
Measured are: the attention that a patch pays to its mirror image, as a multiple of uniform attention; every
head's distance if a patch lies where the nearer of itself and its mirror image does, as a share of what
uniform attention reaches by the same ruler; and how a rollout correlates with its own mirror image. The fold
top on bottom, where positions are not mirrored, is the control. Writes results/inspection_fold.json.

With --runs the same is measured of finished runs, such as those of the study fold_causes, each called by its
path inside the folder that it was found in: results/inspection_fold_causes.json.
"""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from measure_looking import attention_scores, open_photos, over_batches, weights_alone
from measuring import interval, options, write_result
from torch import Tensor

from vit_from_scratch import VisionTransformer
from vit_from_scratch.inspection import layer_attention
from vit_from_scratch.inspection.attention_distance import patch_distances
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.pretrained import load_pretrained
from vit_lab.runs.run_folder import MODEL
from vit_lab.runs.trained_models import open_model

MIRRORS = {"left on right": (1,), "top on bottom": (0,)}
FOLDS = {"as measured": (), **MIRRORS}


def ruler(grid: tuple[int, int], axes: tuple[int, ...]) -> Tensor:
    """Return the distances between all patches, each at the nearer of itself and its mirror image, (N, N)."""
    flat = patch_distances(grid, 1)
    places = torch.arange(grid[0] * grid[1]).view(grid)
    return torch.minimum(flat, flat[:, places.flip(axes).flatten()]).float()


def by_head(model: VisionTransformer, images: Tensor, matrix: Tensor) -> list[list[float]]:
    """Return each head's attention among patches times a matrix, mean over photos and patches, (L, h)."""

    def weighted(weights: Tensor) -> Tensor:
        count = model.config.num_patches
        among = F.normalize(weights[..., -count:, -count:], p=1, dim=-1)
        return torch.einsum("bhnm,nm->bh", among, matrix) / count

    found = over_batches(lambda some: torch.stack(layer_attention(model, some, weighted), dim=1), images)
    return found.mean(dim=0).tolist()


def mirror_images(grid: tuple[int, int], axis: int) -> Tensor:
    """Return N at [patch, its mirror image] where the two lie three patches apart or more, else 0, (N, N).

    Scaled so that uniform attention comes to 1.
    """
    places = torch.arange(grid[0] * grid[1])
    partner = places.view(grid).flip(axis).flatten()
    far = patch_distances(grid, 1)[places, partner] >= 3
    matrix = torch.zeros(len(places), len(places))
    matrix[places[far], partner[far]] = len(places) ** 2 / far.sum()
    return matrix


def symmetry(maps: Tensor, axis: int) -> list[float]:
    """Correlate each map (B, gh, gw) with its mirror image along an axis of it; mean and interval."""
    flat, turned = maps.flatten(1), maps.flip(axis + 1).flatten(1)
    flat, turned = flat - flat.mean(dim=1, keepdim=True), turned - turned.mean(dim=1, keepdim=True)
    return interval(F.cosine_similarity(flat, turned, dim=1))


def fold_of(model: VisionTransformer, images: Tensor) -> dict[str, Any]:
    """Measure the fold of a model: in its positions, its heads and its rollouts of photos (B, C, H, W)."""
    grid = model.config.grid
    rollouts = over_batches(lambda some: attention_scores(model, some), images)
    return {
        "mirror_similarity": weights_alone(model)["mirror_similarity"],
        "share_of_uniform": {
            fold: by_head(model, images, (apart := ruler(grid, axes)) / apart.mean())
            for fold, axes in FOLDS.items()
        },
        "to_mirror_image": {
            fold: by_head(model, images, mirror_images(grid, *axes)) for fold, axes in MIRRORS.items()
        },
        "rollout_symmetry": {fold: symmetry(rollouts, *axes) for fold, axes in MIRRORS.items()},
    }


def main() -> None:
    """Measure and write."""
    parser = options(__doc__)
    parser.add_argument("--images", type=int, default=2000, help="test photos to look at")
    parser.add_argument("--runs", type=Path, nargs="+", help="folders over finished runs")
    given = parser.parse_args()
    images = open_photos(given.data_dir)[1][: given.images]
    if given.runs:
        files = {
            file.parent.relative_to(folder): file for folder in given.runs for file in folder.rglob(MODEL)
        }
        found = {str(name): fold_of(load_checkpoint(file), images) for name, file in files.items()}
        write_result("inspection_fold_causes", {"images": len(images), "models": found})
        return
    torch.manual_seed(0)
    trained = load_pretrained("tiny-imagenet")
    models = {"trained": trained, "untrained": VisionTransformer(trained.config).eval()}
    found = {name: fold_of(model, images) for name, model in models.items()}
    facts = {"images": len(images), "model_sha256": open_model("tiny-imagenet").sha256}
    write_result("inspection_fold", {**facts, **found})


if __name__ == "__main__":
    main()
