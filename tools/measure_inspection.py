"""Look into the shipped model on many CIFAR-10 test photos, and write down what Part III quotes.

    python tools/measure_inspection.py --data-dir DEST --hybrid RUN
    python tools/measure_inspection.py --data-dir DEST --only-masking

Writes results/inspection_cifar10.json of the package. RUN is a finished run of cifar10-30min-cpu-conv: its
convolutional stem takes the hybrid's place in the comparison of attention distances. The second command
measures the accuracy with hidden patches again, and leaves the rest of the file as it is.
"""

import argparse
import sys
from pathlib import Path

import torch
from torch import Tensor

from vit_from_scratch import VisionTransformer
from vit_from_scratch.data import load_dataset
from vit_from_scratch.errors import InputError
from vit_from_scratch.experiments import load_result
from vit_from_scratch.experiments.environment import environment
from vit_from_scratch.experiments.runs import write_json
from vit_from_scratch.inspection import attention_distances, layer_attention, layer_tokens
from vit_from_scratch.inspection.masking import (
    attention_scores,
    contrast_scores,
    gradient_scores,
    masked_accuracy,
    random_scores,
)
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.pretrained import load_pretrained

RESULTS = Path(__file__).resolve().parent.parent / "vit_from_scratch/experiments/results"
RESULT = RESULTS / "inspection_cifar10.json"
HIDDEN = (0, 4, 8, 16, 24, 32, 40, 48, 56)
"""How many of the 64 patches are hidden."""


def over_batches(function, images: Tensor, size: int = 250) -> Tensor:
    """Apply a function that returns (L, B, ...) to all images, a batch at a time."""
    return torch.cat([function(some) for some in images.split(size)], dim=1)


def distances(model: VisionTransformer, images: Tensor) -> dict:
    """Measure every head's mean attention distance: mean over the images and its standard error."""
    values = over_batches(lambda some: attention_distances(model, some), images)  # (L, N, h)
    error = values.std(dim=1) / values.shape[1] ** 0.5
    return {"pixels": values.mean(dim=1).tolist(), "standard_error": error.tolist()}


def class_token_share(model: VisionTransformer, images: Tensor) -> list[float]:
    """Measure, a layer, the share of the patches' attention that goes to the class token."""

    def share(some: Tensor) -> Tensor:
        return torch.stack(layer_attention(model, some, lambda w: w[:, :, 1:, 0].mean(dim=(1, 2))))

    return over_batches(share, images).mean(dim=1).tolist()


def token_norms(model: VisionTransformer, images: Tensor) -> dict:
    """Measure the norms of the patch tokens after each layer: median and the largest, over all images."""

    def norms(some: Tensor) -> Tensor:
        return torch.stack([tokens.flatten(1, 2).norm(dim=-1) for tokens in layer_tokens(model, some)])

    values = over_batches(norms, images).flatten(1)  # (L + 1, N patches)
    return {"median": values.median(dim=1).values.tolist(), "largest": values.amax(dim=1).tolist()}


def masking(model: VisionTransformer, images: Tensor, labels: Tensor) -> dict:
    """Measure accuracy against the number of hidden patches, for several ways of choosing them."""
    generator = torch.Generator().manual_seed(0)
    ways = {
        "most attended": lambda some: attention_scores(model, some),
        "least attended": lambda some: -attention_scores(model, some),
        "another photo's map": lambda some: attention_scores(model, some).roll(1, dims=0),
        "chosen by gradient": lambda some: gradient_scores(model, some),
        "contrast": lambda some: contrast_scores(some, model.config.patch_size),
        "random": lambda some: random_scores(some, model.config.grid, generator),
    }
    found = {name: masked_accuracy(model, images, labels, way, HIDDEN).tolist() for name, way in ways.items()}
    patches = model.config.num_patches
    return {"hidden": HIDDEN, "patches": patches, "accuracy": found, "origin": environment()}


def measure(data_dir: str | None, hybrid: Path | None, count: int) -> dict:
    """Return everything that the result file holds; without a hybrid only its masking is measured again."""
    data = load_dataset("cifar10", data_dir)
    images, labels = data.normalise(data.test_images[:count]), data.test_labels[:count]
    trained = load_pretrained("cifar10")
    if hybrid is None:
        return load_result(RESULT.stem) | {"masking": masking(trained, images, labels)}
    torch.manual_seed(0)
    untrained = VisionTransformer(trained.config).eval()
    models = {
        "trained": trained,
        "untrained": untrained,
        "conv stem": load_checkpoint(hybrid / "model.safetensors"),
    }
    return {
        "claim": "What the shipped model looks at, on CIFAR-10 test photos that it never saw.",
        "command": "python tools/measure_inspection.py --data-dir DEST --hybrid RUN",
        "images": len(labels),
        "distance": {name: distances(model, images) for name, model in models.items()},
        "class_token_share": class_token_share(trained, images),
        "token_norms": token_norms(trained, images),
        "masking": masking(trained, images, labels),
        **environment(),
    }


def main() -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", help="folder that holds CIFAR-10")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--hybrid", type=Path, help="a finished run of cifar10-30min-cpu-conv")
    what.add_argument("--only-masking", action="store_true", help="measure the hidden patches again")
    parser.add_argument("--images", type=int, default=2000, help="test photos to look at")
    options = parser.parse_args()
    try:
        write_json(RESULT, measure(options.data_dir, options.hybrid, options.images))
    except InputError as error:
        print(f"measure_inspection: {error}", file=sys.stderr)
        return 2
    print(f"wrote {RESULT}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
