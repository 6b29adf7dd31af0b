"""What a data set of photos consists of: files with labels, in parts. Nothing here needs PyTorch."""

import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from PIL.Image import Image

from vit_from_scratch.data.config import OWN_SOURCES
from vit_from_scratch.data.photos import PhotoFile, open_photo
from vit_from_scratch.paths import stat_of

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Photos(Sequence[tuple[Image, int]]):
    """N files of photos of any size, and N labels; indexed, it opens one: a PIL image and its label."""

    files: Sequence[PhotoFile]
    labels: Sequence[int]

    @classmethod
    def of(cls, samples: Iterable[tuple[Any, int]]) -> "Photos":
        """Return photos by pairs of a file and a label."""
        files, labels = zip(*samples, strict=True)
        return cls(list(files), list(labels))

    def __len__(self) -> int:
        """The number of photos, N."""
        return len(self.files)

    def __getitem__(self, number: int) -> tuple[Image, int]:  # type: ignore[override]  # no slices
        """Open a photo; an `InputError` if its file cannot be read."""
        return open_photo(self.files[number]), self.labels[number]


@dataclass(frozen=True, eq=False)
class PhotoSource:
    """A data set of photos as it is published, or as you keep it.

    Attributes:
        train: the training photos.
        test: the test photos.
        class_names: K names, in the order of the labels.
        validation: how many photos at the end of `train` are meant for validation; usually none.
        size: width and height in pixels if all published photos have the same, else None.
        note: what a user should know about it, in a sentence; "" for nothing.
    """

    train: Photos
    test: Photos
    class_names: tuple[str, ...]
    validation: int = 0
    size: tuple[int, int] | None = None
    note: str = ""


def open_own(name: str) -> PhotoSource:
    """Open photos of your own by the name of their data set, such as "folder:/photos".

    Raises:
        InputError: there are none, or they are not laid out as expected.
    """
    kind, colon, place = name.partition(":")
    stat_of(Path(place) / "train")  # refuses a folder that may not be searched
    return pkgutil.resolve_name(OWN_SOURCES[kind + colon])(Path(place))


def spread(items: Sequence[T], count: int) -> Sequence[T]:
    """Return at most so many of the items, evenly spread over all."""
    some = min(count, len(items))
    return [items[number * len(items) // some] for number in range(some)]
