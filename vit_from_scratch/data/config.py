"""Which images a run sees: `DataConfig`, and the names of the data sets. Nothing here needs PyTorch."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.paths import typed_path
from vit_from_scratch.settings import Range, check_fields, require

IN_MEMORY = {"digits": 237, "mnist": 5_000, "cifar10": 5_000, "cifar100": 5_000}
"""The data sets of small images, which are held in memory, and how many are usually for validation."""

STREAMED = {"tiny-imagenet": 5_000, "imagenette": 950, "pets": 370, "flowers": 204}
"""The same for the data sets of photos, each photo a file of its own."""

OWN_SOURCES = {"folder:": "vit_from_scratch.data.folders:open_folder"}
"""What may stand before the path of photos of your own, and the function that makes a `PhotoSource` of it;
the laboratory adds "shards:"."""

TENSORS = "tensors"
"""The name of images that a caller has in memory, for an `ImageData`; nothing can open them again."""

Part = Literal["train", "validation", "test"]

RANGES: tuple[Range, ...] = (
    ("train_size", lambda size: size is None or size >= 1, "at least 1, or None"),
    ("image_size", lambda side: side is None or 1 <= side <= 2**16, "1 to 65,536 pixels, or None"),
    ("validation_size", lambda size: size is None or size >= 0, "0 or more"),
    ("split_seed", lambda seed: 0 <= seed < 2**32, "0 to 2^32 - 1"),
)
"""What the numbers may be."""


@dataclass(frozen=True)
class DataConfig:
    """Which images a run sees.

    Attributes:
        name: the data set's name; "folder:PATH" or "shards:PATH" for your own, "tensors" for an `ImageData`.
        validation_size: images held out for validation; None for the data set's usual number (of photos of
            your own those in `val`, if there is also a `test`, else what
            `vit_from_scratch.data.datasets.usual_size` says, drawn when they are opened), 0 for none. Test
            images, and those in such a `val`, are never trained on.
        split_seed: decides which images are held out, and which of the others are kept.
        train_size: how many of the other training images are kept, the same share of each class; all
            (None). Fewer show how data-hungry a model is.
        image_size: side in pixels that images are brought to; None for 224 with photos (64 with
            Tiny-ImageNet), and for the images as they are with digits, MNIST, CIFAR and tensors.
        normalisation: "half" maps bytes to [-1, 1]; "imagenet" takes each colour's mean and standard
            deviation over ImageNet.

    Raises:
        InputError: an unknown name or a value out of its range.
    """

    name: str
    validation_size: int | None = None
    split_seed: int = 0
    train_size: int | None = None
    image_size: int | None = None
    normalisation: Literal["half", "imagenet"] = "half"

    def __post_init__(self) -> None:
        """Refuse unknown names, and put the usual number in place of None."""
        check_fields(self, "data", RANGES)
        kind = _kind(self.name)
        known = [*IN_MEMORY, *STREAMED, *(kind + "PATH" for kind in OWN_SOURCES)]
        if self.name not in (*known, TENSORS) and kind is None:
            if os.path.isdir(self.name):
                raise InputError(f"data set {self.name!r}: expected 'folder:{self.name}' for a folder.")
            raise unknown_name("data set", self.name, known)
        if self.validation_size is None:
            object.__setattr__(self, "validation_size", (IN_MEMORY | STREAMED).get(self.name))
        if kind is not None:
            object.__setattr__(self, "name", kind + _full_path(self.name.removeprefix(kind)))
        if self.image_size is None and self.name not in (*IN_MEMORY, TENSORS):
            object.__setattr__(self, "image_size", 64 if self.name == "tiny-imagenet" else 224)


def own_place(name: str) -> Path | None:
    """Return where photos of your own are, by the name of their data set; None for a published data set."""
    kind = _kind(name)
    return None if kind is None else Path(name.removeprefix(kind))


def _kind(name: str) -> str | None:
    return next((kind for kind in OWN_SOURCES if name.startswith(kind)), None)


def _full_path(text: str) -> str:
    """Return a path from the root on, so that the run can be evaluated from anywhere."""
    path = os.path.realpath(typed_path(text, "data.name"))
    in_utf_8 = path == path.encode(errors="replace").decode()
    require(in_utf_8, "data.name", path, "a path in UTF-8, as a run's settings hold it; rename the folder")
    return path
