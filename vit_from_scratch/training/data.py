"""Data sets by name, as tensors in memory: `load_dataset("digits")`, `load_dataset("cifar10")`.

Small data sets lie in memory whole, as bytes, so that a batch is one indexing operation and neither a
GPU nor two CPU cores wait for Python.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from sklearn.model_selection import train_test_split
from torch import Tensor

from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.settings import check_fields, require
from vit_from_scratch.training.sources import Source, read_cifar10, read_digits

SOURCES: dict[str, Callable[[Path | None], Source]] = {"digits": read_digits, "cifar10": read_cifar10}
"""How each data set is read: a function from the data folder (or None) to its images."""

VALIDATION_SIZES = {"digits": 237, "cifar10": 5_000}
"""Training images that are held out for validation unless told otherwise; the test set is fixed apart."""


@dataclass(frozen=True)
class DataConfig:
    """Which images a run sees.

    Attributes:
        name: the data set's name.
        validation_size: training images held out for validation; None for the data set's usual number,
            0 to train on all of them. The test set is never part of it.
        split_seed: which of the training images those are.

    Raises:
        InputError: an unknown name or a value out of its range.
    """

    name: str
    validation_size: int | None = None
    split_seed: int = 0

    def __post_init__(self) -> None:
        """Refuse unknown names, and put the usual number in place of None."""
        check_fields(self, "data")
        if self.name not in SOURCES:
            raise unknown_name("data set", self.name, SOURCES)
        if self.validation_size is None:
            object.__setattr__(self, "validation_size", VALIDATION_SIZES[self.name])
        require((self.validation_size or 0) >= 0, "data.validation_size", self.validation_size, "0 or more")
        require(self.split_seed >= 0, "data.split_seed", self.split_seed, "0 or more")


@dataclass(frozen=True)
class Normalisation:
    """Map bytes to the numbers that a model takes: (image / 255 - mean) / std, for each channel.

    The mean and deviation of 0.5 map bytes to [-1, 1], as the paper's reference code does.

    Attributes:
        mean: one value a channel, or one for all.
        std: likewise.
    """

    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)

    def __call__(self, images: Tensor) -> Tensor:
        """Normalise images (B, C, H, W), uint8 or floats from 0 to 255, to floats of the same shape."""
        mean = torch.tensor(self.mean, device=images.device).view(-1, 1, 1) * 255
        std = torch.tensor(self.std, device=images.device).view(-1, 1, 1) * 255
        return (images - mean) / std

    def undo(self, images: Tensor) -> Tensor:
        """Map normalised images (B, C, H, W) back to [0, 1], for figures."""
        mean = torch.tensor(self.mean, device=images.device).view(-1, 1, 1)
        return (images * torch.tensor(self.std, device=images.device).view(-1, 1, 1) + mean).clamp(0, 1)


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
    normalise: Normalisation = Normalisation()

    @property
    def num_classes(self) -> int:
        """The number of classes, K."""
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The shape of an image, (C, H, W)."""
        channels, height, width = self.train_images.shape[1:]
        return channels, height, width

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
    """Load a data set by name.

    Args:
        name: "digits" (1,797 scans of 8x8, inside scikit-learn: no download) or "cifar10" (60,000 photos
            of 32x32).
        data_dir: the folder that holds the data set in torchvision's layout; without it the environment
            variable VIT_DATA_DIR; without that the data set is downloaded once.
        validation_size: training images held out for validation; None for the usual number (237 of the
            digits, 5,000 of CIFAR-10), 0 to train on all of them.
        split_seed: which of the training images those are.

    Raises:
        InputError: an unknown name, a folder without the data set, a corrupted file, or no network.
    """
    config = DataConfig(name, validation_size, split_seed)
    folder = data_dir or os.environ.get("VIT_DATA_DIR") or None
    source = SOURCES[name](Path(folder).expanduser() if folder else None)
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
    )


def _hold_out(labels: Tensor, config: DataConfig) -> tuple[Tensor, Tensor]:
    """Split the training images' indices into training and validation, with the same share of each class."""
    size = config.validation_size or 0
    indices = torch.arange(len(labels))
    if size == 0:
        return indices, indices[:0]
    classes = len(labels.unique())
    if not classes <= size <= len(labels) - classes:
        raise InputError(
            f"data.validation_size = {size}: {config.name} has {len(labels):,} training images of {classes} "
            f"classes. Expected 0, or {classes} to {len(labels) - classes:,}."
        )
    train, validation = train_test_split(
        indices.numpy(), test_size=size, stratify=labels.numpy(), random_state=config.split_seed
    )
    return torch.from_numpy(train).sort().values, torch.from_numpy(validation).sort().values
