"""What `vit train` and the commands like it share: options that change a recipe, and running it."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_json, writing
from vit_from_scratch.paths import own_path
from vit_from_scratch.settings import merged
from vit_lab.cli.options import (
    add_data_dir,
    add_device,
    parse_assignments,
    refuse_file,
)
from vit_lab.experiments.recipes import Recipe

TAKE_OVER = "take over what FILE tells of already, say from another machine, and run only the missing"


def add_changes(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that change a recipe; return their group, for more of them."""
    changes = parser.add_argument_group("changes to the recipe")
    changes.add_argument("--epochs", type=int, help="passes over the training images")
    changes.add_argument("--batch-size", type=int, help="images in a step")
    changes.add_argument("--lr", type=float, dest="learning_rate", help="base learning rate")
    changes.add_argument("--seed", type=int, help="initial weights, order, augmentation")
    changes.add_argument(
        "--set",
        action="extend",
        nargs="+",
        default=[],
        metavar="TABLE.OPTION=VALUE",
        help="any setting of the tables data, model and train, such as model.dim=64",
    )
    return changes


def add_seeds(changes: argparse._ArgumentGroup) -> None:
    """Add --seeds to the options that change a recipe."""
    changes.add_argument("--seeds", type=int, nargs="+", metavar="N", help="one run for each, and a summary")


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where a run goes and where it is computed."""
    where = parser.add_argument_group("where")
    where.add_argument(
        "--out",
        type=own_path,
        metavar="DIR",
        help="folder of the run (default: runs/RECIPE-seed-N), or over those of several seeds (runs/RECIPE)",
    )
    add_results(where)
    where.add_argument("--add-to-results", action="store_true", help=f"{TAKE_OVER} seeds")
    where.add_argument(
        "--keep-epochs",
        type=int,
        nargs="+",
        default=[],
        metavar="N",
        help="keep the model after these epochs, too, in the run's folder; 0 is the untrained one",
    )
    add_device(where)


def add_results(where: argparse._ArgumentGroup) -> None:
    """Add --results to the options that say where a run goes."""
    where.add_argument(
        "--results", type=own_path, metavar="FILE", help="also write the summary of the seeds here"
    )


def add_page(parser: argparse.ArgumentParser, known: str, pairs: bool = False) -> None:
    """Add a page of trials, or of transfers, which have pairs, and where its runs and its summary go."""
    parser.add_argument("page", metavar="PAGE", help=f"{known}, or a TOML file of your own")
    parser.add_argument("--out", type=own_path, metavar="DIR", help="folder of the runs (default: runs/PAGE)")
    parser.add_argument("--results", type=own_path, metavar="FILE", help="also write the summary here")
    if pairs:
        parser.add_argument("--add-to-results", action="store_true", help=f"{TAKE_OVER} pairs")
    add_data_dir(parser)
    add_device(parser)


def asked_to_add(options: argparse.Namespace) -> bool:
    """Return whether what --results tells of is to be taken over.

    Raises:
        InputError: --add-to-results without --results.
    """
    asked = getattr(
        options, "add_to_results", False
    )  # not of `vit pretrain-masked`, whose weights are the point
    if asked and not options.results:
        raise InputError("--add-to-results without a file: expected --results FILE, too.")
    return asked


def write_page(options: argparse.Namespace, folder: Path, summary: dict[str, Any]) -> None:
    """Write the summary of a page where --results says, and say where it lies."""
    if options.results:
        with writing(options.results):
            write_json(options.results, summary)
    print(f"summary: {folder / 'summary.json'}")


def asked_changes(options: argparse.Namespace) -> dict[str, Any]:
    """Return the changes to a recipe that the options ask for, as nested tables.

    Raises:
        InputError: --seed and --seeds together, or a --set that cannot be read.
    """
    if options.seed is not None and options.seeds is not None:
        raise InputError("expected --seed for one run or --seeds for several, not both.")
    direct = {
        name: getattr(options, name)
        for name in ("epochs", "batch_size", "learning_rate", "seed")
        if getattr(options, name) is not None
    }
    changes: dict[str, Any] = parse_assignments(options.set)
    if direct:
        changes = merged(changes, {"train": direct})
    if options.seeds is not None:
        changes["seeds"] = options.seeds
    elif options.seed is not None:
        changes["seeds"] = [options.seed]
    return changes


def train_recipe(recipe: Recipe, options: argparse.Namespace, device: str, many: bool) -> None:
    """Run a recipe, with its own seed or with each of its seeds, and print what it reached."""
    if many:
        train_seeds(recipe, options, device)
        return
    asked_to_add(options)  # a single run adds to nothing
    from vit_lab import run  # imported here: it takes seconds

    folder = options.out or Path("runs") / f"{recipe.name}-seed-{recipe.train.seed}"
    result = run(recipe, folder, options.data_dir, device, print, keep=options.keep_epochs)
    report(folder, result)


def train_seeds(
    recipe: Recipe,
    options: argparse.Namespace,
    device: str,
    folder: Path | None = None,
    say: Callable[[Path, dict[str, Any]], None] | None = None,
    rates: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Run every seed, in a folder other than --out if one is given, then print and write the summary.

    Args:
        recipe: what to run.
        options: --out, --results, --data-dir and --keep-epochs.
        device: where to train.
        folder: over the runs' folders.
        say: called with each run's folder and result, to print them; `report` if None.
        rates: the rows of the sweep that chose the learning rate, for the summary.

    Returns:
        The summary.
    """
    from vit_lab import run_seeds  # imported here: it takes seconds
    from vit_lab.experiments.seed_runs import known_runs, promised
    from vit_lab.experiments.summaries import check_summary
    from vit_lab.runs.processes import Processes

    adding = asked_to_add(options)
    if options.results:
        check_summary(options.results, recipe)
    known = known_runs(options.results) if adding else {}
    before = promised(options.results) if adding else {}
    if folder is None:
        folder = Path(options.out or f"runs/{recipe.name}")
    refuse_file(folder)
    keep = getattr(options, "keep_epochs", [])
    summary = run_seeds(
        recipe, folder, options.data_dir, device, print, say or report, keep, rates, known=known
    )
    if options.results and Processes.current().rank == 0:
        with writing(options.results):
            write_json(options.results, summary | before)
    labelled = recipe.objective == "classes"
    name, meaning = ("test_accuracy", "test accuracy") if labelled else ("validation_loss", "held-out loss")
    spread = summary[f"{name}_std"]
    print(
        f"mean {meaning} {summary[f'{name}_mean']:.4f}"
        + (f" (standard deviation {spread:.4f})" if spread is not None else "")
        + f" over seeds {' '.join(map(str, summary['seeds']))}; longest run {summary['seconds_max']:.0f} s"
    )
    if "baseline" in summary:
        baseline = summary["baseline"]
        print(f"{baseline['nearest_neighbours']} nearest neighbours: {baseline['test_accuracy']:.4f}")
    print(f"summary: {folder / 'summary.json'}")
    return summary


def report(folder: Path, result: dict[str, Any]) -> None:
    """Print what a run reached."""
    top5 = result.get("test_top5_accuracy")
    print(
        f"{folder}: test accuracy {result['test_accuracy']:.4f} on {result['test_images']:,} images, "
        + (f"in the first five {top5:.4f}, " if top5 is not None else "")
        + f"test loss {result['test_loss']:.4f}; {result['epochs']} epochs in {result['seconds']:.0f} s"
    )
