"""Chapter 12: is attention an explanation? Hide the patches that it points at, and see."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inspection.attention_maps import attention_rollout, layer_attention, rollout_maps
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.model.vit import VisionTransformer


def attention_scores(model: VisionTransformer, images: Tensor) -> Tensor:
    """Score each patch by the attention rollout of what the head reads, (B, gh, gw)."""
    return rollout_maps(attention_rollout(layer_attention(model, images)), model.config.grid)


def gradient_scores(model: VisionTransformer, images: Tensor) -> Tensor:
    """Score each patch by how strongly the winning logit changes with its pixels, (B, gh, gw).

    The score sums, over the patch, the size of the gradient times (the pixel less the image's mean): to first
    order, what blanking the patch would change.
    """
    with evaluating(model), torch.enable_grad():
        pixels = images.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(model(pixels).amax(dim=1).sum(), pixels)  # (B, C, H, W)
    centred = images - images.mean(dim=(2, 3), keepdim=True)
    change = (gradient * centred).abs().sum(dim=1)  # (B, H, W)
    size = model.config.patch_size
    return torch.nn.functional.avg_pool2d(change[:, None], size)[:, 0] * size**2


def random_scores(images: Tensor, grid: tuple[int, int], generator: torch.Generator) -> Tensor:
    """Score patches at random, (B, gh, gw): what the other scores have to beat."""
    return torch.rand(len(images), *grid, generator=generator).to(images.device)


def mask_patches(images: Tensor, scores: Tensor, count: int, patch_size: int) -> Tensor:
    """Blank the highest-scored patches of each image with the image's own mean colour.

    Args:
        images: (B, C, H, W).
        scores: (B, gh, gw).
        count: patches to blank in each image, 0 to gh gw.
        patch_size: side P of a patch in pixels.

    Returns:
        (B, C, H, W).

    Raises:
        InputError: a number of patches that there are not.
    """
    flat = scores.flatten(1)
    if not 0 <= count <= flat.shape[1]:
        raise InputError(f"count = {count}: expected 0 to {flat.shape[1]}, the patches of an image.")
    hidden = torch.zeros_like(flat, dtype=torch.bool).scatter(1, flat.topk(count, dim=1).indices, True)
    pixels = hidden.view_as(scores).repeat_interleave(patch_size, 1).repeat_interleave(patch_size, 2)
    return torch.where(pixels[:, None], images.mean(dim=(2, 3), keepdim=True), images)


@torch.no_grad()
def masked_accuracy(
    model: VisionTransformer,
    images: Tensor,
    labels: Tensor,
    score: Callable[[Tensor], Tensor],
    counts: Sequence[int],
    batch_size: int = 250,
) -> Tensor:
    """Measure accuracy while more and more of the highest-scored patches are hidden.

    Args:
        model: any of ours; it is left in the mode that it came in.
        images: (N, C, H, W) floats, as the model takes them.
        labels: (N,) class numbers.
        score: from images (B, C, H, W) to a score for each patch (B, gh, gw).
        counts: how many patches to hide, one measurement each.
        batch_size: images at a time.

    Returns:
        (len(counts),) accuracies, 0 to 1.
    """
    hits = torch.zeros(len(counts))
    with evaluating(model):
        for some, target in zip(images.split(batch_size), labels.split(batch_size), strict=True):
            scores = score(some)
            for place, count in enumerate(counts):
                logits = model(mask_patches(some, scores, count, model.config.patch_size))
                hits[place] += (logits.argmax(dim=1) == target).sum().cpu()
    return hits / len(images)
