from .augmentation import PRESETS, Augmentation
from .config import DataConfig
from .dataset import DataSet, ImageData
from .datasets import load_dataset, open_dataset
from .normalisation import Normalisation
from .photos import load_photo, open_photo
from .random_changes import augment, blend
from .streaming import PhotoData

__all__ = [
    "PRESETS",
    "Augmentation",
    "DataConfig",
    "DataSet",
    "ImageData",
    "Normalisation",
    "PhotoData",
    "augment",
    "blend",
    "load_dataset",
    "load_photo",
    "open_dataset",
    "open_photo",
]
