"""Tiny-ImageNet as it is published: which files it has, of which class each is, and where its object is."""

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from vit_from_scratch.data.published import sentences
from vit_from_scratch.data.sources import Photos, PhotoSource
from vit_from_scratch.errors import InputError

URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
MD5 = "90528d7ca1a48142e341f4ef8d21d0de"
FOLDER, SIDE = "tiny-imagenet-200", 64
"""Where it is unpacked, and the side of its photos in pixels."""


def read_tiny_imagenet(folder: Path | None = None, side: int = SIDE) -> PhotoSource:
    """Open Tiny-ImageNet: 200 classes; 100,000 training and 10,000 test photos of 64x64, one form of it.

    The published validation photos are the test part here, since the published test has no labels. A class
    is named by the first word of its entry in words.txt, and by its id, too, where two share that.

    Raises:
        InputError: no such data in the folder, a damaged list of its photos, or no network.
    """
    from torchvision.datasets import ImageFolder, utils  # imported here: it takes seconds

    with sentences("Tiny-ImageNet", folder, FOLDER) as where:
        base = where / FOLDER
        if not base.is_dir():
            unpacked = where / ".tiny-imagenet-200.part"  # the folder appears when it is whole
            shutil.rmtree(unpacked, ignore_errors=True)
            utils.download_and_extract_archive(URL, str(where), str(unpacked), md5=MD5, remove_finished=True)
            (unpacked / FOLDER).rename(base)
            unpacked.rmdir()
        train = ImageFolder(str(base / "train"))  # ID/images/*.JPEG
        lines = [line.split("\t") for line in (base / "words.txt").read_text("utf-8").splitlines()]
        word_of = {line[0]: line[-1].split(",")[0].strip() for line in lines}
        words = [word_of[wnid] for wnid in train.classes]
        annotations, images = _annotations(base), base / "val" / "images"
        test = [(images / name, train.class_to_idx[wnid]) for name, wnid, _ in annotations]
    if differ := {photo for photo, _ in test} ^ set(images.glob("*.JPEG")):
        raise InputError(
            f"{base}/val and its val_annotations.txt do not fit ({min(differ).name}): expected a line for "
            "each photo; unpack the data set again."
        )
    count = Counter(words)
    names = (
        word if count[word] == 1 else f"{word} ({wnid})"
        for word, wnid in zip(words, train.classes, strict=True)
    )
    return PhotoSource(Photos.of(train.samples), Photos.of(test), tuple(names), size=(SIDE, SIDE))


def object_masks(root: str | os.PathLike[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return where the object is in each of Tiny-ImageNet's validation photos, by the data set's boxes.

    Args:
        root: the folder that holds `tiny-imagenet-200`.

    Returns:
        (10,000, 64, 64), in the order of the test part of `open_dataset`; true inside the box, both of its
        ends included.

    Raises:
        InputError: there is no such file, or a line of it is damaged.
    """
    with sentences("Tiny-ImageNet", Path(root), FOLDER) as where:
        boxes = [box for _, _, box in _annotations(where / FOLDER)]
    masks = np.zeros((len(boxes), SIDE, SIDE), dtype=bool)
    for mask, (left, top, right, bottom) in zip(masks, boxes, strict=True):
        mask[top : bottom + 1, left : right + 1] = True
    return masks


def _annotations(base: Path) -> list[tuple[str, str, list[int]]]:
    """Return name, class id and box of Tiny-ImageNet's validation photos, as val_annotations.txt has them."""
    path, found = base / "val" / "val_annotations.txt", []
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
        try:
            name, wnid, *words = line.split("\t")
            left, top, right, bottom = box = [int(word) for word in words]
            if not (0 <= left <= right < SIDE and 0 <= top <= bottom < SIDE):
                raise ValueError
        except ValueError:
            raise InputError(
                f"line {number} of {path} is damaged: expected a photo's name, its class and the box of its "
                f"object, four numbers from 0 to {SIDE - 1}; fetch the file again."
            ) from None
        found.append((name, wnid, box))
    return found
