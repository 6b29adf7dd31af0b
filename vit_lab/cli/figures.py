"""The figures that `vit inspect` and `vit predict --attention` write."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vit_from_scratch.files import write_atomically, writing

if TYPE_CHECKING:  # imported where they are needed: PyTorch and matplotlib take seconds
    from torch import Tensor

    from vit_from_scratch.data.normalisation import Normalisation
    from vit_from_scratch.model.vit import VisionTransformer

FIGURES = (
    "rollout.png",
    "class_token_attention.png",
    "attention_distance.png",
    "token_path.png",
    "position_similarity.png",
    "embedding_filters.png",
    "where_patches_look.html",
)
"""The files that `vit inspect` writes, but for those that a model has no use for or is too large for."""
LARGEST_PAGE = 2**24
"""Attention weights in a page to play with; a byte holds two of them."""


def save_attention(model: "VisionTransformer", scaling: "Normalisation", photo: "Tensor", path: Path) -> Path:
    """Save a photo (3, H, W) darkened where the attention rollout is low; return where."""
    import matplotlib.pyplot as plt

    from vit_from_scratch import plots
    from vit_from_scratch.inspection import attention_rollout, layer_attention, rollout_maps

    plots.use_style()
    rollout = attention_rollout(layer_attention(model, scaling(255 * photo[None])))
    _, axes = plt.subplots(1, 2, figsize=(6, 3.2))
    plots.image(photo, axes[0], "picture")
    plots.attention_overlay(photo, rollout_maps(rollout, model.config.grid)[0], axes[1], "attention rollout")
    _save(path)
    return path


def save_figures(
    model: "VisionTransformer", scaling: "Normalisation", photo: "Tensor", folder: Path
) -> Iterator[str]:
    """Write the figures for a photo (3, H, W) in [0, 1]; yield the name of each file, some of `FIGURES`."""
    from vit_from_scratch import plots
    from vit_from_scratch.inspection import (
        attention_distances,
        class_token_maps,
        embedding_filter_components,
        layer_attention,
        layer_tokens,
        position_similarity,
        token_colours,
    )
    from vit_from_scratch.model.patches import PatchEmbedding

    config = model.config
    images = scaling(255 * photo[None])
    attentions = layer_attention(model, images)
    layers = [f"layer {number}" for number in range(1, config.depth + 1)]
    heads = [f"head {number}" for number in range(1, config.heads + 1)]
    yield save_attention(model, scaling, photo, folder / "rollout.png").name
    if sum(weights.numel() for weights in attentions) <= LARGEST_PAGE:
        explorer = plots.AttentionExplorer(photo, attentions, config.grid)
        yield _write(folder / "where_patches_look.html", explorer.page("Where patches look").encode())
    if config.class_token:
        plots.attention_grid(class_token_maps(attentions, config.grid)[:, 0], layers, heads)
        yield _save(folder / "class_token_attention.png")
    plots.attention_distance(attention_distances(model, images)[:, 0])
    yield _save(folder / "attention_distance.png")
    path = layer_tokens(model, images)
    if min(path[0].shape[-1], config.num_patches) >= 3:
        plots.colour_maps([token_colours(tokens)[0] for tokens in path], ["patches", *layers])
        yield _save(folder / "token_path.png")
    position = model.tokens.position_embedding()
    if position is not None:
        plots.position_similarity(position_similarity(position, config.grid))
        yield _save(folder / "position_similarity.png")
    if isinstance(model.patch_embedding, PatchEmbedding) and config.channels in (1, 3):
        found = embedding_filter_components(model.patch_embedding.as_convolution_weight())
        count = min(28, len(found.components))
        shares = [f"{share:.1%}" for share in found.variance_share[:count].tolist()]
        plots.filters(found.components[:count], titles=shares)
        yield _save(folder / "embedding_filters.png")


def _save(path: Path) -> str:
    """Save the current figure, whole or not at all, on white, whatever the theme, and close it; name it."""
    import matplotlib.pyplot as plt

    drawn = io.BytesIO()
    plt.savefig(drawn, dpi=150, facecolor="white")
    plt.close()
    return _write(path, drawn.getvalue())


def _write(path: Path, content: bytes) -> str:
    """Write a file, whole or not at all; name it."""
    with writing(path):
        write_atomically(path, content)
    return path.name
