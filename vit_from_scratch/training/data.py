"""Data sets by name: `load_dataset("digits")`, `load_dataset("cifar10")`, `load_dataset("imagenette")`.

Small data sets lie in memory whole, as bytes, so that a batch is one indexing operation and neither a
GPU nor two CPU cores wait for Python. Photos of any size are streamed from their files instead: see
`vit_from_scratch.training.streaming`.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F
from sklearn.model_selection import train_test_split
from torch import Tensor

from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.settings import check_fields, require
from vit_from_scratch.training.augmentation import Augmentation, augment
from vit_from_scratch.training.sources import (
    PhotoSource,
    Source,
    read_cifar10,
    read_cifar100,
    read_digits,
    read_flowers,
    read_folder,
    read_imagenette,
    read_pets,
)

if TYPE_CHECKING:
    from vit_from_scratch.training.streaming import PhotoData

SOURCES: dict[str, Callable[[Path | None], Source]] = {
    "digits": read_digits,
    "cifar10": read_cifar10,
    "cifar100": read_cifar100,
}
"""How each data set of small images is read: a function from the data folder (or None) to its images."""

PHOTO_SOURCES: dict[str, Callable[[Path | None, int], PhotoSource]] = {
    "imagenette": read_imagenette,
    "pets": read_pets,
    "flowers": read_flowers,
}
"""The same for data sets of photos, which are streamed; it is also told the side of the images."""

FOLDER = "folder:"
"""Before a path, it names a folder of photos of your own."""

VALIDATION_SIZES = {
    "digits": 237,
    "cifar10": 5_000,
    "cifar100": 5_000,
    "imagenette": 950,
    "pets": 370,
    "flowers": 204,
}
"""Training images that are held out for validation unless told otherwise; the test set is fixed apart."""

Part = Literal["validation", "test"]


@dataclass(frozen=True)
class DataConfig:
    """Which images a run sees.

    Attributes:
        name: the data set's name.
        validation_size: training images held out for validation; None for the data set's usual number (of a
            folder of your own, none), 0 to train on all of them. The test set is never part of it.
        split_seed: which of the training images those are.
        train_size: how many of the other training images are kept, the same share of each class; all
            (None). Fewer show how hungry a model is.
        image_size: side in pixels that images are brought to; None for 224 with photos, and for the images as
            they are with digits and CIFAR.
        normalisation: "half" maps bytes to [-1, 1]; "imagenet" takes mean and deviation of each colour
            over ImageNet.

    Raises:
        InputError: an unknown name or a value out of its range.
    """

    name: str
    validation_size: int | None = None
    split_seed: int = 0
    train_size: int | None = None
    image_size: int | None = None
    normalisation: Literal["half", "imagenet"] = "half"

    def __post_init__(self) -> None:
        """Refuse unknown names, and put the usual number in place of None."""
        check_fields(self, "data")
        known = [*SOURCES, *PHOTO_SOURCES, FOLDER + "PATH"]
        if self.name not in known and not self.name.startswith(FOLDER):
            raise unknown_name("data set", self.name, known)
        if self.validation_size is None:
            object.__setattr__(self, "validation_size", VALIDATION_SIZES.get(self.name, 0))
        if self.name.startswith(FOLDER):  # whole, so that the run can be evaluated from anywhere
            path = Path(self.name.removeprefix(FOLDER)).expanduser().resolve()
            object.__setattr__(self, "name", f"{FOLDER}{path}")
        if self.image_size is None and self.name not in SOURCES:
            object.__setattr__(self, "image_size", 224)
        count, side = self.train_size, self.image_size
        require(count is None or count >= 1, "data.train_size", count, "at least 1, or None")
        require(side is None or side >= 1, "data.image_size", side, "at least 1 pixel, or None")
        require((self.validation_size or 0) >= 0, "data.validation_size", self.validation_size, "0 or more")
        require(0 <= self.split_seed < 2**32, "data.split_seed", self.split_seed, "0 to 2^32 - 1")


@dataclass(frozen=True, eq=False)
class ImageData:
    """A data set in memory, in three parts that share no image.

    Attributes:
        config: which data set, and how it was split.
        train_images: (N, C, H, W) uint8.
        train_labels: (N,) int64.
        validation_images: held out of the training images, for choosing settings; may be empty.
        validation_labels: likewise.
        test_images: touched once, at the end.
        test_labels: likewise.
        class_names: K names, in the order of the labels.
        normalise: maps bytes to what the model takes.
    """

    config: DataConfig
    train_images: Tensor
    train_labels: Tensor
    validation_images: Tensor
    validation_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    class_names: tuple[str, ...]
    normalise: Normalisation = NORMALISATIONS["half"]

    @property
    def num_classes(self) -> int:
        """The number of classes, K."""
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The shape of an image as a model gets it, (C, H, W)."""
        channels, height, width = self.train_images.shape[1:]
        side = self.config.image_size
        return (channels, side, side) if side else (channels, height, width)

    def at_size(self, images: Tensor) -> Tensor:
        """Bring images (B, C, H, W) to `config.image_size`, as floats; without one they stay as they are."""
        side = self.config.image_size
        if side is None or images.shape[-2:] == (side, side):
            return images
        return F.interpolate(images.float(), (side, side), mode="bilinear", antialias=True)

    @property
    def training_size(self) -> int:
        """The number of training images."""
        return len(self.train_labels)

    def check_augmentation(self, augmentation: Augmentation) -> None:
        """Raise an `InputError` for an augmentation that is only for streamed photos."""
        if augmentation.alone:
            raise InputError(
                f"train.augmentation.{augmentation.alone[0]} is for photos that are streamed from files, and "
                f"{self.config.name} lies in memory: expected it off. Take flip, shift, crop or mixup."
            )

    def training_batches(
        self, batch_size: int, augmentation: Augmentation, seed: int, workers: int = 0
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the training images of an epoch in random order, in whole batches (or one smaller batch).

        Args:
            batch_size: images in a batch, B.
            augmentation: random changes to them.
            seed: decides order and changes.
            workers: not needed: the images lie in memory.

        Yields:
            Images (B, C, H, W), floats from 0 to 255, and labels (B,).

        Raises:
            InputError: an augmentation that is only for streamed photos.
        """
        self.check_augmentation(augmentation)
        device = self.train_labels.device
        generator = torch.Generator(device).manual_seed(seed)
        order = torch.randperm(self.training_size, generator=generator, device=device)
        for batch in order.split(batch_size)[: max(1, self.training_size // batch_size)]:
            images = augment(self.train_images[batch], augmentation, generator)
            yield self.at_size(images), self.train_labels[batch]

    def batches(self, part: Part, batch_size: int = 500, workers: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the images of a part in their order, normalised (B, C, H, W), with labels (B,).

        No `workers` are needed: the images lie in memory.
        """
        images, labels = getattr(self, f"{part}_images"), getattr(self, f"{part}_labels")
        for some, target in zip(images.split(batch_size), labels.split(batch_size), strict=True):
            yield self.normalise(self.at_size(some)), target

    def size_of(self, part: Part) -> int:
        """The number of images in a part."""
        return len(getattr(self, f"{part}_labels"))

    def to(self, device: torch.device | str) -> "ImageData":
        """Return the same data on a device."""
        tensors = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **tensors)

    def __repr__(self) -> str:
        """Say what is in it in one line."""
        parts = {"train": self.train_labels, "validation": self.validation_labels, "test": self.test_labels}
        counts = ", ".join(f"{len(labels):,} {part}" for part, labels in parts.items())
        shape = " x ".join(map(str, self.image_shape))
        return f"ImageData({self.config.name!r}: {counts} images of {shape}, {self.num_classes} classes)"


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
        InputError: an unknown name, a folder without the data set, a corrupted file, or no network.
    """
    data = open_dataset(DataConfig(name, validation_size, split_seed), data_dir)
    if not isinstance(data, ImageData):
        raise InputError(
            f"{name} is streamed from its files: expected one of {', '.join(SOURCES)} here. "
            "Take open_dataset(DataConfig(...)) for it."
        )
    return data


def open_dataset(
    config: DataConfig, data_dir: str | os.PathLike[str] | None = None
) -> "ImageData | PhotoData":
    """Open any data set: small images in memory, photos as a stream.

    Args:
        config: which images.
        data_dir: as in `load_dataset`.

    Raises:
        InputError: a folder without the data set, a corrupted file, or no network.
    """
    from vit_from_scratch.training.streaming import PhotoData

    folder = data_folder(data_dir)
    if config.name not in SOURCES:
        own = config.name.startswith(FOLDER)
        path = Path(config.name.removeprefix(FOLDER)).expanduser()
        side = config.image_size or 224
        photos = read_folder(path) if own else PHOTO_SOURCES[config.name](folder, side)
        train, validation = _hold_out(photos.train.labels, config)
        return PhotoData(config, photos, train, validation, NORMALISATIONS[config.normalisation])
    source = SOURCES[config.name](folder)
    train, validation = _hold_out(source.train_labels, config)
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


def data_folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder that is named, else the one that VIT_DATA_DIR names; None for a download."""
    named = data_dir or os.environ.get("VIT_DATA_DIR")
    return Path(named).expanduser() if named else None


def _hold_out(labels: Tensor, config: DataConfig) -> tuple[Tensor, Tensor]:
    """Split the training images' indices into training and validation, with the same share of each class."""
    train, validation = _draw(torch.arange(len(labels)), labels, config, "validation_size")
    if config.train_size is not None:
        train = _draw(train, labels, config, "train_size")[1]
    return train, validation


def _draw(indices: Tensor, labels: Tensor, config: DataConfig, option: str) -> tuple[Tensor, Tensor]:
    """Draw as many indices as an option of the configuration says; return the rest and the drawn."""
    size, classes = getattr(config, option), len(labels.unique())
    if size == 0:
        return indices, indices[:0]
    if option == "train_size" and size == len(indices):
        return indices[:0], indices
    most = len(indices) - classes
    if not classes <= size <= most:
        none = f"all {len(indices):,}" if option == "train_size" else "0"
        raise InputError(
            f"data.{option} = {size}: {config.name} has {len(indices):,} images of {classes} classes for it. "
            f"Expected {none}" + (f", or {classes} to {most:,}." if classes <= most else ".")
        )
    few, counts = labels[indices].unique(return_counts=True)
    if counts.min() < 2:
        raise InputError(
            f"data.{option} = {size}: class {few[counts.argmin()].item()} of {config.name} has one image, "
            "which cannot be on both sides. Expected two or more of each class, or the option left out."
        )
    rest, drawn = train_test_split(
        indices.numpy(), test_size=size, stratify=labels[indices].numpy(), random_state=config.split_seed
    )
    return torch.from_numpy(rest).sort().values, torch.from_numpy(drawn).sort().values
