"""timm's Vision Transformers as ours."""

from typing import Any

import torch
from torch import nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.patches import embedding_weight_from_convolution
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained.conversion import (
    block_names,
    both,
    built,
    gelu_of,
    lacking,
    proved,
    refuse,
    renamed,
)

PARTS = {
    "norm1": "attention_norm",
    "attn.qkv": "attention.qkv",
    "attn.proj": "attention.projection",
    "norm2": "mlp_norm",
    "mlp.fc1": "mlp.hidden",
    "mlp.fc2": "mlp.output",
}

IN_MODEL = (
    "patch_embed.img_size",
    "patch_embed.proj",
    "blocks.0",
    "norm_pre",
    "norm",
    "fc_norm",
    "head",
    "embed_dim",
)
IN_MODEL += ("cls_token", "pos_embed", "pos_drop.p", "no_embed_class", "global_pool", "pool_include_prefix")
IN_BLOCK = ("norm1.eps", "attn.qkv", "attn.num_heads", "mlp.fc1", "mlp.act")
"""What is read of a model and of its blocks; timm's other families, near as they look, lack some of it."""


def from_timm(model: nn.Module) -> VisionTransformer:
    """Convert a `timm.models.vision_transformer.VisionTransformer` to ours, with the same logits.

    Class token or average pooling (the class token kept or left out, the norm before or after pooling), any
    size and patch, either GELU, with or without qkv bias.

    Args:
        model: timm's model with a head; it is left as it is.

    Returns:
        Our model in evaluation mode, its weights copied, in their type.

    Raises:
        InputError: a model that ours cannot express, such as one with register tokens or layer scale.
    """
    _require_plain(model)
    vit: Any = model
    config = _config(vit)
    state = dict(model.state_dict())
    state["patch_embed.proj.weight"] = embedding_weight_from_convolution(state["patch_embed.proj.weight"])
    hybrid = _hybrid_names(config) if config.stem.kind == "resnet" else {}
    position = state.get("pos_embed")
    if position is not None and config.class_token and vit.no_embed_class:
        state["pos_embed"] = torch.cat([torch.zeros_like(position[:, :1]), position], dim=1)
    names = weight_names(config.depth) | hybrid
    return proved(built(config, renamed(state, names, "timm")), model, "timm")


def weight_names(depth: int) -> dict[str, str]:
    """Map timm's name of every weight that a plain ViT of L blocks may have to ours."""
    return {
        "cls_token": "tokens.class_token",
        "pos_embed": "tokens.position",
        **both({"patch_embed.proj": "patch_embedding.projection", "head": "head"}),
        **both({"norm": "encoder.norm", "fc_norm": "pooled_norm"}),
        **block_names("blocks.{}.", PARTS, depth),
    }


def _require_plain(model: nn.Module) -> None:
    """Raise an `InputError` unless a model and its blocks have the parts of timm's VisionTransformer."""
    vit: Any = model
    lacks = lacking(vit, IN_MODEL)
    if not lacks:
        block = vit.blocks[0]
        lacks = [f"{part} in its blocks ({type(block).__name__})" for part in lacking(block, IN_BLOCK)]
    if lacks:
        cfg = getattr(model, "pretrained_cfg", None)
        name = f" ({cfg['architecture']})" if isinstance(cfg, dict) and cfg.get("architecture") else ""
        raise InputError(
            f"a {type(model).__name__}{name}: expected a plain VisionTransformer of timm, such as "
            f"timm.create_model('vit_base_patch16_224'), and this one lacks {lacks[0]}."
        )


def _hybrid_names(config: ViTConfig) -> dict[str, str]:
    """Name the weights of timm's ResNetV2 in a hybrid as ours."""
    theirs, ours = "patch_embed.backbone.", "patch_embedding."
    names = {f"{theirs}stem.conv.weight": f"{ours}root.weight"}
    norms = {f"{theirs}stem.norm": f"{ours}root_norm"}
    for stage, units in enumerate(config.stem.layers):
        for unit in range(units):
            start, own = f"{theirs}stages.{stage}.blocks.{unit}.", f"{ours}stages.{stage}.{unit}."
            for number in (1, 2, 3):
                names[f"{start}conv{number}.weight"] = f"{own}conv{number}.weight"
                norms[f"{start}norm{number}"] = f"{own}norm{number}"
            if unit == 0:
                names[f"{start}downsample.conv.weight"] = f"{own}shortcut.weight"
                norms[f"{start}downsample.norm"] = f"{own}shortcut_norm"
    return names | both(norms)


def _stem(vit: Any) -> dict[str, Any]:
    """Describe what stands before the tokens: patches, or the ResNet of a hybrid."""
    embed = vit.patch_embed
    if not hasattr(embed, "backbone"):
        side = embed.patch_size
        if side[0] != side[1]:
            raise refuse("timm", f"patches of {side[0]} x {side[1]} pixels, which are not square")
        return {"patch_size": side[0], "channels": embed.proj.in_channels}
    backbone = embed.backbone
    first = getattr(getattr(backbone, "stem", None), "conv", None)
    stage = next(iter(getattr(backbone, "stages", [])), None)
    unit = next(iter(getattr(stage, "blocks", [])), None)
    if (
        first is None
        or first.kernel_size != (7, 7)
        or not hasattr(unit, "conv3")
        or embed.proj.kernel_size != (1, 1)
    ):
        raise refuse(
            "timm", f"the stem {type(backbone).__name__}, which is not the paper's ResNet with 1 x 1 patches"
        )
    layers = tuple(len(stage.blocks) for stage in backbone.stages)
    return {
        "stem": {
            "kind": "resnet",
            "layers": layers,
            "width": first.out_channels,
            "norm_eps": backbone.stem.norm.eps,
            "conv_eps": first.eps,
            "eps_on_variance": True,
        },
        "patch_size": 4 * 2 ** (len(layers) - 1),
        "channels": first.in_channels,
    }


def _config(vit: Any) -> ViTConfig:
    """Describe timm's model as one of ours, or refuse it."""
    differences = {
        "register tokens": bool(getattr(vit, "num_reg_tokens", 0)),
        "a distillation token": hasattr(vit, "dist_token"),
        "rotary position embeddings": getattr(vit, "rope", None) is not None,
        "a norm before the blocks": not isinstance(vit.norm_pre, nn.Identity),
        "a norm after the patch embedding": isinstance(getattr(vit.patch_embed, "norm", None), nn.LayerNorm),
        f"{vit.global_pool!r} pooling": vit.global_pool not in ("token", "avg"),
        "pooling over the class token too": bool(vit.pool_include_prefix),
        "no head": not isinstance(vit.head, nn.Linear),
    }
    block = vit.blocks[0]
    for name, part in (("layer scale", "ls1"), ("a norm on queries and keys", "attn.q_norm")):
        found = block
        for step in part.split("."):
            found = getattr(found, step, nn.Identity())
        differences[name] = not isinstance(found, nn.Identity)
    for difference, has_it in differences.items():
        if has_it:
            raise refuse("timm", difference)
    final, pooled = (isinstance(norm, nn.LayerNorm) for norm in (vit.norm, vit.fc_norm))
    if final and pooled:
        raise refuse("timm", "a norm before pooling and another one after it")
    return ViTConfig(
        **_stem(vit),
        image_size=tuple(vit.patch_embed.img_size),
        dim=vit.embed_dim,
        depth=len(vit.blocks),
        heads=block.attn.num_heads,
        mlp_dim=block.mlp.fc1.out_features,
        num_classes=vit.head.out_features,
        dropout=vit.pos_drop.p,
        class_token=vit.cls_token is not None,
        pool="cls" if vit.global_pool == "token" else "gap",
        norm="final" if final else "pooled" if pooled else "none",
        position="none" if vit.pos_embed is None else "learned",
        qkv_bias=block.attn.qkv.bias is not None,
        layer_norm_eps=block.norm1.eps,
        gelu=gelu_of(block.mlp.act, "timm"),
    )
