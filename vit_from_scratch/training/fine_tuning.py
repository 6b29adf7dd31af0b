"""Fine-tuning: a pre-trained model for other images and other classes (section 3.2)."""

import dataclasses
from typing import Any

from vit_from_scratch.model.tokens import resize_positions
from vit_from_scratch.model.vit import VisionTransformer


def adapted(
    model: VisionTransformer, image_size: int | tuple[int, int], num_classes: int, **changes: Any
) -> VisionTransformer:
    """Return a copy of a pre-trained model that is ready to be fine-tuned.

    The patch size stays, so larger images make a longer sequence; learned positions are interpolated over
    the new grid. The hidden layer before the head goes, and the new head is zero.

    Args:
        model: left as it is.
        image_size: side of the new images in pixels, or (H, W).
        num_classes: the new number of classes K.
        **changes: fields of `ViTConfig` that change no weight's shape, such as `dropout`.

    Raises:
        InputError: the size does not fit the patches.
    """
    config = dataclasses.replace(
        model.config, image_size=image_size, num_classes=num_classes, representation_size=None, **changes
    )
    new = VisionTransformer(config)
    weights = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if not name.startswith(("head.", "representation."))
    }
    if "tokens.position" in weights:
        position = weights["tokens.position"].float()
        weights["tokens.position"] = resize_positions(position, model.config.grid, config.grid)
    own = {name: tensor for name, tensor in new.state_dict().items() if name.startswith("head.")}
    new.load_state_dict(weights | own)
    return new
