"""What `vit train` and `vit finetune` share: options that change a recipe, and running it."""

import argparse
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_json, writing
from vit_from_scratch.paths import own_path
from vit_from_scratch.settings import merged
from vit_lab.cli.options import add_device, chosen_device, parse_assignments, refuse_file, resumable
from vit_lab.cli.streams import complain
from vit_lab.experiments.recipes import Recipe

DIRECT = ("epochs", "batch_size", "learning_rate", "seed")
"""The settings of [train] that have an option of their own."""


def add_changes(parser: argparse.ArgumentParser) -> None:
    """Add the options that change a recipe."""
    changes = parser.add_argument_group("changes to the recipe")
    changes.add_argument("--epochs", type=int, help="passes over the training images")
    changes.add_argument("--batch-size", type=int, help="images in a step")
    changes.add_argument("--lr", type=float, dest="learning_rate", help="base learning rate")
    changes.add_argument("--seed", type=int, help="initial weights, order, augmentation")
    changes.add_argument("--seeds", type=int, nargs="+", metavar="N", help="one run for each, and a summary")
    add_set(changes)
    changes.add_argument("--show", action="store_true", help="print the recipe, changes included, and stop")


def add_set(changes: argparse._ActionsContainer) -> None:
    """Add --set."""
    changes.add_argument(
        "--set",
        action="extend",
        nargs="+",
        default=[],
        metavar="TABLE.OPTION=VALUE",
        help="any setting of the tables data, model and train, such as model.dim=64; with "
        "train.precision=bfloat16 also where that is slow",
    )


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where runs go and where they are computed."""
    where = parser.add_argument_group("where")
    where.add_argument(
        "--out",
        type=own_path,
        metavar="DIR",
        help="folder of the run (default: runs/NAME-seed-N), or over those of several (runs/NAME)",
    )
    where.add_argument(
        "--results", type=own_path, metavar="FILE", help="also write the summary of the runs here"
    )
    where.add_argument(
        "--add-to-results",
        action="store_true",
        help="take over what FILE tells of already, say from another machine, and run only what is missing",
    )
    add_device(where)


def asked_changes(options: argparse.Namespace) -> dict[str, Any]:
    """Return the changes to a recipe that the options ask for, as nested tables.

    Raises:
        InputError: --seed and --seeds together, or a --set that cannot be read.
    """
    if options.seed is not None and options.seeds is not None:
        raise InputError("expected --seed for one run or --seeds for several, not both.")
    direct = {name: value for name in DIRECT if (value := getattr(options, name)) is not None}
    changes = parse_assignments(options.set)
    if direct:
        changes = merged(changes, {"train": direct})
    seeds = options.seeds if options.seed is None else [options.seed]
    return changes | ({"seeds": seeds} if seeds is not None else {})


def asked_to_add(options: argparse.Namespace) -> bool:
    """Return whether what --results tells of is to be taken over.

    Raises:
        InputError: --add-to-results without --results.
    """
    if options.add_to_results and not options.results:
        raise InputError("--add-to-results without a file: expected --results FILE, too.")
    return options.add_to_results


def written_before(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the summary in --results claims and expects; nothing unless runs are added to it.

    That was written before its first run, so it stays when runs are added, whatever the recipe says by then.
    """
    there = asked_to_add(options) and options.results.exists()
    summary = json.loads(options.results.read_text("utf-8")) if there else {}
    return {key: summary[key] for key in ("claim", "command", "expect") if summary.get(key)}


def affordable(recipe: Recipe, options: argparse.Namespace, device: str) -> Recipe:
    """Return a recipe in a precision that suits the device, unless --set names one, and say what changed."""
    from vit_from_scratch.precisions import resolved_precision
    from vit_lab.runs.processes import Processes

    if "precision" in parse_assignments(options.set).get("train", {}):
        return recipe
    train, changed = resolved_precision(recipe.train, device)
    if changed and Processes.current().rank == 0:
        complain(changed)
    return replace(recipe, train=train)


def train_recipe(
    recipe: Recipe, why: str, options: argparse.Namespace, many: bool, rates: Sequence[float] = ()
) -> None:
    """Show a recipe, or run it with its own seed or with each of its seeds, and print what it reached.

    Args:
        recipe: what to run.
        why: it was chosen; "" where it was named.
        options: as typed.
        many: whether to run every seed and write a summary.
        rates: learning rates to choose from.
    """
    if options.show:
        print((f"# {why}\n" if why else "") + recipe.to_toml(), end="")
        return
    keep, epochs = options.keep_epochs, recipe.train.epochs
    if not recipe.train.steps and max(keep, default=0) > epochs:
        raise InputError(f"--keep-epochs {max(keep)}: expected 0 to {epochs}, the epochs of the run.")
    device = chosen_device(options.device)
    asked_to_add(options)
    folder = options.out or Path("runs") / (
        recipe.name if many else f"{recipe.name}-seed-{recipe.train.seed}"
    )
    if many:
        refuse_file(folder)
    with resumable():
        if why:
            print(why, flush=True)
        recipe = affordable(recipe, options, device)
        if many:
            _train_seeds(recipe, options, device, folder, rates)
            folder = folder / f"seed-{recipe.seeds[0]}"
        else:
            from vit_lab import run  # imported here: it takes seconds

            report(folder, run(recipe, folder, options.data_dir, device, print, keep=keep))
    if recipe.objective != "classes":
        where = f" --data-dir {shlex.quote(str(options.data_dir))}" if options.data_dir else ""
        start, data = (shlex.quote(str(word)) for word in (folder, recipe.data.name))
        print(f"fine-tune it: vit finetune --weights {start} --data {data}{where}")


def _train_seeds(
    recipe: Recipe, options: argparse.Namespace, device: str, folder: Path, rates: Sequence[float]
) -> None:
    """Run every seed, then print and write the summary."""
    from vit_lab import run_seeds  # imported here: it takes seconds
    from vit_lab.experiments.study_runs import Place
    from vit_lab.experiments.summaries import check_summary, read_summary
    from vit_lab.runs.processes import Processes

    rows = []
    if options.results:
        check_summary(options.results, recipe, rates)
        rows = read_summary(options.results)[1] if options.add_to_results else []
    before = written_before(options)
    place = Place(options.data_dir, device, print, report, options.keep_epochs)
    summary = run_seeds(recipe, folder, place, rates, rows[0] if rows else None)
    if options.results and Processes.current().rank == 0:
        with writing(options.results):
            write_json(options.results, summary | before)
    labelled = recipe.objective == "classes"
    name, meaning = ("test_accuracy", "test accuracy") if labelled else ("validation_loss", "held-out loss")
    spread = summary[f"{name}_std"]
    for row in summary.get("rates", []):
        accuracy = row["validation_accuracy"]
        said = "diverged" if accuracy is None else f"{accuracy:.4f} held out"
        print(f"rate {row['rate']:g}: {said}{', chosen' if row['rate'] == summary['chosen'] else ''}")
    print(
        f"mean {meaning} {summary[f'{name}_mean']:.4f}"
        + (f" (standard deviation {spread:.4f})" if spread is not None else "")
        + f" over seeds {' '.join(map(str, summary['seeds']))}; longest run {summary['seconds_max']:.0f} s"
    )
    if "baseline" in summary:
        baseline = summary["baseline"]
        print(f"{baseline['nearest_neighbours']} nearest neighbours: {baseline['test_accuracy']:.4f}")
    print(f"summary: {folder / 'summary.json'}")


def report(folder: Path, result: dict[str, Any]) -> None:
    """Print what a run reached: on test images, or without labels on those held out."""
    if "test_accuracy" in result:
        top5 = result.get("test_top5_accuracy")
        reached = (
            f"test accuracy {result['test_accuracy']:.4f} on {result['test_images']:,} images, "
            + (f"in the first five {top5:.4f}, " if top5 is not None else "")
            + f"test loss {result['test_loss']:.4f}"
        )
    else:
        right = result["validation_accuracy"]
        reached = (
            f"held-out loss {result['validation_loss']:.4f} on {result['validation_images']:,} images"
            + (f", accuracy {right:.4f} on the colours of corrupted patches" if right is not None else "")
        )
    print(f"{folder}: {reached}; {result['epochs']} epochs in {result['seconds']:.0f} s")
