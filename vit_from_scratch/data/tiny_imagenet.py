"""Tiny-ImageNet as it is published: which files it has, and of which class each is."""

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from vit_from_scratch.data.folders import Samples
from vit_from_scratch.errors import InputError, reason

URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
MD5 = "90528d7ca1a48142e341f4ef8d21d0de"
SIDE = 64
"""Of its photos, in pixels."""


class TinyImageNet:
    """One part of Tiny-ImageNet, opened as torchvision opens its data sets.

    Attributes:
        classes: 200 names: the first word of each class's entry in words.txt, in the order of their ids.
        samples: pairs of a path and a class number.
    """

    base_folder = "tiny-imagenet-200"

    def __init__(self, root: str, split: str, download: bool = False) -> None:
        """Find the files; none is opened.

        Args:
            root: the folder that holds `tiny-imagenet-200`.
            split: "train" or "val".
            download: fetch it if it is not there.

        Raises:
            InputError: a list in it is damaged.
        """
        self.folder = Path(root) / self.base_folder
        if download and not self.folder.is_dir():
            _download(Path(root))
        self.ids = sorted((self.folder / "wnids.txt").read_text("utf-8").split())
        self.classes = self._class_names()
        self.samples = self._training_samples() if split == "train" else self._validation_samples()

    def _class_names(self) -> tuple[str, ...]:
        """Return a name for each id; one that two classes share gets the id, too."""
        path = self.folder / "words.txt"
        lines = (line.partition("\t") for line in path.read_text("utf-8").splitlines())
        words = {wnid: entry.split(",")[0].strip() for wnid, _, entry in lines}
        for wnid in self.ids:
            if not words.get(wnid):
                raise InputError(
                    f"{path} has no name for {wnid}: expected the published file; fetch it again."
                )
        count = Counter(words[wnid] for wnid in self.ids)
        return tuple(words[i] if count[words[i]] == 1 else f"{words[i]} ({i})" for i in self.ids)

    def _training_samples(self) -> Samples:
        samples = []
        for label, wnid in enumerate(self.ids):
            paths = sorted((self.folder / "train" / wnid / "images").glob("*.JPEG"))
            if not paths:
                raise InputError(
                    f"{self.folder}/train/{wnid}/images holds no photos: expected the published ones; "
                    "unpack the data set again."
                )
            samples += [(path, label) for path in paths]
        return samples

    def _validation_samples(self) -> Samples:
        """Read the labels from val_annotations.txt, and see that there is one for each photo."""
        path = self.folder / "val" / "val_annotations.txt"
        labels = {wnid: label for label, wnid in enumerate(self.ids)}
        images = path.parent / "images"
        samples = []
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
            name, *rest = line.split("\t")
            if not rest or rest[0] not in labels:
                raise InputError(
                    f"line {number} of {path} is damaged: expected a photo's name and its class, as "
                    "published; fetch the file again."
                )
            samples.append((images / name, labels[rest[0]]))
        differ = {photo for photo, _ in samples} ^ set(images.glob("*.JPEG"))
        if differ or not samples:
            raise InputError(
                f"{path} and {images} do not fit ({min(differ, default=images).name}): expected a line for "
                "each photo; unpack the data set again."
            )
        return samples


def object_masks(root: str | os.PathLike[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return where the object is in each validation photo, by the boxes of the data set.

    Args:
        root: the folder that holds `tiny-imagenet-200`.

    Returns:
        (10,000, 64, 64), photos in the order of `val_annotations.txt`, as in the test part of `open_dataset`;
        true inside the box, both of its ends included.

    Raises:
        InputError: there is no such file, or a line of it is damaged.
    """
    path = Path(root) / TinyImageNet.base_folder / "val" / "val_annotations.txt"
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({reason(error)}): expected Tiny-ImageNet's.") from error
    masks = np.zeros((len(lines), SIDE, SIDE), dtype=bool)
    for number, (mask, line) in enumerate(zip(masks, lines, strict=True), 1):
        try:
            box = [int(word) for word in line.split("\t")[2:]]
        except ValueError:
            box = []
        left, top, right, bottom = box if len(box) == 4 else (SIDE,) * 4
        if not (0 <= left <= right < SIDE and 0 <= top <= bottom < SIDE):
            raise InputError(
                f"line {number} of {path} is damaged: expected a photo's name, its class and the box of its "
                f"object, four numbers from 0 to {SIDE - 1}; fetch the file again."
            )
        mask[top : bottom + 1, left : right + 1] = True
    return masks


def _download(root: Path) -> None:
    """Fetch and unpack the data set; the folder appears when it is whole."""
    from torchvision.datasets.utils import download_and_extract_archive  # imported here: it takes seconds

    unpacked = root / ".tiny-imagenet-200.part"
    shutil.rmtree(unpacked, ignore_errors=True)
    download_and_extract_archive(URL, str(root), str(unpacked), md5=MD5, remove_finished=True)
    (unpacked / TinyImageNet.base_folder).rename(root / TinyImageNet.base_folder)
    shutil.rmtree(unpacked)
