"""Judge a reader's own function or class, and name the mistake when there is one.

Every check draws random input, works out what must come of it before the reader's code runs, and prints one
line when values and gradients agree. When they do not, the result is also compared with the results of
well-known mistakes, so that the message can say which one it was. Chapters, tests and graders call the same
checks.
"""

from vit_from_scratch.checks.attention import attention, multi_head_attention
from vit_from_scratch.checks.encoder import block, encoder, mlp
from vit_from_scratch.checks.exercises_build import (
    block_with_dropout,
    grid_position,
    layer_norm,
    masked_attention,
    mean_vit,
    optional_class_token,
    overlapping_patches,
    predicted_operations,
    predicted_parameters,
    qkv_from_jax,
    streamed_attention,
    stretch_positions,
)
from vit_from_scratch.checks.hybrid import bottleneck, same_padding, standardised_conv
from vit_from_scratch.checks.patches import patch_embedding, patchify, unpatchify
from vit_from_scratch.checks.sandbox import CheckFailed
from vit_from_scratch.checks.tokens import token_sequence
from vit_from_scratch.checks.vit import vision_transformer

__all__ = [
    "CheckFailed",
    "attention",
    "block",
    "block_with_dropout",
    "bottleneck",
    "encoder",
    "grid_position",
    "layer_norm",
    "masked_attention",
    "mean_vit",
    "mlp",
    "multi_head_attention",
    "optional_class_token",
    "overlapping_patches",
    "patch_embedding",
    "patchify",
    "predicted_operations",
    "predicted_parameters",
    "qkv_from_jax",
    "same_padding",
    "standardised_conv",
    "streamed_attention",
    "stretch_positions",
    "token_sequence",
    "unpatchify",
    "vision_transformer",
]
