"""`vit evaluate`: a run's test number again."""

import argparse
from typing import Any

from vit_from_scratch.paths import own_path
from vit_lab.cli.options import add_data_dir, add_device, chosen_device


def add_parser(commands: Any) -> None:
    """Add `evaluate` to the commands."""
    parser = commands.add_parser(
        "evaluate",
        help="measure a finished run on its test set again",
        description="Load the model of a finished run and measure it on the run's test set.",
    )
    parser.add_argument("folder", type=own_path, metavar="RUN", help="the run's folder")
    add_data_dir(parser, "where the run had it, else a download")
    add_device(parser)
    parser.set_defaults(run=evaluate_command)


def evaluate_command(options: argparse.Namespace) -> None:
    """Carry out `vit evaluate`."""
    device = chosen_device(options.device)
    from vit_lab import evaluate_run  # imported here: it takes seconds

    measured, result = evaluate_run(options.folder, options.data_dir, device)
    same = (measured.accuracy, measured.images) == (result["test_accuracy"], result["test_images"])
    top5 = measured.top5_accuracy
    print(
        f"{options.folder}: test accuracy {measured.accuracy:.4f} on {measured.images:,} images, "
        + (f"in the first five {top5:.4f}, " if top5 is not None else "")
        + f"test loss {measured.loss:.4f}"
    )
    print(
        "the same accuracy as when it was trained"
        if same
        else f"when it was trained: test accuracy {result['test_accuracy']:.4f} on {result['test_images']:,} "
        "images; the data, the device or the package differs"
    )
