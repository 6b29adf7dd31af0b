"""Part I, build it: from pixels to logits, one file a chapter."""

from vit_from_scratch.model.attention import MultiHeadSelfAttention
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.encoder import Block, Encoder, Mlp
from vit_from_scratch.model.patches import PatchEmbedding, patchify, unpatchify
from vit_from_scratch.model.tokens import TokenSequence
from vit_from_scratch.model.vit import VisionTransformer, build_model

__all__ = [
    "Block",
    "Encoder",
    "Mlp",
    "MultiHeadSelfAttention",
    "PatchEmbedding",
    "TokenSequence",
    "ViTConfig",
    "VisionTransformer",
    "build_model",
    "patchify",
    "unpatchify",
]
