"""`vit inspect`: every figure of Part III for one picture."""

import argparse
from pathlib import Path
from typing import Any

from torch import Tensor

from vit_from_scratch.cli.weights import add_weights, chosen_model
from vit_from_scratch.errors import InputError
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.normalisation import Normalisation
from vit_from_scratch.training.photos import load_photo
from vit_from_scratch.training.run_folder import writing


def add_parser(commands: Any) -> None:
    """Add `inspect` to the commands."""
    parser = commands.add_parser(
        "inspect",
        help="draw what a model sees in a picture",
        description="Write figures into a folder: attention of every layer and head, rollout, attention "
        "distance, the tokens' path through the layers, position similarity and embedding filters.",
    )
    parser.add_argument("image", type=Path, metavar="IMAGE")
    add_weights(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the figures")
    parser.set_defaults(run=inspect_command)


def inspect_command(options: argparse.Namespace) -> None:
    """Carry out `vit inspect`."""
    model, _, scaling = chosen_model(options.weights)
    photo = load_photo(options.image, model.config.image_shape, model.config.channels)
    if options.out.exists() and not options.out.is_dir():
        raise InputError(f"--out {options.out} is a file: expected a folder. Choose another name.")
    with writing(options.out):
        options.out.mkdir(parents=True, exist_ok=True)
        for name in save_figures(model, scaling, photo, options.out):
            print(options.out / name)


def save_attention(model: VisionTransformer, scaling: Normalisation, photo: Tensor, path: Path) -> Path:
    """Save a photo (3, H, W) darkened where the attention rollout is low; return where."""
    import matplotlib.pyplot as plt

    from vit_from_scratch import plots
    from vit_from_scratch.inspection import attention_rollout, layer_attention, rollout_maps

    plots.use_style()
    rollout = attention_rollout(layer_attention(model, scaling(255 * photo[None])))
    _, axes = plt.subplots(1, 2, figsize=(6, 3.2))
    plots.image(photo, axes[0], "picture")
    plots.attention_overlay(photo, rollout_maps(rollout, model.config.grid)[0], axes[1], "attention rollout")
    with writing(path):
        _save(path)
    return path


def save_figures(model: VisionTransformer, scaling: Normalisation, photo: Tensor, folder: Path) -> list[str]:
    """Write the figures for a photo (3, H, W) in [0, 1]; return the names of the files."""
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
    names = ["rollout.png"]
    save_attention(model, scaling, photo, folder / names[0])

    def keep(name: str) -> None:
        _save(folder / name)
        names.append(name)

    if config.class_token:
        plots.attention_grid(class_token_maps(attentions, config.grid)[:, 0], layers, heads)
        keep("class_token_attention.png")
    plots.attention_distance(attention_distances(model, images)[:, 0])
    keep("attention_distance.png")
    path = layer_tokens(model, images)
    if min(path[0].shape[-1], config.num_patches) >= 3:
        plots.colour_maps([token_colours(tokens)[0] for tokens in path], ["patches", *layers])
        keep("token_path.png")
    position = model.tokens.position_embedding()
    if position is not None:
        plots.position_similarity(position_similarity(position, config.grid))
        keep("position_similarity.png")
    if isinstance(model.patch_embedding, PatchEmbedding) and config.channels in (1, 3):
        found = embedding_filter_components(model.patch_embedding.as_convolution_weight())
        count = min(28, len(found.components))
        shares = [f"{share:.1%}" for share in found.variance_share[:count].tolist()]
        plots.filters(found.components[:count], titles=shares)
        keep("embedding_filters.png")
    return names


def _save(path: Path) -> None:
    """Save the current figure on white, whatever the theme, and close it."""
    import matplotlib.pyplot as plt

    plt.savefig(path, dpi=150, facecolor="white")
    plt.close()
