"""Frozen features: what a trained model makes of images, for a classifier that is trained on nothing else."""

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.model.vit import VisionTransformer

Token = Literal["class", "mean"]


@torch.no_grad()
def image_features(
    model: VisionTransformer, images: Tensor, layer: int | None = None, token: Token | None = None
) -> Tensor:
    """Return one vector (B, D) for each image; layers above the one that is asked for are not computed.

    Args:
        model: left in the mode that it came in.
        images: (B, C, H, W), as the model takes them.
        layer: 1 to L for z_l as it leaves that block, 0 for z_0; None for the normalised z_L (equation 4). A
            model that normalises after pooling does so here, one without a norm not at all. The hidden layer
            before the head, as in pre-training, is not passed.
        token: "class" for the class token, "mean" for the mean of the patches; None for what the model's own
            head reads.

    Raises:
        InputError: a layer or a class token that the model does not have, or wrong images.
    """
    token = check_features(model, layer, token)
    model.check_images(images)
    with evaluating(model):
        tokens = model.tokens(model.patch_embedding(images))  # (B, T, D)
        for block in model.encoder.blocks[:layer]:
            tokens, _ = block(tokens)
        if layer is None:
            tokens = model.encoder.norm(tokens)
        first = int(model.config.class_token)
        vectors = tokens[:, 0] if token == "class" else tokens[:, first:].mean(dim=1)  # (B, D)
        return model.pooled_norm(vectors) if layer is None else vectors


def check_features(model: VisionTransformer, layer: int | None, token: Token | None) -> Token:
    """Return the token that is meant; raise an `InputError` unless the model has it and the layer."""
    depth = model.config.depth
    if layer is not None and not 0 <= layer <= depth:
        raise InputError(f"layer {layer}: expected 0 to {depth}, the model's layers. Choose one of them.")
    if token not in (None, "class", "mean"):
        raise InputError(f"token {token!r}: expected 'class' or 'mean'.")
    if token == "class" and not model.config.class_token:
        raise InputError("token 'class': expected 'mean', since the model has no class token.")
    return token or ("class" if model.config.pool == "cls" else "mean")


@torch.no_grad()
def extract_features(
    model: VisionTransformer,
    batches: Iterable[tuple[Tensor, Tensor]],
    layer: int | None = None,
    token: Token | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the features of all images of a stream, as `image_features` does, with their labels.

    A stream is images (B, C, H, W), normalised, with labels (B,): for instance `data.batches("test")`.

    Returns:
        Features (N, D) and labels (N,), float32 and int64, on the CPU.

    Raises:
        InputError: as in `image_features`; no images at all.
    """
    features, labels = [], []
    device = next(model.parameters()).device
    for images, some in batches:
        features.append(image_features(model, images.to(device), layer, token).float().cpu())
        labels.append(some.long().cpu())
    if not features:
        raise InputError("no images to describe: expected at least one; choose another part of the data.")
    return torch.cat(features), torch.cat(labels)
