"""Random changes to whole batches of training images, on whatever device they lie.

One image at a time in Python would leave a small model waiting. Here a batch gets a random flip, shift,
crop, rotation and scale for each image in a single resampling, and every random number comes from the
generator that is handed in. What must look at one photo at a time (RandAugment, changes of colour) is
for data sets that are streamed from files: see `vit_from_scratch.training.streaming`.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_from_scratch.errors import unknown_name
from vit_from_scratch.settings import check_fields, require


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """How far training images are changed; all zero, the default, changes nothing.

    Attributes:
        flip: mirror left to right with probability one half (natural images, not digits).
        shift: move by up to this many whole pixels along each axis.
        jitter: move by up to this many pixels, fractions included; in between, pixels are interpolated.
        rotation: turn by up to this many degrees either way.
        scale: enlarge or shrink by up to this share, 0.1 for 90 % to 110 %.
        shear: slant by up to this much, pixels to the side for each pixel up or down.
        crop: cut out a rectangle with a share of the area between these two and sides in a ratio between 3:4
            and 4:3, and enlarge it to the whole (random resized crop); (1, 1) for none.
        erase: blank a square with this share of the image's side, somewhere (cutout).
        mixup: alpha of mixup: images and labels of a batch are blended in pairs, by a share from
            Beta(alpha, alpha); 0 for none (Zhang et al., 2018).
        cutmix: alpha of cutmix: a rectangle of one image is pasted into another; with mixup too, each batch
            gets one of the two (Yun et al., 2019).
        colour_jitter: the most by which brightness, contrast, saturation and hue change; streamed data only.
        rand_augment: operations drawn for an image, and their strength of 30; (0, 0) for none; streamed data
            only (Cubuk et al., 2020).
        fill: what comes in at the border: "zeros" (black) or "reflection".

    Raises:
        InputError: a value out of its range or of another type.
    """

    flip: bool = False
    shift: int = 0
    jitter: float = 0.0
    rotation: float = 0.0
    scale: float = 0.0
    shear: float = 0.0
    crop: tuple[float, float] = (1.0, 1.0)
    erase: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0
    colour_jitter: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    rand_augment: tuple[int, int] = (0, 0)
    fill: Literal["zeros", "reflection"] = "zeros"

    def __post_init__(self) -> None:
        """Refuse amounts that make no sense."""
        check_fields(self, "train.augmentation")
        for name in ("shift", "jitter", "shear"):
            require(getattr(self, name) >= 0, f"train.augmentation.{name}", getattr(self, name), "0 or more")
        require(0 <= self.rotation <= 180, "train.augmentation.rotation", self.rotation, "0 to 180 degrees")
        for name in ("scale", "erase"):
            value = getattr(self, name)
            require(0 <= value < 1, f"train.augmentation.{name}", value, "0 or more, below 1")
        for name in ("mixup", "cutmix"):
            require(getattr(self, name) >= 0, f"train.augmentation.{name}", getattr(self, name), "0 or more")
        low, high = self.crop
        require(
            0 < low <= high <= 1, "train.augmentation.crop", self.crop, "two shares, 0 < low <= high <= 1"
        )
        jitter = self.colour_jitter
        require(
            min(jitter) >= 0 and jitter[3] <= 0.5,
            "train.augmentation.colour_jitter",
            jitter,
            "four numbers of 0 or more, the last at most 0.5",
        )
        count, strength = self.rand_augment
        require(
            count >= 0 and 0 <= strength <= 30,
            "train.augmentation.rand_augment",
            self.rand_augment,
            "a number of operations and a strength of 0 to 30",
        )

    @classmethod
    def named(cls, name: str) -> "Augmentation":
        """Return one of the presets, `PRESETS`.

        Raises:
            InputError: an unknown name.
        """
        if name not in PRESETS:
            raise unknown_name("train.augmentation", name, PRESETS)
        return PRESETS[name]

    @property
    def moves(self) -> bool:
        """Whether a pixel may come from another place."""
        still = Augmentation(fill=self.fill)
        return any(getattr(self, name) != getattr(still, name) for name in MOVES)

    @property
    def alone(self) -> tuple[str, ...]:
        """The names of what is asked for and must look at one photo at a time."""
        asked = {"colour_jitter": any(self.colour_jitter), "rand_augment": self.rand_augment[0] > 0}
        return tuple(name for name, wanted in asked.items() if wanted)


MOVES = ("flip", "shift", "jitter", "rotation", "scale", "shear", "crop")
"""The options that resample an image."""

PRESETS = {
    "cifar": Augmentation(flip=True, shift=4, fill="reflection"),
    "poster": Augmentation(flip=True, crop=(0.8, 1.0)),
    "imagenette-writeup": Augmentation(flip=True, crop=(0.6, 1.0), colour_jitter=(0.4, 0.4, 0.4, 0.1)),
    "imagenet": Augmentation(flip=True, crop=(0.08, 1.0), rand_augment=(2, 9)),
}
"""Augmentations by name: `augmentation = "poster"` in a recipe. Those of the write-ups, and two more."""


def augment(images: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Change each image of a batch at random, on its own.

    Args:
        images: (B, C, H, W), uint8 or float, on any device.
        augmentation: how far.
        generator: the source of randomness, on the images' device.

    Returns:
        (B, C, H, W) floats in the range of the input.
    """
    images = images.float()
    if augmentation.moves:
        where_from = _random_affine(images, augmentation, generator)  # (B, 2, 3)
        grid = F.affine_grid(where_from, list(images.shape), align_corners=False)  # (B, H, W, 2)
        images = F.grid_sample(images, grid, padding_mode=augmentation.fill, align_corners=False)
    if augmentation.erase:
        images = _erase(images, augmentation.erase, generator)
    return images


def blend(images: Tensor, labels: Tensor, augmentation: Augmentation, classes: int) -> tuple[Tensor, Tensor]:
    """Apply mixup or cutmix to a batch; the random numbers are torch's global ones.

    Args:
        images: (B, C, H, W) floats.
        labels: (B,) class numbers.
        augmentation: `mixup` and `cutmix` are looked at.
        classes: the number of classes K.

    Returns:
        Images of the same shape, and what to learn: shares (B, K), or the labels if nothing was blended.
    """
    if not augmentation.mixup and not augmentation.cutmix:
        return images, labels
    from torchvision.transforms import v2  # imported here: it takes seconds

    kinds = [v2.MixUp(alpha=augmentation.mixup, num_classes=classes)] if augmentation.mixup else []
    kinds += [v2.CutMix(alpha=augmentation.cutmix, num_classes=classes)] if augmentation.cutmix else []
    chosen = kinds[int(torch.randint(len(kinds), ()))]
    return chosen(images, labels)


def _erase(images: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Set a square of each image, centred anywhere in it, to the middle grey of bytes."""
    batch, _, height, width = images.shape
    inside = []
    for size in (height, width):
        centre = torch.rand(batch, 1, generator=generator, device=images.device) * size
        place = torch.arange(size, device=images.device) + 0.5
        inside.append((place - centre).abs() <= share * size / 2)  # (B, size)
    square = inside[0][:, :, None] & inside[1][:, None, :]  # (B, H, W)
    return images.masked_fill(square[:, None], 127.5)


def _random_affine(images: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Draw, for each image, the affine map from a pixel of the result to where it comes from, (B, 2, 3).

    It is put together in pixels and then rescaled, since `affine_grid` counts from -1 to 1 across an image.
    """
    batch, _, height, width = images.shape
    device = images.device

    def uniform(most: float) -> Tensor:  # (B,) in [-most, most)
        return (torch.rand(batch, generator=generator, device=device) * 2 - 1) * most

    def move() -> Tensor:  # (B,) in pixels
        whole = torch.randint(2 * augmentation.shift + 1, (batch,), generator=generator, device=device)
        return whole - augmentation.shift + uniform(augmentation.jitter)

    angle = uniform(math.radians(augmentation.rotation))
    zoom = 1 / (1 + uniform(augmentation.scale))
    slant = uniform(augmentation.shear)
    mirror = torch.where(uniform(1.0) < 0, -1.0, 1.0) if augmentation.flip else torch.ones_like(angle)
    cos, sin = zoom * torch.cos(angle), zoom * torch.sin(angle)
    # Rows: the column that a pixel comes from, then its row; columns: per pixel across, per pixel down, move.
    across = torch.stack(
        [mirror * cos, mirror * (slant * zoom - sin) * height / width, move() * 2 / width], 1
    )
    down = torch.stack([sin * width / height, cos, move() * 2 / height], 1)
    if augmentation.crop != (1.0, 1.0):
        across, down = (
            _within(rows, sides, generator)
            for rows, sides in zip(
                (across, down), _crop_sides(batch, augmentation, generator, device), strict=True
            )
        )
    return torch.stack([across, down], dim=1)


def _crop_sides(
    batch: int, augmentation: Augmentation, generator: torch.Generator, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Draw width and height of a rectangle for each image, as shares of the image's, (B,) each."""
    low, high = augmentation.crop
    area = low + (high - low) * torch.rand(batch, generator=generator, device=device)
    ratio = torch.exp(math.log(4 / 3) * (2 * torch.rand(batch, generator=generator, device=device) - 1))
    return (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)


def _within(row: Tensor, side: Tensor, generator: torch.Generator) -> Tensor:
    """Let one row of the map (B, 3) read from a random stretch of this share of the image, (B,)."""
    start = (2 * torch.rand(len(side), generator=generator, device=side.device) - 1) * (1 - side)
    return torch.cat([row[:, :2] * side[:, None], (row[:, 2] + start)[:, None]], dim=1)
