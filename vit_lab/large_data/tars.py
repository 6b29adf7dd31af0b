"""Tar files of photos as WebDataset has them, made by anyone: what is in them, by one pass over their heads.

KEY.jpg (or another picture's ending) and KEY.cls, a class number as text, are a sample; KEY ends at the first
dot of a file's name. Other endings, such as KEY.json, are passed over.
"""

import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from vit_from_scratch.data.config import Part
from vit_from_scratch.data.folder_files import PICTURES
from vit_from_scratch.data.folders import draw
from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.files import sha256
from vit_from_scratch.paths import stat_of
from vit_from_scratch.progress import progress_shown
from vit_lab.large_data.shard_checks import read_index
from vit_lab.large_data.shards import INDEX, PARTS, PLAN, ROW, Shard, ShardIndex

PART_WORDS: dict[str, Part] = {
    "train": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
}
PART = re.compile(rf"(?<![a-z])({'|'.join(PART_WORDS)})(?![a-z])")
"""What in a shard's name says to which part it belongs."""

_last: dict[Any, ShardIndex] = {}

MOST_CLASSES = 2**20
"""A class number beyond is taken for a mistake."""


@dataclass(frozen=True)
class TarPhoto:
    """A photo in a tar file.

    Attributes:
        key: what its files have in common.
        name: of its file in the tar.
        offset: of its first byte.
        size: in bytes.
        label: its class number.
    """

    key: str
    name: str
    offset: int
    size: int
    label: int


def open_shards(root: Path) -> ShardIndex:
    """Open a folder of shards: by its index, or without one by reading the heads of all its files.

    Raises:
        InputError: there are no shards, a packing has not ended, or what lies there is damaged.
    """
    if stat_of(root / INDEX) is not None:
        return read_index(root)
    if stat_of(root / PLAN) is not None:
        raise InputError(
            f"{root} is not packed to the end: expected {INDEX} in it. Run the same `vit pack` "
            "again; it goes on."
        )
    stamp = tuple(
        (path, found.st_size, found.st_mtime_ns) for path in _tars(root) if (found := stat_of(path))
    )
    if stamp not in _last:  # a command that chooses settings for them opens them twice
        _last.clear()
        _last[stamp] = index_tars(root)
    return _last[stamp]


def index_tars(root: Path) -> ShardIndex:
    """Index a folder of shards that has no index, in memory.

    A shard's name says its part (train, val, test); without any such word all are for training. As in a
    folder of photos, `val` without `test` is the test, and where neither is there a fifth of each class is.

    Raises:
        InputError: no shards, none for training, or a damaged one.
    """
    found = _tars(root)
    parts = _parts(root, found)
    photos: dict[Part, list[tuple[int, TarPhoto]]] = {part: [] for part in PARTS}
    shards = []
    for number, path in enumerate(tqdm(found, "indexing", unit="shard", disable=not progress_shown())):
        inside = read_tar(path)
        name = path.relative_to(root).as_posix()
        shards.append(Shard(name, len(inside), path.stat().st_size))
        photos[parts[path]] += [(number, photo) for photo in inside]
    labels = {photo.label for _, photo in photos["train"]}
    if len(labels) < 2:
        raise InputError(f"{root} has {len(labels)} classes to train on: expected two or more. Add shards.")
    most = max(photo.label for samples in photos.values() for _, photo in samples)
    classes = tuple(map(str, range(most + 1)))
    if drawn := not photos["test"]:
        train = photos["train"]
        names = [f"{shards[shard].name}/{photo.name}" for shard, photo in train]
        held_out = draw(names, [photo.label for _, photo in train], classes, f"{root} has")
        photos["test"] = [sample for sample, out in zip(train, held_out, strict=True) if out]
        photos["train"] = [sample for sample, out in zip(train, held_out, strict=True) if not out]
    samples = [sample for part in PARTS for sample in photos[part]]
    rows = [(shard, photo.offset, photo.size, photo.label) for shard, photo in samples]
    return ShardIndex(
        root,
        classes,
        tuple(shards),
        (len(photos["train"]), len(photos["validation"]), len(photos["test"])),
        np.array(rows, dtype=ROW),
        drawn,
        known_names=[photo.name for _, photo in samples],
    )


def with_checksums(index: ShardIndex) -> ShardIndex:
    """Return the same index with the shards' checksums, for which every byte is read."""
    bar = tqdm(index.shards, "checksums", unit="shard", disable=not progress_shown())
    return replace(index, shards=tuple(replace(s, sha256=sha256(index.root / s.name)) for s in bar))


def read_tar(path: Path) -> list[TarPhoto]:
    """List the photos of a tar file with their classes, in its order.

    Raises:
        InputError: it is no tar file, damaged or cut short, or a photo has no class.
    """
    try:
        with tarfile.open(path, "r:") as tar:
            files = [(member, _label(tar, member)) for member in tar if member.isfile()]
            end = tar.offset
        with path.open("rb") as file:  # tarfile takes a damaged head for the end
            file.seek(end)
            rest = file.read(tarfile.RECORDSIZE)
    except (OSError, tarfile.TarError) as error:
        raise InputError(
            f"{path} is no whole tar file ({reason(error)}): expected a shard. Copy it again."
        ) from None
    if not rest or any(rest):
        raise InputError(
            f"{path} is damaged or cut short at byte {end:,}: expected the end of a tar file. Copy it again."
        )
    return list(_samples(files, path))


def _label(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | None:
    """Return what a .cls file holds; None for other files."""
    if not member.name.lower().endswith(".cls"):
        return None
    content = tar.extractfile(member)
    return content.read(64) if content else b""


def _samples(files: list[tuple[tarfile.TarInfo, bytes | None]], path: Path) -> Iterator[TarPhoto]:
    """Yield the samples of a tar file, whose files stand beside each other."""
    key, picture, label = "", None, None
    for member, text in files:
        folder, _, file = member.name.rpartition("/")
        if file.startswith("."):
            continue
        own = f"{folder}/{file.partition('.')[0]}"
        if own != key:
            if key:
                yield _sample(key, picture, label, path)
            key, picture, label = own, None, None
        if text is not None:
            label = text
        elif file.lower().endswith(PICTURES):
            if picture is not None:
                raise InputError(
                    f"{path} has two photos of the key {key.strip('/')}: expected one. Pack it anew."
                )
            picture = member
    if key:
        yield _sample(key, picture, label, path)


def _sample(key: str, picture: tarfile.TarInfo | None, label: bytes | None, path: Path) -> TarPhoto:
    """Join the files of one key.

    Raises:
        InputError: the photo or the class is missing, or the class is no number.
    """
    key = key.strip("/")
    if picture is None or label is None:
        missing = "photo" if picture is None else "class (.cls)"
        raise InputError(
            f"{path} has no {missing} for the key {key}: expected KEY.jpg with KEY.cls. Pack it anew."
        )
    text = label.decode("ascii", "replace").strip()
    if not text.isdigit() or int(text) >= MOST_CLASSES:
        raise InputError(f"{path} has the class {text!r} for the key {key}: expected a number from 0 on.")
    return TarPhoto(key, picture.name, picture.offset_data, picture.size, int(text))


def _tars(root: Path) -> list[Path]:
    """Return the tar files below a folder, in the order of their names."""

    def fail(error: OSError) -> None:
        raise InputError(f"no shards at {root} ({reason(error)}): expected a folder of .tar files.") from None

    found = [
        Path(here, file)
        for here, _, files in os.walk(root, onerror=fail)
        for file in files
        if file.endswith(".tar") and not file.startswith(".")
    ]
    if not found:
        raise InputError(
            f"no shards at {root}: expected .tar files in it. Write them with `vit pack FOLDER {root.name}`."
        )
    return sorted(found)


def _parts(root: Path, found: list[Path]) -> dict[Path, Part]:
    """Say to which part each shard belongs."""
    words = {path: PART.findall(path.relative_to(root).as_posix().lower()) for path in found}
    parts: dict[Path, Part] = {path: PART_WORDS[own[-1] if own else "train"] for path, own in words.items()}
    if "train" not in parts.values():
        raise InputError(f"{root} has no shards for training: expected names such as train-000000.tar.")
    if "test" not in parts.values():
        parts = {path: "test" if part == "validation" else part for path, part in parts.items()}
    return parts
