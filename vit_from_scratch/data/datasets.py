"""Data sets by name: `load_dataset("digits")`, `open_dataset(DataConfig("imagenette"))`."""

import os
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from vit_from_scratch.data.config import IN_MEMORY, TENSORS, DataConfig
from vit_from_scratch.data.dataset import DataSet, ImageData
from vit_from_scratch.data.normalisation import NORMALISATIONS
from vit_from_scratch.data.photos import picture_size
from vit_from_scratch.data.published import SOURCES, Source
from vit_from_scratch.data.sources import open_own, spread
from vit_from_scratch.data.streaming import PhotoData
from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import typed_path

LOOKED_AT = 10_000
"""Files of each part whose headers are read, to learn whether all photos have the wanted size."""


def load_dataset(name: str, data_dir: str | os.PathLike[str] | None = None) -> ImageData:
    """Load a data set of small images by name, into memory; for larger photos see `open_dataset`.

    Args:
        name: "digits" (1,797 scans of 8x8, inside scikit-learn: no download), "mnist" (70,000 scans of
            28x28), "cifar10" or "cifar100" (60,000 photos of 32x32 each).
        data_dir: the folder that holds the data set in torchvision's layout; without it the environment
            variable VIT_DATA_DIR; without that the data set is downloaded once.

    Raises:
        InputError: an unknown name, a data set that is streamed, or as for `open_dataset`.
    """
    config = DataConfig(name)
    data = open_dataset(config, data_dir) if name in (*IN_MEMORY, TENSORS) else None
    if not isinstance(data, ImageData):
        raise InputError(
            f"{name} is streamed from its files: expected one of {', '.join(IN_MEMORY)} here. "
            "Take open_dataset(DataConfig(...)) for it."
        )
    return data


def open_dataset(config: DataConfig | str, data_dir: str | os.PathLike[str] | None = None) -> DataSet:
    """Open any data set: small images in memory, an `ImageData`; photos as a stream, a `PhotoData`.

    A name stands for its usual settings. The folder `data_dir` is as in `load_dataset`.

    Raises:
        InputError: fewer or more images asked for than the classes allow, a folder without the data set, a
            corrupted file, or no network.
    """
    config = DataConfig(config) if isinstance(config, str) else config
    if config.name == TENSORS:
        raise InputError("data.name = 'tensors': expected images in memory; hand them to an ImageData.")
    folder, normalise = data_folder(data_dir), NORMALISATIONS[config.normalisation]
    side = config.image_size or 224
    photos = SOURCES[config.name](folder, side) if config.name in SOURCES else open_own(config.name)
    if isinstance(photos, Source):
        images, labels, *test, names = photos
        train, validation = hold_out(labels, config)
        parts = (images[train], labels[train], images[validation], labels[validation], *test)
        return ImageData(config, *parts, class_names=names, normalise=normalise)
    uniform = photos.size == (side, side)
    if config.name not in SOURCES:
        some = [file for part in (photos.train, photos.test) for file in spread(part.files, LOOKED_AT)]
        uniform = all(picture_size(file) == (side, side) for file in some)
    labels = torch.tensor(photos.train.labels)
    if config.validation_size is None:
        config = replace(config, validation_size=photos.validation or usual_size(labels))
    split, names = hold_out(labels, config, photos.validation), photos.class_names
    return PhotoData(config, photos, side, uniform, *split, class_names=names, normalise=normalise)


def data_folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder that is named, else the one that VIT_DATA_DIR names; None for a download."""
    named = data_dir or os.environ.get("VIT_DATA_DIR")
    return typed_path(named, "--data-dir" if data_dir else "VIT_DATA_DIR") if named else None


def usual_size(labels: Tensor) -> int:
    """Return how many of a folder's training photos, by their labels (N,), are held out for validation.

    It is a tenth, at least a photo for each class and at most 10,000; none where that would be more than a
    quarter or a class has a single photo.
    """
    counts = labels.unique(return_counts=True)[1]
    size = max(len(counts), min(len(labels) // 10, 10_000))
    return size if counts.min() >= 2 and size <= len(labels) / 4 else 0


def hold_out(labels: Tensor, config: DataConfig, at_the_end: int = 0) -> tuple[Tensor, Tensor]:
    """Split training images by their labels (N,): indices for training and validation, as `config` says.

    Each class has the same share in both. The last `at_the_end` were published for validation. They are never
    trained on. They are the validation part if exactly as many are asked for, else it is drawn from the rest.
    """
    train, validation = torch.arange(len(labels)).tensor_split([len(labels) - at_the_end])
    if at_the_end == 0 or at_the_end != config.validation_size:
        train, validation = _draw(train, labels, config, "validation_size")
    if config.train_size not in (None, len(train)):
        train = _draw(train, labels, config, "train_size")[1]
    return train, validation


def _draw(indices: Tensor, labels: Tensor, config: DataConfig, option: str) -> tuple[Tensor, Tensor]:
    """Draw as many indices as an option of the configuration says; return the rest and the drawn."""
    size, counts = getattr(config, option), labels[indices].bincount()
    if size == 0:
        return indices, indices[:0]
    classes = int((counts > 0).sum())
    if not classes <= size <= len(indices) - classes or (counts == 1).any():
        raise InputError(
            f"data.{option} = {size}: {config.name} has {len(indices):,} images of {classes} classes for it, "
            f"{counts[counts > 0].min()} or more each. Expected {classes} to {len(indices) - classes:,} "
            "images, of classes with two or more; or the option left out."
        )
    from sklearn.model_selection import train_test_split  # imported here: it takes half a second

    rest, drawn = train_test_split(
        indices.numpy(), test_size=size, stratify=labels[indices].numpy(), random_state=config.split_seed
    )
    return torch.from_numpy(rest).sort().values, torch.from_numpy(drawn).sort().values
