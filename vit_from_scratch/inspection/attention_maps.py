"""Chapter 13: which tokens look at which, layer by layer, and through all layers (Figure 6, appendix D.8)."""

import functools
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.inputs import holds, require_tensor
from vit_from_scratch.inspection.inputs import check_attentions
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.model.tokens import count_class_tokens
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.settings import require

POOLS = ("cls", "gap")
"""What the head reads, as in `ViTConfig`: the class token, or the mean of the patches."""


@torch.no_grad()
def layer_attention(
    model: VisionTransformer, images: Tensor, reduce: Callable[[Tensor], Tensor] | None = None
) -> list[Tensor]:
    """Return the attention weights of every layer, recomputed explicitly whatever path the model takes.

    Args:
        model: it is measured in evaluation mode and left in the mode that it came in.
        images: (B, C, H, W) floats, as the model takes them.
        reduce: applied to each layer's (B, h, T, T) before the next layer is computed. Only its results are
            kept then, so the memory stays that of one layer. Rollout needs only `mean_head`, below.

    Returns:
        L tensors (B, h, T, T); row i holds the weights of token i and sums to 1. With `reduce`, its results.

    Raises:
        InputError: images that the model does not take, or a model without layers.
    """
    model.check_images(images)
    require(model.config.depth > 0, "model.depth", model.config.depth, "at least one layer to look into")
    kept = []
    with evaluating(model):
        tokens = model.tokens(model.patch_embedding(images))  # (B, T, D)
        for block in model.encoder.blocks:
            tokens, weights = block(tokens, return_weights=True)
            require(weights is not None, "weights", None, "those of a block's attention, (B, h, T, T)")
            kept.append(weights if reduce is None else reduce(weights).clone())  # a view would keep all
    return kept


def attention_rollout(attentions: Tensor | Sequence[Tensor]) -> Tensor:
    """Follow attention through all layers: how much of each input token is in each output token.

    The heads of a layer are averaged, the identity is added for the skip connection, rows are normalised,
    and the layers are multiplied (Abnar and Zuidema, 2020). The paper names the first and the last of these
    (appendix D.8).

    Args:
        attentions: L tensors (B, h, T, T), as `layer_attention` returns them, or one (L, B, h, T, T).

    Returns:
        (B, T, T), in float32 or better; row i says where token i of the last layer comes from, and sums to 1.

    Raises:
        InputError: no layers, or layers of different images.
    """
    steps = []
    for weights in check_attentions(attentions):
        fused = mean_head(weights)[:, 0]  # (B, T, T)
        step = fused + torch.eye(fused.shape[-1], dtype=fused.dtype, device=fused.device)
        steps.append(step / step.sum(dim=-1, keepdim=True))
    return functools.reduce(lambda rollout, step: step @ rollout, steps)


def mean_head(weights: Tensor) -> Tensor:
    """Average the heads of (B, h, T, T), in float32 or better, to (B, 1, T, T)."""
    return weights.mean(dim=1, keepdim=True, dtype=torch.promote_types(weights.dtype, torch.float32))


def class_token_maps(attentions: Tensor | Sequence[Tensor], grid: tuple[int, int]) -> Tensor:
    """Return how much the class token looks at each patch.

    Args:
        attentions: L tensors (B, h, T, T) with the class token first, or one (L, B, h, T, T).
        grid: rows and columns (gh, gw) of the patch grid, gh gw = T - 1.

    Returns:
        (L, B, h, gh, gw). A map sums to 1 less what the class token gives itself.

    Raises:
        InputError: the sequence is not a class token and a grid.
    """
    layers = check_attentions(attentions, same_heads=True)
    rows, columns = grid
    if layers[0].shape[-1] != rows * columns + 1:
        raise InputError(
            f"{layers[0].shape[-1]} tokens: expected {rows * columns + 1}, the class token and a grid of "
            f"{rows} x {columns}; a model without class token has no such map (see rollout_maps)."
        )
    return torch.stack([weights[:, :, 0, 1:].unflatten(-1, grid) for weights in layers])


def rollout_maps(rollout: Tensor, grid: tuple[int, int], pool: str = "cls") -> Tensor:
    """Return how much of each patch is in what the head reads.

    Args:
        rollout: (B, T, T) of `attention_rollout`.
        grid: rows and columns (gh, gw) of the patch grid.
        pool: one of `POOLS`; without a class token it is the mean in any case.

    Returns:
        (B, gh, gw): the class token's row, or the mean over the patches' rows.

    Raises:
        InputError: what is not a rollout, or does not fill the grid, or an unknown pool.
    """
    require_tensor(rollout, "rollout", "(B, T, T)")
    if rollout.ndim != 3 or rollout.shape[1] != rollout.shape[2]:
        raise InputError(
            f"rollout of shape {tuple(rollout.shape)}: expected (B, T, T), as attention_rollout returns it."
        )
    if pool not in POOLS:
        raise unknown_name("pool", pool, POOLS)
    first = count_class_tokens(rollout.shape[-1], grid)
    by_patches = pool == "gap" or not first
    row = rollout[:, first:, first:].mean(dim=1) if by_patches else rollout[:, 0, 1:]
    return row.unflatten(-1, grid)


def object_share(maps: Tensor, mask: Tensor) -> Tensor:
    """Return the share of the attention that falls on an object; of uniform attention it is the mask's mean.

    Args:
        maps: (B, gh, gw), any scale of 0 or more, as `rollout_maps` returns them.
        mask: (B, H, W) from 0 (not the object) to 1 (the object), in whole patches.

    Returns:
        (B,) from 0 to 1; NaN for a map without any attention.

    Raises:
        InputError: maps and masks that do not fit, or a mask with other values.
    """
    for tensor, name, shape in ((maps, "maps", "(B, gh, gw)"), (mask, "mask", "(B, H, W)")):
        require_tensor(tensor, name, shape)
    fits = maps.ndim == mask.ndim == 3 and len(maps) == len(mask)
    if not fits or mask.shape[1] % maps.shape[1] or mask.shape[2] % maps.shape[2]:
        raise InputError(
            f"maps of shape {tuple(maps.shape)} and mask of shape {tuple(mask.shape)}: expected (B, gh, gw) "
            "and (B, H, W) with H and W in whole patches; resize the mask to the images of the model."
        )
    mask = mask.to(maps)
    if not holds((mask.min() >= 0) & (mask.max() <= 1)):
        raise InputError(
            f"mask with values from {mask.min():.3g} to {mask.max():.3g}: expected 0 (not the object) to 1 "
            "(the object); divide bytes by 255."
        )
    _, rows, columns = maps.shape
    covered = F.adaptive_avg_pool2d(mask[:, None], (rows, columns))[:, 0]  # (B, gh, gw)
    return (maps * covered).sum(dim=(1, 2)) / maps.sum(dim=(1, 2))
