"""Put a finished run's weights into the package, in half precision, and measure what ships.

    python tools/ship_checkpoint.py RUN tiny-imagenet --data-dir DEST

writes weights/NAME.safetensors, weights/NAME.txt (its class names, one a line) and
experiments/results/NAME_weights.json of the package: the test accuracy of the rounded weights beside the
run's own, and the file's checksum.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

from vit_from_scratch.data import DataConfig, open_dataset
from vit_from_scratch.errors import InputError
from vit_from_scratch.experiments.environment import environment
from vit_from_scratch.experiments.runs import read_result, write_json
from vit_from_scratch.model.checkpoints import load_checkpoint, save_checkpoint
from vit_from_scratch.model.cost import count_parameters
from vit_from_scratch.settings import from_table
from vit_from_scratch.training.evaluation import evaluate_batches
from vit_from_scratch.training.run_settings import read_settings

PACKAGE = Path(__file__).resolve().parent.parent / "vit_from_scratch"
LARGEST = 12_000_000
"""Bytes that a shipped checkpoint may have."""


def ship(run: Path, name: str, data_dir: str | None) -> dict:
    """Write the checkpoint and its result; return the result.

    Raises:
        InputError: the run is not finished, or its weights are too large to ship.
    """
    result = read_result(run)
    model = load_checkpoint(run / "model.safetensors")
    if 2 * count_parameters(model) > LARGEST:
        raise InputError(
            f"{run} has {count_parameters(model):,} parameters: expected at most {LARGEST // 2:,} to ship."
        )
    settings = read_settings(run)
    target = PACKAGE / "weights" / f"{name}.safetensors"
    save_checkpoint(target, model.half())
    target.with_suffix(".txt").write_text("\n".join(settings["images"]["classes"]) + "\n", "utf-8")
    shipped = load_checkpoint(target).float()
    data = open_dataset(from_table(DataConfig, settings["data"], "data"), data_dir)
    measured = evaluate_batches(shipped, data.batches("test"))
    summary = {
        "claim": "Rounding the weights to half precision leaves the accuracy as it is.",
        "command": f"python tools/ship_checkpoint.py RUN {name} --data-dir DEST",
        "test_accuracy": measured.accuracy,
        "test_top5_accuracy": measured.top5_accuracy,
        "test_loss": measured.loss,
        "run": {key: result[key] for key in ("test_accuracy", "test_loss", "seed", "date", "commit")},
        "bytes": target.stat().st_size,
        "sha256": hashlib.sha256(target.read_bytes()).hexdigest(),
        **environment(),
    }
    write_json(PACKAGE / "experiments" / "results" / f"{name}_weights.json", summary)
    return summary


def main() -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path, help="the finished run's folder")
    parser.add_argument("name", help="the name that load_pretrained takes")
    parser.add_argument("--data-dir", help="folder that holds the data set")
    options = parser.parse_args()
    try:
        summary = ship(options.run, options.name, options.data_dir)
    except InputError as error:
        print(f"ship_checkpoint: {error}", file=sys.stderr)
        return 2
    print(json.dumps({key: summary[key] for key in ("test_accuracy", "bytes", "sha256")}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
