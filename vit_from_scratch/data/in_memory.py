"""A data set of small images that is in memory as a whole, as bytes.

A batch is one indexing operation, so neither a GPU nor two CPU cores wait for Python.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import Batches, DataSet
from vit_from_scratch.data.random_changes import augment
from vit_from_scratch.data.sharing import WHOLE, Share
from vit_from_scratch.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class ImageData(DataSet):
    """A `DataSet` in memory.

    Attributes:
        train_images: (N, C, H, W) uint8.
        train_labels: (N,) int64.
        validation_images: held out of the training images, for choosing settings; may be empty.
        validation_labels: likewise.
        test_images: touched once, at the end.
        test_labels: likewise.
    """

    train_images: Tensor
    train_labels: Tensor
    validation_images: Tensor
    validation_labels: Tensor
    test_images: Tensor
    test_labels: Tensor

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

    def size_of(self, part: Part) -> int:
        """Return the number of images in a part."""
        return len(getattr(self, f"{part}_labels"))

    def check_augmentation(self, augmentation: Augmentation) -> None:
        """Raise an `InputError` for an augmentation that is only for streamed photos."""
        if augmentation.alone:
            raise InputError(
                f"train.augmentation.{augmentation.alone[0]} is for photos that are streamed from files, and "
                f"{self.config.name} is in memory: expected it off. Take flip, shift, crop or mixup."
            )

    def training_batches(
        self, batch_size: int, augmentation: Augmentation, seed: int, workers: int = 0
    ) -> Batches:
        """Yield the training images of an epoch in random order; see `DataSet`."""
        self.check_augmentation(augmentation)
        batches = shuffled_batches(
            self.train_images, self.train_labels, batch_size, augmentation, seed, self.share
        )
        for images, labels in batches:
            yield self.at_size(images), labels

    def batches(self, part: Part, batch_size: int = 500, workers: int = 0) -> Batches:
        """Yield the images of a part in their order, normalised; see `DataSet`."""
        images, labels = getattr(self, f"{part}_images"), getattr(self, f"{part}_labels")
        for batch in self.share.passes(len(labels), batch_size):
            yield self.normalise(self.at_size(images[batch])), labels[batch]

    def to(self, device: torch.device | str) -> Self:
        """Return the same data on a device."""
        tensors = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **tensors)


def shuffled_batches(
    images: Tensor,
    labels: Tensor,
    batch_size: int,
    augmentation: Augmentation,
    seed: int,
    share: Share = WHOLE,
) -> Batches:
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
