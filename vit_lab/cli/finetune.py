"""`vit finetune`: a trained model for other images and other classes."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_json, writing
from vit_from_scratch.settings import merged
from vit_lab.cli.options import add_data_dir, chosen_device, refuse_file, resumable
from vit_lab.cli.running import (
    add_changes,
    add_places,
    add_seeds,
    asked_changes,
    train_recipe,
    train_seeds,
)
from vit_lab.cli.weights import add_weights
from vit_lab.experiments.fine_tuning import NAMES, RATES, fine_tuning_recipe
from vit_lab.experiments.recipes import Recipe

EPILOG = f"""\
examples:
  vit finetune --weights tiny-imagenet --data cifar10 --data-dir DEST
  vit finetune --weights tiny-imagenet --data folder:photos --image-size 128
  vit finetune --weights runs/try --data digits --sweep --seeds 0 1 2

Settings are the paper's (appendix B.1.1): SGD with momentum, no weight decay, cosine decay, clipping, a zero
head. --sweep tries learning rates on held-out images ({", ".join(f"{rate:g}" for rate in RATES)} unless some
are given) and tests the best one. A run that was stopped goes on with the same command."""


def add_parser(commands: Any) -> None:
    """Add `finetune` to the commands."""
    parser = commands.add_parser(
        "finetune",
        help="train a pre-trained model further, on other images",
        description="Give a trained model a new head, train it on a data set, test it once, and keep "
        "everything in a folder.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_argument_group("what to run")
    add_weights(what, default=None)
    what.add_argument("--data", metavar="NAME", required=True, help=", ".join(NAMES))
    add_data_dir(what)
    what.add_argument("--image-size", type=int, metavar="S", help="side in pixels (default: the model's own)")
    what.add_argument(
        "--sweep", type=float, nargs="*", metavar="RATE", help="choose the learning rate on held-out images"
    )
    what.add_argument("--show", action="store_true", help="print the recipe, changes included, and stop")
    add_seeds(add_changes(parser))
    add_places(parser)
    parser.set_defaults(run=finetune_command)


def finetune_command(options: argparse.Namespace) -> None:
    """Carry out `vit finetune`."""
    changes = asked_changes(options)
    if options.image_size is not None:
        changes = merged(changes, {"data": {"image_size": options.image_size}})
    if options.sweep is not None and options.learning_rate is not None:
        raise InputError("expected --lr for one learning rate or --sweep for several, not both.")
    if options.sweep is not None and options.keep_epochs:
        raise InputError(
            "--keep-epochs with --sweep: expected one of them. Sweep first, then train with --lr."
        )
    many = options.seeds is not None or options.sweep is not None
    if options.results and not many:
        raise InputError("--results takes the summary of several seeds: give --seeds, or --sweep.")
    recipe, why = fine_tuning_recipe(options.weights, options.data, changes)
    if options.show:
        print(f"# {why}\n{recipe.to_toml()}", end="")
        return
    device = chosen_device(options.device)
    with resumable():
        print(why, flush=True)
        if options.sweep is None:
            train_recipe(recipe, options, device, many)
        else:
            sweep(recipe, options, device)


def sweep(recipe: Recipe, options: argparse.Namespace, device: str) -> None:
    """Try the rates, test the best one with every seed, and print a table before the tests and after."""
    from vit_from_scratch.data.datasets import open_dataset  # imported here: it takes seconds
    from vit_lab.experiments.summaries import SWEEP, check_sweep
    from vit_lab.experiments.sweeps import rate_folder, sweep_rates, sweep_record, with_rate
    from vit_lab.runs.processes import Processes

    folder = options.out or Path("runs") / recipe.name
    refuse_file(folder)
    rates = options.sweep or RATES
    if options.results:
        refuse_other_summary(options.results, [with_rate(recipe, rate) for rate in rates])
    check_sweep(folder / SWEEP, recipe, rates)
    data = open_dataset(recipe.data, options.data_dir)
    rows = sweep_rates(recipe, rates, folder, data, device, print)
    record = sweep_record(recipe, rows)
    chosen = record["chosen"]
    print_rates(rows, chosen)
    if Processes.current().rank == 0:
        with writing(folder):
            write_json(folder / SWEEP, record)
    at_rate = with_rate(recipe, chosen)
    summary = train_seeds(at_rate, options, device, rate_folder(folder, chosen), rates=rows)
    print_rates(rows, chosen, summary["test_accuracy_mean"])


def print_rates(rows: Sequence[dict[str, Any]], chosen: float, tested: float | None = None) -> None:
    """Print a sweep as a table.

    Args:
        rows: as `sweep_rates` returns them.
        chosen: one of the rates.
        tested: its mean test accuracy over the seeds, once it is known.
    """
    print(f"{'rate':>8}  held-out accuracy" + ("  test accuracy" if tested is not None else ""))
    for row in rows:
        accuracy = row["validation_accuracy"]
        said = "diverged" if accuracy is None else f"{accuracy:.4f}"
        if row["rate"] == chosen:
            said = f"{said}  chosen" if tested is None else f"{said:17}  {tested:.4f}, chosen"
        print(f"{row['rate']:8g}  {said}")


def refuse_other_summary(results: Path, candidates: list[Recipe]) -> None:
    """Raise an `InputError` before anything is trained, if no rate's summary may replace what lies there."""
    from vit_lab.experiments.summaries import check_summary

    for number, recipe in enumerate(candidates, 1):
        try:
            return check_summary(results, recipe)
        except InputError:
            if number == len(candidates):
                raise
