"""Published data sets: one function each, from a folder to their images; torchvision knows their files."""

import json
import math
import urllib.error
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vit_from_scratch.data.sources import Photos, PhotoSource
from vit_from_scratch.data.tiny_imagenet import TinyImageNet
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

    return _read_cifar(CIFAR10, folder)


def read_cifar100(folder: Path | None = None) -> Source:
    """Read CIFAR-100: as CIFAR-10, in `cifar-100-python`, with 100 classes."""
    from torchvision.datasets import CIFAR100

    return _read_cifar(CIFAR100, folder)


def _read_cifar(cls: Any, folder: Path | None) -> Source:
    parts = [open_torchvision(cls, folder, train=train) for train in (True, False)]
    tensors: list[Tensor] = []
    for part in parts:
        images = torch.from_numpy(part.data).permute(0, 3, 1, 2).contiguous()  # (N, 3, 32, 32) uint8
        tensors += [images, torch.tensor(part.targets)]
    return Source(*tensors, class_names=tuple(parts[0].classes))


def read_tiny_imagenet(folder: Path | None = None, side: int = 64) -> PhotoSource:
    """Open Tiny-ImageNet, in `tiny-imagenet-200`: 200 classes; 100,000 training, 10,000 test photos of 64x64.

    The published validation photos are the test part here, since the published test has no labels.

    Args:
        folder: holds `tiny-imagenet-200`; None to download it into the cache, once.
        side: of the images wanted; there is one form of it.

    Raises:
        InputError: no such data in the folder, a damaged list of its photos, or no network.
    """
    train, test = (open_torchvision(TinyImageNet, folder, split=split) for split in ("train", "val"))
    return PhotoSource(_listed(train.samples), _listed(test.samples), train.classes, size=(64, 64))


def read_imagenette(folder: Path | None = None, side: int = 160) -> PhotoSource:
    """Open Imagenette: 9,469 training and 3,925 test photos of ten ImageNet classes, through torchvision.

    The published validation photos are the test part here, as ImageNet's are in the paper.

    Args:
        folder: holds `imagenette2-160`, `imagenette2-320` or `imagenette2` (short side 160, 320 or as
            photographed). None to download one of them into the cache, once.
        side: of the images wanted, in pixels: the smallest form that is there and at least as large is taken,
            else the largest that is there.

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
        open_torchvision(Imagenette, folder, layout, split=split, size=forms[layout][1], loader=Path)
        for split in ("train", "val")
    )
    return PhotoSource(_listed(train), _listed(test), tuple(names[0] for names in train.classes))


def read_pets(folder: Path | None = None, side: int = 224) -> PhotoSource:
    """Open Oxford-IIIT Pets: 3,680 training and 3,669 test photos of 37 breeds, in `oxford-iiit-pet`.

    There is one form of it, whatever the `side` of the images wanted.
    """
    from torchvision.datasets import OxfordIIITPet

    opened = open_torchvision(OxfordIIITPet, folder, "oxford-iiit-pet")
    base, parts = Path(opened.root) / "oxford-iiit-pet", []
    for split in ("trainval", "test"):  # a line is a photo's name, its breed from 1 on, and two numbers more
        lines = [line.split() for line in (base / "annotations" / f"{split}.txt").read_text().splitlines()]
        parts.append(
            _listed([(base / "images" / f"{name}.jpg", int(breed) - 1) for name, breed, *_ in lines])
        )
    return PhotoSource(*parts, class_names=tuple(opened.classes))


def read_flowers(folder: Path | None = None, side: int = 224) -> PhotoSource:
    """Open Flowers-102: 2,040 training photos (its train and val) and 6,149 test photos, in `flowers-102`.

    There is one form of it, whatever the `side` of the images wanted.
    """
    from torchvision.datasets import Flowers102

    train, more, test = (
        _listed(open_torchvision(Flowers102, folder, "flowers-102", split=split, loader=Path))
        for split in ("train", "val", "test")
    )
    train = Photos([*train.files, *more.files], [*train.labels, *more.labels])
    return PhotoSource(train, test, tuple(Flowers102.classes))


def _listed(samples: Any) -> Photos:
    """Take pairs of a path and a label, or a torchvision data set whose loader gives the path."""
    pairs = [samples[number] for number in range(len(samples))]
    return Photos([path for path, _ in pairs], [label for _, label in pairs])


def open_torchvision(cls: Any, folder: Path | None, inside: str = "", **arguments: Any) -> Any:
    """Open one of torchvision's data sets, with one clear sentence where that fails."""
    inside = inside or cls.base_folder
    name, layout = cls.__name__, f"{inside}/ (torchvision's layout)"
    if folder is not None and not (folder / inside).is_dir():
        raise InputError(
            f"no {name} in {folder}: expected {layout} inside. "
            "Name the folder above it, or leave --data-dir and VIT_DATA_DIR out to download it."
        )
    where = folder or download_folder("data")
    try:
        return cls(str(where), download=folder is None, **arguments)
    except urllib.error.URLError as error:
        raise InputError(
            f"{name} is not in {where} and cannot be downloaded ({error.reason}). Connect to a "
            "network once, or name the folder that holds it with --data-dir or VIT_DATA_DIR."
        ) from error
    except (RuntimeError, OSError, EOFError, KeyError) as error:
        raise InputError(
            f"{name} in {where} cannot be read: {str(error).splitlines()[0]} "
            f"Expected the published files in {layout}. Fetch them again, or check that they can be read."
        ) from error
