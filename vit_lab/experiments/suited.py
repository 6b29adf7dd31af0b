"""Settings that suit a data set, for `vit train --data NAME`: recipes chosen by a few rules, without PyTorch.

The digits and CIFAR-10 have recipes of their own. Any other data set gets a small ViT that two CPU cores can
train, with what helped most in the recipe `cifar10-half-hour-plain`: the mean of the patches, fixed
positions, a mimetic start, and Muon. Four things follow from the photos:

the side of the images   the largest of `SIDES` that half of the photos have; smaller ones are enlarged
the patch size           the divisor of the side that leaves about a hundred patches
the width                128 for small images as in CIFAR, 192 for others
the epochs               so that about `IMAGES_SEEN` images are seen in all, within `EPOCHS`
"""

import math
from typing import Any

from vit_from_scratch.data.config import OWN_SOURCES, DataConfig, own_place
from vit_from_scratch.data.folders import Survey, survey_own
from vit_from_scratch.errors import InputError
from vit_lab.experiments.recipes import Recipe, load_recipe, recipe_from_tables

OWN_RECIPES = {"digits": "digits", "cifar10": "cifar10-small"}
"""Data sets with a recipe of their own."""

KNOWN = {
    "cifar100": Survey(50_000, 32, 100),
    "tiny-imagenet": Survey(100_000, 64, 200),
    "imagenette": Survey(9_469, 160, 10),
    "pets": Survey(3_680, 333, 37),
    "flowers": Survey(2_040, 500, 102),
}
"""What the other data sets are like; a folder of your own is looked at."""

SIDES = (160, 128, 96, 64, 48, 32)
"""Sides of images to choose from. Larger ones cost more than a small model gains by them."""

PATCHES = (64, 200)
"""The fewest patches of an image and the most."""

IMAGES_SEEN, EPOCHS = 600_000, (10, 200)
"""How many images a run is to see, in up to two hours on two CPU cores; and the bounds of its epochs."""

BATCHES = ((10_000, 128), (1_000, 64), (0, 16))
"""The batch size, from so many photos on."""

SMALL = {"flip": True, "shift": 2, "fill": "reflection", "crop": [0.6, 1.0], "erase": 0.25}
"""Random changes to small images, as in the recipes for CIFAR-10."""

LARGE = {"flip": True, "crop": [0.35, 1.0], "cutmix": 1.0, "colour_jitter": [0.2, 0.2, 0.2, 0.05]}
"""Random changes to larger photos, as in the recipe `imagenette-plain`."""


def data_names() -> tuple[str, ...]:
    """Return what `--data` takes."""
    return (*OWN_RECIPES, *KNOWN, *(kind + "PATH" for kind in OWN_SOURCES))


def suited_recipe(data: str, changes: dict[str, Any]) -> tuple[Recipe, str]:
    """Return a recipe for a data set, and a sentence that says what was chosen and why.

    The sentence is "" where the data set has a recipe of its own.

    Args:
        data: its name; of a folder of your own the photos are counted and some of them looked at.
        changes: nested tables laid over it. What is chosen follows from them: patches fit the changed size
            of the images, epochs and batch the changed number of photos, the warm-up the changed epochs or
            steps. With `weights` the sentence leaves the model's sizes out: they are those of the weights.

    Raises:
        InputError: an unknown name, a folder without photos in classes, or wrong changes.
    """
    if data in OWN_RECIPES:
        return load_recipe(OWN_RECIPES[data], changes), ""
    whole = DataConfig(data).name  # checks the name
    folder = own_place(whole)
    seen = survey_own(whole) if folder else KNOWN[data]
    tables = suited_tables(whole, seen, changes)
    recipe = recipe_from_tables(tables, changes, (folder.name or "folder") if folder else data)
    model, train = recipe.model, recipe.train
    sizes = "" if recipe.weights else f"patches of {model['patch_size']}, width {model['dim']}, "
    side = recipe.data.image_size or seen.side
    length = f"steps: {train.steps}" if train.steps else f"epochs: {train.epochs}"
    kept = min(recipe.data.train_size or seen.photos, seen.photos)
    some = f"{kept:,} of " if kept < seen.photos else ""
    sentence = (
        f"{recipe.name}: {some}{seen.photos:,} training photos of {seen.classes} classes, short side "
        f"{seen.side} pixels. Chosen to suit them: images of {side} x {side}, {sizes}{length}, batches of "
        f"{train.batch_size}. --set changes them."
    )
    return recipe, sentence


def without_labels(base: Recipe | None, objective: str) -> dict[str, Any]:
    """Return what is laid over settings for classes so that they serve an objective that reads no labels.

    Args:
        base: the recipe with these settings; None where they are chosen to suit a data set.
        objective: "masked-patches" or "masked-pixels".

    Returns:
        Nested tables of changes: nothing is done to labels, nothing is blanked on the way, and some images
        are held out.
    """
    off = {"erase": 0.0, "mixup": 0.0, "cutmix": 0.0}
    held_out = {} if base is None or base.data.validation_size else {"data": {"validation_size": None}}
    changes = {"objective": objective, "neighbours": 0, "flip_test": False}
    return changes | held_out | {"train": {"label_smoothing": 0.0, "augmentation": off}}


def suited_tables(name: str, seen: Survey, changes: dict[str, Any]) -> dict[str, Any]:
    """Choose settings for photos.

    Args:
        name: of the data set.
        seen: their number, size and classes.
        changes: what was asked for and is kept to: of it data.image_size, data.train_size, model.patch_size,
            train.epochs, train.steps and train.batch_size matter here.

    Returns:
        The tables of a recipe: data, model, train.

    Raises:
        InputError: an image size that no patch size suits.
    """

    def asked(table: str, option: str, otherwise: int) -> int:  # what makes no sense is refused by the recipe
        value = changes.get(table, {}).get(option)
        return value if isinstance(value, int) and value >= 1 else otherwise

    usual = next((side for side in SIDES if side <= seen.side), max(8, seen.side // 4 * 4))
    side = asked("data", "image_size", usual)
    photos = min(asked("data", "train_size", seen.photos), seen.photos)
    batch = asked("train", "batch_size", next(size for least, size in BATCHES if photos >= least))
    epochs = asked("train", "epochs", min(EPOCHS[1], max(EPOCHS[0], round(IMAGES_SEEN / photos))))
    steps = asked("train", "steps", 0) or epochs * max(1, photos // batch)
    small = side < 64
    return {
        "data": {"name": name, "image_size": side},
        "model": {
            "patch_size": asked("model", "patch_size", 0) or suited_patch(side),
            "dim": 128 if small else 192,
            "depth": 6,
            "heads": 2 if small else 3,
            "mlp_dim": 512 if small else 768,
            "class_token": False,
            "pool": "gap",
            "position": "sincos_2d",
            "initialisation": "mimetic",
        },
        "train": {
            "epochs": epochs,
            "batch_size": batch,
            "optimiser": "muon",
            "learning_rate": 0.006,
            "adamw_learning_rate": 0.005,
            "momentum": 0.95,
            "betas": [0.9, 0.95],
            "weight_decay": 0.1,
            "schedule": "linear",
            "warmup_steps": min(200, steps // 10),
            "clip_norm": 0.0,
            "label_smoothing": 0.1,
            "augmentation": SMALL if side <= 64 else LARGE,
            "precision": "bfloat16",
        },
    }


def suited_patch(side: int) -> int:
    """Return the patch size for images of a side in pixels, the one that leaves nearest to 100 patches.

    Raises:
        InputError: no divisor of the side leaves between 64 and 200.
    """
    fitting = [
        patch
        for patch in range(1, side + 1)
        if side % patch == 0 and PATCHES[0] <= (side // patch) ** 2 <= PATCHES[1]
    ]
    if not fitting:
        raise InputError(
            f"data.image_size = {side}: no patch size cuts such images into {PATCHES[0]} to {PATCHES[1]} "
            f"patches. Expected a multiple of 8, as {max(8, round(side / 8) * 8)}, or model.patch_size, too."
        )
    return min(fitting, key=lambda patch: abs(math.log((side // patch) ** 2 / 100)))
