"""`vit train`: from a recipe to a trained, tested model."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.settings import merged
from vit_lab.cli.options import add_data_dir, chosen_device, own_weights, resumable
from vit_lab.cli.running import add_changes, add_places, add_seeds, asked_changes, train_recipe
from vit_lab.experiments.recipes import Recipe, load_recipe, recipe_names, require_classes
from vit_lab.experiments.suited import data_names, suited_recipe

EPILOG = """\
examples:
  vit train --data digits
  vit train --data digits --epochs 20 --seed 1 --out runs/try --set model.dim=48
  vit train --data cifar10 --data-dir DEST --epochs 5
  vit train --data folder:photos          (photos/CLASS/*.jpg, a folder for each class)
  vit train --data shards:packed          (what `vit pack photos packed` wrote)
  vit train --recipe digits --show
  vit train --recipe digits --seeds 0 1 2 3 4
  torchrun --nproc-per-node=4 -m vit_lab train --data digits     (a process for each GPU)

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
    add_seeds(add_recipe_options(parser))
    add_places(parser)
    parser.set_defaults(run=train_command)


def add_recipe_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what names a recipe and changes it; return the group of the changes, for more of them."""
    what = parser.add_argument_group("what to run")
    what.add_argument(
        "--recipe",
        metavar="NAME",
        help=f"{', '.join(recipe_names())}, one of the paper's (`vit recipes` lists them), or a TOML file"
        " of your own",
    )
    what.add_argument(
        "--data", metavar="NAME", help=f"{', '.join(data_names())}: a data set, with settings that suit it"
    )
    add_data_dir(what)
    what.add_argument(
        "--weights",
        type=own_weights,
        metavar="NAME",
        help="begin from this model (a name, a run's folder, a checkpoint), whose sizes are kept; "
        "`vit finetune` chooses settings that suit it",
    )
    what.add_argument("--show", action="store_true", help="print the recipe, changes included, and stop")
    return add_changes(parser)


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
        train_recipe(recipe, options, device, many)


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
    changes = asked_changes(options)
    if options.weights is not None:
        changes["weights"] = options.weights
    changes = merged(beneath or {}, changes)
    if options.data is not None:
        recipe, why = suited_recipe(options.data, changes)
    else:
        recipe, why = load_recipe(options.recipe, changes), ""
    if options.weights is not None:  # they have sizes of their own
        recipe = replace(recipe, model=changes.get("model", {}))
    return recipe, why
