"""timm's Vision Transformers as ours."""

from typing import Any

import torch
from torch import nn

from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained.conversion import (
    converted,
    described,
    gelu_of,
    residual_parts,
    spelt_out,
    unsupported,
)

NAMES = {
    "cls_token": "tokens.class_token",
    "pos_embed": "tokens.position",
    "patch_embed.proj": "patch_embedding.projection",
    "blocks.{}.norm1": "encoder.blocks.{}.attention_norm",
    "blocks.{}.attn.qkv": "encoder.blocks.{}.attention.qkv",
    "blocks.{}.attn.proj": "encoder.blocks.{}.attention.projection",
    "blocks.{}.norm2": "encoder.blocks.{}.mlp_norm",
    "blocks.{}.mlp.fc1": "encoder.blocks.{}.mlp.hidden",
    "blocks.{}.mlp.fc2": "encoder.blocks.{}.mlp.output",
    "norm": "encoder.norm",
    "fc_norm": "pooled_norm",
    "head": "head",
}


def from_timm(model: nn.Module) -> VisionTransformer:
    """Convert a `timm.models.vision_transformer.VisionTransformer` to ours, with the same logits.

    Class token or average pooling (the class token kept or left out, the norm before or after pooling), any
    size, square patches, either GELU, with or without qkv bias, with a head. Ours is in evaluation mode, its
    weights copied, in their type. For training it takes over stochastic depth, and dropout if timm's model
    has one rate in all the places where ours has it.

    Raises:
        InputError: a model that ours cannot express, such as one with register tokens or layer scale.
    """
    expected = "a plain VisionTransformer of timm, such as timm.create_model(NAME, checkpoint_path=FILE)"
    config = described(_config, model, expected)
    vit: Any = model
    state = dict(model.state_dict())
    if "pos_embed" in state and config.class_token and vit.no_embed_class:
        position = state["pos_embed"]
        state["pos_embed"] = torch.cat([torch.zeros_like(position[:, :1]), position], dim=1)
    names = spelt_out(NAMES | _hybrid_names(config), config.depth)
    return converted(model, "timm", config, state, names)


def _hybrid_names(config: ViTConfig) -> dict[str, str]:
    """Name the layers of timm's ResNetV2 in a hybrid as ours."""
    theirs, ours = "patch_embed.backbone.", "patch_embedding."
    names = {f"{theirs}stem.conv": f"{ours}root", f"{theirs}stem.norm": f"{ours}root_norm"}
    for stage, unit, kind, place, own in residual_parts(config.stem.layers):
        part = kind + place if place else f"downsample.{kind}"
        names[f"{theirs}stages.{stage}.blocks.{unit}.{part}"] = own
    return names


def _stem(embed: Any) -> dict[str, Any]:
    """Describe what stands before the tokens: patches, or the ResNet of a hybrid."""
    if not hasattr(embed, "backbone"):
        side = embed.patch_size
        if side[0] != side[1]:
            raise unsupported("timm", f"patches of {side[0]} x {side[1]} pixels, which are not square")
        return {"patch_size": side[0], "channels": embed.proj.in_channels}
    backbone = embed.backbone
    first = getattr(getattr(backbone, "stem", None), "conv", embed.proj)
    stages = getattr(backbone, "stages", [])
    units = [unit for stage in stages for unit in getattr(stage, "blocks", [])]
    plain = getattr(first, "kernel_size", None) == (7, 7) and embed.proj.kernel_size == (1, 1)
    if not (plain and units and hasattr(units[0], "conv3")):
        raise unsupported(
            "timm", f"the stem {type(backbone).__name__}, which is not the paper's ResNet with 1 x 1 patches"
        )
    eps = {"norm_eps": backbone.stem.norm.eps, "conv_eps": first.eps, "eps_on_variance": True}
    layers = tuple(len(stage.blocks) for stage in stages)
    return {
        "stem": {"kind": "resnet", "layers": layers, "width": first.out_channels, **eps},
        "patch_size": 4 * 2 ** (len(layers) - 1),
        "channels": first.in_channels,
    }


def _config(vit: Any) -> ViTConfig:
    """Describe timm's model as one of ours, or refuse it."""
    block = vit.blocks[0]
    rates = {vit.pos_drop.p, block.attn.proj_drop.p, block.mlp.drop1.p, block.mlp.drop2.p}
    sizes = {
        "image_size": tuple(vit.patch_embed.img_size),
        "dim": vit.embed_dim,
        "depth": len(vit.blocks),
        "heads": block.attn.num_heads,
        "mlp_dim": block.mlp.fc1.out_features,
        "dropout": rates.pop() if len(rates) == 1 else 0.0,
        "stochastic_depth": round(getattr(vit.blocks[-1].drop_path1, "drop_prob", 0.0), 6),
        "class_token": vit.cls_token is not None,
        "position": "none" if vit.pos_embed is None else "learned",
        "qkv_bias": block.attn.qkv.bias is not None,
        "layer_norm_eps": block.norm1.eps,
    }
    final, pooled = (isinstance(norm, nn.LayerNorm) for norm in (vit.norm, vit.fc_norm))
    nothing = nn.Identity()
    differences = {
        "register tokens": bool(getattr(vit, "num_reg_tokens", 0)),
        "a distillation token": hasattr(vit, "dist_token"),
        "rotary position embeddings": getattr(vit, "rope", None) is not None,
        "a norm before the blocks": not isinstance(vit.norm_pre, nn.Identity),
        "a norm after the patch embedding": isinstance(getattr(vit.patch_embed, "norm", None), nn.LayerNorm),
        f"{vit.global_pool!r} pooling": vit.global_pool not in ("token", "avg"),
        "pooling over the class token too": bool(vit.pool_include_prefix),
        "no head (model.reset_classifier(1) gives it one)": not isinstance(vit.head, nn.Linear),
        "layer scale": not isinstance(getattr(block, "ls1", nothing), nn.Identity),
        "a norm on queries and keys": not isinstance(getattr(block.attn, "q_norm", nothing), nn.Identity),
        "a norm before pooling and another one after it": final and pooled,
    }
    for difference, has_it in differences.items():
        if has_it:
            raise unsupported("timm", difference)
    return ViTConfig(
        **_stem(vit.patch_embed),
        **sizes,
        num_classes=vit.head.out_features,
        pool="cls" if vit.global_pool == "token" else "gap",
        norm="final" if final else "pooled" if pooled else "none",
        gelu=gelu_of(block.mlp.act, "timm"),
    )
