"""Hugging Face's Vision Transformers as ours."""

import re
from typing import Any, Literal

import torch
from torch import nn

from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained.conversion import converted, described, gelu_of, refuse, spelt_out

NAMES = {
    "vit.embeddings.cls_token": "tokens.class_token",
    "vit.embeddings.position_embeddings": "tokens.position",
    "vit.embeddings.patch_embeddings.projection": "patch_embedding.projection",
    "vit.layers.{}.layernorm_before": "encoder.blocks.{}.attention_norm",
    "vit.layers.{}.attention.qkv": "encoder.blocks.{}.attention.qkv",
    "vit.layers.{}.attention.o_proj": "encoder.blocks.{}.attention.projection",
    "vit.layers.{}.layernorm_after": "encoder.blocks.{}.mlp_norm",
    "vit.layers.{}.mlp.fc1": "encoder.blocks.{}.mlp.hidden",
    "vit.layers.{}.mlp.fc2": "encoder.blocks.{}.mlp.output",
    "vit.layernorm": "encoder.norm",
    "classifier": "head",
}

GELUS: dict[Any, Literal["erf", "tanh"]] = {"gelu": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}

OLDER = (
    (r"^vit\.encoder\.layer\.", "vit.layers."),
    (r"\.attention\.attention\.(query|key|value)\.", lambda match: f".attention.{match[1][0]}_proj."),
    (r"\.attention\.output\.dense\.", ".attention.o_proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"^(vit\.layers\.\d+)\.output\.dense\.", r"\1.mlp.fc2."),
)
"""How version 4 of transformers named what version 5 names otherwise."""


def from_transformers(model: nn.Module) -> VisionTransformer:
    """Convert a `transformers.ViTForImageClassification`, of version 4 or 5, to ours, with the same logits.

    Ours is in evaluation mode, its weights copied, in their type; an `InputError` refuses another model.
    """
    config = described(_config, model, "transformers' ViTForImageClassification with a head")
    state = {_current(name): tensor for name, tensor in model.state_dict().items()}
    for name in [name for name in state if ".q_proj." in name]:  # one matrix for queries, keys and values
        parts = [state.pop(name.replace(".q_proj.", f".{one}_proj.")) for one in "qkv"]
        state[name.replace(".q_proj.", ".qkv.")] = torch.cat(parts)
    return converted(model, "transformers", config, state, spelt_out(NAMES, config.depth))


def _config(model: Any) -> ViTConfig:
    """Describe the model as one of ours, or refuse it."""
    theirs, classes = model.config, model.classifier.out_features
    height, width = (theirs.patch_size,) * 2 if isinstance(theirs.patch_size, int) else theirs.patch_size
    if height != width:
        raise refuse("transformers", f"patches of {height} x {width} pixels, which are not square")
    gelu = GELUS.get(theirs.hidden_act) or gelu_of(theirs.hidden_act, "transformers")
    return ViTConfig(
        image_size=theirs.image_size if isinstance(theirs.image_size, int) else tuple(theirs.image_size),
        patch_size=height,
        channels=theirs.num_channels,
        dim=theirs.hidden_size,
        depth=theirs.num_hidden_layers,
        heads=theirs.num_attention_heads,
        mlp_dim=theirs.intermediate_size,
        num_classes=classes,
        dropout=theirs.hidden_dropout_prob,
        qkv_bias=theirs.qkv_bias,
        layer_norm_eps=theirs.layer_norm_eps,
        gelu=gelu,
    )


def _current(name: str) -> str:
    """Return the name that version 5 gives to a weight of either version."""
    for pattern, now in OLDER:
        name = re.sub(pattern, now, name)
    return name
