"""Checksums that tell whether a run's state is whole and its images are still the same."""

import hashlib
import os
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from vit_from_scratch.data.in_memory import ImageData
from vit_from_scratch.data.sources import Photos
from vit_from_scratch.data.streaming import PhotoData


def fingerprint(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of a text and of tensors: their names, types, shapes and values."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape"))
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def data_fingerprint(data: ImageData | PhotoData) -> str:
    """Return what tells one data set's images and labels from another's.

    Images in memory count with their pixels; photos, none of which is opened for it, with their names, the
    sizes of their files and their labels.
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
    """Yield a line a photo: the last parts of its path, wherever the data set lies, and its size in bytes."""
    for file in photos.files:
        try:
            size = os.path.getsize(file)
        except OSError:  # who reads it will say so
            size = -1
        yield f"{'/'.join(os.fspath(file).split(os.sep)[-3:])} {size}"
