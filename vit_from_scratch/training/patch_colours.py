"""The mean colour of a patch, in 3 bits a channel: what masked patch prediction asks for (appendix B.1.2)."""

import torch
import torch.nn.functional as F
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


def neighbour_colours(means: Tensor, visible: Tensor, grid: tuple[int, int]) -> Tensor:
    """Guess each patch's mean colour by the visible ones around it: what a model has to beat.

    Args:
        means: (B, N, 3), the mean colours.
        visible: (B, N), true where a patch may be looked at; a patch is never its own neighbour.
        grid: rows and columns (gh, gw) of the patches, N = gh gw.

    Returns:
        (B, N, 3), the mean over the visible patches among the eight around it; over all visible patches of
        the image where there is none, and mid-grey where the image has none.

    Raises:
        InputError: shapes that do not fit together.
    """
    if means.ndim != 3 or means.shape[1] != grid[0] * grid[1] or visible.shape != means.shape[:2]:
        raise InputError(
            f"means of shape {tuple(means.shape)}, visible of shape "
            f"{tuple(visible.shape)} and a grid of {grid}: "
            "expected (B, N, 3), (B, N) and N = gh gw; pass those of the same images."
        )
    weight = visible.to(means.dtype)[..., None]  # (B, N, 1)
    both = torch.cat([means * weight, weight], dim=-1)  # (B, N, 4)
    squares = F.pad(rearrange(both, "b (i j) c -> b c i j", i=grid[0]), (1, 1, 1, 1))
    around = rearrange(9 * F.avg_pool2d(squares, 3, stride=1), "b c i j -> b (i j) c") - both
    everywhere = both.sum(dim=1, keepdim=True)  # (B, 1, 4)
    grey = torch.tensor([128.0, 128.0, 128.0, 1.0], dtype=means.dtype, device=means.device)
    everywhere = torch.where(everywhere[..., 3:] > 0, everywhere, grey)
    chosen = torch.where(around[..., 3:] > 0.5, around, everywhere)
    return chosen[..., :3] / chosen[..., 3:]
