"""A data set of small images that lies in memory whole, as bytes.

A batch is one indexing operation, so neither a GPU nor two CPU cores wait for Python.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.config import DataConfig, Part
from vit_from_scratch.data.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.data.random_changes import augment
from vit_from_scratch.data.sharing import WHOLE, Share
from vit_from_scratch.errors import InputError


@dataclass(frozen=True, eq=False)
class ImageData:
    """A data set in memory, in three parts that share no image.

    Attributes:
        config: which data set, and how it was split.
        train_images: (N, C, H, W) uint8.
        train_labels: (N,) int64.
        validation_images: held out of the training images, for choosing settings; may be empty.
        validation_labels: likewise.
        test_images: touched once, at the end.
        test_labels: likewise.
        class_names: K names, in the order of the labels.
        normalise: maps bytes to what the model takes.
        share: the part of each batch that is yielded, where several processes train together.
    """

    config: DataConfig
    train_images: Tensor
    train_labels: Tensor
    validation_images: Tensor
    validation_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    class_names: tuple[str, ...]
    normalise: Normalisation = NORMALISATIONS["half"]
    share: Share = WHOLE

    @property
    def num_classes(self) -> int:
        """The number of classes, K."""
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The shape of an image as a model gets it, (C, H, W)."""
        channels, height, width = self.train_images.shape[1:]
        side = self.config.image_size
        return (channels, side, side) if side else (channels, height, width)

    def at_size(self, images: Tensor) -> Tensor:
        """Bring images (B, C, H, W) to `config.image_size`, as floats; without one they stay as they are."""
        side = self.config.image_size
        if side is None or images.shape[-2:] == (side, side):
            return images
        return F.interpolate(images.float(), (side, side), mode="bilinear", antialias=True)

    @property
    def training_size(self) -> int:
        """The number of training images."""
        return len(self.train_labels)

    def check_augmentation(self, augmentation: Augmentation) -> None:
        """Raise an `InputError` for an augmentation that is only for streamed photos."""
        if augmentation.alone:
            raise InputError(
                f"train.augmentation.{augmentation.alone[0]} is for photos that are streamed from files, and "
                f"{self.config.name} lies in memory: expected it off. Take flip, shift, crop or mixup."
            )

    def training_batches(
        self, batch_size: int, augmentation: Augmentation, seed: int, workers: int = 0
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the training images of an epoch in random order, in whole batches (or one smaller batch).

        Args:
            batch_size: images in a batch, B.
            augmentation: random changes to them.
            seed: decides order and changes.
            workers: not needed: the images lie in memory.

        Yields:
            Images (B, C, H, W), floats from 0 to 255, and labels (B,).

        Raises:
            InputError: an augmentation that is only for streamed photos.
        """
        self.check_augmentation(augmentation)
        batches = shuffled_batches(
            self.train_images, self.train_labels, batch_size, augmentation, seed, self.share
        )
        for images, labels in batches:
            yield self.at_size(images), labels

    def batches(self, part: Part, batch_size: int = 500, workers: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the images of a part in their order, normalised (B, C, H, W), with labels (B,).

        No `workers` are needed: the images lie in memory.
        """
        images, labels = getattr(self, f"{part}_images"), getattr(self, f"{part}_labels")
        for batch in self.share.passes(len(labels), batch_size):
            yield self.normalise(self.at_size(images[batch])), labels[batch]

    def size_of(self, part: Part) -> int:
        """The number of images in a part."""
        return len(getattr(self, f"{part}_labels"))

    def keeping_workers(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which worker processes would be kept; images in memory need none."""
        return contextlib.nullcontext()

    def to(self, device: torch.device | str) -> "ImageData":
        """Return the same data on a device."""
        tensors = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **tensors)

    def shared(self, share: Share) -> "ImageData":
        """Return the same data for one of several processes."""
        return replace(self, share=share)

    def __repr__(self) -> str:
        """Say what is in it in one line."""
        counts = ", ".join(f"{self.size_of(part):,} {part}" for part in get_args(Part))
        shape = " x ".join(map(str, self.image_shape))
        return f"ImageData({self.config.name!r}: {counts} images of {shape}, {self.num_classes} classes)"


def shuffled_batches(
    images: Tensor,
    labels: Tensor,
    batch_size: int,
    augmentation: Augmentation,
    seed: int,
    share: Share = WHOLE,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield images in random order, each changed at random, in whole batches (or one smaller batch).

    Args:
        images: (N, C, H, W) uint8.
        labels: (N,), on the images' device.
        batch_size: images in a batch, B.
        augmentation: how far images are changed.
        seed: decides order and changes.
        share: the part of each batch that is wanted.

    Yields:
        Images (B, C, H, W), floats from 0 to 255, and labels (B,).
    """
    generator = torch.Generator(labels.device).manual_seed(seed)
    order = torch.randperm(len(labels), generator=generator, device=labels.device)
    for batch in order.split(batch_size)[: max(1, len(labels) // batch_size)]:
        own = share.of(batch)
        yield augment(images[own], augmentation, generator, share, len(batch)), labels[own]
