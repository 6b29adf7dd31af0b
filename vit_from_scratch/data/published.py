"""Published data sets: one function each, from a folder to their images; torchvision knows their files.

A folder holds the data set in torchvision's layout; with None it is downloaded into the cache, once. `side`
is that of the images wanted, in pixels; most data sets have only one form.
"""

import contextlib
import json
import math
import shutil
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from vit_from_scratch.data.sources import Photos, PhotoSource
from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import download_folder

TINY = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
TINY_MD5 = "90528d7ca1a48142e341f4ef8d21d0de"


class Source(NamedTuple):
    """A data set as it is published: training and test images (N, C, H, W) uint8, labels (N,), K names."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    class_names: tuple[str, ...]


def digits_test_indices() -> list[int]:
    """Return the test part of the digits, 360 of 1,797 indices; it is stored, and so never drawn again."""
    stored = resources.files("vit_from_scratch.data") / "digits_split.json"
    return json.loads(stored.read_text("utf-8"))["test"]


def read_digits(folder: Path | None, side: int) -> Source:
    """Read the 1,797 scanned digits inside scikit-learn, 8x8 pixels, no folder needed.

    The scans count 0 to 16 ink dots a pixel; here that is spread over the bytes 0 to 255.
    """
    from sklearn.datasets import load_digits  # imported here: it takes half a second

    scans: Any = load_digits()
    pixels = np.rint(scans.images * (255 / 16)).astype(np.uint8)
    images = torch.from_numpy(pixels)[:, None]  # (N, 1, 8, 8)
    labels = torch.from_numpy(scans.target).long()
    test = torch.isin(torch.arange(len(labels)), torch.tensor(digits_test_indices()))
    return Source(images[~test], labels[~test], images[test], labels[test], tuple("0123456789"))


def read_mnist(folder: Path | None, side: int) -> Source:
    """Read MNIST, 60,000 training and 10,000 test scans of handwritten digits, 28x28 pixels, grey."""
    parts = [open_torchvision("MNIST", folder, "MNIST/raw", train=train) for train in (True, False)]
    tensors = [tensor for part in parts for tensor in (part.data[:, None], part.targets)]  # (N, 1, 28, 28)
    return Source(*tensors, class_names=tuple("0123456789"))


def read_cifar(name: str, folder: Path | None, side: int) -> Source:
    """Read CIFAR10 or CIFAR100, 50,000 training and 10,000 test photos of 32x32."""
    tensors: list[Tensor] = []
    for train in (True, False):
        part = open_torchvision(name, folder, train=train)
        images = torch.from_numpy(part.data).permute(0, 3, 1, 2).contiguous()  # (N, 3, 32, 32) uint8
        tensors += [images, torch.tensor(part.targets)]
    return Source(*tensors, class_names=tuple(part.classes))


def read_imagenette(folder: Path | None, side: int) -> PhotoSource:
    """Open Imagenette: 9,469 training and 3,925 test photos of ten ImageNet classes.

    The published validation photos are the test part here, as ImageNet's are in the paper. Of the forms
    `imagenette2-160`, `imagenette2-320` and `imagenette2` (short side 160, 320 or as photographed), the
    smallest one present that is at least as large as `side` is taken, else the largest one present.
    """
    forms = {"160px": 160, "320px": 320, "full": math.inf}
    places = {"160px": "imagenette2-160", "320px": "imagenette2-320", "full": "imagenette2"}
    there = [form for form in forms if folder is None or (folder / places[form]).is_dir()] or list(forms)
    form = next((form for form in there if forms[form] >= side), there[-1])
    train, test = (
        open_torchvision("Imagenette", folder, places[form], split=split, size=form, loader=Path)
        for split in ("train", "val")
    )
    return PhotoSource(Photos.of(train), Photos.of(test), tuple(names[0] for names in train.classes))


def read_pets(folder: Path | None, side: int) -> PhotoSource:
    """Open Oxford-IIIT Pets: 3,680 training and 3,669 test photos of 37 breeds."""
    opened = open_torchvision("OxfordIIITPet", folder, "oxford-iiit-pet")
    base, parts = Path(opened.root) / "oxford-iiit-pet", []
    for split in ("trainval", "test"):  # a line is a photo's name, its breed from 1 on, and two numbers more
        lines = [line.split() for line in (base / "annotations" / f"{split}.txt").read_text().splitlines()]
        parts.append(Photos.of((base / "images" / f"{line[0]}.jpg", int(line[1]) - 1) for line in lines))
    return PhotoSource(*parts, class_names=tuple(opened.classes))


def read_flowers(folder: Path | None, side: int) -> PhotoSource:
    """Open Flowers-102: 2,040 training photos (its train and val) and 6,149 test photos of 102 kinds."""
    train, more, test = (
        open_torchvision("Flowers102", folder, "flowers-102", split=split, loader=Path)
        for split in ("train", "val", "test")
    )
    return PhotoSource(Photos.of([*train, *more]), Photos.of(test), tuple(train.classes))


def read_tiny_imagenet(folder: Path | None, side: int) -> PhotoSource:
    """Open Tiny-ImageNet: 200 classes; 100,000 training and 10,000 test photos of 64x64.

    The published validation photos are the test part here, since the published test has no labels. A class
    is named by the first word of its entry in words.txt, and by its id, too, where two share that.
    """
    from torchvision.datasets import ImageFolder, utils  # imported here: it takes seconds

    with opening("Tiny-ImageNet", folder, "tiny-imagenet-200") as where:
        base = where / "tiny-imagenet-200"
        if not base.is_dir():
            unpacked = where / ".tiny-imagenet-200.part"  # the folder appears when it is whole
            shutil.rmtree(unpacked, ignore_errors=True)
            utils.download_and_extract_archive(
                TINY, str(where), str(unpacked), md5=TINY_MD5, remove_finished=True
            )
            (unpacked / base.name).rename(base)
            unpacked.rmdir()
        train = ImageFolder(str(base / "train"))  # ID/images/*.JPEG
        lines = [line.split("\t") for line in (base / "words.txt").read_text("utf-8").splitlines()]
        word_of = {line[0]: line[-1].split(",")[0].strip() for line in lines}
        words = [word_of[wnid] for wnid in train.classes]
        # a line is a photo's name, its class's id, and the box of its object
        lines = [line.split() for line in (base / "val" / "val_annotations.txt").read_text().splitlines()]
        test = [(base / "val" / "images" / name, train.class_to_idx[wnid]) for name, wnid, *_ in lines]
        if differ := {photo for photo, _ in test} ^ set((base / "val" / "images").glob("*.JPEG")):
            raise OSError(f"val_annotations.txt does not fit the photos in val ({min(differ).name}).")
    count, pairs = Counter(words), zip(words, train.classes, strict=True)
    names = (word if count[word] == 1 else f"{word} ({wnid})" for word, wnid in pairs)
    return PhotoSource(Photos.of(train.samples), Photos.of(test), tuple(names), size=(64, 64))


def open_torchvision(name: str, folder: Path | None, inside: str = "", **arguments: Any) -> Any:
    """Open one of torchvision's data sets by its class's name; what fails is one clear sentence."""
    from torchvision import datasets  # imported here: it takes seconds

    cls = getattr(datasets, name)
    with opening(name, folder, inside or cls.base_folder) as where:
        return cls(str(where), download=folder is None, **arguments)


@contextlib.contextmanager
def opening(name: str, folder: Path | None, inside: str) -> Iterator[Path]:
    """Give the folder that holds a data set, or its cache; what fails in opening it is one clear sentence."""
    if folder is not None and not (folder / inside).is_dir():
        raise InputError(
            f"no {name} in {folder}: expected {inside}/ (torchvision's layout) inside. "
            "Name the folder above it, or leave --data-dir and VIT_DATA_DIR out to download it."
        )
    where = folder or download_folder("data")
    try:
        yield where
    except (RuntimeError, OSError, EOFError, KeyError, ValueError, AssertionError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        if isinstance(error, urllib.error.URLError) or lines[0].startswith("Error downloading"):
            why = getattr(error, "reason", lines[-1])  # MNIST's error has a line for each address tried
            raise InputError(
                f"{name} is not in {where} and cannot be downloaded ({why}). Connect to a "
                "network once, or name the folder that holds it with --data-dir or VIT_DATA_DIR."
            ) from error
        raise InputError(
            f"{name} in {where} cannot be read: {lines[0]} "
            f"Expected the published files in {inside}/. Fetch them again, or check that they can be read."
        ) from error


SOURCES: dict[str, Callable[[Path | None, int], Source | PhotoSource]] = {
    "digits": read_digits,
    "mnist": read_mnist,
    "cifar10": partial(read_cifar, "CIFAR10"),
    "cifar100": partial(read_cifar, "CIFAR100"),
    "tiny-imagenet": read_tiny_imagenet,
    "imagenette": read_imagenette,
    "pets": read_pets,
    "flowers": read_flowers,
}
"""The data sets by name: a function from their folder, or None, and the side of the images wanted."""
