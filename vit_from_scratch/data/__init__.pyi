from .augmentation import PRESETS, Augmentation
from .config import DataConfig
from .datasets import load_dataset, open_dataset
from .in_memory import ImageData
from .normalisation import Normalisation
from .packing import pack
from .photos import load_photo, open_photo
from .random_changes import augment, blend
from .streaming import PhotoData
from .tars import open_shards

__all__ = [
    "PRESETS",
    "Augmentation",
    "DataConfig",
    "ImageData",
    "Normalisation",
    "PhotoData",
    "augment",
    "blend",
    "load_dataset",
    "load_photo",
    "open_dataset",
    "open_photo",
    "open_shards",
    "pack",
]
