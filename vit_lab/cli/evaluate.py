"""`vit evaluate`: a run's test number again."""

import argparse
from typing import Any

from vit_from_scratch.paths import own_path
from vit_lab.cli.options import add_command, add_shared, chosen_device
from vit_lab.cli.training import TEST_NUMBERS, test_numbers


def add_parser(commands: Any) -> None:
    """Add `evaluate` to the commands."""
    parser = add_command(
        commands,
        "evaluate",
        run,
        help="measure a finished run on its test set again",
        description="Load the model of a finished run and measure it on the run's test set, which is looked "
        "for where --data-dir or VIT_DATA_DIR says, else where the run had it, else downloaded.",
    )
    parser.add_argument("folder", type=own_path, metavar="RUN", help="the run's folder")
    add_shared(parser, "--data-dir", "--device")


def run(options: argparse.Namespace) -> None:
    """Carry out `vit evaluate`."""
    device = chosen_device(options.device)
    from vit_lab import evaluate_run

    measured, result = evaluate_run(options.folder, options.data_dir, device)
    there, images = result["test_accuracy"], result["test_images"]
    print(f"{options.folder}: {test_numbers(*(getattr(measured, name) for name in TEST_NUMBERS))}")
    print(
        "the same accuracy as when it was trained"
        if (measured.accuracy, measured.images) == (there, images)
        else f"when it was trained: test accuracy {there:.4f} on {images:,} images; the data, the device or "
        "the package differs"
    )
