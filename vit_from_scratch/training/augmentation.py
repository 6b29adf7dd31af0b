"""Random changes to whole batches of training images, on whatever device they lie.

One image at a time in Python would leave a small model waiting. Here a batch gets a random flip, shift,
rotation and scale for each image in a single resampling, and every random number comes from the
generator that is handed in.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

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
    fill: Literal["zeros", "reflection"] = "zeros"

    def __post_init__(self) -> None:
        """Refuse amounts that make no sense."""
        check_fields(self, "train.augmentation")
        for name in ("shift", "jitter", "shear"):
            require(getattr(self, name) >= 0, f"train.augmentation.{name}", getattr(self, name), "0 or more")
        require(0 <= self.rotation <= 180, "train.augmentation.rotation", self.rotation, "0 to 180 degrees")
        require(0 <= self.scale < 1, "train.augmentation.scale", self.scale, "0 or more, below 1")

    @property
    def changes_nothing(self) -> bool:
        """True when every amount is zero."""
        return self == Augmentation(fill=self.fill)


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
    if augmentation.changes_nothing:
        return images
    where_from = _random_affine(images, augmentation, generator)  # (B, 2, 3)
    grid = F.affine_grid(where_from, list(images.shape), align_corners=False)  # (B, H, W, 2)
    return F.grid_sample(images, grid, padding_mode=augmentation.fill, align_corners=False)


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
    return torch.stack([across, down], dim=1)
