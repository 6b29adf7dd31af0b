from .attention import MultiHeadSelfAttention
from .config import ViTConfig
from .encoder import Block, Encoder, Mlp
from .patches import PatchEmbedding, patchify, unpatchify
from .resnet import ResNet, build_resnet
from .stem_config import ResNetConfig, StemConfig
from .tokens import TokenSequence
from .vit import VisionTransformer, build_model

__all__ = [
    "Block",
    "Encoder",
    "Mlp",
    "MultiHeadSelfAttention",
    "PatchEmbedding",
    "ResNet",
    "ResNetConfig",
    "StemConfig",
    "TokenSequence",
    "ViTConfig",
    "VisionTransformer",
    "build_model",
    "build_resnet",
    "patchify",
    "unpatchify",
]
