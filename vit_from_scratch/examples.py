"""The running example of the book: one photo, and one image small enough to print."""

import torch
import torch.nn.functional as F
from skimage import data
from torch import Tensor


def photo(size: int = 224) -> Tensor:
    """The cat of every chapter: a photo that comes inside scikit-image, so no download.

    "Chelsea", photographed by Stéfan van der Walt, in the public domain (CC0).

    Args:
        size: side of the square result in pixels.

    Returns:
        (1, 3, size, size) floats in [0, 1].
    """
    pixels = torch.from_numpy(data.chelsea()).permute(2, 0, 1)[None].float() / 255  # (1, 3, 300, 451)
    square = pixels[..., 75:375]  # the cat's face is in the middle
    resized = F.interpolate(square, size=(size, size), mode="bilinear", antialias=True, align_corners=False)
    return resized.clamp(0, 1)


def tiny_image() -> Tensor:
    """A grey 4 x 4 image whose values count from 0 to 15, so that every move can be followed by eye.

    Returns:
        (1, 1, 4, 4) floats.
    """
    return torch.arange(16.0).reshape(1, 1, 4, 4)
