from .errors import InputError
from .model.config import ViTConfig
from .model.vit import VisionTransformer, build_model

__version__: str

__all__ = ["InputError", "ViTConfig", "VisionTransformer", "__version__", "build_model"]
