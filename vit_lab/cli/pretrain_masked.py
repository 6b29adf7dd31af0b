"""`vit pretrain-masked`: from a recipe to a model that was pre-trained without labels (appendix B.1.2)."""

import argparse
import shlex
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path
from vit_lab.cli.options import add_device, chosen_device, resumable
from vit_lab.cli.running import add_results, add_seeds, train_seeds
from vit_lab.cli.train import add_recipe_options, chosen_recipe
from vit_lab.experiments.recipes import Recipe, load_recipe
from vit_lab.experiments.suited import OWN_RECIPES, without_labels

EPILOG = """\
examples:
  vit pretrain-masked --recipe tiny-imagenet-masked-patches --data-dir DEST
  vit pretrain-masked --data cifar10 --data-dir DEST --epochs 5
  vit pretrain-masked --data folder:photos --objective pixels

patches   the mean colour of corrupted patches, as in the paper (appendix B.1.2)
pixels    masked autoencoding, which is not the paper's (He et al., 2022)

A run that was stopped goes on with the same command."""


def add_parser(commands: Any) -> None:
    """Add `pretrain-masked` to the commands."""
    parser = commands.add_parser(
        "pretrain-masked",
        help="pre-train a model without labels",
        description="Pre-train a model on images whose patches are partly hidden. No label is read and no "
        "test image touched; the model that is left in the run's folder is there to be fine-tuned.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    changes = add_recipe_options(parser)
    add_seeds(changes)
    changes.add_argument(
        "--objective",
        choices=("patches", "pixels"),
        help="what is asked of a hidden patch (default: the recipe's, with --data patches)",
    )
    where = parser.add_argument_group("where")
    where.add_argument(
        "--out",
        type=own_path,
        metavar="DIR",
        help="folder of the run (default: runs/RECIPE-OBJECTIVE-seed-N), or over those of several seeds "
        "(runs/RECIPE-OBJECTIVE)",
    )
    add_results(where)
    add_device(where)
    parser.set_defaults(run=pretrain_masked_command)


def pretrain_masked_command(options: argparse.Namespace) -> None:
    """Carry out `vit pretrain-masked`."""
    recipe, why = chosen_recipe(options, beneath(options))
    if options.show:
        print((f"# {why}\n" if why else "") + recipe.to_toml(), end="")
        return
    device = chosen_device(options.device)
    many = options.seeds is not None or options.results is not None
    folder = options.out or usual_folder(recipe, many)
    with resumable():
        if why:
            print(why, flush=True)
        if many:
            train_seeds(recipe, options, device, folder, report)
            folder = folder / f"seed-{recipe.seeds[0]}"
        else:
            from vit_lab import run  # imported here: it takes seconds

            report(folder, run(recipe, folder, options.data_dir, device, print))
    where = f" --data-dir {shlex.quote(str(options.data_dir))}" if options.data_dir else ""
    data = shlex.quote(recipe.data.name)
    print(f"fine-tune it: vit finetune --weights {shlex.quote(str(folder))} --data {data}{where}")


def beneath(options: argparse.Namespace) -> dict[str, Any]:
    """Return what is changed in a recipe for classes so that no label is read; nothing in any other.

    Raises:
        InputError: a recipe for classes, and no --objective.
    """
    asked = f"masked-{options.objective}" if options.objective else None
    if options.recipe is None:
        own = OWN_RECIPES.get(options.data)
        return without_labels(load_recipe(own) if own else None, asked or "masked-patches")
    base = load_recipe(options.recipe)
    if base.objective != "classes":
        return {} if asked in (None, base.objective) else {"objective": asked}
    if asked is None:
        raise InputError(
            f"the recipe {base.name} has objective = 'classes': expected one without labels. Name one, or "
            "add --objective patches or --objective pixels."
        )
    return without_labels(base, asked)


def usual_folder(recipe: Recipe, many: bool) -> Path:
    """Return where a run, or those of many seeds, go unless told otherwise: not where those on classes do."""
    named = recipe.name.endswith(recipe.objective)
    name = recipe.name if named else f"{recipe.name}-{recipe.objective}"
    return Path("runs") / (name if many else f"{name}-seed-{recipe.train.seed}")


def report(folder: Path, result: dict[str, Any]) -> None:
    """Print what a run reached on held-out images."""
    right = result["validation_accuracy"]
    print(
        f"{folder}: held-out loss {result['validation_loss']:.4f} on {result['validation_images']:,} images"
        + (f", accuracy {right:.4f} on the colours of corrupted patches" if right is not None else "")
        + f"; {result['epochs']} epochs in {result['seconds']:.0f} s"
    )
