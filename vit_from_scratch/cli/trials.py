"""`vit trials`: compare settings on held-out images."""

import argparse
from pathlib import Path
from typing import Any

from vit_from_scratch.cli.options import add_data_dir, add_device, chosen_device
from vit_from_scratch.training.run_folder import writing
from vit_from_scratch.training.runs import write_json
from vit_from_scratch.training.trials import load_trials, run_trials


def add_parser(commands: Any) -> None:
    """Add `trials` to the commands."""
    parser = commands.add_parser(
        "trials",
        help="compare settings on held-out images",
        description="Train a recipe several times, a setting changed at a time, and compare the validation "
        "accuracies. The test set is not touched.",
    )
    parser.add_argument("page", metavar="PAGE", help="a page of trials by name, or a TOML file of your own")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the runs (default: runs/PAGE)")
    parser.add_argument("--results", type=Path, metavar="FILE", help="also write the summary here")
    add_data_dir(parser)
    add_device(parser)
    parser.set_defaults(run=trials_command)


def trials_command(options: argparse.Namespace) -> None:
    """Carry out `vit trials`."""
    page = load_trials(options.page)
    folder = options.out or Path("runs") / page.name
    summary = run_trials(page, folder, options.data_dir, chosen_device(options.device), report)
    if options.results:
        with writing(options.results):
            write_json(options.results, summary)
    print(f"summary: {folder / 'summary.json'}")


def report(trial: dict[str, Any]) -> None:
    """Print what a trial reached."""
    print(
        f"{trial['validation_accuracy']:.4f} validation accuracy in {trial['seconds']:.0f} s: {trial['name']}"
    )
