"""What training, measuring and looking inside need of images: `DataSet`; and `ImageData`, one in memory."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.config import TENSORS, DataConfig, Part
from vit_from_scratch.data.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.data.random_changes import augment
from vit_from_scratch.data.sharing import WHOLE, Share
from vit_from_scratch.errors import InputError

Batches = Iterator[tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class DataSet(ABC):
    """Images with labels, in three parts that share no image: an `ImageData` or a `PhotoData`.

    Attributes:
        config: which images, and how they were split.
        class_names: K names, in the order of the labels.
        normalise: maps bytes to what the model takes.
        share: the part of each batch that is yielded, where several processes train together.
    """

    config: DataConfig
    class_names: tuple[str, ...] = field(kw_only=True)
    normalise: Normalisation = field(default=NORMALISATIONS["half"], kw_only=True)
    share: Share = field(default=WHOLE, kw_only=True)

    @property
    def num_classes(self) -> int:
        """The number of classes, K."""
        return len(self.class_names)

    @property
    @abstractmethod
    def image_shape(self) -> tuple[int, int, int]:
        """The shape of an image as a model gets it, (C, H, W)."""

    @property
    def augmented_sides(self) -> tuple[int, int]:
        """The sides (H, W) of the images that augmentation changes."""
        return self.image_shape[1:]

    @abstractmethod
    def size_of(self, part: Part) -> int:
        """Return the number of images in a part."""

    @property
    def training_size(self) -> int:
        """The number of training images."""
        return self.size_of("train")

    def check_augmentation(self, augmentation: Augmentation) -> None:  # noqa: B027  # most can have every one
        """Raise an `InputError` for an augmentation that these images cannot have."""

    @abstractmethod
    def training_batches(
        self, batch_size: int, augmentation: Augmentation, seed: int, workers: int = 0
    ) -> Batches:
        """Yield the training images of an epoch in random order, in whole batches (or one smaller batch).

        They are (B, C, H, W), floats from 0 to 255, with labels (B,). The seed decides order and changes;
        the number of processes that read files, `workers`, changes nothing.

        Raises:
            InputError: an augmentation that these images cannot have, or a photo that cannot be read.
        """

    @abstractmethod
    def batches(self, part: Part, batch_size: int = 100, workers: int = 2) -> Batches:
        """Yield the images of a part in their order, normalised (B, C, H, W), with labels (B,)."""

    def keeping_workers(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which worker processes stay from one epoch to the next, and end with it."""
        return contextlib.nullcontext()

    @abstractmethod
    def to(self, device: torch.device | str) -> Self:
        """Return the same data with batches on a device."""

    def shared(self, share: Share) -> Self:
        """Return the same data for one of several processes."""
        return replace(self, share=share)

    def __repr__(self) -> str:
        """Say what is in it in one line."""
        counts = ", ".join(f"{self.size_of(part):,} {part}" for part in get_args(Part))
        shape = " x ".join(map(str, self.image_shape))
        kind, name = type(self).__name__, self.config.name
        return f"{kind}({name!r}: {counts} images of {shape}, {self.num_classes} classes)"


@dataclass(frozen=True, eq=False, repr=False)
class ImageData(DataSet):
    """A `DataSet` of small images, in memory as bytes: a batch is one indexing operation, on any device.

    Images are (N, C, H, W) uint8, labels (N,) int64; validation and test may be empty. For tensors of your
    own: `ImageData(DataConfig("tensors"), *tensors, class_names=names)`, in the order of the fields below.

    Raises:
        InputError: images of floats from 0 to 1: expected bytes, or floats from 0 to 255.
    """

    train_images: Tensor
    train_labels: Tensor
    validation_images: Tensor
    validation_labels: Tensor
    test_images: Tensor
    test_labels: Tensor

    def __post_init__(self) -> None:
        """Refuse images from 0 to 1; in memory they may be anybody's."""
        if self.config.name == TENSORS:  # what is opened comes with its scaling
            object.__setattr__(self, "normalise", NORMALISATIONS[self.config.normalisation])
        for images in (self.train_images, self.validation_images, self.test_images):
            self.normalise.check(images)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The shape of an image as a model gets it, (C, H, W)."""
        channels, *sides = self.train_images.shape[1:]
        height, width = [self.config.image_size] * 2 if self.config.image_size else sides
        return channels, height, width

    @property
    def augmented_sides(self) -> tuple[int, int]:
        """The sides (H, W) of the stored images, which are changed before they are brought to size."""
        height, width = self.train_images.shape[2:]
        return height, width

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
        whole = self.train_images, self.train_labels
        for images, labels in shuffled_batches(*whole, batch_size, augmentation, seed, self.share):
            yield self.at_size(images), labels

    def batches(self, part: Part, batch_size: int = 500, workers: int = 0) -> Batches:
        """Yield the images of a part in their order, normalised; see `DataSet`."""
        images, labels = getattr(self, f"{part}_images"), getattr(self, f"{part}_labels")
        for batch in self.share.passes(len(labels), batch_size):
            yield self.normalise.scaled(self.at_size(images[batch])), labels[batch]

    def at_size(self, images: Tensor) -> Tensor:
        """Bring images (B, C, H, W) to `image_shape`, as floats unless they have it."""
        sides = self.image_shape[1:]
        if images.shape[-2:] == sides:
            return images
        return F.interpolate(images.float(), sides, mode="bilinear", antialias=True)

    def to(self, device: torch.device | str) -> Self:
        """Return the same data on a device."""
        tensors = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **tensors)


def shuffled_batches(
    images: Tensor, labels: Tensor, batch_size: int, augmentation: Augmentation, seed: int, share: Share
) -> Batches:
    """Yield a share of each batch of an epoch: bytes (N, C, H, W) in random order, changed at random."""
    generator = torch.Generator(labels.device).manual_seed(seed)
    order = torch.randperm(len(labels), generator=generator, device=labels.device)
    for batch in order.split(batch_size)[: max(1, len(labels) // batch_size)]:
        own = share.of(batch)
        yield augment(images[own], augmentation, generator, share, len(batch)), labels[own]
