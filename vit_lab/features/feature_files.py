"""Files of frozen features: .safetensors, which says where they came from, or plain .npy for other tools."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from safetensors.torch import save as serialise
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically, writing
from vit_from_scratch.inputs import require_labels
from vit_from_scratch.model.checkpoints import read_safetensors

FORMAT = "vit-features-1"

COMPARED = {
    "model_sha256": "model",
    "image_size": "image size",
    "layer": "layer",
    "token": "token",
    "class_names": "set of classes",
}
"""What must be the same in files that are compared: fields of `Origin`, and what messages call them."""


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
    """Features (N, D) and labels (N,) of one part of a data set, and where they came from."""

    values: Tensor
    labels: Tensor
    origin: Origin


def write_features(path: Path, features: Features) -> list[Path]:
    """Write features to FILE.safetensors, or to FILE.npy with their labels in FILE.labels.npy.

    Returns:
        The files written.

    Raises:
        InputError: another ending, or a place that cannot be written to.
    """
    with writing(path):
        if path.suffix == ".safetensors":
            tensors = {"features": features.values.contiguous(), "labels": features.labels.contiguous()}
            metadata = {"format": FORMAT, "origin": json.dumps(asdict(features.origin))}
            write_atomically(path, serialise(tensors, metadata))
            return [path]
        beside = labels_path(path)
        for file, values in ((beside, features.labels), (path, features.values)):
            write_atomically(file, _npy(values.numpy()))
        return [path, beside]


def labels_path(path: Path) -> Path:
    """Return where the labels of FILE.npy lie: FILE.labels.npy.

    Raises:
        InputError: the file ends otherwise.
    """
    if path.suffix != ".npy":
        raise InputError(f"{path}: expected a name that ends in .safetensors or .npy. Choose another name.")
    return path.with_suffix(".labels.npy")


def _npy(values: np.ndarray) -> bytes:
    import io

    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def read_features(path: Path) -> Features:
    """Read a .safetensors file of features.

    Raises:
        InputError: it is none, or it is damaged; or it holds no images, or values that are not finite.
    """
    wanted = "features as `vit features` writes them to a .safetensors file. Write them again"
    if path.suffix == ".npy":
        raise InputError(
            f"{path} does not say where its features came from: expected a .safetensors file; .npy is for "
            "other tools. Write them again, with `vit features --out FILE.safetensors`."
        )
    if not path.is_file():
        raise InputError(f"no file at {path}: expected {wanted}.")
    tensors, metadata = read_safetensors(path, wanted)
    try:
        origin = json.loads(metadata["origin"])
        values, labels = tensors["features"], tensors["labels"]
        origin |= {"image_size": tuple(origin["image_size"]), "class_names": tuple(origin["class_names"])}
        features = Features(values, labels, Origin(**origin))
        if metadata.get("format") != FORMAT or values.ndim != 2:
            raise KeyError(FORMAT)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} holds no features: expected {wanted}.") from error
    if not len(values):
        raise InputError(f"{path} holds features of no images: expected some. Write them again.")
    if not values.isfinite().all():
        raise InputError(
            f"{path} holds values that are not finite: expected a trained model's features. Write them again."
        )
    require_labels(labels, len(values), len(features.origin.class_names))
    return features


def check_same_model(files: Sequence[tuple[Path, Features]]) -> None:
    """Refuse files whose features cannot be compared: of another model, layer, token, image size or classes.

    Raises:
        InputError: they differ from the first.
    """
    (first, one), *others = files
    for path, other in others:
        for key, said in COMPARED.items():
            if getattr(one.origin, key) != getattr(other.origin, key):
                raise InputError(
                    f"{path} has features of another {said} than {first} "
                    f"({_difference(key, other.origin, one.origin)}): expected one model, image size, layer, "
                    "token and set of classes in all files. Write one of them again."
                )


def _difference(key: str, there: Origin, here: Origin) -> str:
    """Say in what two files differ: "mean, class"; of a model that was trained anew, its checksums, too."""
    if key == "model_sha256":
        again = there.model == here.model
        said = [f"{one.model} {one.model_sha256[:8]}" if again else one.model for one in (there, here)]
    elif key == "image_size":
        said = [" x ".join(map(str, one.image_size)) for one in (there, here)]
    elif key == "layer":
        said = ["the normalised last" if one.layer is None else one.layer for one in (there, here)]
    elif key == "class_names" and len(there.class_names) != len(here.class_names):
        said = [f"{len(one.class_names)} names" for one in (there, here)]
    elif key == "class_names":
        pairs = enumerate(zip(there.class_names, here.class_names, strict=True))
        number, names = next((number, names) for number, names in pairs if names[0] != names[1])
        return f"class {number} is {names[0]!r}, {names[1]!r}"
    else:
        said = [getattr(one, key) for one in (there, here)]
    return ", ".join(map(str, said))


def check_other_images(files: Sequence[tuple[Path, Features]]) -> None:
    """Refuse files of the same part of the same data: a classifier is measured on images that it never saw.

    Raises:
        InputError: two of them are.
    """
    for (first, one), (path, other) in combinations(files, 2):
        data, part = one.origin.data, one.origin.part
        if (data, part) == (other.origin.data, other.origin.part):
            raise InputError(
                f"{path} has features of the same images as {first} (the {part} part of {data}): expected "
                "another part in each file. Write one of them again, with another --part."
            )
