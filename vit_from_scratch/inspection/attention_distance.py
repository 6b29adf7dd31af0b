"""Chapter 14: how far each head reaches, in pixels, layer by layer (Figure 7 right, appendix D.7)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from vit_from_scratch.inspection.attention_maps import layer_attention
from vit_from_scratch.inspection.inputs import check_attentions, in_float64
from vit_from_scratch.model.tokens import count_class_tokens
from vit_from_scratch.model.vit import VisionTransformer


def patch_distances(grid: tuple[int, int], patch_size: int) -> Tensor:
    """Return the distance between the centres of all pairs of patches, in pixels, (N, N) float64."""
    places = torch.cartesian_prod(*(torch.arange(n, dtype=torch.float64) for n in grid)).reshape(-1, 2)
    return torch.cdist(places, places, compute_mode="donot_use_mm_for_euclid_dist") * patch_size


def mean_attention_distance(
    attentions: Tensor | Sequence[Tensor], grid: tuple[int, int], patch_size: int
) -> Tensor:
    """Average, over the query patches, the distance that their attention reaches.

    A patch's distance is the mean of the distances to all patches, weighted by its attention. The class
    token has no place in the image: it is left out, and the weights of the patches are scaled to sum to 1.

    Args:
        attentions: (B, h, T, T) of one layer, or L of them, in a list or as (L, B, h, T, T).
        grid: rows and columns (gh, gw) of the patch grid; T = gh gw, or one more with a class token.
        patch_size: side P of a patch in pixels.

    Returns:
        Pixels, float64: (B, h) for one layer, (L, B, h) for several.

    Raises:
        InputError: what is not attention, layers of different shapes, or another sequence than the grid's.
    """
    if not isinstance(attentions, Tensor) or attentions.ndim == 5:
        layers = check_attentions(attentions, same_heads=True)
        return torch.stack([mean_attention_distance(one, grid, patch_size) for one in layers])
    (attention,) = check_attentions([attentions])
    extra = count_class_tokens(attention.shape[-1], grid)
    weights = in_float64(attention[..., extra:, extra:])  # (B, h, N, N)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    distances = patch_distances(grid, patch_size).to(weights.device)
    return (weights * distances).sum(dim=-1).mean(dim=-1)


def attention_distances(model: VisionTransformer, images: Tensor) -> Tensor:
    """Measure a model's mean attention distances, (L, B, h), in pixels of the images (B, C, H, W).

    One layer's weights are in memory at a time.

    Raises:
        InputError: images that the model does not take.
    """
    grid, size = model.grid, model.config.patch_size
    return torch.stack(layer_attention(model, images, lambda one: mean_attention_distance(one, grid, size)))
