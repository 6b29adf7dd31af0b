"""Trained models by name: `load_pretrained("cifar10")` ships with the package."""

from importlib import resources

from vit_from_scratch.errors import unknown_name
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.model.vit import VisionTransformer

SHIPPED = {"cifar10": "cifar10.safetensors"}
"""Checkpoints that our own runs trained, inside the package."""


def load_pretrained(name: str) -> VisionTransformer:
    """Load a trained model by name.

    "cifar10" is the plain ViT of the recipe `cifar10-30min-cpu-plain`: 32 x 32 pixels, patches of 4, learned
    positions, class token. It takes images scaled to [-1, 1], as `load_dataset("cifar10").normalise` does.
    Its weights are stored in half precision and come as float32.

    Returns:
        The model on the CPU, in evaluation mode.

    Raises:
        InputError: an unknown name.
    """
    if name not in SHIPPED:
        raise unknown_name("pretrained model", name, SHIPPED)
    with resources.as_file(resources.files("vit_from_scratch").joinpath("weights", SHIPPED[name])) as path:
        return load_checkpoint(path).float()
