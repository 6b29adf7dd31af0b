"""Frozen features in .safetensors files that say where they came from."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import torch
from safetensors.torch import save as serialise
from torch import Tensor

from vit_from_scratch.errors import InputError, shown
from vit_from_scratch.files import write_atomically, writing
from vit_from_scratch.inputs import require_labels
from vit_from_scratch.model.checkpoints import read_safetensors

FORMAT = "vit-features-1"

LARGEST = 1e18
"""What features may be at most: the squares of larger ones are infinite in float32."""

COMPARED = {
    "model": lambda one: f"{one.origin.model} {one.origin.model_sha256[:8]}",
    "image size": lambda one: " x ".join(map(str, one.origin.image_size)),
    "layer": lambda one: "the normalised last" if one.origin.layer is None else one.origin.layer,
    "token": lambda one: one.origin.token,
    "set of classes": lambda one: ", ".join(map(str, one.origin.class_names)),
    "width": lambda one: one.values.shape[1],
}
"""What must be the same in files that are compared, and how messages show it."""


@dataclass(frozen=True)
class Origin:
    """Where features came from.

    Attributes:
        model_sha256: the checksum of the model's weights.
        model: what the model was asked for by.
        data: the name of the data set.
        part: "train", "validation" or "test".
        image_size: (H, W) of the images.
        layer: 0 to L; None for the normalised last one.
        token: "class" or "mean".
        class_names: K names, in the order of the labels.
    """

    model_sha256: str
    model: str
    data: str
    part: str
    image_size: tuple[int, int]
    layer: int | None
    token: str
    class_names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Features:
    """Features (N, D), float32, and labels (N,) of one part of a data set, and where they came from."""

    values: Tensor
    labels: Tensor
    origin: Origin


def write_features(path: Path, features: Features) -> None:
    """Write features to FILE.safetensors.

    Raises:
        InputError: values that no classifier can be fitted to, or a place that cannot be written to.
    """
    _check(features, f"what {features.origin.model} makes of {features.origin.data}")
    tensors = {"features": features.values.contiguous(), "labels": features.labels.contiguous()}
    with writing(path):
        metadata = {"format": FORMAT, "origin": json.dumps(asdict(features.origin))}
        write_atomically(path, serialise(tensors, metadata))


def read_features(path: Path) -> Features:
    """Read a file of features.

    Raises:
        InputError: it is something else, or damaged; or its values are such that no classifier can be fitted.
    """
    wanted = "features as `vit features` writes them to a .safetensors file. Write them again"
    if not path.is_file():
        raise InputError(f"no file at {path}: expected {wanted}.")
    tensors, metadata = read_safetensors(path, wanted)
    try:
        origin = json.loads(metadata["origin"])
        origin |= {"image_size": tuple(origin["image_size"]), "class_names": tuple(origin["class_names"])}
        features = Features(tensors["features"], tensors["labels"], Origin(**origin))
        if metadata["format"] != FORMAT:
            raise KeyError(FORMAT)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} does not hold features: expected {wanted}.") from error
    _check(features, str(path))
    return features


def _check(features: Features, where: str) -> None:
    values = features.values
    if values.ndim != 2 or not len(values) or values.dtype != torch.float32:
        raise InputError(
            f"{where}: features of shape {tuple(values.shape)} and type {values.dtype}: expected (N, D) in "
            "float32, of one image or more. Write them again."
        )
    if not (values.abs() <= LARGEST).all():
        raise InputError(
            f"{where}: features that are not finite, or beyond {LARGEST:g}: expected a trained model's. Take "
            "another model."
        )
    require_labels(features.labels, len(values), len(features.origin.class_names))


def check_comparable(files: Sequence[tuple[Path, Features]]) -> None:
    """Refuse files of different models, layers, tokens, image sizes or classes, or of the same images.

    A classifier is measured on images that it has never seen.

    Raises:
        InputError: two of the files cannot be compared.
    """
    for (first, one), (path, other) in combinations(files, 2):
        for said, value in COMPARED.items():
            if value(one) != value(other):
                raise InputError(
                    f"{path} has features of another {said} than {first} ({shown(value(other))}, "
                    f"{shown(value(one))}): expected the same in all files. Write one of them again."
                )
        data, part = one.origin.data, one.origin.part
        if (data, part) == (other.origin.data, other.origin.part):
            raise InputError(
                f"{path} has features of the same images as {first} (the {part} part of {data}): "
                "expected another part in each file. Write one of them again, with another --part."
            )
