"""A folder of photos of your own: which files are photos, of which class, and in which part.

Nothing here needs PyTorch, so that `vit train --data folder:PATH --show` answers at once.
"""

import hashlib
import io
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from vit_from_scratch.data.folder_files import PICTURES, find_pictures, without_repeats
from vit_from_scratch.errors import InputError

TEST_SHARE = 0.2
"""Share of each class that is held out for the test in a folder without a test part."""

SAMPLE = 100
"""How many photos are looked at to learn the size of all."""

T = TypeVar("T")

Samples = list[tuple[Path, int]]


class InFile(Protocol):
    """A photo that is a part of a larger file."""

    def read(self) -> bytes:
        """Return the bytes that a file of its own would have."""
        ...


PhotoFile = str | os.PathLike[str] | InFile
"""Where a photo lies."""


@dataclass(frozen=True)
class FolderListing:
    """The photos of a folder, as paths with class numbers.

    Attributes:
        classes: K names, sorted.
        train: the training photos.
        validation: the photos of `val`, in a folder that has both `val` and `test`; else empty.
        test: the test photos.
        drawn: whether the test photos were drawn from the others, since the folder has no part for them.
    """

    classes: tuple[str, ...]
    train: Samples
    validation: Samples
    test: Samples
    drawn: bool


@dataclass(frozen=True)
class Survey:
    """What a data set of photos is like, in three numbers.

    Attributes:
        photos: the number of training photos, those that are drawn from them for validation included, those
            in a `val` of their own not.
        side: the usual short side of a photo in pixels, the median.
        classes: the number of classes, K.
    """

    photos: int
    side: int
    classes: int


def list_folder(root: Path) -> FolderListing:
    """List the photos of a folder, in an order that does not depend on the disk.

    Three layouts are known: `train/CLASS/*` with `test/CLASS/*` (or `val`, or both), `train/CLASS/*` alone,
    and `CLASS/*`. Photos may lie deeper in a class's folder. Where there is no test part, a fifth of each
    class is held out, chosen by the photos' names, so that it is the same photos every time.

    Hidden files and folders, and files that are no pictures by their ending, are left out. A class's folder
    may be a symbolic link, and so may a photo; links to folders below are not followed. A photo that is
    reached more than once counts once, where its file really lies.

    Raises:
        InputError: no such layout, a class without photos, one class alone, other classes for the test, or a
            class with a single photo where there is no test part.
    """
    try:
        parts = _parts(root)
        names = {part: _class_names(folder) for part, folder in parts.items()}
        _check_classes(root, parts, names)
        pictures = {part: find_pictures(folder, names[part]) for part, folder in parts.items()}
        folders = [folder / name for part, folder in parts.items() for name in ("", *names[part])]
        found = without_repeats(pictures, folders, root)
    except OSError as error:
        raise _no_folder(root, f"{error.strerror or error}: {error.filename or root}") from error
    for part, samples in found.items():
        counts = [0] * len(names[part])
        for _, label in samples:
            counts[label] += 1
        if 0 in counts:
            raise InputError(
                f"{parts[part] / names[part][counts.index(0)]} has no photos of its own: expected files that "
                f"end in {', '.join(PICTURES[:4])} or the like. Add some, or remove the folder."
            )
    classes = tuple(os.fsencode(name).decode("utf-8", "replace") for name in names["train"])
    if "test" in found:
        return FolderListing(classes, found["train"], found.get("validation", []), found["test"], drawn=False)
    train, test = _draw_test(found["train"], parts["train"], classes)
    return FolderListing(classes, train, [], test, drawn=True)


def survey(photos: Sequence[PhotoFile], classes: int) -> Survey:
    """Look at some of the training photos, of so many classes.

    Raises:
        InputError: none of them is a picture that can be read.
    """
    sizes = [picture_size(photo) for photo in spread(photos, SAMPLE)]
    sides = [min(size) for size in sizes if size]
    if not sides:
        raise InputError(
            f"{photos[0]} cannot be read: expected a picture, as JPEG or PNG; convert the photos."
        )
    return Survey(len(photos), int(statistics.median(sides)), classes)


def spread(items: Sequence[T], count: int) -> Sequence[T]:
    """Return at most so many of the items, evenly spread over all."""
    step = max(1, len(items) // count)
    return items[::step][:count]


def picture_size(photo: PhotoFile) -> tuple[int, int] | None:
    """Return width and height as the head of a picture's file says; None if it cannot be read."""
    from PIL import Image  # imported here: most commands need no pictures

    try:
        with Image.open(photo if isinstance(photo, str | os.PathLike) else io.BytesIO(photo.read())) as file:
            return file.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None


def _no_folder(root: Path, reason: str) -> InputError:
    return InputError(
        f"no image folder at {root} ({reason}): expected {root}/train/CLASS/*.jpg and "
        f"{root}/test/CLASS/*.jpg, or {root}/CLASS/*.jpg, one folder a class. "
        "Sort the photos so, or name another folder."
    )


def _parts(root: Path) -> dict[str, Path]:
    """Return the folders that hold classes, by part."""
    inside = set(_class_names(root))
    if "train" in inside and _class_names(root / "train"):
        parts = {"train": root / "train"}
        if "test" in inside:
            parts["test"] = root / "test"
        if "val" in inside:
            parts["validation" if "test" in inside else "test"] = root / "val"
        return parts
    if inside & {"test", "val"}:
        raise _no_folder(root, "it has no folder train with classes in it")
    if not inside:
        raise _no_folder(root, "it has no folders in it")
    return {"train": root}


def _class_names(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, hidden ones left out."""
    with os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if entry.is_dir() and not entry.name.startswith(".") and entry.name != "__MACOSX"
        )


def _check_classes(root: Path, parts: dict[str, Path], names: dict[str, list[str]]) -> None:
    """Refuse one class alone, and classes that differ between the parts."""
    if len(names["train"]) < 2:
        raise InputError(
            f"{root} has one class, {names['train'][0]}: expected two or more, a folder each. Add another."
        )
    for part, theirs in names.items():
        if theirs != names["train"]:
            differ = sorted(set(theirs) ^ set(names["train"]))
            raise InputError(
                f"{parts['train']} and {parts[part]} have different classes ({', '.join(differ[:3])}): "
                "expected the same folders in both. Rename or move them."
            )


def _draw_test(samples: Samples, folder: Path, classes: tuple[str, ...]) -> tuple[Samples, Samples]:
    """Hold out a share of each class: the photos whose names have the smallest checksums."""
    start = len(os.fspath(folder / "x")) - 1
    names = [path.as_posix()[start:] for path, _ in samples]
    held_out = draw(names, [label for _, label in samples], classes, f"{folder} has")
    test = [sample for sample, drawn in zip(samples, held_out, strict=True) if drawn]
    return [sample for sample, drawn in zip(samples, held_out, strict=True) if not drawn], test


def draw(names: Sequence[str], labels: Sequence[int], classes: Sequence[str], place: str) -> list[bool]:
    """Say of each photo whether it is held out for the test, the same ones every time.

    Args:
        names: of the photos, each its own; those with the smallest checksums are held out.
        labels: their class numbers.
        classes: K names.
        place: the start of the sentence for a class with one photo, such as "photos has".

    Raises:
        InputError: a class has one photo.
    """
    by_class: list[list[int]] = [[] for _ in classes]
    for number, label in enumerate(labels):
        by_class[label].append(number)
    held_out = [False] * len(names)
    for name, numbers in zip(classes, by_class, strict=True):
        if len(numbers) == 1:
            raise InputError(
                f"{place} one photo of {name}, and no test part: expected two or more of each class, "
                "one to learn from and one to test on. Add photos."
            )
        sums = {number: hashlib.sha256(os.fsencode(names[number])).digest() for number in numbers}
        for number in sorted(numbers, key=sums.__getitem__)[: max(1, round(TEST_SHARE * len(numbers)))]:
            held_out[number] = True
    return held_out
