"""What happens to one photo on its own, from its file to a square of bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PIL import Image
from torch import Tensor

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.errors import InputError

TEST_CROP = 224 / 256
"""Share of the short side that the central crop keeps in validation and test, as usual for ImageNet."""

LARGEST = 2
"""How many times the side of the images a training photo's short side may be; a larger one is shrunk first.

A crop of a quarter of its area still has a pixel for each pixel of the image, and the twelve megapixels of a
telephone's camera need neither be kept in memory nor be cropped in every epoch.
"""


@dataclass(frozen=True)
class Whole:
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
        return as_bytes(photo)

    def size_of(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return width and height that a photo of this width and height is brought to."""
        factor = LARGEST * self.side / min(size)
        return size if factor >= 1 else (round(size[0] * factor), round(size[1] * factor))


@dataclass(frozen=True)
class AsItIs:
    """Take a photo that has the wanted size already: an image to (3, side, side) uint8.

    Attributes:
        side: in pixels.
        strict: refuse a photo of another size; else, as in a large folder of which some photos were looked
            at, it is brought to this one by its central square.
    """

    side: int
    strict: bool = True

    def __call__(self, photo: Image.Image) -> Tensor:
        """Return the photo's bytes.

        Raises:
            InputError: it has another size than the rest of its data set.
        """
        if photo.size != (self.side, self.side):
            if not self.strict:
                return CentralSquare(self.side)(photo)
            raise InputError(
                f"a photo of {photo.width} x {photo.height} pixels: expected {self.side} x {self.side}, "
                "as all others of its data set. Fetch it again."
            )
        return as_bytes(photo)

    def of(self, pixels: Tensor) -> Tensor:
        """Return a photo's bytes (3, side, side) as they are; of another size, the middle."""
        return pixels if pixels.shape[1:] == (self.side, self.side) else CentralSquare(self.side).of(pixels)


@dataclass(frozen=True)
class CentralSquare:
    """Take a photo's middle, for validation and test: an image to (3, side, side) uint8.

    Attributes:
        side: in pixels.
    """

    side: int

    def __call__(self, photo: Image.Image) -> Tensor:
        """Return the middle's bytes."""
        return self.of(as_bytes(photo))

    def of(self, pixels: Tensor) -> Tensor:
        """Return the middle of a photo's bytes (3, h, w)."""
        from torchvision.transforms import v2  # imported here: it takes seconds

        around = v2.functional.resize(pixels, [round(self.side / TEST_CROP)], antialias=True)
        return v2.functional.center_crop(around, [self.side, self.side])


def as_bytes(photo: Image.Image) -> Tensor:
    """Return a photo's pixels, (3, h, w) uint8."""
    from torchvision.transforms import v2  # imported here: it takes seconds

    return v2.functional.pil_to_tensor(photo)


def training_transform(
    measured: AsItIs | CentralSquare, augmentation: Augmentation
) -> Callable[[Tensor], Tensor]:
    """Return what happens to a training photo on its own: crop, flip, RandAugment and changes of colour.

    Args:
        measured: what is shown of a photo in validation and test, and without a crop in training, too.
        augmentation: `crop`, `flip`, `rand_augment` and `colour_jitter` are looked at.

    Returns:
        A transform from bytes (3, h, w) to (3, side, side) uint8.
    """
    from torchvision.transforms import v2  # imported here: it takes seconds

    if augmentation.crop == (1.0, 1.0):
        steps: list[Any] = [measured.of]
    else:
        steps = [v2.RandomResizedCrop(measured.side, scale=augmentation.crop, antialias=True)]
    if augmentation.flip:
        steps.append(v2.RandomHorizontalFlip())
    count, strength = augmentation.rand_augment
    if count:
        steps.append(v2.RandAugment(count, strength))
    if any(augmentation.colour_jitter):
        steps.append(v2.ColorJitter(*augmentation.colour_jitter))
    return v2.Compose(steps)
