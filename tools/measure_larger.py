"""Measure the Tiny-ImageNet model on photos that are enlarged, without training it further; write a result.

    python tools/measure_larger.py --data-dir DEST [--images 2000]

Held-out training photos are enlarged from 64 pixels. Positions are interpolated over the grid, as in the
paper, or, for comparison, as one long row of vectors. Both see the same photos, so their difference is
paired: photo by photo, with an interval of 95 %.
"""

from typing import Any

import torch
import torch.nn.functional as F
from measuring import interval, options, write_result

from vit_from_scratch import VisionTransformer
from vit_from_scratch.data import DataConfig, open_dataset
from vit_from_scratch.pretrained import load_pretrained
from vit_from_scratch.training.fine_tuning import adapted
from vit_lab.runs.trained_models import open_model

SIDES = (64, 96, 128)


def with_positions(pretrained: VisionTransformer, side: int, along: str) -> VisionTransformer:
    """Return the model for larger photos, its head kept; positions "grid" or "row"."""
    larger = adapted(pretrained, side, pretrained.config.num_classes, keep_head=True)
    if along == "row":
        table = pretrained.state_dict()["tokens.position"]  # (1, T, D)
        first, patches = table[:, :1], table[:, 1:].mT  # (1, D, N)
        patches = F.interpolate(patches, larger.config.num_patches, mode="linear", align_corners=True)
        larger.load_state_dict({"tokens.position": torch.cat([first, patches.mT], dim=1)}, strict=False)
    return larger.eval()


@torch.no_grad()
def main() -> None:
    """Measure and write."""
    parser = options(__doc__)
    parser.add_argument("--images", type=int, default=2_000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    pretrained = load_pretrained("tiny-imagenet")
    data = open_dataset(DataConfig("tiny-imagenet"), given.data_dir)
    chosen = torch.randperm(data.size_of("validation"), generator=torch.Generator().manual_seed(0))
    batches = zip(*data.batches("validation", workers=0), strict=True)
    images, answers = (torch.cat(parts)[chosen[: given.images]] for parts in batches)
    rows: dict[str, Any] = {}
    for side in SIDES:
        hits = {}
        enlarged = F.interpolate(images, (side, side), mode="bilinear", antialias=True)
        for along in ("grid", "row"):
            model = with_positions(pretrained, side, along)
            found = [model(some).argmax(dim=1) for some in enlarged.split(100)]
            hits[along] = (torch.cat(found) == answers).double()
        if side == SIDES[0]:
            own = hits["grid"]
        rows[str(side)] = {along: one.mean().item() for along, one in hits.items()} | {
            "grid_less_row": interval(hits["grid"] - hits["row"]),
            f"grid_less_{SIDES[0]}": interval(hits["grid"] - own),
        }
        print(side, rows[str(side)], flush=True)
    sha256 = open_model("tiny-imagenet").sha256
    write_result("larger_tiny_imagenet", {"model_sha256": sha256, "images": len(answers), "accuracy": rows})


if __name__ == "__main__":
    main()
