"""Photos from files: decoded once where memory allows, cropped and changed one by one in worker processes.

Photos that all have the wanted size already are changed in whole batches instead, as in `ImageData`.
"""

import contextlib
import math
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2
from tqdm import tqdm

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import Batches, DataSet, shuffled_batches
from vit_from_scratch.data.loading import PhotoJobs, PhotoWorkers
from vit_from_scratch.data.photos import picture_size
from vit_from_scratch.data.random_changes import augment
from vit_from_scratch.data.sources import Photos, PhotoSource, spread
from vit_from_scratch.errors import InputError
from vit_from_scratch.progress import progress_shown

LIMIT = 2 * 2**30
"""The most bytes of decoded photos that are kept for a part of a data set; beyond, files are opened again."""

SAMPLE = 64
"""How many photos are looked at to learn how many bytes all of them take."""

TOLD = 10
"""How many photos that cannot be read are named in a message."""

TEST_CROP = 224 / 256
"""Share of the short side that the central crop keeps in validation and test, as usual for ImageNet."""

LARGEST = 2
"""A training photo whose short side is more than this many times an image's side is shrunk first."""


@dataclass(frozen=True, eq=False, repr=False)
class PhotoData(DataSet):
    """A `DataSet` of photos that are read from files.

    Attributes:
        source: the photos.
        side: the width and height that they are brought to, in pixels.
        uniform: whether every photo has that size as it is.
        train: numbers of the training photos in `source.train`, (N,); and of those held out, `validation`.
        device: where batches are put.
        decoded: what is in memory; copies on other devices and for other processes share it, and `workers`.
    """

    source: PhotoSource
    side: int
    uniform: bool
    train: Tensor
    validation: Tensor
    device: torch.device | str = "cpu"
    decoded: dict[Any, Any] = field(default_factory=dict)
    workers: PhotoWorkers = field(default_factory=PhotoWorkers)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The shape that photos are brought to, (3, H, W)."""
        return 3, self.side, self.side

    def size_of(self, part: Part) -> int:
        """Return the number of photos in a part."""
        return len(self._photos(part)[1])

    def training_batches(
        self, batch_size: int, augmentation: Augmentation, seed: int, workers: int = 0
    ) -> Batches:
        """Yield the training photos of an epoch in random order; see `DataSet`."""
        if self.uniform and not augmentation.alone and (squares := self._squares("train", workers)):
            yield from shuffled_batches(*squares, batch_size, augmentation, seed, self.share)
            return
        order = self.train[torch.randperm(len(self.train), generator=torch.Generator().manual_seed(seed))]
        order = order[: max(1, self.training_size // batch_size) * batch_size]
        own = [self.share.of(batch) for batch in order.split(batch_size)]
        on_device = torch.Generator(self.device).manual_seed(seed)
        # these are done photo by photo
        rest = replace(augmentation, flip=False, crop=(1.0, 1.0), colour_jitter=(0.0, 0.0, 0.0, 0.0))
        batch = min(batch_size, len(order))  # `order` is a multiple of it, or a single smaller batch
        jobs = partial(self._training_jobs, augmentation, workers)
        for images, labels in self._loaded(augmentation, jobs, own, workers, seed):
            yield augment(images, rest, on_device, self.share, batch), labels

    def batches(self, part: Part, batch_size: int = 100, workers: int = 2) -> Batches:
        """Yield the photos of a part in their order, normalised; see `DataSet`.

        Each photo gives its central square, unless all photos have the wanted size as they are.
        """
        photos, numbers = self._photos(part)
        passes = self.share.passes(len(numbers), batch_size)
        keep = self.uniform or part == "validation"
        if keep and (squares := self._squares(part, workers)):
            loaded: Batches = ((squares[0][batch], squares[1][batch]) for batch in passes)
        else:
            jobs = partial(PhotoJobs, partial(opened, photos, self._square), photos.labels)
            loaded = self._loaded(part, jobs, [numbers[batch] for batch in passes], workers)
        yield from ((self.normalise.scaled(images), labels) for images, labels in loaded)

    def check(self, part: Part, workers: int = 2) -> None:
        """Open this share of the photos of a part once: one that cannot be read stops a run before it begins.

        Args:
            part: of the data.
            workers: threads that decode.

        Raises:
            InputError: as for `open_photo`.
        """
        photos, numbers = self._photos(part)
        if (checked := ("checked", part, self.share)) not in self.decoded:
            for _ in _decoded(photos, self._square, self.share.of(numbers), workers):
                pass
            self.decoded[checked] = True

    def keeping_workers(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which worker processes stay from one epoch to the next, and end with it."""
        return self.workers.kept()

    def to(self, device: torch.device | str) -> Self:
        """Return the same data with batches on a device; what was decoded is shared."""
        return replace(self, device=device)

    def _photos(self, part: str) -> tuple[Photos, Tensor]:
        """Return the photos that a part is taken from, and the numbers of its own."""
        if part == "test":
            return self.source.test, torch.arange(len(self.source.test))
        return self.source.train, self.train if part == "train" else self.validation

    @property
    def _square(self) -> Callable[[Image.Image | Tensor], Tensor]:
        return partial(square, side=self.side, as_it_is=self.uniform)

    def _squares(self, part: str, workers: int) -> tuple[Tensor, Tensor] | None:
        """Return photos as they are measured, (N, 3, side, side) uint8, with labels; None if too many."""
        photos, numbers = self._photos(part)
        if 3 * self.side**2 * len(numbers) > LIMIT:
            return None
        key = part, str(self.device), numbers.numpy().tobytes()
        if key not in self.decoded:
            squares = torch.empty(len(numbers), *self.image_shape, dtype=torch.uint8)
            for place, pixels in enumerate(_decoded(photos, self._square, numbers, workers)):
                squares[place] = pixels
            labels = torch.tensor(photos.labels)[numbers]
            self.decoded[key] = squares.to(self.device), labels.to(self.device)
        return self.decoded[key]

    def _training_jobs(self, augmentation: Augmentation, workers: int) -> PhotoJobs:
        """Return the training photos through crop, flip, RandAugment and changes of colour.

        They are decoded already if memory allows, by the headers of a few files, evenly spread.
        """
        photos, prepare = self.source.train, partial(shrunk, side=self.side)
        key = "shrunk", self.train.numpy().tobytes()
        if key not in self.decoded:
            numbers = self.train.tolist()
            sizes = [picture_size(photos.files[number]) for number in spread(numbers, SAMPLE)]
            areas = [math.prod(shrunk_size(size, self.side)) for size in sizes if size]
            fit = areas and 3 * statistics.fmean(areas) * len(numbers) <= LIMIT
            decoded = _decoded(photos, prepare, self.train, workers) if fit else ()
            self.decoded[key] = dict(zip(numbers, decoded, strict=True)) if fit else None
        pixels = self.decoded[key]
        cropped = v2.RandomResizedCrop(self.side, scale=augmentation.crop, antialias=True)
        steps: list[Any] = [self._square if augmentation.crop == (1.0, 1.0) else cropped]
        if augmentation.flip:
            steps.append(v2.RandomHorizontalFlip())
        if augmentation.rand_augment[0]:
            steps.append(v2.RandAugment(*augmentation.rand_augment))
        if any(augmentation.colour_jitter):
            steps.append(v2.ColorJitter(*augmentation.colour_jitter))
        read = pixels.__getitem__ if pixels else partial(opened, photos, prepare)
        return PhotoJobs(read, photos.labels, v2.Compose(steps))

    def _loaded(
        self, key: Any, jobs: Callable[[], PhotoJobs], batches: list[Tensor], workers: int, seed: int = 0
    ) -> Batches:
        """Yield batches on the device; a GPU fetches them while it computes."""
        pinned = torch.device(self.device).type == "cuda"
        for batch in self.workers.load(key, jobs, batches, seed, workers, pinned):
            images, labels = (tensor.to(self.device, non_blocking=pinned) for tensor in batch)
            yield images, labels


def _decoded(
    photos: Photos, prepare: Callable[[Image.Image], Tensor], numbers: Tensor, workers: int
) -> Iterator[Tensor]:
    """Yield the bytes of some photos in their order, (3, h, w) each; several threads decode.

    After one that cannot be read the others are still opened, so that all failures are reported.
    """
    hidden, failed = not progress_shown(), []
    with ThreadPoolExecutor(max(1, workers)) as pool:
        decoded = pool.map(partial(_opened_or_error, photos, prepare), numbers.tolist())
        for pixels in tqdm(decoded, "decoding", len(numbers), unit="photo", disable=hidden, leave=False):
            if isinstance(pixels, InputError):
                failed.append(str(pixels))
            elif not failed:
                yield pixels
    if failed:
        more = [f"{len(failed) - TOLD:,} more cannot be read either."] if len(failed) > TOLD else []
        raise InputError(" ".join(failed[:TOLD] + more))


def _opened_or_error(
    photos: Photos, prepare: Callable[[Image.Image], Tensor], number: int
) -> Tensor | InputError:
    try:
        return opened(photos, prepare, number)
    except InputError as error:
        return error


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
