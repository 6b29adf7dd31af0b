"""Checksums that tell whether a run's state is whole and its images are still the same."""

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast, get_args

import torch
from torch import Tensor

from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import DataSet, ImageData

if TYPE_CHECKING:
    from vit_from_scratch.data.streaming import PhotoData


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
    `Photos.described` says of them and with their labels.
    """
    classes = "\n".join(data.class_names)
    if isinstance(data, ImageData):
        parts = [f"{part}_{kind}" for part in get_args(Part) for kind in ("images", "labels")]
        return fingerprint(classes, {name: getattr(data, name) for name in parts})
    source = cast("PhotoData", data).source
    parts = {"train": source.train, "test": source.test}
    lines = [line for photos in parts.values() for line in photos.described()]
    labels = {part: torch.tensor(photos.labels) for part, photos in parts.items()}
    return fingerprint("\n".join([classes, *lines]), labels)
