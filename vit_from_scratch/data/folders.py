"""A folder of photos of your own: which files are photos, of which class, and in which part.

Nothing here needs PyTorch, so that `vit train --data folder:PATH --show` answers at once.
"""

import hashlib
import os
import statistics
from dataclasses import dataclass
from pathlib import Path

from vit_from_scratch.errors import InputError

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
"""What the names of photos end in; other files are left out."""

TEST_SHARE = 0.2
"""Share of each class that is held out for the test in a folder without a test part."""

SAMPLE = 100
"""How many photos are looked at to learn the size of all."""

Samples = list[tuple[Path, int]]


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
        photos: the number of training photos, those for validation included.
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
        InputError: no such layout, a class without photos, one class alone, or other classes for the test.
    """
    try:
        parts = _parts(root)
        names = {part: _class_names(folder) for part, folder in parts.items()}
        _check_classes(root, parts, names)
        found = _without_repeats(
            {part: _pictures(folder, names[part]) for part, folder in parts.items()}, root
        )
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


def survey(listing: FolderListing) -> Survey:
    """Look at some of a folder's photos.

    Raises:
        InputError: none of them is a picture that can be read.
    """
    sizes = [picture_size(path) for path in spread([path for path, _ in listing.train], SAMPLE)]
    sides = [min(size) for size in sizes if size]
    if not sides:
        path = listing.train[0][0]
        raise InputError(f"{path} cannot be read: expected a picture, as JPEG or PNG; convert the photos.")
    return Survey(len(listing.train), int(statistics.median(sides)), len(listing.classes))


def spread(items: list, count: int) -> list:
    """Return at most so many of the items, evenly spread over all."""
    step = max(1, len(items) // count)
    return items[::step][:count]


def picture_size(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Return width and height as the head of a picture's file says; None if it cannot be read."""
    from PIL import Image  # imported here: most commands need no pictures

    try:
        with Image.open(path) as file:
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


def _pictures(folder: Path, names: list[str]) -> Samples:
    """Return the pictures below the class folders of a part, with their class numbers."""

    def fail(error: OSError) -> None:
        raise error

    samples = []
    for label, name in enumerate(names):
        for here, folders, files in os.walk(folder / name, onerror=fail):  # follows no link to a folder
            folders[:] = sorted(inner for inner in folders if not inner.startswith("."))
            pictures = (file for file in sorted(files) if file.lower().endswith(PICTURES))
            samples += [(Path(here, file), label) for file in pictures if not file.startswith(".")]
    return samples


def _without_repeats(parts: dict[str, Samples], root: Path) -> dict[str, Samples]:
    """Leave out each file that was met before; what is reached through a link gives way."""
    top = os.path.realpath(root)
    really: dict[Path, str] = {}
    ways: list[list[tuple[str, Path]]] = [[], [], []]  # the file itself, below a linked folder, a linked file
    for path in (path for samples in parts.values() for path, _ in samples):
        if path.parent not in really:
            really[path.parent] = os.path.realpath(path.parent)
        if path.is_symlink():
            ways[2].append((os.path.realpath(path), path))
        else:
            linked = really[path.parent] != os.path.join(top, path.parent.relative_to(root))
            ways[linked].append((os.path.join(really[path.parent], path.name), path))
    taken: dict[str, Path] = {}
    for file, path in (pair for way in ways for pair in way):
        taken.setdefault(file, path)
    kept = set(taken.values())
    return {
        part: [(path, label) for path, label in samples if path in kept] for part, samples in parts.items()
    }


def _draw_test(samples: Samples, folder: Path, classes: tuple[str, ...]) -> tuple[Samples, Samples]:
    """Hold out a share of each class: the photos whose names have the smallest checksums."""

    def checksum(path: Path) -> bytes:
        return hashlib.sha256(os.fsencode(path.relative_to(folder).as_posix())).digest()

    by_class: list[list[Path]] = [[] for _ in classes]
    for path, label in samples:
        by_class[label].append(path)
    held_out: set[Path] = set()
    for name, paths in zip(classes, by_class, strict=True):
        if len(paths) < 2:
            raise InputError(
                f"{folder} has one photo of {name}, and no test part: expected two or more of each class, "
                "one to learn from and one to test on. Add photos."
            )
        count = max(1, round(TEST_SHARE * len(paths)))
        held_out.update(sorted(paths, key=checksum)[:count])
    train = [sample for sample in samples if sample[0] not in held_out]
    return train, [sample for sample in samples if sample[0] in held_out]
