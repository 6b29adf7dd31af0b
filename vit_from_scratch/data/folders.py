"""A folder of photos of your own: which files are photos, of which class, and in which part.

Nothing here needs PyTorch, so that `vit train --data folder:PATH --show` answers at once.
"""

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from vit_from_scratch.data.sources import Photos, PhotoSource
from vit_from_scratch.errors import InputError

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
"""What the names of photos end in; other files are left out."""

VALIDATION = ("val", "valid", "validation")
"""What a part for validation may be called; without a test part it is that."""


def open_folder(root: Path) -> PhotoSource:
    """List the photos of a folder, in an order that does not depend on the disk; none is opened.

    Three layouts are known: `train/CLASS/*` with `test/CLASS/*` (or one of `VALIDATION`, or both),
    `train/CLASS/*` alone, and `CLASS/*`. Photos may be deeper in a class's folder. Where there is no test
    part, a fifth of each class is held out by `draw`. Hidden files, and those whose ending is not a
    picture's, are left out; links to folders deeper than a class are not followed.

    Raises:
        InputError: no such layout, a class without photos, one class alone, other classes for the test, or a
            class with a single photo where there is no test part.
    """
    try:
        parts = _parts(root)
        names = _class_names(parts["train"])
        if len(names) < 2:
            raise InputError(
                f"{root} has one class, {names[0]}: expected two or more, a folder each. Add another."
            )
        found = {part: _samples(folder, names, parts["train"]) for part, folder in parts.items()}
    except OSError as error:
        raise _no_folder(root, f"{error.strerror or error}: {error.filename or root}") from error
    classes = tuple(os.fsencode(name).decode("utf-8", "replace") for name in names)
    train, validation, note = found["train"], found.get("validation", []), ""
    if "test" not in found:
        paths = [Path(os.path.relpath(path, parts["train"])).as_posix() for path, _ in train]
        held_out, note = draw(paths, [label for _, label in train], classes, root)
        found["test"] = [photo for photo, out in zip(train, held_out, strict=True) if out]
        train = [photo for photo, out in zip(train, held_out, strict=True) if not out]
    train, test = Photos.of(train + validation), Photos.of(found["test"])
    return PhotoSource(train, test, classes, len(validation), note=note)


def draw(
    names: Sequence[str], labels: Sequence[int], classes: Sequence[str], root: Path
) -> tuple[list[bool], str]:
    """Return, for each photo, whether it is held out for the test, a fifth of each class; and a note.

    Those with the smallest checksums of names are held out, always the same; a class of one photo is refused.
    """
    held_out = [False] * len(names)
    sums = [hashlib.sha256(os.fsencode(name)).digest() for name in names]
    order = sorted(range(len(names)), key=lambda number: (labels[number], sums[number]))
    for label, group in itertools.groupby(order, key=lambda number: labels[number]):
        numbers = list(group)
        if len(numbers) == 1:
            raise InputError(
                f"{root} has one photo of {classes[label]}, and no test part: expected two or more of each "
                "class, one to learn from and one to test on. Add photos."
            )
        for number in numbers[: max(1, round(0.2 * len(numbers)))]:
            held_out[number] = True
    return held_out, (
        f"{root} has no test part: {sum(held_out):,} of its {len(names):,} photos, a fifth of each class, "
        "are held out for the test, the same ones every time."
    )


def _no_folder(root: Path, reason: str) -> InputError:
    return InputError(
        f"no image folder at {root} ({reason}): expected {root}/train/CLASS/*.jpg and "
        f"{root}/test/CLASS/*.jpg, or {root}/CLASS/*.jpg, a folder for each class. "
        "Sort the photos like that, or name another folder."
    )


def _parts(root: Path) -> dict[str, Path]:
    """Return the folders that hold classes, by part."""
    inside = set(_class_names(root))
    if "train" in inside and _class_names(root / "train"):
        held_out = [name for name in VALIDATION if name in inside]
        if len(held_out) > 1:
            raise _no_folder(root, f"it has both {held_out[0]} and {held_out[1]}")
        parts = {name: root / name for name in ("train", "test") if name in inside}
        for name in held_out:
            parts["validation" if "test" in inside else "test"] = root / name
        return parts
    if inside & {"test", *VALIDATION}:
        raise _no_folder(root, "it has no folder train with classes in it")
    if not inside:
        raise _no_folder(root, "it has no folders in it")
    return {"train": root}


def _class_names(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, hidden ones left out."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir())
    return [name for name in names if name[0] != "." and name != "__MACOSX"]


def _samples(folder: Path, names: list[str], train: Path) -> list[tuple[Path, int]]:
    """Return the photos of a part, class by class; its classes must be those for training."""
    if differ := sorted(set(_class_names(folder)) ^ set(names)):
        raise InputError(
            f"{train} and {folder} have different classes ({', '.join(differ[:3])}): "
            "expected the same folders in both. Rename or move them."
        )
    samples = []
    for label, name in enumerate(names):
        paths = list(_pictures(os.path.join(folder, name)))
        if not paths:
            raise InputError(
                f"{folder / name} has no photos: expected files that "
                f"end in {', '.join(PICTURES[:4])} or the like. Add some, or remove the folder."
            )
        samples += [(path, label) for path in paths]
    return samples


def _pictures(folder: str) -> Iterator[Path]:
    """Find the pictures in a folder and those below, by their names alone: a million files in seconds."""
    with os.scandir(folder) as entries:
        inside = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
    yield from (Path(e.path) for e in inside if e.name.lower().endswith(PICTURES) and not e.is_dir())
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            yield from _pictures(entry.path)
