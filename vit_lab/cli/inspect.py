"""`vit inspect`: figures of Part III for one picture."""

import argparse
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_from_scratch.files import write_atomically
from vit_from_scratch.paths import own_path
from vit_lab.bars import say, with_bar
from vit_lab.cli.options import add_command, refuse_existing, refuse_file, weights_help
from vit_lab.cli.streams import complain
from vit_lab.runs.trained_models import KNOWN, TrainedModel, open_model

if TYPE_CHECKING:
    from torch import Tensor

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


def add_parser(commands: Any) -> None:
    """Add `inspect` to the commands."""
    parser = add_command(
        commands,
        "inspect",
        run,
        help="draw what a model sees in a picture",
        description="Write figures into a folder: the class token's attention in every layer and head, "
        "rollout, attention distance, the tokens' path through the layers, position similarity and embedding "
        "filters; and a page that shows where the patch under the pointer looks. What a model has no parts "
        "for is left out, and so is the page of a very large one.",
    )
    parser.add_argument("image", type=Path, metavar="IMAGE")
    about = f"{weights_help(KNOWN)} (default: tiny-imagenet)"
    parser.add_argument("--weights", metavar="NAME", default="tiny-imagenet", help=about)
    parser.add_argument("--out", type=own_path, required=True, metavar="DIR", help="folder for the figures")


def run(options: argparse.Namespace) -> None:
    """Carry out `vit inspect`."""
    refuse_file(options.out)
    refuse_existing((options.out / name for name in FIGURES), "name another folder with --out DIR")
    trained = open_model(options.weights)
    from vit_from_scratch.data import load_photo

    photo = load_photo(options.image, trained.model.config.image_shape, trained.model.config.channels)
    names = save_figures(trained, photo, options.out)
    for name in with_bar(names, len(FIGURES), "drawing", "figures"):
        say(options.out / name)


def save_figures(trained: TrainedModel, photo: "Tensor", folder: Path) -> Iterator[str]:
    """Write the figures for a photo (C, H, W) in [0, 1] with the model's channels; yield each file's name."""
    import matplotlib.pyplot as plt

    from vit_from_scratch import plots
    from vit_from_scratch.inspection import (
        attention_distances,
        attention_rollout,
        class_token_maps,
        embedding_filter_components,
        layer_attention,
        layer_tokens,
        position_similarity,
        rollout_maps,
        token_colours,
    )
    from vit_from_scratch.model.patches import PatchEmbedding
    from vit_lab.explorer import explorer_page

    model, config = trained.model, trained.model.config
    images = trained.scaling.scaled(255 * photo[None])
    attentions = layer_attention(model, images)
    layers = [f"layer {number}" for number in range(1, config.depth + 1)]
    heads = [f"head {number}" for number in range(1, config.heads + 1)]
    plots.use_style()
    _, axes = plt.subplots(1, 2, figsize=(6, 3.2))
    plots.image(photo, axes[0], "picture")
    maps = rollout_maps(attention_rollout(attentions), config.grid, config.pool)
    plots.attention_overlay(photo, maps[0], axes[1], "attention rollout")
    yield _save(folder / "rollout.png")
    if sum(weights.numel() for weights in attentions) <= LARGEST_PAGE:
        page = explorer_page(photo, attentions, config.grid)
        yield _write(folder / "where_patches_look.html", page.encode())
    if config.class_token:
        plots.attention_grid(photo, class_token_maps(attentions, config.grid)[:, 0], layers, heads)
        yield _save(folder / "class_token_attention.png")
    else:
        complain("this model has no class token, so class_token_attention.png is left out.")
    plots.attention_distance(attention_distances(model, images)[:, 0])
    yield _save(folder / "attention_distance.png")
    path = layer_tokens(model, images)
    if min(path[0].shape[-1], config.num_patches) >= 3:
        plots.image_row([token_colours(tokens)[0].movedim(-1, 0) for tokens in path], ["patches", *layers])
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
    """Save the current figure, whole or not at all, on white, and close it; return the file's name."""
    import matplotlib.pyplot as plt

    drawn = io.BytesIO()
    plt.savefig(drawn, dpi=150, facecolor="white")
    plt.close()
    return _write(path, drawn.getvalue())


def _write(path: Path, content: bytes) -> str:
    """Write a file, whole or not at all; name it."""
    write_atomically(path, content)
    return path.name
