"""Trained models by name: `load_pretrained("tiny-imagenet")` ships with the package, others download once."""

from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from vit_from_scratch.data.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.errors import InputError, reason, unknown_name
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.model.modes import shapes_only
from vit_from_scratch.model.vit import VisionTransformer, build_model
from vit_from_scratch.pretrained.releases import RELEASES, SHIPPED, Release, is_shipped, shipped_classes

if TYPE_CHECKING:
    from vit_from_scratch.training.self_supervised import SelfSupervised


def load_pretrained(name: str) -> VisionTransformer:
    """Load a trained model by name.

    Four ship with the package, all plain ViTs with class token and learned positions: "cifar10", of the
    recipe `cifar10-30min-cpu-plain`, 32 x 32 pixels, patches of 4; "tiny-imagenet", 64 x 64 pixels, patches
    of 8, 200 classes, into which the book looks, of the recipes `tiny-imagenet-plain`, `-longer` and
    `-finish`, one after the other, the mean of the weights with which the last two ended; and two of the same
    architecture that learned from the same photos without labels, "tiny-imagenet-masked-patches" and
    "tiny-imagenet-masked-pixels". Their heads are untrained: fine-tune them, or see `load_self_supervised`.
    The names of `RELEASES` are downloaded once, into the folder that VIT_WEIGHTS_DIR names or a cache in the
    home folder. What images they take says `input_scaling`.

    Returns:
        The model on the CPU, in evaluation mode, with float32 weights.

    Raises:
        InputError: an unknown name, or a download that fails.
    """
    if is_shipped(name):
        if SHIPPED[name] != "classes":
            return load_self_supervised(name).vit
        with _shipped_file(name) as path:
            return load_checkpoint(path).float()
    return _released(name, RELEASES[name])


def _released(name: str, release: Release) -> VisionTransformer:
    """Download other people's weights, once, and return the model that they are of."""
    from vit_from_scratch.pretrained.download import fetch  # imported here: what ships needs none of it
    from vit_from_scratch.pretrained.google import load_google_npz
    from vit_from_scratch.pretrained.torchvision import from_torchvision

    path = fetch(release.url, f"{name.replace('/', '_')}{Path(release.url).suffix}", release.sha256)
    if path.suffix == ".npz":
        with shapes_only():
            model = build_model(release.variant, image_size=release.image_size, gelu="tanh")
        load_google_npz(model, path)
        return model.eval()
    from torchvision.models import vit_b_16

    source = vit_b_16()
    try:
        source.load_state_dict(torch.load(path, weights_only=True))
    except Exception as error:  # a damaged file fails in many ways
        raise InputError(
            f"{path} cannot be read ({reason(error)}): expected torchvision's weights. "
            "Delete it and run the same again."
        ) from error
    return from_torchvision(source)


def load_self_supervised(name: str) -> "SelfSupervised":
    """Load a shipped model that learned without labels, with what its task needs beside the ViT.

    Args:
        name: "tiny-imagenet-masked-patches" (appendix B.1.2) or "tiny-imagenet-masked-pixels" (not the
            paper's).

    Returns:
        The model on the CPU, in evaluation mode, with float32 weights; `vit` is the ViT in it.

    Raises:
        InputError: another name.
    """
    names = [name for name, objective in SHIPPED.items() if objective != "classes"]
    if name not in names:
        raise unknown_name("model without labels", name, names)
    from vit_from_scratch.training.pretraining import (
        load_pretraining,  # imported here: most want the ViT alone
    )

    with _shipped_file(name) as path:
        return load_pretraining(path)


def _shipped_file(name: str) -> AbstractContextManager[Path]:
    """Give the file of a shipped model for a while."""
    return resources.as_file(resources.files("vit_from_scratch").joinpath("weights", f"{name}.safetensors"))


def input_scaling(name: str) -> Normalisation:
    """Return how images are scaled for a trained model: a function from bytes (B, 3, H, W) to what it takes.

    Raises:
        InputError: an unknown name.
    """
    return NORMALISATIONS["half" if is_shipped(name) else RELEASES[name].scaling]


def class_names(name: str) -> tuple[str, ...]:
    """Return the K class names of a trained model, in the order of its logits.

    Raises:
        InputError: an unknown name, or a model that learned without labels.
    """
    if is_shipped(name):
        return shipped_classes(name)
    from torchvision.models import ViT_B_16_Weights  # imported here: only the released models need it

    return tuple(ViT_B_16_Weights.IMAGENET1K_V1.meta["categories"])
