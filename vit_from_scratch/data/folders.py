"""A folder of photos of your own: which files are photos, of which class, and in which part.

Nothing here needs PyTorch, so that `vit train --data folder:PATH --show` answers at once.
"""

import hashlib
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vit_from_scratch.data.photos import picture_size
from vit_from_scratch.data.sources import Photos, PhotoSource, open_own, spread
from vit_from_scratch.errors import InputError

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
"""What the names of photos end in; other files are left out."""

TEST_SHARE = 0.2
"""Share of each class that is held out for the test in a folder without a test part."""

SAMPLE = 100
"""How many photos are looked at to learn the size of all."""

Samples = list[tuple[Path, int]]
"""Paths with class numbers."""


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


def survey_own(name: str) -> Survey:
    """Look at some of the training photos of a data set of your own, such as "folder:/photos".

    Raises:
        InputError: there are no photos in classes, or none of those looked at is a picture.
    """
    source = open_own(name)
    files = source.train.files[: len(source.train) - source.validation]
    sizes = [picture_size(photo) for photo in spread(files, SAMPLE)]
    sides = [min(size) for size in sizes if size]
    if not sides:
        raise InputError(
            f"{files[0]} cannot be read: expected a picture, as JPEG or PNG; convert the photos."
        )
    return Survey(len(files), int(statistics.median(sides)), len(source.class_names))


def open_folder(root: Path) -> PhotoSource:
    """List the photos of a folder, in an order that does not depend on the disk; none is opened.

    Three layouts are known: `train/CLASS/*` with `test/CLASS/*` (or `val`, or both), `train/CLASS/*` alone,
    and `CLASS/*`. Photos may be deeper in a class's folder. Where there is no test part, a fifth of each
    class is held out, chosen by the photos' names, so that it is the same photos every time.

    Hidden files and folders, and files whose ending is not a picture's, are left out. A class's folder may be
    a symbolic link, and so may a photo; links to folders below are not followed.

    Raises:
        InputError: no such layout, a class without photos, one class alone, other classes for the test, or a
            class with a single photo where there is no test part.
    """
    try:
        parts = _parts(root)
        names = _class_names(parts["train"])
        _check_classes(root, parts, names)
        found = {
            part: [
                (path, label)
                for label, name in enumerate(names)
                for path in _pictures(os.path.join(folder, name))
            ]
            for part, folder in parts.items()
        }
    except OSError as error:
        raise _no_folder(root, f"{error.strerror or error}: {error.filename or root}") from error
    for part, samples in found.items():
        if missing := sorted(set(range(len(names))) - {label for _, label in samples}):
            raise InputError(
                f"{parts[part] / names[missing[0]]} has no photos: expected files that "
                f"end in {', '.join(PICTURES[:4])} or the like. Add some, or remove the folder."
            )
    note, validation = "", found.get("validation", [])
    classes = tuple(os.fsencode(name).decode("utf-8", "replace") for name in names)
    if "test" not in found:
        paths = [os.path.relpath(path, parts["train"]) for path, _ in found["train"]]
        held_out = draw(paths, [label for _, label in found["train"]], classes, f"{parts['train']} has")
        note = no_test_part(root, sum(held_out), len(paths))
        drawn = list(zip(found["train"], held_out, strict=True))
        found = {
            part: [photo for photo, out in drawn if out is (part == "test")] for part in ("train", "test")
        }
    train, test = _photos(found["train"] + validation), _photos(found["test"])
    return PhotoSource(train, test, classes, len(validation), note=note)


def no_test_part(root: Path, drawn: int, total: int) -> str:
    """Say that photos were drawn for the test."""
    return (
        f"{root} has no test part: {drawn:,} of its {total:,} photos, a fifth of each class, are held out "
        "for the test, the same ones every time."
    )


def _photos(samples: Samples) -> Photos:
    return Photos([path for path, _ in samples], [label for _, label in samples])


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


def _check_classes(root: Path, parts: dict[str, Path], names: list[str]) -> None:
    """Refuse one class alone, and classes that differ between the parts."""
    if len(names) < 2:
        raise InputError(
            f"{root} has one class, {names[0]}: expected two or more, a folder each. Add another."
        )
    for folder in parts.values():
        if differ := sorted(set(_class_names(folder)) ^ set(names)):
            raise InputError(
                f"{parts['train']} and {folder} have different classes ({', '.join(differ[:3])}): "
                "expected the same folders in both. Rename or move them."
            )


def _pictures(folder: str) -> Iterator[Path]:
    """Find the pictures in a folder and those below, by their names alone.

    What kind of entry each is comes with the names from the disk, so a million files do not cost a million
    calls.
    """
    with os.scandir(folder) as entries:
        inside = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
    yield from (Path(e.path) for e in inside if e.name.lower().endswith(PICTURES) and not e.is_dir())
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            yield from _pictures(entry.path)


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
