"""Photos from files: decoded once where memory allows, cropped and changed one by one in worker processes.

Every photo's random changes come from the epoch's seed and the photo's number alone, so they are the same
however many workers share the work, and in a run that was stopped and resumed. Photos that all have the
wanted size already need no work of their own: whole batches of them are changed at once, as in `ImageData`.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import Batches, DataSet, shuffled_batches
from vit_from_scratch.data.loading import PhotoJobs
from vit_from_scratch.data.random_changes import augment
from vit_from_scratch.data.reading import PhotoReader, opened
from vit_from_scratch.data.sources import Photos, PhotoSource


@dataclass(frozen=True, eq=False, repr=False)
class PhotoData(DataSet):
    """A `DataSet` of photos that are read from files.

    Attributes:
        reader: opens the photos; copies on other devices and for other processes share it.
        train: numbers of the training photos in `source.train`, (N,).
        validation: numbers of those held out.
        device: where batches are put.
    """

    reader: PhotoReader
    train: Tensor
    validation: Tensor
    device: torch.device | str = "cpu"

    @property
    def source(self) -> PhotoSource:
        """The photos."""
        return self.reader.source

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The shape that photos are brought to, (3, H, W)."""
        return 3, self.reader.side, self.reader.side

    def size_of(self, part: Part) -> int:
        """Return the number of photos in a part."""
        return len(self._photos(part)[1])

    def training_batches(
        self, batch_size: int, augmentation: Augmentation, seed: int, workers: int = 0
    ) -> Batches:
        """Yield the training photos of an epoch in random order; see `DataSet`."""
        if self.reader.uniform and not augmentation.alone:
            squares = self.reader.squares("train", *self._photos("train"), self.device, workers)
            if squares is not None:
                yield from shuffled_batches(*squares, batch_size, augmentation, seed, self.share)
                return
        order = self.train[torch.randperm(len(self.train), generator=torch.Generator().manual_seed(seed))]
        order = order[: max(1, self.training_size // batch_size) * batch_size]
        loaded = self._loaded(
            augmentation,
            lambda: self.reader.training(self.train, augmentation, workers),
            [self.share.of(batch) for batch in order.split(batch_size)],
            workers,
            seed,
        )
        on_device = torch.Generator(self.device).manual_seed(seed)
        rest = replace(augmentation, flip=False, crop=(1.0, 1.0))  # those two were done photo by photo
        batch = min(batch_size, len(order))  # `order` is a multiple of it, or a single smaller batch
        for images, labels in loaded:
            yield augment(images, rest, on_device, self.share, batch), labels

    def batches(self, part: Part, batch_size: int = 100, workers: int = 2) -> Batches:
        """Yield the photos of a part in their order, normalised; see `DataSet`.

        Of each photo it is the central square, unless all photos have the wanted size as they are.
        """
        photos, numbers = self._photos(part)
        squares = None
        if self.reader.uniform or part == "validation":
            squares = self.reader.squares(part, photos, numbers, self.device, workers)
        passes = self.share.passes(len(numbers), batch_size)
        if squares is not None:
            yield from ((self.normalise(squares[0][batch]), squares[1][batch]) for batch in passes)
            return
        jobs = PhotoJobs(partial(opened, photos, self.reader.square), photos.labels)
        for images, labels in self._loaded(part, lambda: jobs, [numbers[batch] for batch in passes], workers):
            yield self.normalise(images), labels

    def keeping_workers(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which worker processes stay from one epoch to the next, and end with it."""
        return self.reader.workers.kept()

    def to(self, device: torch.device | str) -> Self:
        """Return the same data with batches on a device; what was decoded is shared."""
        return replace(self, device=device)

    def _loaded(
        self, key: Any, jobs: Callable[[], PhotoJobs], batches: list[Tensor], workers: int, seed: int = 0
    ) -> Batches:
        """Yield batches on the device; a GPU fetches them while it computes."""
        pinned = torch.device(self.device).type == "cuda"
        for batch in self.reader.workers.load(key, jobs, batches, seed, workers, pinned):
            images, labels = (tensor.to(self.device, non_blocking=pinned) for tensor in batch)
            yield images, labels

    def _photos(self, part: str) -> tuple[Photos, Tensor]:
        """Return the photos that a part is taken from, and the numbers of its own."""
        if part == "test":
            return self.source.test, torch.arange(len(self.source.test))
        return self.source.train, self.train if part == "train" else self.validation
