"""Trained models by name: `load_pretrained("tiny-imagenet")` ships with the package, others download once."""

import os
import urllib.error
import zipfile
from contextlib import AbstractContextManager
from http.client import HTTPException
from importlib import resources
from pathlib import Path
from ssl import SSLError
from typing import TYPE_CHECKING

import torch

from vit_from_scratch.data.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.errors import InputError, reason, unknown_name
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.model.modes import shapes_only
from vit_from_scratch.model.vit import VisionTransformer, build_model
from vit_from_scratch.paths import download_folder, typed_path
from vit_from_scratch.pretrained.releases import RELEASES, SHIPPED, Release
from vit_from_scratch.progress import progress_shown

if TYPE_CHECKING:
    from vit_from_scratch.training.self_supervised import SelfSupervised


def load_pretrained(name: str) -> VisionTransformer:
    """Load a trained model by name.

    Five ship with the package, all plain ViTs: "cifar10", of the recipe `cifar10-30min-cpu-plain`, 32 x 32
    pixels, patches of 4; "mnist", of the recipe `mnist`, 28 x 28 pixels, grey, patches of 4;
    "tiny-imagenet", the model of Part III, 64 x 64 pixels, patches of 8, 200 classes, the mean of the
    weights with which the recipes `tiny-imagenet-longer` and `-finish` ended; and two like it that learned
    from the same photos without labels, "tiny-imagenet-masked-patches" and "tiny-imagenet-masked-pixels",
    with untrained heads (see `load_self_supervised`). The names of `RELEASES` are downloaded once;
    `input_scaling` says how images are scaled.

    The model is on the CPU, in evaluation mode, with float32 weights.

    Raises:
        InputError: an unknown name, or a download that fails.
    """
    if not is_shipped(name):
        return _released(name, RELEASES[name])
    if SHIPPED[name] != "classes":
        return load_self_supervised(name).vit
    with _shipped_file(f"{name}.safetensors") as path:
        return load_checkpoint(path).float()


def is_shipped(name: str) -> bool:
    """Say whether a model is shipped or one of `RELEASES`; an `InputError` if no model has that name."""
    if not isinstance(name, str) or (name not in SHIPPED and name not in RELEASES):
        raise unknown_name("pretrained model", name, [*SHIPPED, *RELEASES])
    return name in SHIPPED


def _released(name: str, release: Release) -> VisionTransformer:
    """Download other people's weights, once, and return the model that they are of."""
    from vit_from_scratch.pretrained.google import load_google_npz  # imported here: what ships needs no other
    from vit_from_scratch.pretrained.torchvision import from_torchvision

    path = fetch(release.url, f"{name.replace('/', '_')}{Path(release.url).suffix}", release.sha256)
    if path.suffix == ".npz":
        with shapes_only():
            model = build_model(release.variant, image_size=release.image_size, gelu="tanh")
        load_google_npz(model, path)
        return model.eval()
    from torchvision.models import vit_b_16

    with shapes_only():  # its random start would take seconds, and draw from the caller's generator
        source = vit_b_16()
    try:
        source.load_state_dict(torch.load(path, weights_only=True), assign=True)
    except Exception as error:  # a damaged file fails in many ways
        raise InputError(
            f"{path} cannot be read ({reason(error)}): expected torchvision's weights. "
            "Delete it and run the same again."
        ) from error
    return from_torchvision(source)


def fetch(url: str, name: str, sha256: str = "") -> Path:
    """Return the path of a file from the web; on first use torch downloads it to the cache.

    It is stored as `name` in the folder that VIT_WEIGHTS_DIR names, or in a cache in the home folder.
    `sha256` is the beginning of its checksum; "" for a zip archive, such as .npz, which has its own.

    Raises:
        InputError: it cannot be fetched whole, or written; no broken file is left.
    """
    named = os.environ.get("VIT_WEIGHTS_DIR")
    folder = typed_path(named, "VIT_WEIGHTS_DIR") if named else download_folder("weights")
    target, part = folder / name, folder / f"{name}.{os.getpid()}.part"
    if os.path.isfile(target):  # unlike the path's own is_file, no error where it may not look
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            torch.hub.download_url_to_file(url, str(part), sha256 or None, progress=progress_shown())
            if not (sha256 or zipfile.is_zipfile(part)):  # its list is at the end
                raise ConnectionError("it was cut off")
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
    except (urllib.error.URLError, HTTPException, SSLError, TimeoutError, ConnectionError) as error:
        raise InputError(
            f"{name} cannot be downloaded ({error}): expected published weights at {url}. Connect to a "
            "network or try later."
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot write {target} ({reason(error)}): expected a folder that you may write to, with room in "
            "it. Free some space, or name another folder in VIT_WEIGHTS_DIR."
        ) from error
    except RuntimeError as error:  # torch's, of a checksum
        raise InputError(
            f"{url} arrived with another checksum than {sha256}: expected the published file. It was "
            "deleted; try again, and if it happens again, the published file has changed."
        ) from error
    return target


def load_self_supervised(name: str) -> "SelfSupervised":
    """Load a shipped model that learned without labels, with what its task needs besides the ViT, `vit`.

    It is "tiny-imagenet-masked-patches" (appendix B.1.2) or "tiny-imagenet-masked-pixels" (not the paper's),
    on the CPU, in evaluation mode, with float32 weights; an `InputError` refuses another name.
    """
    from vit_from_scratch.training.pretraining import load_pretraining  # here: most want the ViT alone

    names = [name for name, objective in SHIPPED.items() if objective != "classes"]
    if name not in names:
        raise unknown_name("model without labels", name, names)
    with _shipped_file(f"{name}.safetensors") as path:
        return load_pretraining(path)


def _shipped_file(name: str) -> AbstractContextManager[Path]:
    """Give a file of the package's `weights` for a while."""
    return resources.as_file(resources.files("vit_from_scratch").joinpath("weights", name))


def input_scaling(name: str) -> Normalisation:
    """Return what maps bytes (B, C, H, W) to what a trained model takes; an `InputError` for another name."""
    return NORMALISATIONS["half" if is_shipped(name) else RELEASES[name].scaling]


def class_names(name: str) -> tuple[str, ...]:
    """Return the K class names of a trained model, in the order of its logits.

    An `InputError` refuses an unknown name, and a model that learned without labels.
    """
    if not is_shipped(name):
        from torchvision.models import ViT_B_16_Weights  # imported here: only the released models need it

        return tuple(ViT_B_16_Weights.IMAGENET1K_V1.meta["categories"])
    if SHIPPED[name] != "classes":
        raise InputError(
            f"{name} was trained without labels ({SHIPPED[name]}) and knows no classes: expected a model "
            "that was trained on classes. Fine-tune it first."
        )
    with _shipped_file(f"{name}.txt") as path:
        return tuple(path.read_text("utf-8").splitlines())
