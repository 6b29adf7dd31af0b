"""A small CNN in the half hour that the ViTs of CIFAR-10 have (chapter 9).

    python benchmarks/half_hour_cnn.py --data-dir DEST --results vit_lab/results/half_hour_cnn.json

The network has the shape of airbench's (Jordan, 2024): three pairs of 3 x 3 convolutions with BatchNorm and
GELU, each halved by a pool in its midst, and a linear head. Photos, augmentation, batches, smoothing and the
whole photos of the last epochs are those of the recipe `cifar10-half-hour-remedies`; the optimiser is SGD
with momentum. Rates are tried for nine epochs, on held-out photos, and the best is measured on the test
photos, once a seed. What was done is kept after each run in --out; the same command goes on.
"""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vit_from_scratch.data import open_dataset
from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.files import write_json
from vit_from_scratch.model.cost import count_parameters, counted_flops
from vit_from_scratch.precisions import has_bfloat16_units
from vit_from_scratch.training import EpochMetrics, TrainConfig, evaluate_batches, train
from vit_lab.experiments.recipes import load_recipe
from vit_lab.experiments.records import Rate, Row, SeedRun
from vit_lab.runs.environment import environment
from vit_lab.runs.origins import ORIGIN
from vit_lab.runs.progress_bar import ProgressBar
from vit_lab.runs.run import FlipAveraged

RECIPE = "cifar10-half-hour-remedies"
NAME = "small CNN, SGD"
CLAIM = (
    "In the same half hour a small CNN classifies more of the CIFAR-10 test photos correctly than the ViTs."
)
RATES = (0.02, 0.06, 0.18, 0.54)  # the last was added when the third was the best
EPOCHS, TRIED = 30, 9  # as many as fill the half hour, and of a rate that is tried


class SmallCNN(nn.Module):
    """Classify (B, 3, 32, 32) by convolutions: a 2 x 2 root, three pairs with their pools, a linear head."""

    def __init__(self) -> None:
        super().__init__()
        channels = 24
        layers: list[nn.Module] = [nn.Conv2d(3, channels, 2), nn.GELU()]
        for width in (64, 256, 256):
            halved = [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.MaxPool2d(2)]
            kept = nn.Conv2d(width, width, 3, padding=1, bias=False)
            layers += [*halved, nn.BatchNorm2d(width), nn.GELU(), kept, nn.BatchNorm2d(width), nn.GELU()]
            channels = width
        self.layers = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten())
        self.head = nn.Linear(channels, 10)
        self.to(memory_format=torch.channels_last)  # twice as fast on a CPU

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (B, K)."""
        return self.head(self.layers(images.contiguous(memory_format=torch.channels_last)))


def settings(rate: float, epochs: int, seed: int) -> TrainConfig:
    """Return the recipe's training with SGD, and photos of full size throughout."""
    return dataclasses.replace(
        load_recipe(RECIPE).train,
        optimiser="sgd",
        learning_rate=rate,
        momentum=0.9,
        weight_decay=5e-4,
        epochs=epochs,
        seed=seed,
        curriculum=(),
        precision="bfloat16" if has_bfloat16_units("cpu") else "float32",
    )


def trained(data: DataSet, config: TrainConfig) -> tuple[nn.Module, list[EpochMetrics]]:
    """Draw a CNN with the seed and train it."""
    torch.manual_seed(config.seed)
    model = SmallCNN()
    bar = ProgressBar(f"rate {config.learning_rate:g}, seed {config.seed}")
    return model, train(model, data, config, [bar])


def measured(model: nn.Module, data: DataSet, history: list[EpochMetrics]) -> dict[str, Any]:
    """Return what a model reaches on the test photos, as they are and with their mirror images, and how."""
    tested = evaluate_batches(model, data.batches("test"))
    return {
        "test_accuracy": tested.accuracy,
        "test_flip_accuracy": evaluate_batches(FlipAveraged(model), data.batches("test")).accuracy,
        "test_loss": tested.loss,
        "test_images": tested.images,
        "validation_accuracy": history[-1].validation_accuracy,
        "seconds": sum(epoch.seconds for epoch in history),
        "curves": [dataclasses.asdict(epoch) for epoch in history],
    }


def options_of(description: str, out: str, epochs: int, seeds: Sequence[int]) -> argparse.ArgumentParser:
    """Return the options of a script about the half hour; `out` is where it keeps what was done."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument(
        "--out", type=Path, default=Path(out), help="JSON file; what it holds is not run again"
    )
    parser.add_argument("--results", type=Path, help="also write a summary of all runs to this JSON file")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--seeds", type=int, nargs="+", default=seeds)
    return parser


def kept_in(path: Path, settings: dict[str, int]) -> dict[str, Any]:
    """Return what earlier calls left in --out, or the settings alone; what others left is refused."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {"settings": settings}
    made_with = found.get("settings") if isinstance(found, dict) else None  # earlier files say nothing of it
    if made_with != settings:
        raise SystemExit(f"{path} was made with {made_with}: expected {settings}. Choose another --out.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return found


def summary(found: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return what ships: a study of one row, with the rates that were tried and a run for each seed."""
    model = SmallCNN()
    runs = [SeedRun.of(run, run["curves"]) for run in found["runs"]]
    row = Row(
        name=NAME,
        runs=runs,
        rates=[Rate(**rate) for rate in found["rates"]],
        chosen=found["runs"][0]["rate"],
        facts={
            "test_images": found["runs"][0]["test_images"],
            "parameters": count_parameters(model),
            "forward_flops": counted_flops(model, (3, 32, 32)),
        },
        config=config,
    )
    command = (
        "python benchmarks/half_hour_cnn.py --data-dir DEST --results vit_lab/results/half_hour_cnn.json"
    )
    facts = {"name": "half_hour_cnn", "claim": CLAIM, "command": command, "base": RECIPE, "cumulative": False}
    return facts | {"rows": [row.table()]} | row.made


def main() -> None:
    """Run from the command line."""
    options = options_of(__doc__, "runs/half-hour-cnn.json", EPOCHS, (0, 1, 2)).parse_args()
    recipe = load_recipe(RECIPE)
    data = open_dataset(recipe.data, options.data_dir)
    found = {"rates": [], "runs": []} | kept_in(options.out, {"epochs": options.epochs})

    def keep(kind: str, row: dict[str, Any]) -> None:
        found[kind].append(row)
        write_json(options.out, found)
        print({name: value for name, value in row.items() if name not in ("curves", *ORIGIN)}, flush=True)

    for rate in RATES:
        if rate not in [row["rate"] for row in found["rates"]]:
            last = trained(data, settings(rate, min(TRIED, options.epochs), 0))[1][-1]
            keep("rates", {"rate": rate, "validation_accuracy": last.validation_accuracy})
    best = max(found["rates"], key=lambda row: row["validation_accuracy"])["rate"]
    for seed in options.seeds:
        if (seed, best) not in [(row["seed"], row["rate"]) for row in found["runs"]]:
            here = environment(2, "cpu")  # of the code that trains, should it change meanwhile
            model, history = trained(data, settings(best, options.epochs, seed))
            keep("runs", {"seed": seed, "rate": best, **measured(model, data, history), **here})
    if options.results:
        ran = dataclasses.replace(recipe, model={}, train=settings(best, options.epochs, options.seeds[0]))
        asked = [row for row in found["runs"] if row["seed"] in options.seeds and row["rate"] == best]
        write_json(options.results, summary(found | {"runs": asked}, ran.tables()))


if __name__ == "__main__":
    main()
