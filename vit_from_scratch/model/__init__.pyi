from .attention import MultiHeadSelfAttention
from .config import ViTConfig
from .encoder import Block, Encoder, Mlp
from .patches import PatchEmbedding, patchify, unpatchify
from .stem_config import ResNetConfig, StemConfig
from .tokens import TokenSequence
from .vit import VisionTransformer, build_model

__all__ = [
    "Block",
    "Encoder",
    "Mlp",
    "MultiHeadSelfAttention",
    "PatchEmbedding",
    "ResNetConfig",
    "StemConfig",
    "TokenSequence",
    "ViTConfig",
    "VisionTransformer",
    "build_model",
    "patchify",
    "unpatchify",
]
