from .google import load_google_npz
from .registry import class_names, input_scaling, load_pretrained, load_self_supervised
from .timm import from_timm
from .torchvision import from_torchvision

__all__ = [
    "class_names",
    "from_timm",
    "from_torchvision",
    "input_scaling",
    "load_google_npz",
    "load_pretrained",
    "load_self_supervised",
]
