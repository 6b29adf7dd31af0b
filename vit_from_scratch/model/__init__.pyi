from .attention import MultiHeadSelfAttention
from .checkpoints import load_checkpoint, save_checkpoint
from .config import ViTConfig
from .cost import count_parameters, forward_flops
from .encoder import Block, Encoder, Mlp
from .patches import PatchEmbedding, patchify, unpatchify
from .stem_config import ResNetConfig, StemConfig
from .tokens import TokenSequence, resize_positions
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
    "count_parameters",
    "forward_flops",
    "load_checkpoint",
    "patchify",
    "resize_positions",
    "save_checkpoint",
    "unpatchify",
]
