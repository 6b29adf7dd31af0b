"""Checksums that tell whether a run's state is whole and its images are still the same."""

import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import get_args

import torch
from torch import Tensor

from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import DataSet, ImageData
from vit_from_scratch.data.photos import regular_file
from vit_from_scratch.data.sources import Photos
from vit_from_scratch.data.streaming import PhotoData
from vit_from_scratch.errors import InputError

SOME_FILES, END = 200_000, 4096
"""`described` looks at the ends of so many files, so many bytes: no two compressed are the same there."""
PLAIN = (".bmp", ".pgm", ".ppm", ".tif", ".tiff")
"""Suffixes of files that may hold pixels as they are, so that two photos can end alike: read whole."""


def fingerprint(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of a text and of tensors: their names, types, shapes and values."""
    digest = hashlib.sha256()
    for piece in _pieces(text, tensors):
        digest.update(piece)
    return digest.hexdigest()


def checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the CRC-32 of the same: it costs little and tells whether a disk kept them."""
    found = 0
    for piece in _pieces(text, tensors):
        found = zlib.crc32(piece, found)
    return f"{found:08x}"


def _pieces(text: str, tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    yield text.encode("utf-8", "surrogateescape")
    for name, tensor in sorted(tensors.items()):
        yield f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode()
        yield tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def data_fingerprint(data: DataSet) -> str:
    """Return what tells one data set's images and labels from another's.

    Images in memory count with their pixels; photos, none of which is decoded for it, with what
    `described` says of them and with their labels.
    """
    classes = "\n".join(data.class_names)
    if isinstance(data, ImageData):
        parts = [f"{part}_{kind}" for part in get_args(Part) for kind in ("images", "labels")]
        return fingerprint(classes, {name: getattr(data, name) for name in parts})
    assert isinstance(data, PhotoData)
    parts = {"train": data.source.train, "test": data.source.test}
    lines = [line for photos in parts.values() for line in described(photos)]
    labels = {part: torch.tensor(photos.labels) for part, photos in parts.items()}
    return fingerprint("\n".join([classes, *lines]), labels)


def described(photos: Photos) -> Iterator[str]:
    """Yield a line for each photo that identifies it, wherever the data set is; none is decoded.

    Of a file these are the last parts of its path, its size in bytes and a checksum of its end; of
    all of it where pixels are not compressed.
    """
    step = max(1, len(photos) // SOME_FILES)
    for number, file in enumerate(photos.files):
        if isinstance(file, str | os.PathLike):
            name = "/".join(os.fspath(file).split(os.sep)[-3:])
            yield name + (_content(file) if number % step == 0 else "")
        else:
            yield file.described()


def _content(path: str | os.PathLike[str]) -> str:
    """Return a file's size and a checksum; whoever wants one that cannot be read will say."""
    try:
        with regular_file(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0 if os.fspath(path).lower().endswith(PLAIN) else max(0, size - END))
            found = 0
            while piece := file.read(2**20):
                found = zlib.crc32(piece, found)
            return f" {size} {found:08x}"
    except (OSError, InputError):
        return " ?"
