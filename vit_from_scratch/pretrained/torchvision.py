"""torchvision's Vision Transformers as ours."""

from typing import Any

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
    "ln_1": "attention_norm",
    "self_attention.out_proj": "attention.projection",
    "ln_2": "mlp_norm",
    "mlp.0": "mlp.hidden",
    "mlp.3": "mlp.output",
}

IN_MODEL = ("conv_proj", "heads", "image_size", "patch_size", "hidden_dim", "mlp_dim", "dropout")
IN_MODEL += tuple(f"encoder.layers.encoder_layer_0.{part}" for part in ("num_heads", "ln_1.eps", "mlp.1"))
"""What is read of a model."""


def from_torchvision(model: nn.Module) -> VisionTransformer:
    """Convert a `torchvision.models.VisionTransformer` to ours, with the same logits.

    Args:
        model: torchvision's model, with or without the hidden layer before the head, or with a linear head of
            your own in its place; it is left as it is.

    Returns:
        Our model in evaluation mode, its weights copied, in their type.

    Raises:
        InputError: another model, or one with a convolutional stem or another head.
    """
    vit: Any = model
    if lacks := lacking(vit, IN_MODEL):
        raise InputError(
            f"a {type(model).__name__}: expected torchvision's VisionTransformer, such as "
            f"torchvision.models.vit_b_16(), and this one lacks {lacks[0]}."
        )
    if not isinstance(vit.conv_proj, nn.Conv2d):
        raise refuse("torchvision", "a convolutional stem")
    block = vit.encoder.layers[0]
    heads = _heads(vit)
    head, hidden = heads[-1][1], heads[0][1] if len(heads) > 1 else None
    config = ViTConfig(
        image_size=vit.image_size,
        patch_size=vit.patch_size,
        channels=vit.conv_proj.in_channels,
        dim=vit.hidden_dim,
        depth=len(vit.encoder.layers),
        heads=block.num_heads,
        mlp_dim=vit.mlp_dim,
        num_classes=head.out_features,
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
                **{
                    name: ours
                    for (name, _), ours in zip(reversed(heads), ("head", "representation.0"), strict=False)
                },
            }
        ),
    }
    for layer in range(config.depth):
        for kind in ("weight", "bias"):
            packed = f"encoder.layers.encoder_layer_{layer}.self_attention.in_proj_{kind}"
            names[packed] = f"encoder.blocks.{layer}.attention.qkv.{kind}"
    names |= block_names("encoder.layers.encoder_layer_{}.", PARTS, config.depth)
    return proved(built(config, renamed(state, names, "torchvision")), model, "torchvision")


def _heads(vit: Any) -> list[tuple[str, nn.Linear]]:
    """Return the dense layers of the head, with their names: the last, and before it any hidden one.

    Users put a layer of their own in the place of `heads`, or inside; dropout counts in training only.

    Raises:
        InputError: a head of other parts.
    """
    named = [
        (name, part) for name, part in vit.heads.named_modules(prefix="heads") if not list(part.children())
    ]
    parts = [(name, part) for name, part in named if not isinstance(part, nn.Dropout | nn.Identity)]
    kinds = [type(part) for _, part in parts]
    if kinds not in ([nn.Linear], [nn.Linear, nn.Tanh, nn.Linear]):
        what = ", ".join(kind.__name__ for kind in kinds)
        raise refuse("torchvision", f"a head of {what or 'nothing'} in place of one Linear")
    return [(name, part) for name, part in parts if isinstance(part, nn.Linear)]
