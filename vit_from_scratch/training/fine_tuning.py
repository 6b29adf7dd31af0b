"""Fine-tuning: a pre-trained model for other images and other classes (section 3.2)."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.model.checkpoints import model_from_tensors
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.patches import PatchEmbedding, embedding_weight_from_convolution
from vit_from_scratch.model.tokens import resize_positions
from vit_from_scratch.model.vit import VisionTransformer

SHAPELESS = ("heads", "position", "position_at", "qk_norm", "stem", "layer_norm_eps")
"""Fields of `ViTConfig` that may change while every weight keeps its shape, but not its meaning. Others that
change no shape, such as `dropout` or `gelu`, leave a trained model much as it is."""


def adapted(
    model: VisionTransformer,
    image_size: int | tuple[int, int],
    num_classes: int,
    channels: int | None = None,
    *,
    keep_head: bool = False,
    **changes: Any,
) -> VisionTransformer:
    """Return a copy of a pre-trained model that is ready to be fine-tuned.

    The patch size stays, so larger images make a longer sequence; learned positions are interpolated over
    the new grid, and fixed ones are computed for it (`resize_input`, for a curriculum, interpolates those,
    too). The hidden layer before the head goes, and the new head is zero. For grey images the weights of each
    patch are summed over its colours: the model sees what a photo of three equal channels shows it. The copy
    is on the CPU, in float32 and in training mode.

    Args:
        model: left as it is.
        image_size: side of the new images in pixels, or (H, W).
        num_classes: the new number of classes K.
        channels: of the new images, C; None for as many as the model takes.
        keep_head: train on with the head that the model has, for the classes that it knows.
        **changes: fields of `ViTConfig` that change neither a weight's shape nor its meaning, such as
            `dropout`; any field with the value that the model has.

    Raises:
        InputError: the size does not fit the patches, a change or the channels do not fit the weights, a
            field does not exist, or the head to keep has another number of classes.
    """
    learned = vars(model.config)
    if keep_head and num_classes != model.config.num_classes:
        raise InputError(
            f"keep_head with {num_classes} classes: expected {model.config.num_classes}, as many as the "
            "pre-trained head has. Leave keep_head out for a new head."
        )
    decided: dict[str, Any] = {"image_size": image_size, "num_classes": num_classes}
    decided["channels"] = channels or model.config.channels
    if not keep_head:
        decided["representation_size"] = None
    kept = (*SHAPELESS, "pool") if keep_head else SHAPELESS  # a new head learns to read another pool
    for key, value in changes.items():
        if key not in learned:
            raise unknown_name("option of the model", key, learned)
        if key in decided:
            raise InputError(f"model.{key} = {value!r}: fine-tuning decides it; leave it out.")
        if key in kept and value != learned[key]:
            raise InputError(
                f"the pre-trained weights do not fit model.{key} = {value!r}: expected {learned[key]!r}, "
                "as in pre-training. Leave it out."
            )
    config = replace(model.config, **decided, **changes)
    if config.position == "relative" and config.grid != model.config.grid:
        raise InputError(
            f"image_size = {image_size} for a model with relative positions: expected "
            f"{model.config.image_size}, the size for which they were learned. Resize the images."
        )
    from_or_to_grey = 1 in (config.channels, model.config.channels) and model.config.stem.kind == "patch"
    if config.channels != model.config.channels and not from_or_to_grey:
        raise InputError(
            f"channels = {config.channels} for a model of {model.config.channels}: expected the same; with "
            "plain patches one of the two may be 1. Begin from other weights."
        )
    weights = _weights_for(config, model, keep_head)
    try:
        return model_from_tensors(config, weights).float().train()
    except InputError as problems:
        others = {key: value for key, value in changes.items() if value != learned[key]}
        raise InputError(
            f"the pre-trained weights do not fit {others} ({problems}): expected only changes that leave "
            "every weight its shape. Leave the others out."
        ) from None


def _weights_for(config: ViTConfig, model: VisionTransformer, keep_head: bool) -> dict[str, Tensor]:
    """Return a model's weights for the grid, the channels and, unless it is kept, the head of another."""
    (rows, columns), (gh, gw) = model.config.grid, config.grid
    grids = {
        "position": ((rows, columns), (gh, gw)),
        "row_position": ((rows, 1), (gh, 1)),  # (gh, D): a grid of one column
        "column_position": ((columns, 1), (gw, 1)),
    }
    weights = dict(model.state_dict())
    for name, position in weights.items():  # the stem's, and those of layers that have their own
        if (kind := name.rpartition(".")[2]) in grids:
            vectors = position.float().reshape(1, -1, position.shape[-1])  # (1, T, D)
            found = resize_positions(vectors, *grids[kind]).to(position.dtype)
            weights[name] = found if position.ndim == 3 else found[0]
    if config.channels != model.config.channels and isinstance(model.patch_embedding, PatchEmbedding):
        kernel = model.patch_embedding.as_convolution_weight().sum(dim=1, keepdim=True)  # (D, 1, P, P)
        kernel = kernel.repeat(1, config.channels, 1, 1) / config.channels  # grey gives the same
        weights["patch_embedding.projection.weight"] = embedding_weight_from_convolution(kernel)
    if not keep_head:
        weights = {key: w for key, w in weights.items() if not key.startswith(("head.", "representation."))}
        weights["head.weight"] = torch.zeros(config.num_classes, config.dim)
        weights["head.bias"] = torch.zeros(config.num_classes)
    return {name: weight.cpu() for name, weight in weights.items()}
