"""From a photo's file to a square of bytes, decoded once where memory allows."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2
from tqdm import tqdm

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.loading import PhotoJobs, PhotoWorkers
from vit_from_scratch.data.photos import picture_size
from vit_from_scratch.data.sources import Photos, PhotoSource, spread
from vit_from_scratch.progress import progress_shown

LIMIT = 2 * 2**30
"""The most bytes of decoded photos that are kept for a part of a data set; beyond, files are opened again."""

SAMPLE, LOOKED_AT = 64, 10_000
"""How many photos are looked at to learn how many bytes all of them take, and whether all have one size."""

TEST_CROP = 224 / 256
"""Share of the short side that the central crop keeps in validation and test, as usual for ImageNet."""

LARGEST = 2
"""How many times an image's side a training photo's short side may be; a larger one is shrunk first."""


class PhotoReader:
    """Reads the photos of a data set, and remembers what it has decoded.

    Attributes:
        source: the photos.
        side: that images are brought to, in pixels.
        own: whether they are your own. Published ones of mixed sizes get the usual central crop, in whatever
            form they are there.
        workers: the processes that read photos.
    """

    def __init__(self, source: PhotoSource, side: int, own: bool) -> None:
        self.source, self.side, self.own = source, side, own
        self.workers = PhotoWorkers()
        self._squares: dict[tuple[str, str], tuple[Tensor, Tensor]] = {}
        self._decoded: tuple[Tensor, dict[int, Tensor]] | None = None

    @cached_property
    def uniform(self) -> bool:
        """Whether every photo has the wanted size as it is; of your own, up to `LOOKED_AT` files say so."""
        wanted = (self.side, self.side)
        if not self.own:
            return self.source.size == wanted
        looked_at = (spread(photos.files, LOOKED_AT) for photos in (self.source.train, self.source.test))
        return all(picture_size(file) == wanted for files in looked_at for file in files)

    def squares(
        self, part: str, photos: Photos, numbers: Tensor, device: torch.device | str, workers: int
    ) -> tuple[Tensor, Tensor] | None:
        """Return photos as they are measured, (N, 3, side, side) uint8, with labels; None if too many."""
        if 3 * self.side**2 * len(numbers) > LIMIT:
            return None
        key = (part, str(device))
        if key not in self._squares or not torch.equal(self._squares[key][0], numbers):
            squares = torch.empty(len(numbers), 3, self.side, self.side, dtype=torch.uint8)
            for place, pixels in enumerate(self._decode(photos, self.square, numbers, workers)):
                squares[place] = pixels
            self._squares[key] = numbers, squares.to(device)
        return self._squares[key][1], torch.tensor(photos.labels)[numbers].to(device)

    def training(self, numbers: Tensor, augmentation: Augmentation, workers: int) -> PhotoJobs:
        """Return training photos through crop, flip, RandAugment and changes of colour.

        They are decoded already if memory allows; the heads of a few files, evenly spread, tell.
        """
        photos, prepare = self.source.train, partial(shrunk, side=self.side)
        if self._decoded is None or not torch.equal(self._decoded[0], numbers):
            self._decoded = None
            sizes = [picture_size(photos.files[number]) for number in spread(numbers.tolist(), SAMPLE)]
            areas = [np.prod(shrunk_size(size, self.side)) for size in sizes if size]
            if areas and 3 * float(np.mean(areas)) * len(numbers) <= LIMIT:
                decoded = self._decode(photos, prepare, numbers, workers)
                self._decoded = numbers, dict(zip(numbers.tolist(), decoded, strict=True))
        read = self._decoded[1].__getitem__ if self._decoded else partial(opened, photos, prepare)
        cropped = v2.RandomResizedCrop(self.side, scale=augmentation.crop, antialias=True)
        steps: list[Any] = [self.square if augmentation.crop == (1.0, 1.0) else cropped]
        if augmentation.flip:
            steps.append(v2.RandomHorizontalFlip())
        if augmentation.rand_augment[0]:
            steps.append(v2.RandAugment(*augmentation.rand_augment))
        if any(augmentation.colour_jitter):
            steps.append(v2.ColorJitter(*augmentation.colour_jitter))
        return PhotoJobs(read, photos.labels, v2.Compose(steps))

    @property
    def square(self) -> Callable[[Image.Image | Tensor], Tensor]:
        """What is shown of a photo in validation and test."""
        return partial(square, side=self.side, as_it_is=self.uniform)

    def _decode(
        self, photos: Photos, prepare: Callable[[Image.Image], Tensor], numbers: Tensor, workers: int
    ) -> Iterator[Tensor]:
        """Yield the bytes of some photos in their order, (3, h, w) each; several threads decode."""
        hidden = not progress_shown()
        with ThreadPoolExecutor(max(1, workers)) as pool:
            decoded = pool.map(partial(opened, photos, prepare), numbers.tolist())
            yield from tqdm(decoded, "decoding", len(numbers), unit="photo", disable=hidden, leave=False)


def opened(photos: Photos, prepare: Callable[[Image.Image], Tensor], number: int) -> Tensor:
    """Open a photo of a data set, and return its bytes (3, h, w)."""
    return prepare(photos[number][0])


def shrunk(photo: Image.Image, side: int) -> Tensor:
    """Return a training photo's bytes (3, h, w); one much larger than needed for such a side is shrunk."""
    size = shrunk_size(photo.size, side)
    if size != photo.size:
        photo = photo.resize(size, Image.Resampling.BILINEAR, reducing_gap=3.0)
    return v2.functional.pil_to_tensor(photo)


def shrunk_size(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Return width and height that `shrunk` brings a photo of this width and height to."""
    factor = LARGEST * side / min(size)
    return size if factor >= 1 else (round(size[0] * factor), round(size[1] * factor))


def square(photo: Image.Image | Tensor, side: int, as_it_is: bool) -> Tensor:
    """Return what is shown of a photo, or of (3, h, w), in validation and test, (3, side, side) uint8.

    It is the middle; with `as_it_is` a photo of this size is taken whole.
    """
    pixels = photo if isinstance(photo, Tensor) else v2.functional.pil_to_tensor(photo)
    if as_it_is and pixels.shape[1:] == (side, side):
        return pixels
    around = v2.functional.resize(pixels, [round(side / TEST_CROP)], antialias=True)
    return v2.functional.center_crop(around, [side, side])
