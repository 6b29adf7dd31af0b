"""Photos from files: decoded once where memory allows, cropped and changed one by one in worker processes.

Every photo's random changes come from the epoch's seed and the photo's number alone, so they are the same
however many workers share the work, and in a run that was stopped and resumed. Photos that all have the
wanted size already need no work of their own: whole batches of them are changed at once, as in `ImageData`.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import torch
from torch import Tensor

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.config import DataConfig, Part, own_place
from vit_from_scratch.data.decoded import LIMIT, DecodedPhotos, decoded_squares, fits
from vit_from_scratch.data.folders import picture_size, spread
from vit_from_scratch.data.in_memory import shuffled_batches
from vit_from_scratch.data.loading import PhotoJobs, PhotoWorkers, measuring_jobs, training_jobs
from vit_from_scratch.data.normalisation import Normalisation
from vit_from_scratch.data.photo_transforms import AsItIs, CentralSquare, Whole, training_transform
from vit_from_scratch.data.random_changes import augment
from vit_from_scratch.data.reading_order import reading_order
from vit_from_scratch.data.sharing import WHOLE, Share
from vit_from_scratch.data.sources import Photos, PhotoSource

LOOKED_AT = 10_000
"""The most photos of a part whose heads are read to learn whether all have the same size."""


@dataclass(frozen=True, eq=False)
class PhotoData:
    """A data set of photos, in three parts that share no photo; it takes the place of an `ImageData`.

    Attributes:
        config: which data set, how it was split, and the side of the images.
        source: the photos.
        train: numbers of the training photos in `source.train`, (N,).
        validation: numbers of those held out.
        normalise: maps bytes to what the model takes.
        device: where batches are put.
        workers: the processes that read photos.
        memory: what was decoded already.
        share: the part of each batch that is yielded, where several processes train together.
    """

    config: DataConfig
    source: PhotoSource
    train: Tensor
    validation: Tensor
    normalise: Normalisation
    device: torch.device | str = "cpu"
    workers: PhotoWorkers = field(default_factory=PhotoWorkers)
    memory: dict[Any, Any] = field(default_factory=dict)
    share: Share = WHOLE

    @property
    def class_names(self) -> tuple[str, ...]:
        """K names, in the order of the labels."""
        return self.source.class_names

    @property
    def num_classes(self) -> int:
        """The number of classes, K."""
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The shape that photos are brought to, (3, H, W)."""
        return 3, self.side, self.side

    @property
    def side(self) -> int:
        """The side that photos are brought to, in pixels."""
        return self.config.image_size or 224

    @property
    def training_size(self) -> int:
        """The number of training photos."""
        return len(self.train)

    def size_of(self, part: Part) -> int:
        """The number of photos in a part."""
        return len(self._photos(part)[1])

    def training_batches(
        self, batch_size: int, augmentation: Augmentation, seed: int, workers: int = 0
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the training photos of an epoch in random order, in whole batches (or one smaller batch).

        Args:
            batch_size: photos in a batch, B.
            augmentation: random changes to them.
            seed: decides order and changes.
            workers: processes that read the files; 0 for none.

        Yields:
            Images (B, 3, H, W), floats from 0 to 255, and labels (B,).
        """
        squares = None if augmentation.alone or not self.uniform else self._squares("train", workers)
        if squares is not None:
            labels = self._labels("train").to(self.device)
            yield from shuffled_batches(squares, labels, batch_size, augmentation, seed, self.share)
            return
        order = reading_order(self.train, seed, self.source.blocks)
        order = order[: max(1, self.training_size // batch_size) * batch_size]
        loaded = self.workers.load(
            augmentation,
            lambda: self._training_photos(augmentation, workers),
            training_jobs(order, seed, batch_size, self.share),
            workers,
            self._pinned,
        )
        on_device = torch.Generator(self.device).manual_seed(seed)
        rest = replace(augmentation, flip=False, crop=(1.0, 1.0))  # those two were done photo by photo
        batch = min(batch_size, len(order))  # a multiple of it, or a single smaller batch
        for images, labels in self._moved(loaded):
            yield augment(images, rest, on_device, self.share, batch), labels

    def batches(self, part: Part, batch_size: int = 100, workers: int = 2) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the photos of a part in their order, normalised (B, 3, H, W), with labels (B,).

        Of each photo it is the central square, unless all photos have the wanted size as they are.
        """
        squares = self._squares(part, workers) if self.uniform or part == "validation" else None
        if squares is not None:
            labels = self._labels(part).to(self.device)
            for batch in self.share.passes(len(labels), batch_size):
                yield self.normalise(squares[batch]), labels[batch]
            return
        photos, numbers = self._photos(part)
        loaded = self.workers.load(
            part,
            lambda: PhotoJobs(Opened(photos, self._measured), photos.labels, None),
            measuring_jobs(numbers, batch_size, self.share),
            workers,
            self._pinned,
        )
        for images, labels in self._moved(loaded):
            yield self.normalise(images), labels

    @property
    def uniform(self) -> bool:
        """Whether every photo has the wanted size as it is; of your own photos the heads of the files say so.

        Of more than `LOOKED_AT` photos some are looked at. Another one of another size shows its middle.

        The other data sets are of mixed sizes as they are published; there, the usual central crop is taken
        whatever form they are in.
        """
        wanted = (self.side, self.side)
        if own_place(self.config.name) is None:
            return self.source.size == wanted
        if "uniform" not in self.memory:
            parts = [spread(photos.files, LOOKED_AT) for photos in (self.source.train, self.source.test)]
            self.memory["uniform"] = all(picture_size(file) == wanted for files in parts for file in files)
        return self.memory["uniform"]

    def keeping_workers(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which worker processes stay from one epoch to the next, and end with it."""
        return self.workers.kept()

    def to(self, device: torch.device | str) -> "PhotoData":
        """Return the same data with batches on a device; what was decoded is shared."""
        return replace(self, device=device)

    def shared(self, share: Share) -> "PhotoData":
        """Return the same data for one of several processes; what was decoded and the workers are shared."""
        return replace(self, share=share)

    def __repr__(self) -> str:
        """Say what is in it in one line."""
        counts = ", ".join(f"{self.size_of(part):,} {part}" for part in get_args(Part))
        shape = " x ".join(map(str, self.image_shape))
        return f"PhotoData({self.config.name!r}: {counts} photos as {shape}, {self.num_classes} classes)"

    @property
    def _pinned(self) -> bool:
        """Whether batches go through memory that a GPU can fetch them from while it computes."""
        return torch.device(self.device).type == "cuda"

    @property
    def _measured(self) -> AsItIs | CentralSquare:
        """What is shown of a photo in validation and test."""
        strict = own_place(self.config.name) is None
        return AsItIs(self.side, strict) if self.uniform else CentralSquare(self.side)

    def _moved(self, loaded: Iterator[list[Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in loaded:
            yield (
                images.to(self.device, non_blocking=self._pinned),
                labels.to(self.device, non_blocking=self._pinned),
            )

    def _photos(self, part: str) -> tuple[Photos, Tensor]:
        """Return where the photos of a part lie, and their numbers there."""
        if part == "test":
            return self.source.test, torch.arange(len(self.source.test))
        return self.source.train, self.train if part == "train" else self.validation

    def _labels(self, part: str) -> Tensor:
        photos, numbers = self._photos(part)
        return photos.labels[numbers]

    def _squares(self, part: str, workers: int) -> Tensor | None:
        """Return the photos of a part as they are measured, (N, 3, side, side) uint8; None if too many."""
        photos, numbers = self._photos(part)
        if 3 * self.side**2 * len(numbers) > LIMIT:
            return None
        key = (part, str(self.device))
        there = self.memory.get(key)
        if there is None or not torch.equal(there[0], numbers):
            squares = decoded_squares(photos, numbers, self._measured, self.side, workers)
            self.memory[key] = there = numbers, squares.to(self.device)
        return there[1]

    def _training_photos(self, augmentation: Augmentation, workers: int) -> PhotoJobs:
        """Return the training photos through their transform, decoded already if memory allows."""
        photos = self.source.train
        there: DecodedPhotos | None = self.memory.get("decoded")
        if there is None or not torch.equal(there.numbers, self.train):
            there = None
            if fits(photos, self.train, self.side):
                there = self.memory["decoded"] = DecodedPhotos(photos, self.train, Whole(self.side), workers)
        read = there or Opened(photos, Whole(self.side))
        return PhotoJobs(read, photos.labels, training_transform(self._measured, augmentation))


@dataclass(frozen=True)
class Opened:
    """Photos that are opened when they are wanted: called with a number, it gives the bytes (3, h, w).

    Attributes:
        photos: the data set.
        prepare: from an image to the bytes.
    """

    photos: Photos
    prepare: Any

    def __call__(self, number: int) -> Tensor:
        """Return a photo's bytes, uint8."""
        return self.prepare(self.photos[number][0])
