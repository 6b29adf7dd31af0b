"""What training, measuring and looking inside need of images: `DataSet`, in memory or streamed from files."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self, get_args

import torch
from torch import Tensor

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.config import DataConfig, Part
from vit_from_scratch.data.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.data.sharing import WHOLE, Share

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

        Args:
            batch_size: images in a batch, B.
            augmentation: random changes to them.
            seed: decides order and changes.
            workers: processes that read files; 0 for none. They change nothing about the batches, and images
                in memory need none.

        Yields:
            Images (B, C, H, W), floats from 0 to 255, and labels (B,).

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
