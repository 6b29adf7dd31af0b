from .attention_distance import attention_distances, mean_attention_distance
from .attention_maps import (
    attention_rollout,
    class_token_maps,
    layer_attention,
    object_share,
    rollout_maps,
)
from .embedding_filters import FilterComponents, embedding_filter_components
from .position_similarity import position_similarity
from .token_path import layer_tokens, token_colours

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
