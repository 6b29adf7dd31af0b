"""What a data set of photos consists of: files with labels, in parts. Nothing here needs PyTorch."""

import importlib
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from PIL.Image import Image

from vit_from_scratch.data.config import OWN_SOURCES, own_place
from vit_from_scratch.data.photos import PhotoFile, open_photo, regular_file
from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import stat_of

ALL_FILES, SOME_FILES = 200_000, 10_000
"""`Photos.described` looks into every file of up to so many; beyond, into so many, evenly spread."""

END = 4096
"""Bytes at the end of a file that tell its content from another's: in a picture no two are the same there."""

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

    def __len__(self) -> int:
        """The number of photos, N."""
        return len(self.files)

    def __getitem__(self, number: int) -> tuple[Image, int]:  # type: ignore[override]  # no slices
        """Open a photo.

        Raises:
            InputError: its file cannot be read.
        """
        return open_photo(self.files[number]), self.labels[number]

    def described(self) -> Iterator[str]:
        """Yield a line a photo that tells it from others, wherever the data set is.

        Of a file these are the last parts of its path, its size in bytes and a checksum of its end, for which
        no picture is decoded.
        """
        places = range(len(self.files))
        looked_at = set(places if len(places) <= ALL_FILES else spread(places, SOME_FILES))
        for number, file in enumerate(self.files):
            if not isinstance(file, str | os.PathLike):
                yield file.described()
                continue
            path = os.fspath(file)
            yield "/".join(path.split(os.sep)[-3:]) + (_content(path) if number in looked_at else "")


@dataclass(frozen=True, eq=False)
class PhotoSource:
    """A data set of photos as it is published, or as you keep it.

    Attributes:
        train: the training photos.
        test: the test photos.
        class_names: K names, in the order of the labels.
        validation: how many photos at the end of `train` are meant for validation; usually none.
        size: width and height in pixels if all photos are known to have the same, else None.
        blocks: of photos inside larger files, which of those in `train` are near each other, a number each;
            see `vit_from_scratch.data.reading.reading_order`.
        note: what a user should know about it, in a sentence; "" for nothing.
    """

    train: Photos
    test: Photos
    class_names: tuple[str, ...]
    validation: int = 0
    size: tuple[int, int] | None = None
    blocks: Sequence[int] | None = None
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
    step = max(1, len(items) // count)
    return items[::step][:count]


def _content(path: str) -> str:
    """Return a file's size and a checksum of its end; whoever wants one that cannot be read will say."""
    try:
        with regular_file(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - END))
            return f" {size} {zlib.crc32(file.read()):08x}"
    except (OSError, InputError):
        return " ?"
