"""Checksums that tell whether a run's state is whole and its images are still the same."""

import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from vit_from_scratch.data.folders import spread
from vit_from_scratch.data.in_memory import ImageData
from vit_from_scratch.data.sources import Photos
from vit_from_scratch.data.streaming import PhotoData
from vit_lab.large_data.shards import PackedPhotos

ALL_SIZES, SOME_SIZES = 200_000, 10_000
"""Up to so many files in a part all are asked for their sizes; beyond, so many: a network's disk is slow."""


def fingerprint(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of a text and of tensors: their names, types, shapes and values."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape"))
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the CRC-32 of a text and of tensors: it costs little and tells whether a disk kept them."""
    found = zlib.crc32(text.encode("utf-8", "surrogateescape"))
    for name, tensor in sorted(tensors.items()):
        found = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, found)
    return f"{found:08x}"


def data_fingerprint(data: ImageData | PhotoData) -> str:
    """Return what tells one data set's images and labels from another's.

    Images in memory count with their pixels; photos, none of which is opened for it, with their names, the
    sizes of their files and their labels. Of more than `ALL_SIZES` files in a part only some are asked for
    their sizes. Photos in shards count with their places there and the shards' names and sizes.
    """
    classes = "\n".join(data.class_names)
    if isinstance(data, ImageData):
        parts = (
            f"{part}_{kind}" for part in ("train", "validation", "test") for kind in ("images", "labels")
        )
        return fingerprint(classes, {name: getattr(data, name) for name in parts})
    parts = {"train": data.source.train, "test": data.source.test}
    lines = [line for photos in parts.values() for line in _described(photos)]
    return fingerprint("\n".join([classes, *lines]), {part: photos.labels for part, photos in parts.items()})


def _described(photos: Photos) -> Iterator[str]:
    """Yield a line a photo: the last parts of its path, wherever the data set is, and its size in bytes."""
    if isinstance(photos.files, PackedPhotos):
        yield from photos.files.described()
        return
    places = range(len(photos.files))
    asked = set(places if len(places) <= ALL_SIZES else spread(places, SOME_SIZES))
    for number, file in enumerate(photos.files):
        path = os.fspath(file)  # type: ignore[arg-type]
        if number not in asked:
            yield "/".join(path.split(os.sep)[-3:])
            continue
        try:
            size = os.path.getsize(path)
        except OSError:  # who reads it will say so
            size = -1
        yield f"{'/'.join(path.split(os.sep)[-3:])} {size}"
