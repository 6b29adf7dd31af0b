"""Where images come from: one function a data set, from its folder to tensors of bytes."""

import json
import math
import urllib.error
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset

from vit_from_scratch.errors import InputError
from vit_from_scratch.training.photos import open_photo

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


@dataclass(frozen=True, eq=False)
class Photos(Dataset[tuple[Image, int]]):
    """Photos of any size that are opened one by one: indexed, it gives a PIL image and its label.

    Attributes:
        opened: whose photos they are; indexed, it gives the same.
        labels: (N,) int64.
        files: N paths.
    """

    opened: Any
    labels: Tensor
    files: Sequence[str | Path]

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
    """

    train: Photos
    test: Photos
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


def read_cifar100(folder: Path | None = None) -> Source:
    """Read CIFAR-100: as CIFAR-10, in `cifar-100-python`, with 100 classes."""
    from torchvision.datasets import CIFAR100

    train, test = (_torchvision(CIFAR100, folder, train=part) for part in (True, False))
    return Source(*_bytes(train), *_bytes(test), class_names=tuple(train.classes))


def read_imagenette(folder: Path | None = None, side: int = 160) -> PhotoSource:
    """Open Imagenette: 9,469 training and 3,925 test photos of ten ImageNet classes, through torchvision.

    The published validation photos are the test part here, as ImageNet's are in the paper.

    Args:
        folder: holds `imagenette2-160`, `imagenette2-320` or `imagenette2` (short side 160, 320 or as
            photographed). None to download one of them into the cache, once.
        side: of the images wanted, in pixels: the smallest form that is there and no smaller is taken, else
            the largest that is there.

    Raises:
        InputError: no such data in the folder, a corrupted file, or no network.
    """
    from torchvision.datasets import Imagenette

    forms = {
        "imagenette2-160": (160, "160px"),
        "imagenette2-320": (320, "320px"),
        "imagenette2": (math.inf, "full"),
    }
    there = [name for name in forms if folder is None or (folder / name).is_dir()] or list(forms)
    layout = next((name for name in there if forms[name][0] >= side), there[-1])
    train, test = (
        _torchvision(Imagenette, folder, layout, split=split, size=forms[layout][1])
        for split in ("train", "val")
    )
    names = tuple(names[0] for names in train.classes)
    return PhotoSource(_listed(train, train._samples), _listed(test, test._samples), names)


def read_pets(folder: Path | None = None, side: int = 224) -> PhotoSource:
    """Open Oxford-IIIT Pets: 3,680 training and 3,669 test photos of 37 breeds, in `oxford-iiit-pet`.

    There is one form of it, whatever the `side` of the images wanted.
    """
    from torchvision.datasets import OxfordIIITPet

    train, test = (
        _torchvision(OxfordIIITPet, folder, "oxford-iiit-pet", split=split) for split in ("trainval", "test")
    )
    photos = [Photos(part, torch.tensor(part._labels), part._images) for part in (train, test)]
    return PhotoSource(*photos, class_names=tuple(train.classes))


def read_flowers(folder: Path | None = None, side: int = 224) -> PhotoSource:
    """Open Flowers-102: 2,040 training photos (its train and val) and 6,149 test photos, in `flowers-102`.

    There is one form of it, whatever the `side` of the images wanted.
    """
    from torchvision.datasets import Flowers102

    first, second, test = (
        _torchvision(Flowers102, folder, "flowers-102", split=split) for split in ("train", "val", "test")
    )
    labels = torch.tensor(first._labels + second._labels)
    train = Photos(ConcatDataset([first, second]), labels, first._image_files + second._image_files)
    names = getattr(first, "classes", [f"flower {number}" for number in range(1, 103)])
    return PhotoSource(train, Photos(test, torch.tensor(test._labels), test._image_files), tuple(names))


def read_folder(folder: Path) -> PhotoSource:
    """Open photos of your own: `FOLDER/train/CLASS/*` and `FOLDER/test/CLASS/*` (or `val` for `test`).

    Raises:
        InputError: the folder is not laid out so.
    """
    from torchvision.datasets import ImageFolder

    test_folder = folder / ("test" if (folder / "test").is_dir() else "val")
    try:
        train, test = (ImageFolder(str(part), loader=open_photo) for part in (folder / "train", test_folder))
    except OSError as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"no image folder at {folder} ({reason}): expected {folder}/train/CLASS/*.jpg and "
            f"{folder}/test/CLASS/*.jpg, one folder a class. Sort the photos so, or name another folder."
        ) from error
    if len(train.classes) < 2:
        raise InputError(
            f"{folder} has one class, {train.classes[0]}: expected two or more, a folder each. Add another."
        )
    if train.classes != test.classes:
        differ = sorted(set(train.classes) ^ set(test.classes))
        raise InputError(
            f"{folder}/train and {test_folder} have different classes ({', '.join(differ[:3])}): "
            "expected the same folders in both. Rename or move them."
        )
    return PhotoSource(_listed(train, train.samples), _listed(test, test.samples), tuple(train.classes))


def _listed(opened: Any, samples: Sequence[tuple[str | Path, int]]) -> Photos:
    """Take a torchvision data set that lists its photos as pairs of a path and a label."""
    files, labels = zip(*samples, strict=True)
    return Photos(opened, torch.tensor(labels), files)


def _torchvision(cls: Any, folder: Path | None, inside: str = "", **arguments: Any) -> Any:
    """Open one of torchvision's data sets, with one clear sentence where that fails."""
    inside = inside or cls.base_folder
    name, layout = cls.__name__, f"{inside}/ (torchvision's layout)"
    if folder is not None and not (folder / inside).is_dir():
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
