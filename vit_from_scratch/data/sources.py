"""What a data set of photos consists of: files with labels, in parts. Nothing here needs PyTorch."""

import importlib
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from PIL.Image import Image

from vit_from_scratch.data.config import OWN_SOURCES, own_place
from vit_from_scratch.data.photos import PhotoFile, open_photo, regular_file
from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import stat_of

SOME_FILES, END = 200_000, 4096
"""`Photos.described` looks at the ends of so many files, so many bytes: no two are the same there."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Photos(Sequence[tuple[Image, int]]):
    """Photos of any size that are opened one by one: indexed, it gives a PIL image and its label.

    Attributes:
        files: N paths, or photos inside larger files.
        labels: N class numbers.
    """

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

    def described(self) -> Iterator[str]:
        """Yield a line a photo that tells it from others, wherever the data set is; none is decoded.

        Of a file these are the last parts of its path, its size in bytes and a checksum of its end.
        """
        step = max(1, len(self.files) // SOME_FILES)
        for number, file in enumerate(self.files):
            if isinstance(file, str | os.PathLike):
                name = "/".join(os.fspath(file).split(os.sep)[-3:])
                yield name + (_content(file) if number % step == 0 else "")
            else:
                yield file.described()


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
    path: Any = own_place(name)
    module, _, function = OWN_SOURCES[name.removesuffix(os.fspath(path))].partition(":")
    stat_of(path / "train")  # refuses a folder that may not be searched
    return getattr(importlib.import_module(module), function)(path)


def spread(items: Sequence[T], count: int) -> Sequence[T]:
    """Return at most so many of the items, evenly spread over all."""
    return items[:: max(1, len(items) // count)][:count]


def _content(path: str | os.PathLike[str]) -> str:
    """Return a file's size and a checksum of its end; whoever wants one that cannot be read will say."""
    try:
        with regular_file(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - END))
            return f" {size} {zlib.crc32(file.read()):08x}"
    except (OSError, InputError):
        return " ?"
