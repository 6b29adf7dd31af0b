"""How many images a second does `vit features` describe, beside the bare model on images that lie ready?

    python benchmarks/features_throughput.py                      # tiny-imagenet, scanned digits at 64 pixels
    python benchmarks/features_throughput.py --weights runs/x --data cifar10 --data-dir DEST --part test
    python benchmarks/features_throughput.py --device cuda --results features.json

The command's way goes from the opened data set to features on the CPU: images are enlarged and scaled batch
by batch, on the model's device. The model alone gets the same batches, made beforehand, and answers. Both
must see the same images before anything is timed. They take turns, each first in every second round; the
ratio is that of a round, with the lowest and the highest quarter of the rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from vit_from_scratch.data import DataConfig, open_dataset
from vit_from_scratch.files import write_json
from vit_from_scratch.training.features import extract_features
from vit_from_scratch.training.fine_tuning import adapted
from vit_lab.runs.environment import environment
from vit_lab.runs.trained_models import open_model


def seconds(run: Callable[[], object], device: str) -> float:
    """Time one call, to the end of what it started on a GPU."""
    start = time.perf_counter()
    run()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", default="tiny-imagenet", help="as for `vit features`")
    parser.add_argument("--data", default="digits")
    parser.add_argument("--data-dir", help="folder that holds the data set")
    parser.add_argument("--part", default="train", choices=("train", "validation", "test"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--results", type=Path, help="also write everything to this JSON file")
    options = parser.parse_args()
    trained = open_model(options.weights)
    side = max(trained.model.config.image_shape)
    scaling = trained.normalisation or "half"
    config = DataConfig(options.data, image_size=side, normalisation=scaling)
    data = open_dataset(config, options.data_dir).to(options.device)
    classes = trained.model.config.num_classes
    model = adapted(trained.model, side, classes, channels=data.image_shape[0]).eval().to(options.device)
    ready = [(images.to(options.device), labels) for images, labels in data.batches(options.part)]
    images = sum(len(labels) for _, labels in ready)

    @torch.no_grad()
    def alone() -> list[Tensor]:
        return [model(batch) for batch, _ in ready]

    def features() -> tuple[Tensor, Tensor]:
        return extract_features(model, data.batches(options.part))

    described, labels = features()  # which warms up, too
    again, expected = extract_features(model, ready)
    if not (torch.equal(described, again) and torch.equal(labels, expected)):
        raise RuntimeError("the two ways do not see the same images")
    alone()
    times: dict[str, list[float]] = {"model": [], "features": []}
    for number in range(options.rounds):
        ways = [("model", alone), ("features", features)]
        for name, run in ways[:: -1 if number % 2 else 1]:
            times[name].append(seconds(run, options.device))
    ratios = [bare / whole for bare, whole in zip(times["model"], times["features"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    speeds = {name: images / statistics.median(found) for name, found in times.items()}
    for name, speed in speeds.items():
        print(f"{name:9} {speed:8.0f} images/s")
    print(f"vit features runs at {middle:.2f} times the model's speed ({low:.2f} to {high:.2f})")
    if options.results:
        settings = {key: getattr(options, key) for key in ("weights", "data", "part", "rounds", "device")}
        found = {"images_per_second": speeds, "to_model": middle, "quartiles": [low, high]}
        write_json(options.results, {"settings": settings, **found, **environment(0, options.device)})


if __name__ == "__main__":
    main()
