"""Settings that suit a data set, chosen by a few rules, without PyTorch: recipes for `--data NAME`.

The digits, MNIST and CIFAR-10 have recipes of their own for training from scratch. Any other data set gets
a small ViT that two CPU cores can train, with what helped most in the recipes `HELPED`: the mean of the
patches, fixed positions, a mimetic start, and Muon. These follow from the photos:

the side of the images   the largest of `SIDES` that half of the photos have; smaller ones are enlarged
the patch size           the divisor of the side that leaves about a hundred patches
the width                128 for small images as in CIFAR, 192 for others
the batch size           smaller for few photos (`BATCHES`)
the augmentation         that for large photos above a side of 64
the epochs               so that about `IMAGES_SEEN` images are seen in all, within `EPOCHS`
the warm-up              at most a tenth of the steps

Fine-tuning has the paper's settings (appendix B.1.1, Table 4) at such a size: SGD with momentum 0.9, no
weight decay, cosine decay, gradients clipped at norm 1, and a zero head in place of the old one.
"""

import dataclasses
import math
import re
import statistics
from pathlib import Path
from typing import Any, NamedTuple

from vit_from_scratch.data.config import OWN_SOURCES, TENSORS, DataConfig, own_place
from vit_from_scratch.data.photos import picture_size
from vit_from_scratch.data.sources import open_own, spread
from vit_from_scratch.errors import InputError
from vit_lab.experiments.packaged import load_table
from vit_lab.experiments.paper import paper_table
from vit_lab.experiments.recipes import Recipe, load_recipe, recipe_from_tables
from vit_lab.runs.trained_models import KNOWN, open_model

OWN_RECIPES = {"digits": "digits", "mnist": "mnist", "cifar10": "cifar10-small"}
"""Data sets with a recipe of their own."""


DIGITS = ("digits", "mnist")
"""Data sets whose images, mirrored, mean something else or nothing."""


class Survey(NamedTuple):
    """What a data set is like: its training photos, the median of their short sides in pixels, its classes.

    Those held out of digits, MNIST and CIFAR-10 are left out, and so are those in a `val` of their own; what
    is drawn for validation elsewhere is counted.
    """

    photos: int
    side: int
    classes: int


SURVEYS = {
    "digits": Survey(1_200, 8, 10),
    "mnist": Survey(55_000, 28, 10),
    "cifar10": Survey(45_000, 32, 10),
    "cifar100": Survey(50_000, 32, 100),
    "tiny-imagenet": Survey(100_000, 64, 200),
    "imagenette": Survey(9_469, 160, 10),
    "pets": Survey(3_680, 333, 37),
    "flowers": Survey(2_040, 500, 102),
}
"""What the data sets are like; a folder of your own is looked at."""

DATA_NAMES = (*SURVEYS, *(kind + "PATH" for kind in OWN_SOURCES))
"""What `--data` takes."""

SIDES = (160, 128, 96, 64, 48, 32)
"""Sides of images to choose from. Larger ones cost more than a small model gains by them."""

PATCHES = (64, 200)
"""The fewest patches of an image and the most."""

IMAGES_SEEN, EPOCHS = 600_000, (10, 200)
"""How many images a run is to see, in up to two hours on two CPU cores; and the bounds of its epochs."""

FINE_TUNING_SEEN, FINE_TUNING_EPOCHS = 200_000, (4, 60)
"""The same for fine-tuning: with few images each is seen often."""

BATCHES = ((10_000, 128), (1_000, 64), (0, 16))
"""The batch size, from so many photos on."""

RATES = (0.003, 0.01, 0.03, 0.06)
"""The base rates that fine-tuning tries unless told otherwise: those of Table 4 for ImageNet."""

HELPED = ("cifar10-half-hour-plain", "imagenette-plain")
"""Recipes with what helped most on small images, and with random changes to larger photos."""


def suited_recipe(data: str, changes: dict[str, Any]) -> tuple[Recipe, str]:
    """Return a recipe for a data set, and a sentence that says what was chosen and why.

    The sentence is "" where the data set has a recipe of its own.

    Args:
        data: its name; of a folder of your own the photos are counted and some of them looked at.
        changes: nested tables laid over it; what is chosen follows from them. With `weights` the sentence
            leaves the model's sizes out: they are those of the weights.

    Raises:
        InputError: an unknown name, a folder without photos in classes, or wrong changes.
    """
    if data in OWN_RECIPES:
        return load_recipe(OWN_RECIPES[data], changes), ""
    whole, short, seen = _looked_at(data)
    recipe = recipe_from_tables(suited_tables(whole, seen, changes), changes, short)
    model = recipe.model
    sizes = "" if recipe.weights else f"patches of {model['patch_size']}, width {model['dim']}, "
    kept = min(recipe.data.train_size or seen.photos, seen.photos)
    some = f"{kept:,} of " if kept < seen.photos else ""
    return recipe, (
        f"{recipe.name}: {some}{seen.photos:,} training photos of {seen.classes} classes, short side "
        f"{seen.side} pixels. Chosen to suit them: {_said(recipe, seen, sizes)}. --set changes them."
    )


def fine_tuning_recipe(weights: str, data: str, changes: dict[str, Any]) -> tuple[Recipe, str]:
    """Return a recipe that fine-tunes a trained model, and a sentence that says what was chosen.

    Args:
        weights: as `open_model` takes it.
        data: the data set's name; of a folder of your own the photos are counted.
        changes: nested tables laid over it. Images have the side that the model was trained with unless they
            say otherwise; epochs and warm-up follow from them, too.

    Raises:
        InputError: no such weights, an unknown name, a folder without photos in classes, or wrong changes.
    """
    whole, short, seen = _looked_at(data)
    trained = open_model(weights)
    name = f"{short}-from-{slug_of(weights)}"
    data_table = {"name": whole}
    if "image_size" not in changes.get("data", {}):
        data_table |= {"image_size": max(trained.model.config.image_shape)}
    if trained.normalisation:
        data_table |= {"normalisation": trained.normalisation}
    photos = _asked(changes, "data", "train_size", seen.photos)
    train = paper_table("table4-imagenet")["train"] | {
        "augmentation": {"crop": [0.8, 1.0]} if whole in DIGITS else {"flip": True, "crop": [0.6, 1.0]},
        "precision": "bfloat16",
        "accumulation": 1,
        "steps": 0,
        **_length(photos, FINE_TUNING_SEEN, FINE_TUNING_EPOCHS, 100, changes),
    }
    tables = {"weights": trained.name, "data": data_table, "train": train}
    recipe = recipe_from_tables(tables, changes, name)
    # refuses a side that patches do not divide
    dataclasses.replace(trained.model.config, image_size=recipe.data.image_size or seen.side)
    optimiser = f"{recipe.train.optimiser.upper()} at {recipe.train.learning_rate:g}"
    return recipe, f"{name}: {_said(recipe, seen)}, {optimiser}. --set changes them."


def survey_own(name: str) -> Survey:
    """Look at a hundred training photos of a data set of your own, such as "folder:/photos"."""
    source = open_own(name)
    files = source.train.files[: len(source.train) - source.validation]
    sizes = [picture_size(photo) for photo in spread(files, 100)]
    sides = [min(size) for size in sizes if size]
    if not sides:
        raise InputError(f"{files[0]} cannot be read: expected a picture, JPEG or PNG; convert the photos.")
    return Survey(len(files), int(statistics.median(sides)), len(source.class_names))


def _looked_at(data: str) -> tuple[str, str, Survey]:
    """Return a data set's whole name, its short name for a recipe, and what its photos are like."""
    whole = DataConfig(data).name  # checks the name
    folder = own_place(whole)
    if whole == TENSORS:
        raise InputError("--data tensors: expected a data set's name; train on an ImageData from Python.")
    if folder is None:
        return whole, data, SURVEYS[data]
    return whole, folder.name or "folder", survey_own(whole)


def _said(recipe: Recipe, seen: Survey, sizes: str = "") -> str:
    """Say which images and how many of them a recipe shows a model."""
    side, train = recipe.data.image_size or seen.side, recipe.train
    length = f"steps: {train.steps}" if train.steps else f"epochs: {train.epochs}"
    return f"images of {side} x {side}, {sizes}{length}, batches of {train.batch_size}"


def without_labels(base: Recipe | None, objective: str) -> dict[str, Any]:
    """Return the changes by which settings for classes serve an objective that reads no labels.

    Nothing is done to labels, nothing is blanked on the way, and some images are held out. The base is the
    recipe with these settings; None where they are chosen to suit a data set.
    """
    off = {"erase": 0.0, "mixup": 0.0, "cutmix": 0.0}
    held_out = {} if base is None or base.data.validation_size else {"data": {"validation_size": None}}
    changes = {"objective": objective, "neighbours": 0, "flip_test": False}
    return changes | held_out | {"train": {"label_smoothing": 0.0, "augmentation": off}}


def suited_tables(name: str, seen: Survey, changes: dict[str, Any]) -> dict[str, Any]:
    """Choose settings for training from scratch on a data set that was looked at, as the tables of a recipe.

    Of the changes, those of sizes, numbers of images, epochs, steps and the batch size are kept to.

    Raises:
        InputError: an image size that no patch size suits.
    """
    usual = next((side for side in SIDES if side <= seen.side), max(8, seen.side // 4 * 4))
    side = _asked(changes, "data", "image_size", usual)
    photos = min(_asked(changes, "data", "train_size", seen.photos), seen.photos)
    wider = {"dim": 192, "heads": 3, "mlp_dim": 768} if side >= 64 else {}
    small, large = (load_table("recipe", "recipes", name)[0] for name in HELPED)
    train = {key: value for key, value in small["train"].items() if key not in ("curriculum", "threads")}
    if side > 64:
        train |= {"augmentation": large["train"]["augmentation"]}
    patch = _asked(changes, "model", "patch_size", 0) or suited_patch(side)
    return {
        "data": {"name": name, "image_size": side},
        "model": small["model"] | wider | {"patch_size": patch},
        "train": train | _length(photos, IMAGES_SEEN, EPOCHS, 200, changes),
    }


def _length(
    photos: int, images_seen: int, bounds: tuple[int, int], most_warm_up: int, changes: dict[str, Any]
) -> dict[str, int]:
    """Choose epochs, batch size and warm-up for so many photos, as far as the changes leave them open."""
    batch = _asked(changes, "train", "batch_size", next(size for least, size in BATCHES if photos >= least))
    fewest, most = bounds
    epochs = _asked(changes, "train", "epochs", min(most, max(fewest, round(images_seen / photos))))
    steps = _asked(changes, "train", "steps", 0) or epochs * max(1, photos // batch)
    return {"epochs": epochs, "batch_size": batch, "warmup_steps": min(most_warm_up, steps // 10)}


def _asked(changes: dict[str, Any], table: str, option: str, otherwise: int) -> int:
    """Return what was asked for, if it makes sense; the recipe refuses what does not."""
    value = changes.get(table, {}).get(option)
    return value if isinstance(value, int) and value >= 1 else otherwise


def slug_of(weights: str) -> str:
    """Turn what names a trained model into a part of a recipe's name: "runs/try/" becomes "try"."""
    last = weights if weights in KNOWN else Path(weights.removesuffix(".safetensors")).name
    return re.sub(r"[^A-Za-z0-9.]+", "-", last).strip("-.") or "weights"


def suited_patch(side: int) -> int:
    """Return the patch size for images of a side in pixels, the one that leaves nearest to 100 patches.

    Raises:
        InputError: no divisor of the side leaves between 64 and 200.
    """
    fewest, most = PATCHES
    divisors = (patch for patch in range(1, side + 1) if side % patch == 0)
    fitting = [patch for patch in divisors if fewest <= (side // patch) ** 2 <= most]
    if not fitting:
        raise InputError(
            f"data.image_size = {side}: no patch size cuts such images into {fewest} to {most} "
            f"patches. Expected a multiple of 8, say {max(8, round(side / 8) * 8)}, or model.patch_size, too."
        )
    return min(fitting, key=lambda patch: abs(math.log((side // patch) ** 2 / 100)))
