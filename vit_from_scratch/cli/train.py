"""`vit train`: from a recipe to a trained, tested model."""

import argparse
from pathlib import Path
from typing import Any

from vit_from_scratch.cli.options import add_data_dir, add_device, chosen_device, parse_assignments
from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.settings import merged
from vit_from_scratch.training.data import FOLDER, PHOTO_SOURCES, SOURCES
from vit_from_scratch.training.guards import DivergedError
from vit_from_scratch.training.recipes import Recipe, load_recipe, recipe_names
from vit_from_scratch.training.run_folder import writing
from vit_from_scratch.training.runs import run, run_seeds, write_json

FAILURES = (DivergedError,)
"""What may go wrong with a run although its input was right."""

DEFAULT_RECIPES = {"digits": "digits", "cifar10": "cifar10-small"}
"""The recipe whose settings `--data NAME` takes."""

EPILOG = """\
examples:
  vit train --data digits
  vit train --data digits --epochs 20 --seed 1 --out runs/try --set model.dim=48
  vit train --data cifar10 --data-dir DEST --epochs 5
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
    what = parser.add_argument_group("what to run")
    what.add_argument(
        "--recipe", metavar="NAME", help=f"{', '.join(recipe_names())}, or a TOML file of your own"
    )
    what.add_argument("--data", metavar="NAME", help="data set, with the settings of its recipe")
    add_data_dir(what)
    what.add_argument(
        "--weights",
        metavar="FILE",
        help="begin from this checkpoint (fine-tuning), such as a run's model.safetensors",
    )
    what.add_argument("--show", action="store_true", help="print the recipe, changes included, and stop")
    changes = parser.add_argument_group("changes to the recipe")
    changes.add_argument("--epochs", type=int, help="passes over the training images")
    changes.add_argument("--batch-size", type=int, help="images in a step")
    changes.add_argument("--lr", type=float, dest="learning_rate", help="base learning rate")
    changes.add_argument("--seed", type=int, help="initial weights, order, augmentation")
    changes.add_argument("--seeds", type=int, nargs="+", metavar="N", help="one run for each, and a summary")
    changes.add_argument("--set", action="extend", nargs="+", default=[], metavar="TABLE.OPTION=VALUE")
    where = parser.add_argument_group("where")
    where.add_argument(
        "--out", type=Path, metavar="DIR", help="the run's folder (default: runs/RECIPE-seed-N)"
    )
    where.add_argument(
        "--results", type=Path, metavar="FILE", help="also write the summary of the seeds here"
    )
    add_device(where)
    parser.set_defaults(run=train_command)


def train_command(options: argparse.Namespace) -> None:
    """Carry out `vit train`."""
    recipe = chosen_recipe(options)
    if options.show:
        print(recipe.to_toml(), end="")
        return
    device = chosen_device(options.device)
    many = options.seeds is not None or (options.recipe is not None and options.seed is None)
    if options.results and not many:
        raise InputError(
            "--results takes the summary of several seeds: give --seeds, or --recipe without --seed."
        )
    try:
        if many:
            train_seeds(recipe, options, device)
        else:
            folder = options.out or Path("runs") / f"{recipe.name}-seed-{recipe.train.seed}"
            report(folder, run(recipe, folder, options.data_dir, device, print))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped. What the last finished epoch reached is kept; the same command goes on from there."
        ) from None


def train_seeds(recipe: Recipe, options: argparse.Namespace, device: str) -> None:
    """Run every seed, then print and write the summary."""
    folder = options.out or Path("runs") / recipe.name
    summary = run_seeds(recipe, folder, options.data_dir, device, print, report)
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


def chosen_recipe(options: argparse.Namespace) -> Recipe:
    """Return the recipe that the options name, with their changes laid over it.

    Raises:
        InputError: no recipe and no data set, both, an unknown name or a wrong value.
    """
    if (options.recipe is None) == (options.data is None):
        raise InputError(
            "expected one of --data and --recipe: "
            f"--data {' or '.join(DEFAULT_RECIPES)}, --recipe {' or '.join(recipe_names())}."
        )
    if options.seed is not None and options.seeds is not None:
        raise InputError("expected --seed for one run or --seeds for several, not both.")
    if options.recipe is None and options.data not in DEFAULT_RECIPES:
        if options.data not in (*SOURCES, *PHOTO_SOURCES) and not options.data.startswith(FOLDER):
            raise unknown_name("data set", options.data, DEFAULT_RECIPES)
        made = [recipe for recipe in recipe_names() if load_recipe(recipe).data.name == options.data]
        raise InputError(
            f"--data {options.data}: expected {' or '.join(DEFAULT_RECIPES)}, with settings of its own. "
            f"Name a recipe: {' or '.join(made) or 'a TOML file of yours'}, with --recipe."
        )
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
    return load_recipe(options.recipe or DEFAULT_RECIPES[options.data], changes)


def report(folder: Path, result: dict[str, Any]) -> None:
    """Print what a run reached."""
    print(
        f"{folder}: test accuracy {result['test_accuracy']:.4f} on {result['test_images']:,} images, "
        f"test loss {result['test_loss']:.4f}; {result['epochs']} epochs in {result['seconds']:.0f} s"
    )
