"""The mean colour of a patch, in 3 bits a channel: what masked patch prediction asks for (appendix B.1.2)."""

import torch
from einops import rearrange
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import holds, require_tensor
from vit_from_scratch.model.patches import patchify

LEVELS = 8
"""Bins of a colour channel: 3 bits."""

COLOURS = LEVELS**3
"""Colours to choose from, 512."""

BIN = 256 / LEVELS
"""The width of a bin, in the levels of bytes."""


def mean_colours(images: Tensor, patch_size: int) -> Tensor:
    """Average each channel over each patch.

    Args:
        images: (B, 3, H, W), bytes or floats.
        patch_size: side P of a patch in pixels.

    Returns:
        (B, N, 3) floats in the images' range.

    Raises:
        InputError: images without three channels, or that P does not divide.
    """
    require_tensor(images, "images", "(B, 3, H, W)")
    if images.ndim == 4 and images.shape[1] != 3:
        raise InputError(
            f"images of shape {tuple(images.shape)}: expected (B, 3, H, W), red, green and blue; "
            "a mean colour needs colours."
        )
    patches = patchify(images.float(), patch_size)  # (B, N, P^2 3)
    return rearrange(patches, "b n (p c) -> b n p c", c=3).mean(dim=2)


def colour_targets(images: Tensor, patch_size: int) -> Tensor:
    """Number the mean colour of each patch: eight equal bins a channel, 64 r + 8 g + b.

    Args:
        images: (B, 3, H, W), bytes or floats from 0 to 255.
        patch_size: side P of a patch in pixels.

    Returns:
        (B, N) int64, 0 to 511.

    Raises:
        InputError: images of another shape or another range.
    """
    means = mean_colours(images, patch_size)
    if means.numel() and not holds((images.min() >= 0) & (images.max() <= 255)):
        raise InputError(
            f"images from {images.min().item():.4g} to {images.max().item():.4g}: expected the range of "
            "bytes, 0 to 255; undo the normalisation first."
        )
    return colour_numbers(means)


def colour_numbers(means: Tensor) -> Tensor:
    """Number mean colours (B, N, 3) from 0 to 255 by their bins, (B, N)."""
    red, green, blue = means.div(BIN).long().clamp(max=LEVELS - 1).unbind(-1)
    return LEVELS**2 * red + LEVELS * green + blue


def target_colours(targets: Tensor) -> Tensor:
    """Return the colour in the middle of each numbered bin, for drawing: the way back from `colour_targets`.

    Args:
        targets: whole numbers from 0 to 511, of any shape.

    Returns:
        (..., 3) floats from 16 to 240.

    Raises:
        InputError: other numbers.
    """
    require_tensor(targets, "targets", "(B, N)")
    whole = not targets.is_floating_point()
    if not whole or (targets.numel() and not holds((targets.min() >= 0) & (targets.max() < COLOURS))):
        raise InputError(
            f"targets of type {targets.dtype}, not all from 0 to {COLOURS - 1}: expected whole numbers in "
            "that range, as colour_targets gives them."
        )
    bins = torch.stack([targets // LEVELS**2, targets // LEVELS % LEVELS, targets % LEVELS], dim=-1)
    return BIN * (bins + 0.5)
