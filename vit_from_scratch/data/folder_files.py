"""The picture files below folders, found by their names alone: none is opened, or asked for its size."""

import os
from pathlib import Path

PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
"""What the names of photos end in; other files are left out."""

Found = tuple[str, int, bool]
"""A picture: its path, its class, and whether it is a link."""


def find_pictures(folder: Path, names: list[str]) -> list[Found]:
    """Return the pictures below the class folders of a part, with their class numbers."""
    found: list[Found] = []
    for label, name in enumerate(names):
        waiting = [os.path.join(folder, name)]
        while waiting:
            here = waiting.pop()
            files, folders = _inside(here)
            found += [(os.path.join(here, file), label, link) for file, link in files]
            waiting += [os.path.join(here, inner) for inner in reversed(folders)]
    return found


def _inside(folder: str) -> tuple[list[tuple[str, bool]], list[str]]:
    """Return the pictures in a folder, each with whether it is a link, and the folders; none is opened.

    What kind of entry each is comes with the names from the disk, so a million files are no million calls.
    """
    files, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif name.lower().endswith(PICTURES) and not (entry.is_symlink() and entry.is_dir()):
                files.append((name, entry.is_symlink()))
    return sorted(files), sorted(folders)


def without_repeats(
    parts: dict[str, list[Found]], folders: list[Path], root: Path
) -> dict[str, list[tuple[Path, int]]]:
    """Leave out each file that was met before; what is reached through a link gives way.

    Args:
        parts: what was found in each part.
        folders: of the parts and of their classes, the only ones that may be links.
        root: the folder over them.
    """
    linked = any(folder.is_symlink() for folder in folders)
    if linked or any(link for found in parts.values() for _, _, link in found):
        kept = _first_ways(parts, root)
        parts = {part: [entry for entry in found if entry[0] in kept] for part, found in parts.items()}
    return {part: [(Path(path), label) for path, label, _ in found] for part, found in parts.items()}


def _first_ways(parts: dict[str, list[Found]], root: Path) -> set[str]:
    """Return for each file the path that counts: its own, else one below a linked folder, else a link."""
    top, above = os.path.realpath(root), os.fspath(root)
    really: dict[str, str] = {}
    ways: list[list[tuple[str, str]]] = [[], [], []]
    for path, _, link in (entry for found in parts.values() for entry in found):
        folder, name = os.path.split(path)
        if folder not in really:
            really[folder] = os.path.realpath(folder)
        if link:
            ways[2].append((os.path.realpath(path), path))
        else:
            moved = really[folder] != os.path.join(top, os.path.relpath(folder, above))
            ways[moved].append((os.path.join(really[folder], name), path))
    taken: dict[str, str] = {}
    for file, path in (pair for way in ways for pair in way):
        taken.setdefault(file, path)
    return set(taken.values())
