"""Data sets of photos: where the files lie, and of which class each is."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor
from torch.utils.data import ConcatDataset

from vit_from_scratch.data.folders import Samples, list_folder
from vit_from_scratch.data.photos import decode_photo, open_photo
from vit_from_scratch.data.reading_order import BLOCK
from vit_from_scratch.data.sources import Photos, PhotoSource, open_torchvision
from vit_from_scratch.data.tiny_imagenet import TinyImageNet
from vit_lab.large_data.shards import PARTS, PackedPhotos
from vit_lab.large_data.tars import open_shards


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
    parts = [_of_files(part.samples) for part in (train, test)]
    return PhotoSource(*parts, class_names=train.classes, size=(64, 64))


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
        open_torchvision(Imagenette, folder, layout, split=split, size=forms[layout][1])
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
        open_torchvision(OxfordIIITPet, folder, "oxford-iiit-pet", split=split)
        for split in ("trainval", "test")
    )
    photos = [Photos(part, torch.tensor(part._labels), part._images) for part in (train, test)]
    return PhotoSource(*photos, class_names=tuple(train.classes))


def read_flowers(folder: Path | None = None, side: int = 224) -> PhotoSource:
    """Open Flowers-102: 2,040 training photos (its train and val) and 6,149 test photos, in `flowers-102`.

    There is one form of it, whatever the `side` of the images wanted.
    """
    from torchvision.datasets import Flowers102

    first, second, test = (
        open_torchvision(Flowers102, folder, "flowers-102", split=split) for split in ("train", "val", "test")
    )
    labels = torch.tensor(first._labels + second._labels)
    train = Photos(ConcatDataset([first, second]), labels, first._image_files + second._image_files)
    names = getattr(first, "classes", [f"flower {number}" for number in range(1, 103)])
    return PhotoSource(train, Photos(test, torch.tensor(test._labels), test._image_files), tuple(names))


def read_folder(folder: Path) -> PhotoSource:
    """Open photos of your own: `FOLDER/CLASS/*`, or `FOLDER/train/CLASS/*` with or without `test` and `val`.

    Raises:
        InputError: the folder is not laid out so; see `list_folder`.
    """
    found = list_folder(folder)
    total = len(found.train) + len(found.test)
    note = (
        f"{folder} has no test part: {len(found.test):,} of its {total:,} photos, a fifth of each class, are "
        "held out for the test, the same ones every time."
    )
    return PhotoSource(
        _of_files(found.train + found.validation),
        _of_files(found.test),
        found.classes,
        validation=torch.arange(len(found.validation)) + len(found.train),
        note=note if found.drawn else "",
    )


def _listed(opened: Any, samples: Sequence[tuple[str | Path, int]]) -> Photos:
    """Take a torchvision data set that lists its photos as pairs of a path and a label."""
    files, labels = zip(*samples, strict=True)
    return Photos(opened, torch.tensor(labels), files)


def read_shards(folder: Path) -> PhotoSource:
    """Open photos in shards, as `vit pack` or others with WebDataset wrote them; see `open_shards`.

    Raises:
        InputError: there are no shards, or they are damaged.
    """
    index = open_shards(folder)
    train, test = index.photos("train", "validation"), index.photos("test")
    counts = dict(zip(PARTS, index.counts, strict=True))
    note = (
        f"{folder} has no test part: {counts['test']:,} of its {len(index.table):,} photos, a fifth of each "
        "class, are held out for the test, the same ones every time."
    )
    return PhotoSource(
        _packed(train),
        _packed(test),
        index.classes,
        validation=torch.arange(counts["validation"]) + counts["train"],
        note=note if index.drawn else "",
        blocks=_blocks(train.rows),
    )


def _packed(photos: PackedPhotos) -> Photos:
    """Take photos of shards."""
    labels = torch.from_numpy(photos.rows["label"].astype(np.int64))
    return Photos(_Packed(photos, labels), labels, photos)


def _blocks(rows: np.ndarray) -> Tensor:
    """Number the blocks in which photos lie: (N,), from 0 on."""
    place = rows["shard"].astype(np.uint64) << np.uint64(40) | rows["offset"] // np.uint64(BLOCK)
    return torch.from_numpy(np.unique(place, return_inverse=True)[1].astype(np.int64))


class _Packed:
    """Pictures in shards, decoded by `decode_photo`."""

    def __init__(self, photos: PackedPhotos, labels: Tensor) -> None:
        self.photos, self.labels = photos, labels

    def __getitem__(self, number: int) -> tuple[Image, int]:
        photo = self.photos[number]
        return decode_photo(io.BytesIO(photo.read()), photo), int(self.labels[number])


class _Files:
    """Pictures of any kind, opened by `open_photo`."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def __getitem__(self, number: int) -> tuple[Image, int]:
        path, label = self.samples[number]
        return open_photo(path), label


def _of_files(samples: Samples) -> Photos:
    """Take pairs of a path and a label."""
    return _listed(_Files(samples), samples)
