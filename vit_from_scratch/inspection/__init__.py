"""Part III, look inside: attention maps, distances, positions, filters, the tokens' path."""

from vit_from_scratch.inspection.attention_distance import attention_distances, mean_attention_distance
from vit_from_scratch.inspection.attention_maps import (
    attention_rollout,
    class_token_maps,
    layer_attention,
    object_share,
    rollout_maps,
)
from vit_from_scratch.inspection.embedding_filters import FilterComponents, embedding_filter_components
from vit_from_scratch.inspection.position_similarity import position_similarity
from vit_from_scratch.inspection.token_path import layer_tokens, token_colours

__all__ = [
    "FilterComponents",
    "attention_distances",
    "attention_rollout",
    "class_token_maps",
    "embedding_filter_components",
    "layer_attention",
    "layer_tokens",
    "mean_attention_distance",
    "object_share",
    "position_similarity",
    "rollout_maps",
    "token_colours",
]
