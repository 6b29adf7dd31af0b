"""Other people's weights in our model, and trained weights by name."""

from vit_from_scratch.pretrained.google import load_google_npz
from vit_from_scratch.pretrained.registry import class_names, input_scaling, load_pretrained
from vit_from_scratch.pretrained.timm import from_timm
from vit_from_scratch.pretrained.torchvision import from_torchvision
from vit_from_scratch.pretrained.transformers import from_transformers

__all__ = [
    "class_names",
    "from_timm",
    "from_torchvision",
    "from_transformers",
    "input_scaling",
    "load_google_npz",
    "load_pretrained",
]
