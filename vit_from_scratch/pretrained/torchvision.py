"""torchvision's Vision Transformers as ours."""

from typing import Any

from torch import nn

from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained.conversion import converted, described, gelu_of, spelt_out, unsupported

BLOCK, OURS = "encoder.layers.encoder_layer_{}.", "encoder.blocks.{}."
NAMES = {
    "class_token": "tokens.class_token",
    "encoder.pos_embedding": "tokens.position",
    "conv_proj": "patch_embedding.projection",
    BLOCK + "ln_1": OURS + "attention_norm",
    BLOCK + "self_attention.in_proj_weight": OURS + "attention.qkv.weight",
    BLOCK + "self_attention.in_proj_bias": OURS + "attention.qkv.bias",
    BLOCK + "self_attention.out_proj": OURS + "attention.projection",
    BLOCK + "ln_2": OURS + "mlp_norm",
    BLOCK + "mlp.0": OURS + "mlp.hidden",
    BLOCK + "mlp.3": OURS + "mlp.output",
    "encoder.ln": "encoder.norm",
}


def from_torchvision(model: nn.Module) -> VisionTransformer:
    """Convert a `torchvision.models.VisionTransformer` to ours, with the same logits.

    It may have a hidden layer before the head, or a linear head of your own in its place. Ours is in
    evaluation mode, its weights copied, in their type.

    Raises:
        InputError: another model, or one with a convolutional stem or another head.
    """
    expected = "torchvision's VisionTransformer, such as torchvision.models.vit_b_16()"
    config = described(_config, model, expected)
    heads = [name for name, _ in _heads(model)]
    names = NAMES | dict(zip(reversed(heads), ("head", "representation.0"), strict=False))
    return converted(model, "torchvision", config, model.state_dict(), spelt_out(names, config.depth))


def _config(vit: Any) -> ViTConfig:
    """Describe torchvision's model as one of ours, or refuse it."""
    block = vit.encoder.layers[0]
    if not isinstance(vit.conv_proj, nn.Conv2d):
        raise unsupported("torchvision", "a convolutional stem")
    *hidden, head = (part for _, part in _heads(vit))
    return ViTConfig(
        image_size=vit.image_size,
        patch_size=vit.patch_size,
        channels=vit.conv_proj.in_channels,
        dim=vit.hidden_dim,
        depth=len(vit.encoder.layers),
        heads=block.num_heads,
        mlp_dim=vit.mlp_dim,
        num_classes=head.out_features,
        dropout=vit.dropout,
        representation_size=hidden[0].out_features if hidden else None,
        layer_norm_eps=block.ln_1.eps,
        gelu=gelu_of(block.mlp[1], "torchvision"),
    )


def _heads(vit: Any) -> list[tuple[str, nn.Linear]]:
    """Return the dense layers of the head, with their names: the last, and before it any hidden one.

    Users put a layer of their own in the place of `heads`, or inside; dropout counts in training only.

    Raises:
        InputError: a head of other parts.
    """
    passed = nn.Sequential | nn.Dropout | nn.Identity
    named = vit.heads.named_modules(prefix="heads")
    parts = [(name, part) for name, part in named if not isinstance(part, passed)]
    kinds = [type(part) for _, part in parts]
    if kinds not in ([nn.Linear], [nn.Linear, nn.Tanh, nn.Linear]):
        what = ", ".join(kind.__name__ for kind in kinds)
        raise unsupported("torchvision", f"a head of {what or 'nothing'} in place of one Linear")
    return [(name, part) for name, part in parts if isinstance(part, nn.Linear)]
