"""Hugging Face's Vision Transformers as ours."""

import re
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.patches import embedding_weight_from_convolution
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained.conversion import block_names, both, built, gelu_of, proved, refuse, renamed

PARTS = {
    "layernorm_before": "attention_norm",
    "attention.qkv": "attention.qkv",
    "attention.o_proj": "attention.projection",
    "layernorm_after": "mlp_norm",
    "mlp.fc1": "mlp.hidden",
    "mlp.fc2": "mlp.output",
}

OLDER = (
    (r"^vit\.encoder\.layer\.", "vit.layers."),
    (r"\.attention\.attention\.(query|key|value)\.", lambda match: f".attention.{match[1][0]}_proj."),
    (r"\.attention\.output\.dense\.", ".attention.o_proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"^(vit\.layers\.\d+)\.output\.dense\.", r"\1.mlp.fc2."),
)
"""How version 4 of transformers named what version 5 names otherwise."""


def from_transformers(model: nn.Module) -> VisionTransformer:
    """Convert a `transformers.ViTForImageClassification` to ours, with the same logits.

    Args:
        model: the model of transformers 4 or 5; it is left as it is.

    Returns:
        Our model in evaluation mode, its weights copied, in their type.

    Raises:
        InputError: another model.
    """
    source: Any = model
    if not (hasattr(source, "vit") and isinstance(getattr(source, "classifier", None), nn.Linear)):
        raise InputError(
            f"a {type(model).__name__}: expected transformers' ViTForImageClassification with a head; "
            "ViTModel alone gives no logits."
        )
    theirs = source.config
    sides = theirs.patch_size
    if not isinstance(sides, int) and sides[0] != sides[1]:
        raise refuse("transformers", f"patches of {sides[0]} x {sides[1]} pixels, which are not square")
    side = sides if isinstance(sides, int) else sides[0]
    size = theirs.image_size if isinstance(theirs.image_size, int) else tuple(theirs.image_size)
    config = ViTConfig(
        image_size=size,
        patch_size=side,
        channels=theirs.num_channels,
        dim=theirs.hidden_size,
        depth=theirs.num_hidden_layers,
        heads=theirs.num_attention_heads,
        mlp_dim=theirs.intermediate_size,
        num_classes=source.classifier.out_features,
        dropout=theirs.hidden_dropout_prob,
        qkv_bias=theirs.qkv_bias,
        layer_norm_eps=theirs.layer_norm_eps,
        gelu=_gelu(theirs.hidden_act),
    )
    state = _packed({_current(name): tensor for name, tensor in model.state_dict().items()}, config.depth)
    kernel = "vit.embeddings.patch_embeddings.projection.weight"
    state[kernel] = embedding_weight_from_convolution(state[kernel])
    names = {
        "vit.embeddings.cls_token": "tokens.class_token",
        "vit.embeddings.position_embeddings": "tokens.position",
        **both(
            {
                "vit.embeddings.patch_embeddings.projection": "patch_embedding.projection",
                "vit.layernorm": "encoder.norm",
                "classifier": "head",
            }
        ),
        **block_names("vit.layers.{}.", PARTS, config.depth),
    }
    return proved(built(config, renamed(state, names, "transformers")), model, "transformers")


def _gelu(activation: Any) -> Literal["erf", "tanh"]:
    names: dict[str, Literal["erf", "tanh"]] = {
        "gelu": "erf",
        "gelu_new": "tanh",
        "gelu_pytorch_tanh": "tanh",
    }
    return names[activation] if activation in names else gelu_of(activation, "transformers")


def _current(name: str) -> str:
    """Return the name that version 5 gives to a weight of either version."""
    for pattern, now in OLDER:
        name = re.sub(pattern, now, name)
    return name


def _packed(state: dict[str, Tensor], depth: int) -> dict[str, Tensor]:
    """Put queries, keys and values of each layer into one matrix, in this order."""
    for layer in range(depth):
        for kind in ("weight", "bias"):
            names = [f"vit.layers.{layer}.attention.{one}_proj.{kind}" for one in "qkv"]
            if all(name in state for name in names):
                parts = [state.pop(name) for name in names]
                state[f"vit.layers.{layer}.attention.qkv.{kind}"] = torch.cat(parts)
    return state
