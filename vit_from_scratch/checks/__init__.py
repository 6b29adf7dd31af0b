"""Judge a reader's own function or class, and name the mistake when there is one.

Every check draws random input, works out what must come of it before the reader's code runs, and prints one
line when values and gradients agree. When they do not, the result is also compared with the results of
well-known mistakes, so that the message can say which one it was. Chapters, tests and graders call the same
checks.
"""

from vit_from_scratch.checks.attention import attention, multi_head_attention
from vit_from_scratch.checks.encoder import block, mlp
from vit_from_scratch.checks.hybrid import bottleneck, resnet_stem, same_padding, standardised_conv
from vit_from_scratch.checks.hybrid_exercises import first_cost, pre_activation, window
from vit_from_scratch.checks.norms import group_norm, standardised
from vit_from_scratch.checks.patches import patch_embedding, patchify, unpatchify
from vit_from_scratch.checks.sandbox import CheckFailed
from vit_from_scratch.checks.small_data import erase, mixup, muon_step, neighbours, orthogonalised
from vit_from_scratch.checks.tokens import token_sequence
from vit_from_scratch.checks.training import (
    adamw,
    clipped,
    cross_entropy,
    schedule,
    smoothed_cross_entropy,
    votes,
)
from vit_from_scratch.checks.vit import vision_transformer

__all__ = [
    "CheckFailed",
    "adamw",
    "attention",
    "block",
    "bottleneck",
    "clipped",
    "cross_entropy",
    "erase",
    "first_cost",
    "group_norm",
    "mixup",
    "mlp",
    "multi_head_attention",
    "muon_step",
    "neighbours",
    "orthogonalised",
    "patch_embedding",
    "patchify",
    "pre_activation",
    "resnet_stem",
    "same_padding",
    "schedule",
    "smoothed_cross_entropy",
    "standardised",
    "standardised_conv",
    "token_sequence",
    "unpatchify",
    "vision_transformer",
    "votes",
    "window",
]
