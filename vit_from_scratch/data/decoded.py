"""Photos that were decoded once and stay in memory as bytes, so that no epoch opens their files again."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor
from torch.utils.data import Dataset
from tqdm import tqdm

from vit_from_scratch.data.folders import picture_size, spread
from vit_from_scratch.data.loading import LOST, explained, photo_loader
from vit_from_scratch.data.photo_transforms import Whole
from vit_from_scratch.data.sources import Photos
from vit_from_scratch.errors import InputError
from vit_from_scratch.progress import progress_shown

LIMIT = 2 * 2**30
"""The most bytes of decoded photos that are kept for a part of a data set; beyond, files are opened again."""

SAMPLE = 64
"""How many photos are looked at to learn how many bytes all of them take."""

CHUNK = 64
"""Photos that a worker decodes at a time."""

FEW = 512
"""Up to so many photos are decoded here: workers would take longer to start."""


class DecodedPhotos:
    """Photos of any size in memory: called with a number, it gives the bytes (3, h, w)."""

    def __init__(
        self, photos: Photos, numbers: Tensor, prepare: Callable[[Image], Tensor], workers: int
    ) -> None:
        """Decode some photos of a data set.

        Args:
            photos: the data set.
            numbers: which of its photos, (N,).
            prepare: from an image to the bytes to keep.
            workers: processes that share the work.

        Raises:
            InputError: one of them cannot be read.
        """
        self.numbers = numbers
        self.chunks: list[Tensor] = []
        self.places = np.full((len(photos), 4), -1)  # chunk, first byte, h, w
        first = 0
        for bytes_, shapes in _decoded(photos, numbers, prepare, workers):
            ends = np.cumsum([3 * height * width for height, width in shapes])
            for number, end, (height, width) in zip(
                numbers[first : first + len(shapes)].tolist(), ends, shapes, strict=True
            ):
                self.places[number] = len(self.chunks), end - 3 * height * width, height, width
            self.chunks.append(bytes_.clone())  # what a worker sends lies in shared memory, which is scarce
            first += len(shapes)

    def __call__(self, number: int) -> Tensor:
        """Return a photo's bytes, (3, h, w) uint8."""
        chunk, start, height, width = self.places[number].tolist()
        return self.chunks[chunk][start : start + 3 * height * width].view(3, height, width)


def decoded_squares(
    photos: Photos, numbers: Tensor, prepare: Callable[[Image], Tensor], side: int, workers: int
) -> Tensor:
    """Decode some photos of a data set, as in `DecodedPhotos`, to one tensor (N, 3, side, side) uint8."""
    squares = torch.empty(len(numbers), 3, side, side, dtype=torch.uint8)
    first = 0
    for bytes_, shapes in _decoded(photos, numbers, prepare, workers):
        squares[first : first + len(shapes)] = bytes_.view(-1, 3, side, side)
        first += len(shapes)
    return squares


def fits(photos: Photos, numbers: Tensor, side: int) -> bool:
    """Say whether some photos, shrunk as for training images of this side, take at most `LIMIT` bytes.

    The heads of a few files, evenly spread, tell. A photo whose head cannot be read is left to its reader.
    """
    sizes = [picture_size(photos.files[number]) for number in spread(numbers.tolist(), SAMPLE)]
    areas = [np.prod(Whole(side).size_of(size)) for size in sizes if size]
    return bool(areas) and 3 * float(np.mean(areas)) * len(numbers) <= LIMIT


class _Prepared(Dataset[Tensor]):
    """Photos as the bytes to keep."""

    def __init__(self, photos: Photos, numbers: Tensor, prepare: Callable[[Image], Tensor]) -> None:
        self.photos, self.numbers, self.prepare = photos, numbers.tolist(), prepare

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: int) -> Tensor:
        number = self.numbers[place]
        try:
            return self.prepare(self.photos[number][0])
        except InputError as error:
            name = str(self.photos.files[number])
            raise error if name in str(error) else InputError(f"{name}: {error}") from None


def _decoded(
    photos: Photos, numbers: Tensor, prepare: Callable[[Image], Tensor], workers: int
) -> Iterator[tuple[Tensor, list[tuple[int, int]]]]:
    """Yield the bytes of some photos in their order, joined, with their heights and widths."""
    prepared = _Prepared(photos, numbers, prepare)
    count = workers if len(numbers) > FEW else 0
    options: dict[str, Any] = {"batch_size": CHUNK, "collate_fn": _joined}
    with (
        explained(LOST if count else ()),
        tqdm(
            total=len(numbers), desc="decoding", unit="photo", disable=not progress_shown(), leave=False
        ) as bar,
    ):
        for bytes_, shapes in photo_loader(prepared, count, **options):
            yield bytes_, shapes
            bar.update(len(shapes))


def _joined(photos: list[Tensor]) -> tuple[Tensor, list[tuple[int, int]]]:
    """Join the bytes of photos (3, h, w) to one tensor; beside it, h and w of each."""
    shapes = [(photo.shape[1], photo.shape[2]) for photo in photos]
    return torch.cat([photo.flatten() for photo in photos]), shapes
