"""Settings for fine-tuning: the paper's (appendix B.1.1, Table 4), at a size that two CPU cores can bear.

SGD with momentum 0.9, no weight decay, cosine decay, gradients clipped at norm 1, and a zero head in place
of the old one. The paper takes batches of 512 and counts steps (10,000 on CIFAR, 500 on Pets). Here batches
and epochs follow from how many images there are, so that about `IMAGES_SEEN` are seen in all, within
`EPOCHS`.
"""

import dataclasses
import re
from pathlib import Path
from typing import Any

from vit_from_scratch.data.config import OWN_SOURCES, DataConfig, own_place
from vit_from_scratch.data.folders import Survey, survey_own
from vit_lab.experiments.recipes import Recipe, recipe_from_tables
from vit_lab.experiments.suited import BATCHES, KNOWN, OWN_RECIPES
from vit_lab.runs.trained_models import KNOWN as NAMED
from vit_lab.runs.trained_models import TrainedModel, open_model

RATES = (0.003, 0.01, 0.03, 0.06)
"""The base rates that are tried unless told otherwise: those of Table 4 for ImageNet."""

IMAGES_SEEN, EPOCHS = 200_000, (4, 60)
"""How many images fine-tuning is to see, and the bounds of its epochs: with few images each is seen often."""

SMALL = {"digits": Survey(1_200, 8, 10), "cifar10": Survey(45_000, 32, 10)}
"""What the data sets with a recipe of their own are like, training images without those held out."""

NAMES = (*OWN_RECIPES, *KNOWN, *(kind + "PATH" for kind in OWN_SOURCES))
"""What `--data` takes."""


def fine_tuning_recipe(weights: str, data: str, changes: dict[str, Any]) -> tuple[Recipe, str]:
    """Return a recipe that fine-tunes a trained model on a data set, and a sentence that says what was
    chosen.

    Args:
        weights: as `open_model` takes it.
        data: the data set's name; of a folder of your own the photos are counted.
        changes: nested tables laid over it. Images have the side that the model was trained with unless they
            say otherwise; epochs and warm-up follow from the number of images and the batch, the warm-up from
            the steps where these are counted.

    Raises:
        InputError: no such weights, an unknown name, a folder without photos in classes, or wrong changes.
    """
    whole = DataConfig(data).name  # checks the name
    folder = own_place(whole)
    trained = open_model(weights)
    seen = survey_own(whole) if folder else (SMALL | KNOWN)[data]
    tables = fine_tuning_tables(trained, whole, seen.photos, changes)
    name = f"{(folder.name or 'folder') if folder else data}-from-{slug_of(weights)}"
    recipe = recipe_from_tables(tables, changes, name)
    side, train = recipe.data.image_size or seen.side, recipe.train
    dataclasses.replace(trained.model.config, image_size=side)  # refuses a side that patches do not divide
    length = f"steps: {train.steps}" if train.steps else f"epochs: {train.epochs}"
    sentence = (
        f"{name}: images of {side} x {side}, {length}, batches of {train.batch_size}, "
        f"{train.optimiser.upper()} at {train.learning_rate:g}. --set changes them."
    )
    return recipe, sentence


def fine_tuning_tables(
    trained: TrainedModel, name: str, photos: int, changes: dict[str, Any]
) -> dict[str, Any]:
    """Choose settings for fine-tuning.

    Args:
        trained: the model to begin from.
        name: of the data set.
        photos: how many training images it has.
        changes: what was asked for; data.train_size, train.epochs, train.steps and train.batch_size matter
            here.

    Returns:
        The tables of a recipe: weights, data, train.
    """

    def asked(table: str, option: str, otherwise: int) -> int:  # what makes no sense is refused by the recipe
        value = changes.get(table, {}).get(option)
        return value if isinstance(value, int) and value >= 1 else otherwise

    photos = asked("data", "train_size", photos)
    batch = asked("train", "batch_size", next(size for least, size in BATCHES if photos >= least))
    epochs = asked("train", "epochs", min(EPOCHS[1], max(EPOCHS[0], round(IMAGES_SEEN / photos))))
    steps = asked("train", "steps", 0) or epochs * max(1, photos // batch)
    height, width = trained.model.config.image_shape
    own = {"image_size": max(height, width)} if "image_size" not in changes.get("data", {}) else {}
    scaling = {"normalisation": trained.normalisation} if trained.normalisation else {}
    natural = {"flip": True, "crop": [0.6, 1.0]}
    return {
        "weights": trained.name,
        "data": {"name": name, **own, **scaling},
        "train": {
            "epochs": epochs,
            "batch_size": batch,
            "optimiser": "sgd",
            "momentum": 0.9,
            "learning_rate": 0.01,
            "weight_decay": 0.0,
            "schedule": "cosine",
            "warmup_steps": min(100, steps // 10),
            "clip_norm": 1.0,
            "augmentation": {"crop": [0.8, 1.0]} if name == "digits" else natural,
            "precision": "bfloat16",
        },
    }


def slug_of(weights: str) -> str:
    """Turn what names a trained model into a part of a recipe's name: "runs/try/" becomes "try"."""
    last = weights if weights in NAMED else Path(weights.removesuffix(".safetensors")).name
    return re.sub(r"[^A-Za-z0-9.]+", "-", last).strip("-.") or "weights"
