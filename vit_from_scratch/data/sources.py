"""Where images come from: one function a data set, from its folder to tensors of bytes.

Those of photos, which are files, stand in `vit_from_scratch.data.photo_sources`.
"""

import json
import urllib.error
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor
from torch.utils.data import Dataset

from vit_from_scratch.data.folders import PhotoFile
from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import download_folder


@dataclass(frozen=True, eq=False)
class Source:
    """A data set as it is published: training and test images as bytes.

    Attributes:
        train_images: (N, C, H, W) uint8.
        train_labels: (N,) int64.
        test_images: likewise.
        test_labels: likewise.
        class_names: K names, in the order of the labels.
    """

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    class_names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Photos(Dataset[tuple[Image, int]]):
    """Photos of any size that are opened one by one: indexed, it gives a PIL image and its label.

    Attributes:
        opened: whose photos they are; indexed, it gives the same.
        labels: (N,) int64.
        files: N paths, or places in shards.
    """

    opened: Any
    labels: Tensor
    files: Sequence[PhotoFile]

    def __len__(self) -> int:
        """The number of photos, N."""
        return len(self.files)

    def __getitem__(self, number: int) -> tuple[Image, int]:
        """Open a photo.

        Raises:
            InputError: its file cannot be read.
        """
        try:
            return self.opened[number]
        except InputError:  # the reader said it already
            raise
        except (OSError, SyntaxError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"{self.files[number]} cannot be read ({reason}): expected a whole picture; fetch it again."
            ) from None


@dataclass(frozen=True, eq=False)
class PhotoSource:
    """A data set of photos as it is published.

    Attributes:
        train: the training photos.
        test: the test photos.
        class_names: K names, in the order of the labels.
        validation: numbers of the photos in `train` that are published for validation, (V,); usually none.
        size: width and height in pixels if all photos are known to have the same, else None.
        blocks: of photos in shards, which of those in `train` lie near each other, (N,): see `reading_order`.
        note: what a user should know about it, in a sentence; "" for nothing.
    """

    train: Photos
    test: Photos
    class_names: tuple[str, ...]
    validation: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    size: tuple[int, int] | None = None
    blocks: Tensor | None = None
    note: str = ""


def digits_test_indices() -> list[int]:
    """Return the stored test part of the digits: 360 of 1,797 indices, the same share of each class.

    The split is a file of the package and is never drawn again, so that every accuracy on the digits,
    here and in the book, speaks of the same 360 scans.
    """
    text = resources.files("vit_from_scratch.data").joinpath("digits_split.json").read_text("utf-8")
    return json.loads(text)["test"]


def read_digits(folder: Path | None = None) -> Source:
    """Read the 1,797 scanned digits inside scikit-learn, 8x8 pixels; `folder` is not needed.

    The scans count 0 to 16 ink dots a pixel; here that is spread over the bytes 0 to 255.
    """
    from sklearn.datasets import load_digits  # imported here: it takes half a second

    scans: Any = load_digits()
    pixels = np.rint(scans.images * (255 / 16)).astype(np.uint8)
    images = torch.from_numpy(pixels)[:, None]  # (N, 1, 8, 8)
    labels = torch.from_numpy(scans.target).long()
    test = torch.zeros(len(labels), dtype=torch.bool)
    test[digits_test_indices()] = True
    names = tuple(str(digit) for digit in range(10))
    return Source(images[~test], labels[~test], images[test], labels[test], names)


def read_cifar10(folder: Path | None = None) -> Source:
    """Read CIFAR-10, 50,000 training and 10,000 test photos of 32x32, through torchvision.

    Args:
        folder: holds `cifar-10-batches-py`; None to download into the cache, once.

    Raises:
        InputError: no such data in the folder, a corrupted file, or no network.
    """
    from torchvision.datasets import CIFAR10

    train, test = (open_torchvision(CIFAR10, folder, train=part) for part in (True, False))
    return Source(*_bytes(train), *_bytes(test), class_names=tuple(train.classes))


def read_cifar100(folder: Path | None = None) -> Source:
    """Read CIFAR-100: as CIFAR-10, in `cifar-100-python`, with 100 classes."""
    from torchvision.datasets import CIFAR100

    train, test = (open_torchvision(CIFAR100, folder, train=part) for part in (True, False))
    return Source(*_bytes(train), *_bytes(test), class_names=tuple(train.classes))


def cache_folder() -> Path:
    """Return where downloads go."""
    return download_folder("data")


def open_torchvision(cls: Any, folder: Path | None, inside: str = "", **arguments: Any) -> Any:
    """Open one of torchvision's data sets, with one clear sentence where that fails."""
    inside = inside or cls.base_folder
    name, layout = cls.__name__, f"{inside}/ (torchvision's layout)"
    if folder is not None and not (folder / inside).is_dir():
        raise InputError(
            f"no {name} in {folder}: expected {layout} inside. "
            "Name the folder above it, or leave --data-dir and VIT_DATA_DIR out to download it."
        )
    try:
        return cls(str(folder or cache_folder()), download=folder is None, **arguments)
    except urllib.error.URLError as error:
        raise InputError(
            f"{name} is not in {cache_folder()} and cannot be downloaded ({error.reason}). Connect to a "
            "network once, or name the folder that holds it with --data-dir or VIT_DATA_DIR."
        ) from error
    except (RuntimeError, OSError, EOFError, KeyError) as error:
        raise InputError(
            f"{name} in {folder or cache_folder()} cannot be read: {str(error).splitlines()[0]} "
            f"Expected the published files in {layout}. Fetch them again, or check that they can be read."
        ) from error


def _bytes(dataset: Any) -> tuple[Tensor, Tensor]:
    """Take a torchvision data set's array (N, H, W, C) as images (N, C, H, W) uint8, with labels (N,)."""
    images = torch.from_numpy(dataset.data).permute(0, 3, 1, 2).contiguous()
    return images, torch.tensor(dataset.targets)
