"""Photos of any size, streamed from their files: read, cropped and changed one by one in worker processes.

Every photo's random changes come from the epoch's seed and the photo's number alone, so they are the same
however many workers share the work, and in a run that was stopped and resumed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from vit_from_scratch.errors import InputError
from vit_from_scratch.normalisation import Normalisation
from vit_from_scratch.training.augmentation import Augmentation, augment
from vit_from_scratch.training.data import DataConfig, Part
from vit_from_scratch.training.sources import Photos, PhotoSource

TEST_CROP = 224 / 256
"""Share of the short side that the central crop keeps in validation and test, as usual for ImageNet."""


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
    """

    config: DataConfig
    source: PhotoSource
    train: Tensor
    validation: Tensor
    normalise: Normalisation
    device: torch.device | str = "cpu"

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
        return len(self.validation if part == "validation" else self.source.test)

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
        generator = torch.Generator().manual_seed(seed)
        order = self.train[torch.randperm(self.training_size, generator=generator)]
        order = order[: max(1, self.training_size // batch_size) * batch_size]
        photos = _Photos(self.source.train, order, training_transform(self.side, augmentation), seed)
        on_device = torch.Generator(self.device).manual_seed(seed)
        rest = replace(augmentation, flip=False, crop=(1.0, 1.0))  # those two were done photo by photo
        for images, labels in _loaded(photos, batch_size, workers, generator):
            yield augment(images.to(self.device), rest, on_device), labels.to(self.device)

    def batches(self, part: Part, batch_size: int = 100, workers: int = 2) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the central crops of a part in their order, normalised (B, 3, H, W), with labels (B,)."""
        source = self.source.train if part == "validation" else self.source.test
        order = self.validation if part == "validation" else torch.arange(len(source))
        photos = _Photos(source, order, test_transform(self.side))
        generator = torch.Generator()  # of the loader's own: the global random numbers stay untouched
        for images, labels in _loaded(photos, batch_size, workers, generator):
            yield self.normalise(images.to(self.device)), labels.to(self.device)

    def to(self, device: torch.device | str) -> "PhotoData":
        """Return the same data with batches on a device."""
        return replace(self, device=device)

    def __repr__(self) -> str:
        """Say what is in it in one line."""
        sizes = {"train": self.training_size} | {part: self.size_of(part) for part in ("validation", "test")}
        counts = ", ".join(f"{size:,} {part}" for part, size in sizes.items())
        shape = " x ".join(map(str, self.image_shape))
        return f"PhotoData({self.config.name!r}: {counts} photos as {shape}, {self.num_classes} classes)"


class _Photos(Dataset[tuple[Tensor, int]]):
    """Some photos of a data set, each through a transform with random numbers of its own."""

    def __init__(
        self, source: Photos, order: Tensor, transform: Callable[[Image], Tensor], seed: int | None = None
    ) -> None:
        self.source, self.order, self.transform, self.seed = source, order.tolist(), transform, seed

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        number = self.order[place]
        photo, label = self.source[number]
        with torch.random.fork_rng(devices=[]):
            if self.seed is not None:
                own = np.random.SeedSequence((self.seed, number)).generate_state(1, np.uint64)[0]
                torch.default_generator.manual_seed(int(own))  # a GPU's own, for dropout, is left alone
            return self.transform(photo), label


def _loaded(
    photos: _Photos, batch_size: int, workers: int, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches; an `InputError` in a worker process comes without that process's traceback."""
    try:
        yield from DataLoader(photos, batch_size, num_workers=workers, generator=generator)
    except InputError as error:
        raise InputError(str(error).rstrip().splitlines()[-1].rpartition("InputError: ")[2]) from None


def training_transform(side: int, augmentation: Augmentation) -> Callable[[Image], Tensor]:
    """Return what happens to a training photo on its own: crop, flip, RandAugment and changes of colour.

    Args:
        side: of the result, in pixels.
        augmentation: `crop`, `flip`, `rand_augment` and `colour_jitter` are looked at; without a crop the
            photo gets the central crop of `test_transform`.

    Returns:
        A transform from a PIL image to (3, side, side) uint8.
    """
    from torchvision.transforms import v2  # imported here: it takes seconds

    if augmentation.crop == (1.0, 1.0):
        steps: list[Any] = [test_transform(side)]
    else:
        steps = [v2.PILToTensor(), v2.RandomResizedCrop(side, scale=augmentation.crop, antialias=True)]
    if augmentation.flip:
        steps.append(v2.RandomHorizontalFlip())
    count, strength = augmentation.rand_augment
    if count:
        steps.append(v2.RandAugment(count, strength))
    if any(augmentation.colour_jitter):
        steps.append(v2.ColorJitter(*augmentation.colour_jitter))
    return v2.Compose(steps)


def test_transform(side: int) -> Callable[[Image], Tensor]:
    """Return what happens to a photo in validation and test: its central square, (3, side, side) uint8."""
    from torchvision.transforms import v2  # imported here: it takes seconds

    return v2.Compose(
        [v2.PILToTensor(), v2.Resize(round(side / TEST_CROP), antialias=True), v2.CenterCrop(side)]
    )
