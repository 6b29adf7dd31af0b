"""Data sets by name: `load_dataset("digits")`, `open_dataset(DataConfig("imagenette"))`.

Small images lie in memory whole (`vit_from_scratch.data.in_memory`); photos of any size are streamed from
their files (`vit_from_scratch.data.streaming`).
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from vit_from_scratch.data.config import FOLDER, DataConfig, own_place
from vit_from_scratch.data.in_memory import ImageData
from vit_from_scratch.data.normalisation import NORMALISATIONS
from vit_from_scratch.data.photo_sources import (
    read_flowers,
    read_folder,
    read_imagenette,
    read_pets,
    read_shards,
    read_tiny_imagenet,
)
from vit_from_scratch.data.sources import (
    PhotoSource,
    Source,
    read_cifar10,
    read_cifar100,
    read_digits,
)
from vit_from_scratch.data.splits import hold_out, usual_size
from vit_from_scratch.data.streaming import PhotoData
from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import stat_of, typed_path

SOURCES: dict[str, Callable[[Path | None], Source]] = {
    "digits": read_digits,
    "cifar10": read_cifar10,
    "cifar100": read_cifar100,
}
"""How each data set of small images is read: a function from the data folder (or None) to its images."""

PHOTO_SOURCES: dict[str, Callable[[Path | None, int], PhotoSource]] = {
    "tiny-imagenet": read_tiny_imagenet,
    "imagenette": read_imagenette,
    "pets": read_pets,
    "flowers": read_flowers,
}
"""The same for data sets of photos, which are streamed; it is also told the side of the images."""


def load_dataset(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    validation_size: int | None = None,
    split_seed: int = 0,
) -> ImageData:
    """Load a data set of small images by name, into memory.

    Args:
        name: "digits" (1,797 scans of 8x8, inside scikit-learn: no download), "cifar10" or "cifar100" (60,000
            photos of 32x32 each). For data sets of larger photos see `open_dataset`.
        data_dir: the folder that holds the data set in torchvision's layout; without it the environment
            variable VIT_DATA_DIR; without that the data set is downloaded once.
        validation_size: training images held out for validation; None for the usual number (237 of the
            digits, 5,000 of CIFAR-10), 0 to train on all of them.
        split_seed: which of the training images those are.

    Raises:
        InputError: an unknown name, a data set that is streamed, fewer or more images to hold out than the
            classes allow, a folder without the data set, a corrupted file, or no network.
    """
    config = DataConfig(name, validation_size, split_seed)
    data = open_dataset(config, data_dir) if name in SOURCES else None
    if not isinstance(data, ImageData):
        raise InputError(
            f"{name} is streamed from its files: expected one of {', '.join(SOURCES)} here. "
            "Take open_dataset(DataConfig(...)) for it."
        )
    return data


def open_dataset(config: DataConfig, data_dir: str | os.PathLike[str] | None = None) -> ImageData | PhotoData:
    """Open any data set: small images in memory, photos as a stream.

    Args:
        config: which images.
        data_dir: as in `load_dataset`.

    Raises:
        InputError: fewer or more images asked for than the classes allow, a folder without the data set, a
            corrupted file, or no network.
    """
    folder = data_folder(data_dir)
    if config.name not in SOURCES:
        photos = _photos(config, folder)
        if config.validation_size is None:
            usual = len(photos.validation) or usual_size(photos.train.labels)
            config = replace(config, validation_size=usual)
        train, validation = hold_out(photos.train.labels, config, photos.validation)
        return PhotoData(config, photos, train, validation, NORMALISATIONS[config.normalisation])
    source = SOURCES[config.name](folder)
    train, validation = hold_out(source.train_labels, config)
    return ImageData(
        config=config,
        train_images=source.train_images[train],
        train_labels=source.train_labels[train],
        validation_images=source.train_images[validation],
        validation_labels=source.train_labels[validation],
        test_images=source.test_images,
        test_labels=source.test_labels,
        class_names=source.class_names,
        normalise=NORMALISATIONS[config.normalisation],
    )


def _photos(config: DataConfig, folder: Path | None) -> PhotoSource:
    """Find the photos of a data set that is streamed."""
    own = own_place(config.name)
    if own is None:
        return PHOTO_SOURCES[config.name](folder, config.image_size or 224)
    stat_of(own / "train")  # refuses a folder that may not be searched
    return read_folder(own) if config.name.startswith(FOLDER) else read_shards(own)


def data_folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder that is named, else the one that VIT_DATA_DIR names; None for a download."""
    named = data_dir or os.environ.get("VIT_DATA_DIR")
    return typed_path(named, "--data-dir" if data_dir else "VIT_DATA_DIR") if named else None
