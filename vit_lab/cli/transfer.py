"""`vit transfer`: starting points against tasks, each fine-tuned alike."""

import argparse
from pathlib import Path
from typing import Any

from vit_lab.cli.options import chosen_device, refuse_file, resumable
from vit_lab.cli.running import add_page, asked_to_add, write_page
from vit_lab.experiments.transfers import load_transfers, transfer_names


def add_parser(commands: Any) -> None:
    """Add `transfer` to the commands."""
    parser = commands.add_parser(
        "transfer",
        help="compare what a model may begin from",
        description="Fine-tune several starting points on several tasks: for each pair a sweep of learning "
        "rates on held-out images, then a run for each seed at the best one, tested once. A page that was "
        "stopped goes on with the same command.",
    )
    add_page(parser, ", ".join(transfer_names()), pairs=True)
    parser.set_defaults(run=transfer_command)


def transfer_command(options: argparse.Namespace) -> None:
    """Carry out `vit transfer`."""
    page = load_transfers(options.page)
    folder = options.out or Path("runs") / page.name
    refuse_file(folder)
    device = chosen_device(options.device)
    from vit_lab.experiments.summaries import check_summary
    from vit_lab.experiments.transfer_runs import pairs_of, run_transfers  # takes seconds

    adding = asked_to_add(options)
    if options.results:
        check_summary(options.results, page)
    known = pairs_of(options.results) if adding else {}
    with resumable():
        summary = run_transfers(page, folder, options.data_dir, device, print, report, known)
    write_page(options, folder, summary)


def report(pair: dict[str, Any]) -> None:
    """Print what a pair reached."""
    spread, diverged = pair["test_accuracy_std"], pair["diverged"]
    print(
        f"{pair['test_accuracy_mean']:.4f} test accuracy"
        + (f" (standard deviation {spread:.4f}, {len(pair['runs'])} seeds)" if spread is not None else "")
        + f" at rate {pair['chosen']:g}: {pair['task']}, {pair['start']}"
        + (f"; diverged, and left out: seed {', '.join(map(str, diverged))}" if diverged else ""),
        flush=True,
    )
