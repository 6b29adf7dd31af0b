"""Follow the fold of the Tiny-ImageNet model's positions through its attention, on test photos.

    python tools/measure_fold.py --data-dir DEST [--images 2000] [--runs FOLDER ...]

Its positions are folded left on right (chapter 15). Does its attention follow? Measured are: the attention
that a patch pays to its mirror image, as a multiple of what the two places beside that get; every head's
distance if a patch lies where the nearer of itself and its mirror image does, as a share of what uniform
attention reaches by the same ruler; and how a rollout correlates with its own mirror image. The fold top on
bottom, where positions are not mirrored, and an untrained model stand beside them. And since a left-right
mirror image lies in the same row, which a head may prefer for itself, so does a ruler with another partner
in the same row, half a photo away. Writes results/inspection_fold.json.

With --runs the same is measured of finished runs, such as those of the study fold_causes, each called by its
path inside the folder that it was found in: results/inspection_fold_causes.json.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from measure_looking import open_photos, over_batches, rollout_scores, weights_alone
from measuring import interval, options, write_result
from torch import Tensor

from vit_from_scratch import VisionTransformer
from vit_from_scratch.inspection import layer_attention
from vit_from_scratch.inspection.attention_distance import patch_distances
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.pretrained import load_pretrained
from vit_lab.runs.run_folder import MODEL
from vit_lab.runs.trained_models import open_model

MIRRORS = {"left on right": 1, "top on bottom": 0}
PARTNERS: dict[str, Callable[[Tensor], Tensor]] = {
    "as measured": lambda places: places,
    "left on right": lambda places: places.flip(1),
    "top on bottom": lambda places: places.flip(0),
    "half a photo sideways": lambda places: places.roll(places.shape[1] // 2, 1),
}
"""The other place at which each patch counts as lying, too: (gh, gw) to (gh, gw)."""


def ruler(grid: tuple[int, int], partner: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the distances between all patches, each at the nearer of itself and its partner, (N, N)."""
    flat = patch_distances(grid, 1)
    places = torch.arange(grid[0] * grid[1]).view(grid)
    return torch.minimum(flat, flat[:, partner(places).flatten()]).float()


def mean_attention(model: VisionTransformer, images: Tensor) -> Tensor:
    """Return each head's attention among patches, rows summing to 1, mean over photos, (L, h, N, N)."""
    count = model.config.num_patches

    def among(weights: Tensor) -> Tensor:
        return F.normalize(weights[..., -count:, -count:], p=1, dim=-1).sum(dim=0)

    found = [torch.stack(layer_attention(model, some, among)) for some in images.split(100)]
    return torch.stack(found).sum(dim=0) / len(images)


def mirror_images(grid: tuple[int, int], axis: int) -> tuple[Tensor, Tensor]:
    """Return 1 at [patch, its mirror image], and 1/2 at both places beside that along the axis, (N, N) each.

    Only for patches whose mirror image lies three patches away or more, and not at the border.
    """
    there, beside = torch.zeros(2, grid[0] * grid[1], grid[0] * grid[1])
    for patch in range(len(there)):
        place = list(divmod(patch, grid[1]))
        partner = grid[axis] - 1 - place[axis]
        if abs(partner - place[axis]) < 3 or partner in (0, grid[axis] - 1):
            continue
        for matrix, at, weight in ((there, 0, 1), (beside, -1, 0.5), (beside, 1, 0.5)):
            place[axis] = partner + at
            matrix[patch, place[0] * grid[1] + place[1]] = weight
    return there, beside


def to_mirror_image(attention: Tensor, grid: tuple[int, int], axis: int) -> list[list[float]]:
    """Return the attention of each head (L, h, N, N) to mirror images over that to the places beside them."""
    there, beside = ((attention * matrix).sum(dim=(2, 3)) for matrix in mirror_images(grid, axis))
    return (there / beside).tolist()


def share_of_uniform(attention: Tensor, apart: Tensor) -> list[list[float]]:
    """Return the mean distance of heads (L, h, N, N) by a ruler (N, N), as shares of uniform attention's."""
    return ((attention * apart).sum(dim=(2, 3)) / len(apart) / apart.mean()).tolist()


def symmetry(maps: Tensor, axis: int) -> list[float]:
    """Correlate each map (B, gh, gw) with its mirror image along an axis of it; mean and interval."""
    flat, turned = maps.flatten(1), maps.flip(axis + 1).flatten(1)
    flat, turned = flat - flat.mean(dim=1, keepdim=True), turned - turned.mean(dim=1, keepdim=True)
    return interval(F.cosine_similarity(flat, turned, dim=1))


def fold_of(model: VisionTransformer, images: Tensor) -> dict[str, Any]:
    """Measure the fold of a model: in its positions, its heads and its rollouts of photos (B, C, H, W)."""
    grid = model.config.grid
    rollouts = over_batches(lambda some: rollout_scores(model, some), images)
    attention = mean_attention(model, images)
    return {
        "mirror_similarity": weights_alone(model)["mirror_similarity"],
        "share_of_uniform": {
            name: share_of_uniform(attention, ruler(grid, partner)) for name, partner in PARTNERS.items()
        },
        "to_mirror_image": {name: to_mirror_image(attention, grid, axis) for name, axis in MIRRORS.items()},
        "rollout_symmetry": {name: symmetry(rollouts, axis) for name, axis in MIRRORS.items()},
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
