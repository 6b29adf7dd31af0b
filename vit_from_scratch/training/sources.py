"""Where images come from: one function a data set, from its folder to tensors of bytes."""

import json
import urllib.error
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vit_from_scratch.errors import InputError

CACHE = Path.home() / ".cache" / "vit_from_scratch" / "data"
"""Where downloads go."""


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


def digits_test_indices() -> list[int]:
    """Return the stored test part of the digits: 360 of 1,797 indices, the same share of each class.

    The split is a file of the package and is never drawn again, so that every accuracy on the digits,
    here and in the book, speaks of the same 360 scans.
    """
    text = resources.files("vit_from_scratch.training").joinpath("digits_split.json").read_text("utf-8")
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

    train, test = (_torchvision(CIFAR10, folder, train=part) for part in (True, False))
    return Source(*_bytes(train), *_bytes(test), class_names=tuple(train.classes))


def _torchvision(cls: Any, folder: Path | None, **arguments: Any) -> Any:
    """Open one of torchvision's data sets, with one clear sentence where that fails."""
    name, layout = cls.__name__, f"{cls.base_folder}/ (torchvision's layout)"
    if folder is not None and not (folder / cls.base_folder).is_dir():
        raise InputError(
            f"no {name} in {folder}: expected {layout} inside. "
            "Name the folder above it, or leave --data-dir and VIT_DATA_DIR out to download it."
        )
    try:
        return cls(str(folder or CACHE), download=folder is None, **arguments)
    except urllib.error.URLError as error:
        raise InputError(
            f"{name} is not in {CACHE} and cannot be downloaded ({error.reason}). Connect to a network once, "
            "or name the folder that holds it with --data-dir or VIT_DATA_DIR."
        ) from error
    except (RuntimeError, OSError, EOFError, KeyError) as error:
        raise InputError(
            f"{name} in {folder or CACHE} cannot be read: {str(error).splitlines()[0]} "
            f"Expected the published files in {layout}. Fetch them again, or check that they can be read."
        ) from error


def _bytes(dataset: Any) -> tuple[Tensor, Tensor]:
    """Take a torchvision data set's array (N, H, W, C) as images (N, C, H, W) uint8, with labels (N,)."""
    images = torch.from_numpy(dataset.data).permute(0, 3, 1, 2).contiguous()
    return images, torch.tensor(dataset.targets)
