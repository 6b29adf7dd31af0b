"""The running examples of the book: a few photos, and one image small enough to print."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from skimage import data
from torch import Tensor

from vit_from_scratch.errors import InputError, unknown_name

PHOTOS: Mapping[str, tuple[Callable[[], Any], tuple[int, int], int]] = {
    "cat": (data.chelsea, (0, 75), 300),
    "coffee": (data.coffee, (0, 100), 400),
    "rocket": (data.rocket, (0, 106), 427),
}
"""Where each photo comes from, and the square that is cut out of it: its top left corner, and its side."""


def photo(size: int = 224, name: str = "cat", corner: tuple[int, int] | None = None) -> Tensor:
    """A photo that comes inside scikit-image, so no download: the cat of every chapter, or another.

    "cat" is "Chelsea" by Stéfan van der Walt, "coffee" an espresso cup by Rachel Michetti, "rocket" a Falcon
    9 by SpaceX; all three are in the public domain (CC0).

    Args:
        size: side of the square result in pixels.
        name: one of `PHOTOS`.
        corner: row and column of the photo's pixel at which its square begins, if not in the middle.

    Returns:
        (1, 3, size, size) floats in [0, 1].

    Raises:
        InputError: no such photo, a square that leaves it, or no pixels.
    """
    if size < 1:
        raise InputError(f"size = {size}: expected a side in pixels, at least 1.")
    if name not in PHOTOS:
        raise unknown_name("photo", name, list(PHOTOS))
    opened, middle, side = PHOTOS[name]
    pixels = torch.from_numpy(opened()).permute(2, 0, 1)[None].float() / 255  # (1, 3, H, W)
    row, column = middle if corner is None else corner
    rows, columns = pixels.shape[-2:]
    if not (0 <= row <= rows - side and 0 <= column <= columns - side):
        raise InputError(
            f"corner = {corner}: expected a row from 0 to {rows - side} and a column from 0 to "
            f"{columns - side}, so that {side} x {side} pixels of {name!r} are left."
        )
    square = pixels[..., row : row + side, column : column + side]
    resized = F.interpolate(square, size=(size, size), mode="bilinear", antialias=True, align_corners=False)
    return resized.clamp(0, 1)


def tiny_image() -> Tensor:
    """A grey 4 x 4 image whose values count from 0 to 15, so that every move can be followed by eye.

    Returns:
        (1, 1, 4, 4) floats.
    """
    return torch.arange(16.0).reshape(1, 1, 4, 4)
