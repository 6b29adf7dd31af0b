"""torchvision's Vision Transformers as ours."""

from typing import Any

from torch import nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.patches import embedding_weight_from_convolution
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained.conversion import block_names, both, built, gelu_of, proved, refuse, renamed

PARTS = {
    "ln_1": "attention_norm",
    "self_attention.out_proj": "attention.projection",
    "ln_2": "mlp_norm",
    "mlp.0": "mlp.hidden",
    "mlp.3": "mlp.output",
}


def from_torchvision(model: nn.Module) -> VisionTransformer:
    """Convert a `torchvision.models.VisionTransformer` to ours, with the same logits.

    Args:
        model: torchvision's model, with or without the hidden layer before the head; it is left as it is.

    Returns:
        Our model in evaluation mode, its weights copied, in their type.

    Raises:
        InputError: another model, or one with a convolutional stem.
    """
    vit: Any = model
    if not (hasattr(vit, "conv_proj") and hasattr(vit, "heads") and hasattr(vit, "encoder")):
        raise InputError(
            f"a {type(model).__name__}: expected torchvision's VisionTransformer, such as "
            "torchvision.models.vit_b_16()."
        )
    if not isinstance(vit.conv_proj, nn.Conv2d):
        raise refuse("torchvision", "a convolutional stem")
    block = vit.encoder.layers[0]
    hidden = getattr(vit.heads, "pre_logits", None)
    config = ViTConfig(
        image_size=vit.image_size,
        patch_size=vit.patch_size,
        channels=vit.conv_proj.in_channels,
        dim=vit.hidden_dim,
        depth=len(vit.encoder.layers),
        heads=block.num_heads,
        mlp_dim=vit.mlp_dim,
        num_classes=vit.heads.head.out_features,
        dropout=vit.dropout,
        representation_size=None if hidden is None else hidden.out_features,
        layer_norm_eps=block.ln_1.eps,
        gelu=gelu_of(block.mlp[1], "torchvision"),
    )
    state = dict(model.state_dict())
    state["conv_proj.weight"] = embedding_weight_from_convolution(state["conv_proj.weight"])
    names = {
        "class_token": "tokens.class_token",
        "encoder.pos_embedding": "tokens.position",
        **both(
            {
                "conv_proj": "patch_embedding.projection",
                "encoder.ln": "encoder.norm",
                "heads.pre_logits": "representation.0",
                "heads.head": "head",
            }
        ),
    }
    for layer in range(config.depth):
        for kind in ("weight", "bias"):
            packed = f"encoder.layers.encoder_layer_{layer}.self_attention.in_proj_{kind}"
            names[packed] = f"encoder.blocks.{layer}.attention.qkv.{kind}"
    names |= block_names("encoder.layers.encoder_layer_{}.", PARTS, config.depth)
    return proved(built(config, renamed(state, names, "torchvision")), model, "torchvision")
