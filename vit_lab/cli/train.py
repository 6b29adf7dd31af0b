"""`vit train`: from a recipe to a trained, tested model, or to one that was trained without labels."""

import argparse
from dataclasses import replace
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path
from vit_from_scratch.settings import merged
from vit_lab.cli.options import add_command, add_shared
from vit_lab.cli.training import add_training, asked_changes, train_recipe
from vit_lab.experiments.recipes import Recipe, load_recipe
from vit_lab.experiments.suited import DATA_NAMES, OWN_RECIPES, suited_recipe, without_labels

EPILOG = """\
examples:
  vit train --data digits --epochs 20 --seed 0 --out runs/try --set model.dim=48
  vit train --data cifar10 --data-dir DEST --epochs 5
  vit train --data folder:photos          (photos/CLASS/*.jpg, a folder for each class)
  vit train --data shards:packed          (tar files: packed/train-0.tar with CLASS/*.jpg in it)
  vit train --data folder:photos --objective masked-patches
  vit train --recipe digits --seeds 0 1 2 3 4
  torchrun --nproc-per-node=4 -m vit_lab train --data digits     (a process for each GPU)

Without labels a model learns from images whose patches are partly hidden, no test image is touched, and the
model is there to be fine-tuned: masked-patches asks for the mean colours of corrupted patches, as the paper
does (appendix B.1.2), and masked-pixels for all pixels of hidden ones (He et al., 2022).

A run that was stopped goes on with the same command."""

OBJECTIVES = ("classes", "masked-patches", "masked-pixels")


def add_parser(commands: Any) -> None:
    """Add `train` to the commands."""
    parser = add_command(
        commands,
        "train",
        run,
        help="train a model and test it once, or train it without labels",
        description="Train a model by a recipe, test it once, and keep everything in a folder.",
        epilog=EPILOG,
    )
    what = parser.add_argument_group("what to run")
    about = "one that `vit recipes` lists, or a TOML file of your own"
    what.add_argument("--recipe", metavar="NAME", help=about)
    about = f"{', '.join(DATA_NAMES)}: a data set, with settings that suit it"
    what.add_argument("--data", metavar="NAME", help=about)
    add_shared(what, "--data-dir")
    about = "what is learned (default: the recipe's, or classes)"
    what.add_argument("--objective", choices=OBJECTIVES, help=about)
    what.add_argument(
        "--weights",
        type=lambda text: str(own_path(text)),  # as a recipe has it
        metavar="NAME",
        help="begin from this model (a name, a run's folder, a checkpoint), whose sizes are kept; "
        "`vit finetune` chooses settings that suit it",
    )
    add_training(parser)


def run(options: argparse.Namespace) -> None:
    """Carry out `vit train`."""
    recipe, why = chosen_recipe(options)
    named = options.recipe is not None and options.seed is None
    many = options.seeds is not None or options.results is not None or named
    train_recipe(recipe, why, options, many)


def chosen_recipe(options: argparse.Namespace) -> tuple[Recipe, str]:
    """Return the recipe that the options name, with their changes laid over it, and why it was chosen.

    The reason is a sentence where settings were chosen for a data set, else "". A recipe for classes that is
    given another objective is changed so that it reads no labels, and named after it.

    Raises:
        InputError: no recipe and no data set, both, an unknown name or a wrong value.
    """
    if (options.recipe is None) == (options.data is None):
        raise InputError(
            f"expected one of --data and --recipe: --data {' or '.join(DATA_NAMES)}, or --recipe NAME. "
            "`vit recipes` lists the recipes."
        )
    changes = asked_changes(options)
    if options.weights is not None:
        changes |= {"weights": options.weights, "whiten": False}  # they have patches of their own
    own = options.recipe or OWN_RECIPES.get(options.data)
    asked = options.objective or "classes"
    if options.objective is not None:
        base = load_recipe(own) if own else None
        of_classes = base is None or base.objective == "classes"
        beneath = without_labels(base, asked) if of_classes and asked != "classes" else {"objective": asked}
        changes = merged(beneath, changes)
    if options.data is not None:
        recipe, why = suited_recipe(options.data, changes)
    else:
        recipe, why = load_recipe(options.recipe, changes), ""
    if asked != "classes" and not recipe.name.endswith(asked):
        recipe = replace(recipe, name=f"{recipe.name}-{asked}")
    if options.weights is not None:  # they have sizes of their own
        recipe = replace(recipe, model=changes.get("model", {}))
    return recipe, why
