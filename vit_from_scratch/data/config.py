"""Which images a run sees: `DataConfig`, and the names of the data sets. Nothing here needs PyTorch."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vit_from_scratch.errors import InputError, shown, unknown_name
from vit_from_scratch.paths import typed_path
from vit_from_scratch.settings import check_fields, require

IN_MEMORY = ("digits", "cifar10", "cifar100")
"""The data sets of small images, which are held in memory."""

STREAMED = ("tiny-imagenet", "imagenette", "pets", "flowers")
"""The data sets of photos, which are read from a file each."""

FOLDER = "folder:"
"""Before a path, it names a folder of photos of your own."""

OWN_SOURCES = {FOLDER: "vit_from_scratch.data.folders:open_folder"}
"""What may stand before a path, and who opens photos of your own there: a module and its function.

The function takes the path and returns a `vit_from_scratch.data.sources.PhotoSource`. A package may add to
this, as the laboratory does for "shards:".
"""

VALIDATION_SIZES = {
    "digits": 237,
    "cifar10": 5_000,
    "cifar100": 5_000,
    "tiny-imagenet": 5_000,
    "imagenette": 950,
    "pets": 370,
    "flowers": 204,
}
"""Training images that are held out for validation unless told otherwise; the test set is fixed apart.

Of a folder of your own it is a tenth, with exceptions: see `vit_from_scratch.data.datasets.usual_size`.
"""

USUAL_SIDES = {"tiny-imagenet": 64}
"""The side in pixels that photos are brought to unless told otherwise, where it is not 224."""

Part = Literal["train", "validation", "test"]


@dataclass(frozen=True)
class DataConfig:
    """Which images a run sees.

    Attributes:
        name: the data set's name; "folder:PATH" or "shards:PATH" for photos of your own.
        validation_size: training images held out for validation; None for the data set's usual number (of
            photos of your own those in their `val`, if there is a `test`, too, else what
            `vit_from_scratch.data.datasets.usual_size` says, drawn when they are opened), 0 to train on all
            of them. The test set is never part of it.
        split_seed: which of the training images those are.
        train_size: how many of the other training images are kept, the same share of each class; all
            (None). Fewer show how hungry a model is.
        image_size: side in pixels that images are brought to; None for 224 with photos (64 with
            Tiny-ImageNet), and for the images as they are with digits and CIFAR.
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
        check_fields(self, "data")
        kind = _kind(self.name)
        known = [*IN_MEMORY, *STREAMED, *(kind + "PATH" for kind in OWN_SOURCES)]
        if self.name not in known and kind is None:
            raise unknown_name("data set", self.name, known)
        if self.validation_size is None:
            object.__setattr__(self, "validation_size", VALIDATION_SIZES.get(self.name))
        if kind is not None:
            object.__setattr__(self, "name", kind + _full_path(self.name.removeprefix(kind)))
        if self.image_size is None and self.name not in IN_MEMORY:
            object.__setattr__(self, "image_size", USUAL_SIDES.get(self.name, 224))
        count, side = self.train_size, self.image_size
        require(count is None or count >= 1, "data.train_size", count, "at least 1, or None")
        fits = side is None or 1 <= side <= 2**16
        require(fits, "data.image_size", side, "1 to 65,536 pixels, or None")
        require((self.validation_size or 0) >= 0, "data.validation_size", self.validation_size, "0 or more")
        require(0 <= self.split_seed < 2**32, "data.split_seed", self.split_seed, "0 to 2^32 - 1")


def own_place(name: str) -> Path | None:
    """Return where photos of your own are, by the name of their data set; None for a published data set."""
    kind = _kind(name)
    return None if kind is None else Path(name.removeprefix(kind))


def _kind(name: str) -> str | None:
    return next((kind for kind in OWN_SOURCES if name.startswith(kind)), None)


def _full_path(text: str) -> str:
    """Return a path from the root on, so that the run can be evaluated from anywhere."""
    path = os.path.realpath(typed_path(text, "data.name"))
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"data.name = {shown(path)}: expected a path in UTF-8, which a run's settings can hold. "
            "Rename the folder."
        ) from None
    return path
