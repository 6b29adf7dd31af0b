"""Chapter 13: is attention an explanation? Hide the patches that it points at, and see."""

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_tensor
from vit_from_scratch.inspection.attention_maps import (
    attention_rollout,
    layer_attention,
    mean_head,
    rollout_maps,
)
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.settings import require


def rollout_scores(model: VisionTransformer, images: Tensor) -> Tensor:
    """Score each patch by the attention rollout of what the head reads, (B, gh, gw)."""
    rollout = attention_rollout(layer_attention(model, images, mean_head))
    return rollout_maps(rollout, model.grid, model.config.pool)


def gradient_scores(model: VisionTransformer, images: Tensor) -> Tensor:
    """Score each patch by how far the winning logit falls when it is blanked, to first order, (B, gh, gw).

    The score sums, over the patch, the gradient times (the pixel less the image's mean). A patch that speaks
    against the answer has a score below 0.
    """
    require_tensor(images, "images", "(B, C, H, W)")
    with evaluating(model), torch.enable_grad():
        pixels = images.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(model(pixels).amax(dim=1).sum(), pixels)  # (B, C, H, W)
    centred = images - images.mean(dim=(2, 3), keepdim=True)
    return _patch_sums(gradient * centred, model.config.patch_size)


def contrast_scores(images: Tensor, patch_size: int) -> Tensor:
    """Score each patch by how far its pixels are from the image's mean colour, (B, gh, gw).

    No model is asked: the score says how much of the image blanking takes away.
    """
    require_tensor(images, "images", "(B, C, H, W)")
    return _patch_sums((images - images.mean(dim=(2, 3), keepdim=True)).abs(), patch_size)


def _patch_sums(values: Tensor, patch_size: int) -> Tensor:
    """Sum values (B, C, H, W) over channels and the pixels of each patch, (B, gh, gw)."""
    return F.avg_pool2d(values.sum(dim=1, keepdim=True), patch_size)[:, 0] * patch_size**2


def mask_patches(images: Tensor, scores: Tensor, count: int, patch_size: int) -> Tensor:
    """Blank the highest-scored patches of each image with the image's own mean colour.

    In each of the images (B, C, H, W) `count` patches, 0 to gh gw, are blanked, by scores (B, gh, gw).

    Raises:
        InputError: scores that are not one per patch, or a `count` out of that range.
    """
    require_tensor(images, "images", "(B, C, H, W)")
    require_tensor(scores, "scores", "(B, gh, gw)")
    fits = images.ndim == 4 and scores.ndim == 3 and len(images) == len(scores)
    if not fits or tuple(images.shape[2:]) != tuple(patch_size * n for n in scores.shape[1:]):
        raise InputError(
            f"images of shape {tuple(images.shape)} and scores of shape {tuple(scores.shape)}: expected a "
            f"score for each patch of {patch_size} x {patch_size} pixels, (B, gh, gw)."
        )
    flat = scores.flatten(1)
    require(0 <= count <= flat.shape[1], "count", count, f"0 to {flat.shape[1]}, the patches of an image")
    hidden = torch.zeros_like(flat, dtype=torch.bool).scatter(1, flat.topk(count, dim=1).indices, True)
    pixels = hidden.view_as(scores).repeat_interleave(patch_size, 1).repeat_interleave(patch_size, 2)
    return torch.where(pixels[:, None], images.mean(dim=(2, 3), keepdim=True), images)
