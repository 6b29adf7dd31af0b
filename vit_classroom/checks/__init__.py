"""Judge a reader's own function or class, and name the mistake when there is one.

Every check draws random input, works out what must come of it before the reader's code runs, and prints one
line when values and gradients agree. When they do not, the result is also compared with the results of
well-known mistakes, so that the message can say which one it was. Chapters, tests and graders call the same
checks. Every check takes `seed=N`, too, which draws the same inputs again; without it they are new each time.
"""

from vit_classroom.checks.attention import attention, multi_head_attention
from vit_classroom.checks.attention_distance import (
    attention_distance,
    mean_distance,
    patch_distances,
    reach,
    share_by_ring,
)
from vit_classroom.checks.attention_maps import (
    best_head,
    centre_of_mass,
    hide_patches,
    rollout,
    share_on_object,
)
from vit_classroom.checks.encoder import block, encoder, mlp
from vit_classroom.checks.exercises_build import (
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
from vit_classroom.checks.filters import (
    half_overlap,
    participation_ratio,
    principal_angles,
    principal_components,
    redraw,
    space_overlap,
)
from vit_classroom.checks.fine_tuning import (
    decay_to_start,
    grey_weight,
    least_squares,
    nearest_mean,
    polyak,
)
from vit_classroom.checks.hybrid import bottleneck, resnet_stem, same_padding, standardised_conv
from vit_classroom.checks.hybrid_exercises import first_cost, pre_activation, window
from vit_classroom.checks.masked_patches import colour_targets, corrupted, masked_loss
from vit_classroom.checks.masked_pixels import downsized_targets, standardised_patches, visible_only
from vit_classroom.checks.norms import group_norm, standardised
from vit_classroom.checks.patches import patch_embedding, patchify, unpatchify
from vit_classroom.checks.positions import (
    additive_share,
    centred_similarity,
    resize_table,
    similarity_maps,
)
from vit_classroom.checks.sandbox import CheckFailed
from vit_classroom.checks.scaling import attention_bytes, block_flops, roofline
from vit_classroom.checks.scaling_exercises import checkpointed_bytes, crossover_side, deepest
from vit_classroom.checks.small_data import erase, mixup, muon_step, neighbours, orthogonalised
from vit_classroom.checks.tokens import token_sequence
from vit_classroom.checks.training import (
    adamw,
    clipped,
    cross_entropy,
    schedule,
    smoothed_cross_entropy,
    votes,
)
from vit_classroom.checks.vit import vision_transformer

__all__ = [
    "CheckFailed",
    "adamw",
    "additive_share",
    "attention",
    "attention_bytes",
    "attention_distance",
    "best_head",
    "block",
    "block_flops",
    "block_with_dropout",
    "bottleneck",
    "centre_of_mass",
    "centred_similarity",
    "checkpointed_bytes",
    "clipped",
    "colour_targets",
    "corrupted",
    "cross_entropy",
    "crossover_side",
    "decay_to_start",
    "deepest",
    "downsized_targets",
    "encoder",
    "erase",
    "first_cost",
    "grey_weight",
    "grid_position",
    "group_norm",
    "half_overlap",
    "hide_patches",
    "layer_norm",
    "least_squares",
    "masked_attention",
    "masked_loss",
    "mean_distance",
    "mean_vit",
    "mixup",
    "mlp",
    "multi_head_attention",
    "muon_step",
    "nearest_mean",
    "neighbours",
    "optional_class_token",
    "orthogonalised",
    "overlapping_patches",
    "participation_ratio",
    "patch_distances",
    "patch_embedding",
    "patchify",
    "polyak",
    "pre_activation",
    "predicted_operations",
    "predicted_parameters",
    "principal_angles",
    "principal_components",
    "qkv_from_jax",
    "reach",
    "redraw",
    "resize_table",
    "resnet_stem",
    "rollout",
    "roofline",
    "same_padding",
    "schedule",
    "share_by_ring",
    "share_on_object",
    "similarity_maps",
    "smoothed_cross_entropy",
    "space_overlap",
    "standardised",
    "standardised_conv",
    "standardised_patches",
    "streamed_attention",
    "stretch_positions",
    "token_sequence",
    "unpatchify",
    "visible_only",
    "vision_transformer",
    "votes",
    "window",
]
