"""Trained models by name: `load_pretrained("cifar10")` ships with the package, others download once."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import torch

from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.model.vit import VisionTransformer, build_model
from vit_from_scratch.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.pretrained.download import fetch
from vit_from_scratch.pretrained.google import load_google_npz
from vit_from_scratch.pretrained.torchvision import from_torchvision

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

SHIPPED = {"cifar10": "cifar10.safetensors"}
"""Checkpoints that our own runs trained, inside the package."""


@dataclass(frozen=True)
class Release:
    """A checkpoint that others have published, for the 1,000 classes of ImageNet.

    Attributes:
        variant: as `build_model` takes it.
        image_size: side of its images in pixels.
        url: where it is.
        sha256: the beginning of its checksum; "" where none is published.
        scaling: "half" for images in [-1, 1], "imagenet" for the mean and deviation of each colour.
    """

    variant: str
    image_size: int
    url: str
    sha256: str = ""
    scaling: str = "half"


def _augreg(model: str, settings: str, rate: str, size: int) -> str:
    """Return the address of one of the models of Steiner et al. (2021), fine-tuned on ImageNet."""
    return (
        f"https://storage.googleapis.com/vit_models/augreg/{model}-i21k-300ep-lr_0.001-{settings}"
        f"--imagenet2012-steps_20k-lr_{rate}-res_{size}.npz"
    )


PLAIN, LIGHT = "aug_none-wd_0.03-do_0.0-sd_0.0", "aug_light1-wd_0.03-do_0.0-sd_0.0"
MEDIUM, DROPPING = "aug_medium1-wd_0.1-do_0.0-sd_0.0", "aug_medium1-wd_0.1-do_0.1-sd_0.1"

RELEASES = {
    "Ti/16": Release("Ti/16", 224, _augreg("Ti_16", PLAIN, "0.03", 224)),
    "Ti/16-384": Release("Ti/16", 384, _augreg("Ti_16", PLAIN, "0.03", 384)),
    "S/16": Release("S/16", 224, _augreg("S_16", LIGHT, "0.03", 224)),
    "S/16-384": Release("S/16", 384, _augreg("S_16", LIGHT, "0.03", 384)),
    "B/16": Release("B/16", 224, _augreg("B_16", MEDIUM, "0.01", 224)),
    "B/16-384": Release("B/16", 384, _augreg("B_16", MEDIUM, "0.01", 384)),
    "B/32": Release("B/32", 224, _augreg("B_32", "aug_medium1-wd_0.03-do_0.0-sd_0.0", "0.03", 224)),
    "B/32-384": Release("B/32", 384, _augreg("B_32", "aug_light1-wd_0.1-do_0.0-sd_0.0", "0.03", 384)),
    "L/16": Release("L/16", 224, _augreg("L_16", DROPPING, "0.01", 224)),
    "L/16-384": Release("L/16", 384, _augreg("L_16", DROPPING, "0.01", 384)),
    "R50+L/32": Release("R50+L/32", 224, _augreg("R50_L_32", DROPPING, "0.01", 224)),
    "R50+L/32-384": Release(
        "R50+L/32", 384, _augreg("R50_L_32", "aug_medium2-wd_0.1-do_0.0-sd_0.0", "0.01", 384)
    ),
    "R50+B/16-384": Release(
        "R50+B/16",
        384,
        "https://storage.googleapis.com/vit_models/imagenet21k%2Bimagenet2012/R50%2BViT-B_16.npz",
    ),
    "torchvision-B/16": Release(
        "B/16", 224, "https://download.pytorch.org/models/vit_b_16-c867db91.pth", "c867db91", "imagenet"
    ),
}
"""Google's models (after ImageNet-21k, fine-tuned on ImageNet) and torchvision's, by name. Google's were
trained with the tanh form of GELU."""


def load_pretrained(name: str) -> VisionTransformer:
    """Load a trained model by name.

    "cifar10" ships with the package: the plain ViT of the recipe `cifar10-30min-cpu-plain`, 32 x 32 pixels,
    patches of 4, learned positions, class token. The names of `RELEASES` are downloaded once, into the folder
    that VIT_WEIGHTS_DIR names or a cache in the home folder. What images they take says `input_scaling`.

    Returns:
        The model on the CPU, in evaluation mode, with float32 weights.

    Raises:
        InputError: an unknown name, or a download that fails.
    """
    if name in SHIPPED:
        with resources.as_file(
            resources.files("vit_from_scratch").joinpath("weights", SHIPPED[name])
        ) as path:
            return load_checkpoint(path).float()
    release = _release(name)
    path = fetch(release.url, f"{name.replace('/', '_')}{Path(release.url).suffix}", release.sha256)
    if path.suffix == ".npz":
        model = build_model(release.variant, image_size=release.image_size, gelu="tanh")
        load_google_npz(model, path)
        return model.eval()
    from torchvision.models import vit_b_16  # imported here: only this one needs it

    source = vit_b_16()
    try:
        source.load_state_dict(torch.load(path, weights_only=True))
    except Exception as error:  # a damaged file fails in many ways
        raise InputError(
            f"{path} cannot be read ({str(error).splitlines()[0]}): expected torchvision's weights. "
            "Delete it and run the same again."
        ) from error
    return from_torchvision(source)


def input_scaling(name: str) -> Normalisation:
    """Return how images are scaled for a trained model: a function from bytes (B, 3, H, W) to what it takes.

    Raises:
        InputError: an unknown name.
    """
    return NORMALISATIONS["half" if name in SHIPPED else _release(name).scaling]


def class_names(name: str) -> tuple[str, ...]:
    """Return the K class names of a trained model, in the order of its logits.

    Raises:
        InputError: an unknown name.
    """
    if name in SHIPPED:
        return CIFAR10
    _release(name)
    from torchvision.models import ViT_B_16_Weights  # imported here: only the released models need it

    return tuple(ViT_B_16_Weights.IMAGENET1K_V1.meta["categories"])


def _release(name: str) -> Release:
    if name not in RELEASES:
        raise unknown_name("pretrained model", name, [*SHIPPED, *RELEASES])
    return RELEASES[name]
