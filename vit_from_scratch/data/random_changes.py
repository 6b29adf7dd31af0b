"""Random changes to whole batches of training images, on whatever device they are, in a single resampling.

What must look at one photo at a time (RandAugment, changes of hue) is done as photos are streamed.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.sharing import WHOLE, Share

CROP_TRIES, CROP_RATIO = 10, 4 / 3
"""How many times, at most, a crop is drawn until it fits, and the largest ratio of its sides."""


def augment(
    images: Tensor,
    augmentation: Augmentation,
    generator: torch.Generator,
    share: Share = WHOLE,
    batch: int | None = None,
) -> Tensor:
    """Change each image of a batch at random, on its own: (B, C, H, W) floats from 0 to 255 come back.

    Args:
        images: (B, C, H, W), uint8, or floats from 0 to 255; on any device.
        augmentation: how far.
        generator: the source of randomness, on the images' device.
        share: the part of a larger batch that these images are; they change as they would in the whole of it.
        batch: the number of images of that batch; None for these.
    """
    images, whole = images.float(), batch or len(images)
    if augmentation.moves:
        where_from = share.of(_random_affine(images, augmentation, generator, whole))  # (B, 2, 3)
        grid = F.affine_grid(where_from, list(images.shape), align_corners=False)  # (B, H, W, 2)
        images = F.grid_sample(images, grid, padding_mode=augmentation.fill, align_corners=False)

    def draw(*ones: int) -> Tensor:  # (B, 1, ...) in [0, 1): this share of what the whole batch gets
        return share.of(torch.rand(whole, *ones, generator=generator, device=images.device))

    if any(augmentation.colour_jitter):
        images = _recolour(images, augmentation.colour_jitter, draw)
    if augmentation.erase:
        images = _erase(images, augmentation.erase, draw)
    return images


def blend(images: Tensor, labels: Tensor, augmentation: Augmentation, classes: int) -> tuple[Tensor, Tensor]:
    """Apply mixup or cutmix to images (B, C, H, W) with labels (B,) of K classes.

    Returns images and targets: shares (B, K), or the labels if nothing was blended. The random
    numbers are torch's global ones.
    """
    alphas = {"MixUp": augmentation.mixup, "CutMix": augmentation.cutmix}
    kinds, chance = [name for name, alpha in alphas.items() if alpha], augmentation.mix_probability
    if not kinds or (chance < 1 and torch.rand(()) >= chance):
        return images, labels
    from torchvision.transforms import v2  # imported here: it takes seconds

    kind = kinds[int(torch.randint(len(kinds), ()))]
    return getattr(v2, kind)(alpha=alphas[kind], num_classes=classes)(images, labels)


def _recolour(images: Tensor, most: Sequence[float], draw: Callable[..., Tensor]) -> Tensor:
    """Multiply brightness, contrast and saturation of each image by factors of its own, in this order.

    Each is drawn from 1 - most to 1 + most, the first at least 0, as in torchvision's ColorJitter. Contrast
    is about the mean grey of an image, saturation about the grey of each pixel.
    """
    for place, amount in enumerate(most[:3]):
        grey = images[:, :1]  # (B, 1, H, W)
        if images.shape[1] == 3:
            grey = 0.299 * grey + 0.587 * images[:, 1:2] + 0.114 * images[:, 2:]
        about = (0.0, grey.mean((2, 3), keepdim=True), grey)[place]
        drawn = draw(1, 1, 1)
        factor = max(0.0, 1 - amount) * (1 - drawn) + (1 + amount) * drawn  # (B, 1, 1, 1)
        images = (about + factor * (images - about)).clamp(0, 255)
    return images


def _erase(images: Tensor, size: float, draw: Callable[..., Tensor]) -> Tensor:
    """Set a square of each image, centred anywhere in it, to the middle grey of bytes."""
    inside = []
    for side in images.shape[2:]:
        place = torch.arange(side, device=images.device) + 0.5
        inside.append((place - draw(1) * side).abs() <= size * side / 2)  # (B, side)
    square = inside[0][:, :, None] & inside[1][:, None, :]  # (B, H, W)
    return images.masked_fill(square[:, None], 127.5)


def _random_affine(
    images: Tensor, augmentation: Augmentation, generator: torch.Generator, batch: int
) -> Tensor:
    """Draw, for each image, the affine map from a pixel of the result to where it comes from, (B, 2, 3).

    It is put together in pixels and then rescaled, since `affine_grid` counts from -1 to 1 across an image.
    """
    (height, width), device = images.shape[-2:], images.device

    def uniform(most: float) -> Tensor:  # (B,) in [-most, most)
        return (torch.rand(batch, generator=generator, device=device) * 2 - 1) * most

    def move(side: int) -> Tensor:  # (B,)
        whole = torch.randint(2 * augmentation.shift + 1, (batch,), generator=generator, device=device)
        return (whole - augmentation.shift + uniform(augmentation.jitter)) * 2 / side

    angle = uniform(math.radians(augmentation.rotation))
    zoom = 1 / (1 + uniform(augmentation.scale))
    slant = uniform(augmentation.shear)
    mirror = torch.where(uniform(1.0) < 0, -1.0, 1.0) if augmentation.flip else torch.ones_like(angle)
    cos, sin = zoom * torch.cos(angle), zoom * torch.sin(angle)
    # Rows: the column that a pixel comes from, then its row; columns: per pixel across, per pixel down, move.
    # A pixel's place is sheared, then turned, then mirrored.
    across = torch.stack([mirror * cos, mirror * (slant * cos - sin) * height / width, move(width)], 1)
    down = torch.stack([sin * width / height, slant * sin + cos, move(height)], 1)
    if augmentation.crop != (1.0, 1.0):
        *sides, free = _crop_sides(batch, width / height, augmentation.crop, generator, device)
        for row, side in zip((across, down), sides, strict=True):  # read from a part of the side alone
            start = uniform(1.0) * (1 - side) * free
            row[:, :2] *= side[:, None]
            row[:, 2] += start
    return torch.stack([across, down], dim=1)


def _crop_sides(
    batch: int, shape: float, areas: tuple[float, float], generator: torch.Generator, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw a rectangle for each image, as torchvision's RandomResizedCrop does: its area between two shares.

    The first of `CROP_TRIES` draws that fits into the image, whose `shape` is its width over its height, is
    taken. Where none fits it is the largest rectangle in the middle whose sides have an allowed ratio.
    Returns widths and heights as shares, and whether the rectangle may be anywhere, (B,) each.
    """
    draws = [torch.rand(CROP_TRIES, batch, generator=generator, device=device) for _ in range(2)]
    (low, high), limit = areas, math.log(CROP_RATIO)
    area = low + (high - low) * draws[0]  # (CROP_TRIES, B)
    ratio = torch.exp(-limit + 2 * limit * draws[1]) / shape  # of the shares
    widths, heights = (area * ratio).sqrt(), (area / ratio).sqrt()
    fits = (widths <= 1) & (heights <= 1)
    first, some = fits.int().argmax(dim=0, keepdim=True), fits.any(dim=0)  # (1, B), (B,)
    width = torch.where(some, widths.gather(0, first)[0], min(1.0, CROP_RATIO / shape))
    return width, torch.where(some, heights.gather(0, first)[0], min(1.0, CROP_RATIO * shape)), some
