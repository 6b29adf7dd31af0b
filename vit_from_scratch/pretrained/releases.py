"""The trained models that have a name, and where they are. Nothing here needs PyTorch."""

from dataclasses import dataclass

SHIPPED = {
    "cifar10": "classes",
    "mnist": "classes",
    "tiny-imagenet": "classes",
    "tiny-imagenet-masked-patches": "masked-patches",
    "tiny-imagenet-masked-pixels": "masked-pixels",
}
"""Checkpoints in the package, and what our runs trained them for. weights/NAME.safetensors is the model, with
what its task needs if it read no labels; NAME.txt has the names of its classes, one a line."""


@dataclass(frozen=True)
class Release:
    """A checkpoint that others have published, for the 1,000 classes of ImageNet.

    Attributes:
        variant: as `build_model` takes it.
        image_size: side of its images in pixels.
        url: where it is.
        sha256: the beginning of its checksum; "" where none is published.
        scaling: "half" for images in [-1, 1], "imagenet" for the mean and standard deviation of each colour.
    """

    variant: str
    image_size: int
    url: str
    sha256: str = ""
    scaling: str = "half"


PLAIN, LIGHT = "none-wd_0.03-do_0.0-sd_0.0", "light1-wd_0.03-do_0.0-sd_0.0"
MEDIUM, DROPPING = "medium1-wd_0.1-do_0.0-sd_0.0", "medium1-wd_0.1-do_0.1-sd_0.1"

AUGREG = {
    "Ti/16": (PLAIN, PLAIN, "0.03"),
    "S/16": (LIGHT, LIGHT, "0.03"),
    "B/16": (MEDIUM, MEDIUM, "0.01"),
    "B/32": ("medium1-wd_0.03-do_0.0-sd_0.0", "light1-wd_0.1-do_0.0-sd_0.0", "0.03"),
    "L/16": (DROPPING, DROPPING, "0.01"),
    "R50+L/32": (DROPPING, "medium2-wd_0.1-do_0.0-sd_0.0", "0.01"),
}
"""Models of Steiner et al. (2022), fine-tuned on ImageNet: how those for 224 and for 384 pixels were
regularised, and the learning rate, as in their file names."""

GOOGLE = "https://storage.googleapis.com/vit_models/"
RELEASES = {
    variant + ending: Release(
        variant,
        size,
        f"{GOOGLE}augreg/{variant.replace('+', '_').replace('/', '_')}-i21k-300ep-lr_0.001-aug_{settings}"
        f"--imagenet2012-steps_20k-lr_{rate}-res_{size}.npz",
    )
    for variant, (*both, rate) in AUGREG.items()
    for ending, size, settings in zip(("", "-384"), (224, 384), both, strict=True)
} | {
    "R50+B/16-384": Release("R50+B/16", 384, f"{GOOGLE}imagenet21k%2Bimagenet2012/R50%2BViT-B_16.npz"),
    "torchvision-B/16": Release(
        "B/16", 224, "https://download.pytorch.org/models/vit_b_16-c867db91.pth", "c867db91", "imagenet"
    ),
}
"""Google's models (after ImageNet-21k, fine-tuned on ImageNet) and torchvision's, by name. Google's were
trained with the tanh form of GELU."""
