"""Fine-tuning: a pre-trained model for other images and other classes (section 3.2)."""

import dataclasses
from textwrap import shorten
from typing import Any

from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.patches import PatchEmbedding, embedding_weight_from_convolution
from vit_from_scratch.model.tokens import resize_positions
from vit_from_scratch.model.vit import VisionTransformer


def adapted(
    model: VisionTransformer,
    image_size: int | tuple[int, int],
    num_classes: int,
    channels: int | None = None,
    **changes: Any,
) -> VisionTransformer:
    """Return a copy of a pre-trained model that is ready to be fine-tuned.

    The patch size stays, so larger images make a longer sequence; learned positions are interpolated over
    the new grid. The hidden layer before the head goes, and the new head is zero. For grey images the weights
    of each patch are summed over its colours: the model sees what a photo of three equal channels shows it.

    Args:
        model: left as it is.
        image_size: side of the new images in pixels, or (H, W).
        num_classes: the new number of classes K.
        channels: of the new images, C; None for as many as the model takes.
        **changes: fields of `ViTConfig` that change no weight's shape, such as `dropout`.

    Raises:
        InputError: the size does not fit the patches, or a change or the channels do not fit the weights.
    """
    decided: dict[str, Any] = {"image_size": image_size, "num_classes": num_classes}
    decided |= {"representation_size": None, "channels": channels or model.config.channels}
    for key in changes.keys() & decided.keys():
        raise InputError(f"model.{key} = {changes[key]!r}: fine-tuning decides it; leave it out.")
    config = dataclasses.replace(model.config, **decided, **changes)
    if not takes_channels(model, config.channels):
        raise InputError(
            f"channels = {config.channels} for a model of {model.config.channels}: expected as many, or 1 "
            "for a "
            "model with plain patches. Convert the images, or begin from other weights."
        )
    new = VisionTransformer(config)
    weights = {
        name: tensor
        for name, tensor in _weights_on_grid(model, config).items()
        if not name.startswith(("head.", "representation."))
    }
    if config.channels != model.config.channels and isinstance(model.patch_embedding, PatchEmbedding):
        kernel = model.patch_embedding.as_convolution_weight().sum(dim=1, keepdim=True)  # (D, 1, P, P)
        weights["patch_embedding.projection.weight"] = embedding_weight_from_convolution(kernel)
    own = {name: tensor for name, tensor in new.state_dict().items() if name.startswith("head.")}
    try:
        new.load_state_dict(weights | own)
    except RuntimeError as error:
        raise InputError(
            f"the pre-trained weights do not fit {changes} ({shorten(str(error), 200)}): expected only "
            "changes that leave every weight its shape. Leave the others out."
        ) from None
    return new


def resized(model: VisionTransformer, image_size: int | tuple[int, int]) -> VisionTransformer:
    """Return a copy of a model, head and all, for images of another size.

    Learned positions are interpolated over the new grid once and for all (section 3.2).

    Args:
        model: left as it is.
        image_size: side of the new images in pixels, or (H, W).

    Raises:
        InputError: the size does not fit the patches.
    """
    config = dataclasses.replace(model.config, image_size=image_size)
    new = VisionTransformer(config).to(model.head.weight.device, model.head.weight.dtype)
    new.load_state_dict(_weights_on_grid(model, config))
    return new.train(model.training)


def _weights_on_grid(model: VisionTransformer, config: ViTConfig) -> dict[str, Tensor]:
    """Return a model's weights with learned positions interpolated over the grid of another configuration."""
    weights = dict(model.state_dict())
    if "tokens.position" in weights:
        position = weights["tokens.position"].float()
        weights["tokens.position"] = resize_positions(position, model.config.grid, config.grid)
    for name, axis in (("tokens.row_position", 0), ("tokens.column_position", 1)):
        if name in weights:  # (gh, D) or (gw, D): a grid of one column
            old, wanted = (model.config.grid[axis], 1), (config.grid[axis], 1)
            weights[name] = resize_positions(weights[name].float()[None], old, wanted)[0]
    return weights


def takes_channels(model: VisionTransformer, channels: int) -> bool:
    """Say whether a model can be adapted to images of so many channels: as many as its own, or grey ones."""
    return channels == model.config.channels or (channels == 1 and model.config.stem.kind == "patch")
