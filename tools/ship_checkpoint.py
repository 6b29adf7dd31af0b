"""Put a finished run's weights into the package, in half precision, and measure what ships.

    python tools/ship_checkpoint.py RUN tiny-imagenet --data-dir DEST [--start RUN]

writes vit_from_scratch/weights/NAME.safetensors and vit_lab/results/NAME_weights.json: the numbers of the
rounded weights beside the run's own, and the file's checksum. A run on classes is tested again, and
weights/NAME.txt gets its class names, one a line. A run without labels is measured on its held-out photos
again, and what its task needs beside the ViT ships with it. With --start, the run that this one began from,
the mean of both runs' weights ships; held-out photos are asked about other shares, too.
"""

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

import torch
from measuring import write_result
from torch import nn

from vit_from_scratch.data import DataConfig, open_dataset
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import sha256
from vit_from_scratch.model.checkpoints import load_checkpoint, model_from_tensors, save_checkpoint
from vit_from_scratch.model.cost import count_parameters
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.settings import from_table
from vit_from_scratch.training.evaluation import measure
from vit_from_scratch.training.pretraining import PRETRAINING, load_pretraining, save_pretraining
from vit_from_scratch.training.state import as_vit
from vit_lab.runs.finished import read_result
from vit_lab.runs.run_settings import read_settings

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 12_000_000
"""Bytes that a shipped checkpoint may have."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far along the line from a run's start to its end held-out photos are asked; the middle ships."""


def between(start: VisionTransformer, end: VisionTransformer, share: float) -> VisionTransformer:
    """Return a copy of a fine-tuned model with weights on the line from where it started to where it ended.

    Along that line both are often beaten (Wortsman et al., 2022), and it costs no training. Not the paper's.

    Args:
        start: what training began from; of the same configuration, its head kept.
        end: what training made of it.
        share: how far along the line, 0 for the start and 1 for the end.
    """
    first = start.state_dict()
    weights = {
        name: torch.lerp(first[name].to(value), value, share) if value.is_floating_point() else value
        for name, value in end.state_dict().items()  # BatchNorm's count of batches is not a weight
    }
    return model_from_tensors(end.config, weights).train(end.training)


def rounded(run: Path, start: Path | None, target: Path) -> nn.Module:
    """Write a run's model in half precision, or the mean of it and its start; return what that file holds."""
    labelled = not (run / PRETRAINING).exists()
    model = load_checkpoint(run / "model.safetensors") if labelled else load_pretraining(run / PRETRAINING)
    if start is not None:
        model = between(load_checkpoint(start / "model.safetensors"), as_vit(model, "a mean of weights"), 0.5)
    count = count_parameters(model)
    if 2 * count > LARGEST:
        raise InputError(f"{run} has {count:,} parameters: expected at most {LARGEST // 2:,} to ship.")
    if labelled:
        save_checkpoint(target, model.half())
        return load_checkpoint(target).float()
    save_pretraining(target, model.half())
    return load_pretraining(target)


def ship(run: Path, name: str, data_dir: str | None, start: Path | None = None) -> dict[str, Any]:
    """Write the checkpoint NAME and its result, and return it; with a start, the mean of both runs ships."""
    result, settings = read_result(run), read_settings(run)
    part = "validation" if "objective" in result else "test"
    target = ROOT / "vit_from_scratch" / "weights" / f"{name}.safetensors"
    shipped = rounded(run, start, target)
    if part == "test":
        target.with_suffix(".txt").write_text("\n".join(settings["images"]["classes"]) + "\n", "utf-8")
    data = open_dataset(from_table(DataConfig, settings["data"], "data"), data_dir)
    found = dataclasses.asdict(measure(shipped, data.batches(part)))
    numbers = {f"{part}_{key}": number for key, number in found.items() if number is not None}
    mean: dict[str, Any] = {}
    if start is not None:
        first, last = (load_checkpoint(folder / "model.safetensors") for folder in (start, run))
        models = {str(share): between(first, last, share) for share in SHARES}
        reached = {share: measure(one, data.batches("validation")).accuracy for share, one in models.items()}
        held_out = measure(shipped, data.batches("validation")).accuracy
        mean = {"along": reached, "validation_accuracy": held_out}
    summary = {
        "claim": "Rounding the weights to half precision leaves the accuracy as it is."
        + (" Their mean over a run's start and its end is right more often than either." if mean else ""),
        **numbers,
        **mean,
        "run": {
            key: result[key] for key in ("seed", "date", "commit", "model_sha256", *numbers) if key in result
        },
        "bytes": target.stat().st_size,
        "sha256": sha256(target),
    }
    write_result(f"{name}_weights", summary)
    return summary


def main() -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path, help="the finished run's folder")
    parser.add_argument("name", help="the name that load_pretrained takes")
    parser.add_argument("--data-dir", help="folder that holds the data set")
    parser.add_argument("--start", type=Path, help="the run that it began from; the mean of both ships")
    options = parser.parse_args()
    try:
        summary = ship(options.run, options.name, options.data_dir, options.start)
    except InputError as error:
        print(f"ship_checkpoint: {error}", file=sys.stderr)
        return 2
    print({key: value for key, value in summary.items() if key.startswith(("test", "valid", "by"))})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
