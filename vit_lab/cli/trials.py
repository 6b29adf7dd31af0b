"""`vit trials`: compare settings on held-out images."""

import argparse
from pathlib import Path
from typing import Any

from vit_lab.cli.options import chosen_device, refuse_file
from vit_lab.cli.running import add_page, write_page
from vit_lab.experiments.trials import load_trials, trials_names


def add_parser(commands: Any) -> None:
    """Add `trials` to the commands."""
    parser = commands.add_parser(
        "trials",
        help="compare settings on held-out images",
        description="Train a recipe several times, a setting changed at a time, and compare the validation "
        "accuracies. The test set is not touched.",
    )
    add_page(parser, ", ".join(trials_names()))
    parser.set_defaults(run=trials_command)


def trials_command(options: argparse.Namespace) -> None:
    """Carry out `vit trials`."""
    page = load_trials(options.page)
    folder = options.out or Path("runs") / page.name
    refuse_file(folder)
    device = chosen_device(options.device)
    from vit_lab import run_trials  # imported here: it takes seconds
    from vit_lab.experiments.summaries import check_summary

    if options.results:
        check_summary(options.results, page)
    summary = run_trials(page, folder, options.data_dir, device, report)
    write_page(options, folder, summary)


def report(trial: dict[str, Any]) -> None:
    """Print what a trial reached."""
    spread = trial["validation_accuracy_std"]
    seeds = f" (standard deviation {spread:.4f}, {len(trial['runs'])} seeds)" if spread is not None else ""
    print(
        f"{trial['validation_accuracy']:.4f}{seeds} validation accuracy in {trial['seconds']:.0f} s: "
        f"{trial['name']}",
        flush=True,
    )
