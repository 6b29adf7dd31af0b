"""The trained models that have a name, and where they are. Nothing here needs PyTorch."""

from dataclasses import dataclass
from importlib import resources

from vit_from_scratch.errors import InputError, unknown_name

SHIPPED = {
    "cifar10": "classes",
    "tiny-imagenet": "classes",
    "tiny-imagenet-masked-patches": "masked-patches",
    "tiny-imagenet-masked-pixels": "masked-pixels",
}
"""Checkpoints that our own runs trained, inside the package, and what they were trained for.
weights/NAME.safetensors is the model, with what its task needs if it read no labels; NAME.txt has the names
of the classes, one a line, of a model that knows some."""


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


def is_shipped(name: str) -> bool:
    """Say whether a trained model comes with the package; it is one of `RELEASES` if not.

    Raises:
        InputError: no model has that name.
    """
    if not isinstance(name, str) or (name not in SHIPPED and name not in RELEASES):
        raise unknown_name("pretrained model", name, [*SHIPPED, *RELEASES])
    return name in SHIPPED


def shipped_classes(name: str) -> tuple[str, ...]:
    """Return the K class names of one of the `SHIPPED` models, in the order of its logits.

    Raises:
        InputError: the model was trained without labels.
    """
    if SHIPPED[name] != "classes":
        raise InputError(
            f"{name} was trained without labels ({SHIPPED[name]}) and knows no classes: expected a model "
            "that was trained on classes. Fine-tune it first."
        )
    names = resources.files("vit_from_scratch").joinpath("weights", f"{name}.txt")
    return tuple(names.read_text("utf-8").splitlines())
