"""From a photo's file to a square of bytes, decoded once where memory allows; the order of an epoch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2
from tqdm import tqdm

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.loading import PhotoJobs, PhotoWorkers, jobs_of
from vit_from_scratch.data.photos import picture_size
from vit_from_scratch.data.sources import Photos, PhotoSource, spread
from vit_from_scratch.progress import progress_shown

LIMIT = 2 * 2**30
"""The most bytes of decoded photos that are kept for a part of a data set; beyond, files are opened again."""

SAMPLE, LOOKED_AT = 64, 10_000
"""How many photos are looked at to learn how many bytes all of them take, and whether all have one size."""

CHUNK, FEW = 64, 512
"""Photos decoded at a time by a worker; up to `FEW` are decoded here, sooner than workers start."""

TEST_CROP = 224 / 256
"""Share of the short side that the central crop keeps in validation and test, as usual for ImageNet."""

LARGEST = 2
"""How many times the side of the images a training photo's short side may be; a larger one is shrunk first.

A crop of a quarter of its area still has a pixel for each pixel of the image, and the twelve megapixels of a
telephone's camera need neither be kept in memory nor be cropped in every epoch.
"""

AT_ONCE = 128
"""How many blocks of larger files are read at a time."""


@dataclass(frozen=True)
class Shrunk:
    """Take a training photo as it is, shrunk if it is much larger than needed: an image to (3, h, w) uint8.

    Attributes:
        side: of the images wanted, in pixels.
    """

    side: int

    def __call__(self, photo: Image.Image) -> Tensor:
        """Return the photo's bytes."""
        size = self.size_of(photo.size)
        if size != photo.size:
            photo = photo.resize(size, Image.Resampling.BILINEAR, reducing_gap=3.0)
        return v2.functional.pil_to_tensor(photo)

    def size_of(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return width and height that a photo of this width and height is brought to."""
        factor = LARGEST * self.side / min(size)
        return size if factor >= 1 else (round(size[0] * factor), round(size[1] * factor))


@dataclass(frozen=True)
class Square:
    """Take what is shown of a photo in validation and test: an image, or (3, h, w), to (3, side, side) uint8.

    Attributes:
        side: in pixels.
        as_is: whether a photo of this size is taken whole; of others it is the middle.
    """

    side: int
    as_is: bool

    def __call__(self, photo: Image.Image | Tensor) -> Tensor:
        """Return the square's bytes."""
        pixels = photo if isinstance(photo, Tensor) else v2.functional.pil_to_tensor(photo)
        if self.as_is and pixels.shape[1:] == (self.side, self.side):
            return pixels
        around = v2.functional.resize(pixels, [round(self.side / TEST_CROP)], antialias=True)
        return v2.functional.center_crop(around, [self.side, self.side])


@dataclass(frozen=True)
class Opened:
    """Photos that are opened when they are wanted: called with a number, it gives the bytes (3, h, w).

    Attributes:
        photos: the data set.
        prepare: from an image to the bytes.
    """

    photos: Photos
    prepare: Callable[[Image.Image], Tensor]

    def __call__(self, number: int) -> Tensor:
        """Return a photo's bytes, uint8."""
        return self.prepare(self.photos[number][0])


class PhotoReader:
    """Reads the photos of a data set, and remembers what it has decoded.

    Attributes:
        source: the photos.
        side: that images are brought to, in pixels.
        workers: the processes that read photos.
    """

    def __init__(self, source: PhotoSource, side: int, own: bool) -> None:
        """Open no photo yet.

        Args:
            source: the photos.
            side: in pixels.
            own: whether they are your own. Published ones of mixed sizes get the usual central crop, in
                whatever form they are there.
        """
        self.source, self.side, self.own = source, side, own
        self.workers = PhotoWorkers()
        self._squares: dict[tuple[str, str], tuple[Tensor, Tensor]] = {}
        self._decoded: tuple[Tensor, dict[int, Tensor]] | None = None

    @cached_property
    def square(self) -> Square:
        """What is shown of a photo in validation and test."""
        return Square(self.side, self.uniform)

    @cached_property
    def uniform(self) -> bool:
        """Whether every photo has the wanted size as it is; of your own photos the heads of the files say so.

        Of more than `LOOKED_AT` photos some are looked at. Another one of another size shows its middle.
        """
        wanted = (self.side, self.side)
        if not self.own:
            return self.source.size == wanted
        looked_at = (spread(photos.files, LOOKED_AT) for photos in (self.source.train, self.source.test))
        return all(picture_size(file) == wanted for files in looked_at for file in files)

    def measuring(self, photos: Photos) -> PhotoJobs:
        """Return the photos of a part as they are measured, opened when they are wanted."""
        return PhotoJobs(Opened(photos, self.square), photos.labels)

    def squares(
        self, part: str, photos: Photos, numbers: Tensor, device: torch.device | str, workers: int
    ) -> Tensor | None:
        """Return the photos of a part as they are measured, (N, 3, side, side) uint8; None if too many."""
        if 3 * self.side**2 * len(numbers) > LIMIT:
            return None
        key = (part, str(device))
        if key not in self._squares or not torch.equal(self._squares[key][0], numbers):
            squares = torch.empty(len(numbers), 3, self.side, self.side, dtype=torch.uint8)
            for place, square in enumerate(self._decode(photos, self.square, numbers, workers)):
                squares[place] = square
            self._squares[key] = numbers, squares.to(device)
        return self._squares[key][1]

    def training(self, numbers: Tensor, augmentation: Augmentation, workers: int) -> PhotoJobs:
        """Return training photos through their transform, decoded already if memory allows."""
        photos, shrunk = self.source.train, Shrunk(self.side)
        if self._decoded is None or not torch.equal(self._decoded[0], numbers):
            self._decoded = None
            if fits(photos, numbers, shrunk):
                decoded = self._decode(photos, shrunk, numbers, workers)
                self._decoded = numbers, dict(zip(numbers.tolist(), decoded, strict=True))
        read = self._decoded[1].__getitem__ if self._decoded else Opened(photos, shrunk)
        return PhotoJobs(read, photos.labels, training_transform(self.square, augmentation))

    def _decode(
        self, photos: Photos, prepare: Callable[[Image.Image], Tensor], numbers: Tensor, workers: int
    ) -> Iterator[Tensor]:
        """Yield the bytes of some photos in their order, (3, h, w) each.

        Raises:
            InputError: one of them cannot be read.
        """
        jobs = PhotoJobs(Opened(photos, prepare), photos.labels, join=_joined)
        batches, count = jobs_of(numbers.split(CHUNK)), workers if len(numbers) > FEW else 0
        with tqdm(
            total=len(numbers), desc="decoding", unit="photo", disable=not progress_shown(), leave=False
        ) as bar:
            for flat, shapes in self.workers.load(None, lambda: jobs, batches, count, steady=True):
                own = flat.clone()  # what a worker sends is in shared memory, which is scarce
                pieces = own.split([3 * height * width for height, width in shapes])
                yield from (piece.view(3, *shape) for piece, shape in zip(pieces, shapes, strict=True))
                bar.update(len(shapes))


def fits(photos: Photos, numbers: Tensor, shrunk: Shrunk) -> bool:
    """Say whether some photos, shrunk as for training, take at most `LIMIT` bytes.

    The heads of a few files, evenly spread, tell. A photo whose head cannot be read is left to its reader.
    """
    sizes = [picture_size(photos.files[number]) for number in spread(numbers.tolist(), SAMPLE)]
    areas = [np.prod(shrunk.size_of(size)) for size in sizes if size]
    return bool(areas) and 3 * float(np.mean(areas)) * len(numbers) <= LIMIT


def training_transform(square: Square, augmentation: Augmentation) -> Callable[[Tensor], Tensor]:
    """Return what happens to a training photo on its own: crop, flip, RandAugment and changes of colour.

    Args:
        square: what is shown of a photo without a crop.
        augmentation: `crop`, `flip`, `rand_augment` and `colour_jitter` are looked at.

    Returns:
        A transform from bytes (3, h, w) to (3, side, side) uint8.
    """
    cropped = v2.RandomResizedCrop(square.side, scale=augmentation.crop, antialias=True)
    steps: list[Any] = [square if augmentation.crop == (1.0, 1.0) else cropped]
    if augmentation.flip:
        steps.append(v2.RandomHorizontalFlip())
    count, strength = augmentation.rand_augment
    if count:
        steps.append(v2.RandAugment(count, strength))
    if any(augmentation.colour_jitter):
        steps.append(v2.ColorJitter(*augmentation.colour_jitter))
    return v2.Compose(steps)


def reading_order(numbers: Tensor, seed: int, blocks: Sequence[int] | None = None) -> Tensor:
    """Return photos in the order in which an epoch reads them: at random, and from few places at a time.

    A network's disk, or a store that hands out files by the piece, wants neighbours. So where photos are
    inside larger files, blocks of these are put in random order, and the photos of `AT_ONCE` blocks at a time
    are read at random. With no more blocks than that it is the order that files of their own have.

    Args:
        numbers: of the photos, (N,).
        seed: the epoch's, on which alone the order depends.
        blocks: the block of every photo of the data set, by its number; None for files of their own.

    Returns:
        The numbers, (N,), each once.
    """
    generator = torch.Generator().manual_seed(seed)
    order = numbers[torch.randperm(len(numbers), generator=generator)]
    if blocks is None or not len(blocks):
        return order
    block_of = torch.as_tensor(blocks)
    place = torch.randperm(int(block_of.max()) + 1, generator=generator)  # of each block in this epoch
    return order[torch.argsort(place[block_of[order]] // AT_ONCE, stable=True)]


def _joined(photos: list[tuple[Tensor, int]]) -> tuple[Tensor, list[tuple[int, int]]]:
    """Join the bytes of photos (3, h, w) to one tensor; beside it, h and w of each."""
    shapes = [(photo.shape[1], photo.shape[2]) for photo, _ in photos]
    return torch.cat([photo.flatten() for photo, _ in photos]), shapes
