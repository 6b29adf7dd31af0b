"""What functions that take tensors check first: one sentence instead of an error from deep inside."""

import torch
from torch import Tensor

from vit_from_scratch.errors import InputError


def require_tensor(value: object, name: str, shape: str) -> None:
    """Raise an `InputError` unless a value, named such as "images", is a tensor (of such a shape)."""
    if not isinstance(value, Tensor):
        raise InputError(
            f"{name} of type {type(value).__name__}: expected a tensor {shape}; "
            "convert an array with torch.from_numpy; load_photo of vit_from_scratch.data reads a picture."
        )


def require_image_type(images: Tensor, weight: Tensor) -> None:
    """Raise an `InputError` unless images (B, C, H, W) are floats that a model with such weights takes."""
    if not images.is_floating_point():
        raise InputError(
            f"images of type {images.dtype}: expected {weight.dtype}, scaled and normalised; "
            "for bytes, images = data.normalise(images), or input_scaling(name)(images) of a trained model."
        )
    if images.dtype != weight.dtype and not torch.is_autocast_enabled(images.device.type):
        raise InputError(
            f"images of type {images.dtype}: expected {weight.dtype} like the model's weights; "
            "convert one with .to(dtype), or run under torch.autocast."
        )


def holds(condition: Tensor) -> bool:
    """Return whether a condition on values holds; on the meta device, which has no values, it does."""
    return condition.is_meta or bool(condition)


def require_labels(labels: Tensor, count: int | None, classes: int, name: str = "labels") -> None:
    """Raise an `InputError` unless labels are (count,) class numbers below `classes`; None is any count."""
    require_tensor(labels, name, "(N,) of class numbers")
    count = labels.numel() if count is None else count
    if labels.shape != (count,) or labels.is_floating_point() or labels.dtype == torch.bool:
        raise InputError(
            f"{name} of shape {tuple(labels.shape)} and type {labels.dtype} for {count} images: expected "
            f"({count},) whole numbers, the class of each image."
        )
    if count and not holds((labels.min() >= 0) & (labels.max() < classes)):
        raise InputError(
            f"{name} from {labels.min()} to {labels.max()}: expected class numbers from 0 to {classes - 1}; "
            "check how many classes there are."
        )
