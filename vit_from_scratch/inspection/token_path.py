"""Chapter 13: what becomes of the patches on their way through the layers, as colours."""

import torch
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_tensor
from vit_from_scratch.inspection.embedding_filters import principal_components
from vit_from_scratch.inspection.inputs import in_float64
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.model.vit import VisionTransformer


@torch.no_grad()
def layer_tokens(model: VisionTransformer, images: Tensor) -> list[Tensor]:
    """Return the patch tokens of images (B, C, H, W) before the first layer and after each one.

    Returns:
        L + 1 tensors (B, gh, gw, D), without the class token.

    Raises:
        InputError: images that the model does not take.
    """
    model.check_images(images)
    with evaluating(model):
        path = [model.tokens(model.patch_embedding(images))]
        for block in model.encoder.blocks:
            path.append(block(path[-1])[0])
    first = int(model.config.class_token)
    return [tokens[:, first:].unflatten(1, model.grid) for tokens in path]


def token_colours(tokens: Tensor) -> Tensor:
    """Turn tokens into colours: their first three principal components as red, green and blue.

    Tokens that are alike get like colours. The components are those of all the images together, so colours
    can be compared between images of one call, not between layers.

    Args:
        tokens: (B, gh, gw, D) with D of at least 3.

    Returns:
        (B, gh, gw, 3) from 0 to 1. The sign of each component is fixed as in `embedding_filter_components`.

    Raises:
        InputError: no tokens of that shape, fewer than 3 values or tokens, or values that are not finite.
    """
    require_tensor(tokens, "tokens", "(B, gh, gw, D)")
    if tokens.ndim < 2 or min(tokens.shape[:-1].numel(), tokens.shape[-1]) < 3:
        raise InputError(f"tokens of shape {tuple(tokens.shape)}: expected at least 3 tokens of 3 values.")
    vectors = in_float64(tokens.detach()).flatten(0, -2)  # (B gh gw, D)
    scores = principal_components(vectors, "tokens")[1][:, :3]  # (B gh gw, 3)
    low, high = scores.quantile(0.01, dim=0), scores.quantile(0.99, dim=0)
    colours = ((scores - low) / (high - low).clamp(min=1e-12)).clamp(0, 1)
    return colours.reshape(*tokens.shape[:-1], 3)
