"""Measure how far heads of the Tiny-ImageNet model look if a patch and its mirror image count as one place.

    python tools/measure_fold.py --data-dir DEST [--images 2000]

The model's positions are folded left on right (chapter 15): a head that is local by position looks at a
patch's mirror image, too, and its mean distance grows. Here each patch lies where the nearer of the two does.
Folding top on bottom, where positions are not mirrored, is the control. Every distance is a share of what
uniform attention reaches by the same ruler. Writes vit_lab/results/inspection_fold.json.
"""

import torch
import torch.nn.functional as F
from measure_looking import open_photos, over_batches
from measuring import options, write_result
from torch import Tensor

from vit_from_scratch import VisionTransformer
from vit_from_scratch.inspection import layer_attention
from vit_from_scratch.inspection.attention_distance import patch_distances
from vit_from_scratch.pretrained import load_pretrained
from vit_lab.runs.trained_models import open_model

FOLDS = {"as measured": (), "left on right": (1,), "top on bottom": (0,)}


def ruler(grid: tuple[int, int], axes: tuple[int, ...]) -> Tensor:
    """Return the distances between all patches, each at the nearer of itself and its mirror image, (N, N)."""
    flat = patch_distances(grid, 1)
    places = torch.arange(grid[0] * grid[1]).view(grid)
    return torch.minimum(flat, flat[:, places.flip(axes).flatten()])


def shares(model: VisionTransformer, images: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return every head's mean distance by a ruler, as a share of that of uniform attention, (N, L, h)."""
    apart = ruler(model.config.grid, axes)

    def reach(weights: Tensor) -> Tensor:
        count = model.config.num_patches
        among = F.normalize(weights[..., -count:, -count:].double(), p=1, dim=-1)
        return (among * apart).sum(dim=-1).mean(dim=-1)  # (B, h)

    found = over_batches(lambda some: torch.stack(layer_attention(model, some, reach), dim=1), images)
    return found / apart.mean()


def main() -> None:
    """Measure and write."""
    parser = options(__doc__)
    parser.add_argument("--images", type=int, default=2000, help="test photos to look at")
    given = parser.parse_args()
    images = open_photos(given.data_dir)[1][: given.images]
    torch.manual_seed(0)
    trained = load_pretrained("tiny-imagenet")
    models = {"trained": trained, "untrained": VisionTransformer(trained.config).eval()}
    found = {
        name: {fold: shares(model, images, axes).mean(dim=0).tolist() for fold, axes in FOLDS.items()}
        for name, model in models.items()
    }
    facts = {"images": len(images), "model_sha256": open_model("tiny-imagenet").sha256}
    write_result("inspection_fold", {**facts, "share_of_uniform": found})


if __name__ == "__main__":
    main()
