"""`vit train`: from a recipe to a trained, tested model."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vit_from_scratch.cli.options import (
    add_data_dir,
    add_device,
    chosen_device,
    own_path,
    own_weights,
    parse_assignments,
    resumable,
)
from vit_from_scratch.errors import InputError
from vit_from_scratch.experiments.recipes import Recipe, load_recipe, recipe_names, require_classes
from vit_from_scratch.experiments.suited import data_names, suited_recipe
from vit_from_scratch.files import write_json, writing
from vit_from_scratch.settings import merged

EPILOG = """\
examples:
  vit train --data digits
  vit train --data digits --epochs 20 --seed 1 --out runs/try --set model.dim=48
  vit train --data cifar10 --data-dir DEST --epochs 5
  vit train --data folder:photos          (photos/CLASS/*.jpg, a folder for each class)
  vit train --recipe digits --show
  vit train --recipe digits --seeds 0 1 2 3 4

A run that was stopped goes on with the same command."""


def add_parser(commands: Any) -> None:
    """Add `train` to the commands."""
    parser = commands.add_parser(
        "train",
        help="train a model and test it once",
        description="Train a model by a recipe, test it once, and keep everything in a folder.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    changes = add_recipe_options(parser)
    changes.add_argument("--seeds", type=int, nargs="+", metavar="N", help="one run for each, and a summary")
    where = parser.add_argument_group("where")
    where.add_argument(
        "--out", type=own_path, metavar="DIR", help="the run's folder (default: runs/RECIPE-seed-N)"
    )
    where.add_argument(
        "--results", type=own_path, metavar="FILE", help="also write the summary of the seeds here"
    )
    where.add_argument(
        "--keep-epochs",
        type=int,
        nargs="+",
        default=[],
        metavar="N",
        help="keep the model after these epochs, too, in the run's folder; 0 is the untrained one",
    )
    add_device(where)
    parser.set_defaults(run=train_command)


def add_recipe_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what names a recipe and changes it; return the group of the changes, for more of them."""
    what = parser.add_argument_group("what to run")
    what.add_argument(
        "--recipe", metavar="NAME", help=f"{', '.join(recipe_names())}, or a TOML file of your own"
    )
    what.add_argument(
        "--data", metavar="NAME", help=f"{', '.join(data_names())}: a data set, with settings that suit it"
    )
    add_data_dir(what)
    what.add_argument(
        "--weights",
        type=own_weights,
        metavar="FILE",
        help="begin from this checkpoint (fine-tuning), such as a run's model.safetensors",
    )
    what.add_argument("--show", action="store_true", help="print the recipe, changes included, and stop")
    changes = parser.add_argument_group("changes to the recipe")
    changes.add_argument("--epochs", type=int, help="passes over the training images")
    changes.add_argument("--batch-size", type=int, help="images in a step")
    changes.add_argument("--lr", type=float, dest="learning_rate", help="base learning rate")
    changes.add_argument("--seed", type=int, help="initial weights, order, augmentation")
    changes.add_argument("--set", action="extend", nargs="+", default=[], metavar="TABLE.OPTION=VALUE")
    return changes


def train_command(options: argparse.Namespace) -> None:
    """Carry out `vit train`."""
    recipe, why = chosen_recipe(options)
    if options.show:
        print((f"# {why}\n" if why else "") + recipe.to_toml(), end="")
        return
    require_classes(recipe, "`vit train`")
    device = chosen_device(options.device)
    many = options.seeds is not None or (options.recipe is not None and options.seed is None)
    if options.results and not many:
        raise InputError(
            "--results takes the summary of several seeds: give --seeds, or --recipe without --seed."
        )
    with resumable():
        if why:
            print(why, flush=True)
        if many:
            train_seeds(recipe, options, device)
        else:
            from vit_from_scratch.experiments import run  # imported here: it takes seconds

            folder = options.out or Path("runs") / f"{recipe.name}-seed-{recipe.train.seed}"
            result = run(recipe, folder, options.data_dir, device, print, keep=options.keep_epochs)
            report(folder, result)


def train_seeds(recipe: Recipe, options: argparse.Namespace, device: str) -> None:
    """Run every seed, then print and write the summary."""
    from vit_from_scratch.experiments import run_seeds  # imported here: it takes seconds
    from vit_from_scratch.experiments.summaries import check_summary

    if options.results:
        check_summary(options.results, recipe)
    folder = options.out or Path("runs") / recipe.name
    summary = run_seeds(recipe, folder, options.data_dir, device, print, report, options.keep_epochs)
    if options.results:
        with writing(options.results):
            write_json(options.results, summary)
    spread = summary["test_accuracy_std"]
    print(
        f"mean test accuracy {summary['test_accuracy_mean']:.4f}"
        + (f" (standard deviation {spread:.4f})" if spread is not None else "")
        + f" over seeds {' '.join(map(str, summary['seeds']))}; longest run {summary['seconds_max']:.0f} s"
    )
    if "baseline" in summary:
        baseline = summary["baseline"]
        print(f"{baseline['nearest_neighbours']} nearest neighbours: {baseline['test_accuracy']:.4f}")
    print(f"summary: {folder / 'summary.json'}")


def chosen_recipe(
    options: argparse.Namespace, beneath: Mapping[str, Any] | None = None
) -> tuple[Recipe, str]:
    """Return the recipe that the options name, with their changes laid over it, and why it was chosen.

    The reason is a sentence where settings were chosen for a data set, else "".

    Args:
        options: as typed.
        beneath: changes that a command makes, laid over the recipe before those that were typed.

    Raises:
        InputError: no recipe and no data set, both, an unknown name or a wrong value.
    """
    if (options.recipe is None) == (options.data is None):
        raise InputError(
            "expected one of --data and --recipe: "
            f"--data {' or '.join(data_names())}, --recipe {' or '.join(recipe_names())}."
        )
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
    if options.weights is not None:
        changes["weights"] = options.weights
    if options.seeds is not None:
        changes["seeds"] = options.seeds
    elif options.seed is not None:
        changes["seeds"] = [options.seed]
    changes = merged(beneath or {}, changes)
    if options.data is not None:
        return suited_recipe(options.data, changes)
    return load_recipe(options.recipe, changes), ""


def report(folder: Path, result: dict[str, Any]) -> None:
    """Print what a run reached."""
    top5 = result.get("test_top5_accuracy")
    print(
        f"{folder}: test accuracy {result['test_accuracy']:.4f} on {result['test_images']:,} images, "
        + (f"in the first five {top5:.4f}, " if top5 is not None else "")
        + f"test loss {result['test_loss']:.4f}; {result['epochs']} epochs in {result['seconds']:.0f} s"
    )
