"""Photos in shards: tar files that are read at any place, through an index that is made on first opening.

So an epoch may take the photos in any order, in any number of processes, and a photo that was changed is
noticed. Nothing here needs PyTorch.
"""

import contextlib
import hashlib
import io
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from vit_from_scratch.data.folders import PICTURES, draw
from vit_from_scratch.data.photos import regular_file
from vit_from_scratch.data.sources import Photos, PhotoSource
from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.files import write_atomically
from vit_from_scratch.paths import download_folder

INDEX = "index.npz"
"""The file beside the shards that holds the index; where it cannot be written it is in the cache."""

NO_SHARDS = "no shards at {root}: expected tar files for training, such as train-000.tar."

ROW = np.dtype([("shard", "<u4"), ("offset", "<u8"), ("size", "<u8"), ("crc", "<u4"), ("label", "<u4")])
"""A photo in the index: its shard, its first byte there, its size in bytes, their CRC-32, its class."""

PARTS = {"train": 0, "training": 0}
PARTS |= {"val": 1, "valid": 1, "validation": 1, "dev": 1}
PARTS |= {"test": 2, "testing": 2, "eval": 2}
"""What a word of a shard's name says about the part that it belongs to; without one it is for training."""


class PackedPhoto(NamedTuple):
    """A photo in a shard: where its bytes are, how many, and their CRC-32."""

    shard: Path
    offset: int
    size: int
    crc: int

    def __str__(self) -> str:
        """Say where it is, as a message names it."""
        return f"{self.shard} (at byte {self.offset:,})"

    def read(self) -> bytes:
        """Return the bytes of its file; an `InputError` if the shard is gone, or was changed."""
        try:
            with self.shard.open("rb") as file:
                file.seek(self.offset)
                content = file.read(self.size)
        except OSError as error:
            raise InputError(f"{self} cannot be read ({reason(error)}). Put the shard back.") from None
        if zlib.crc32(content) != self.crc:
            raise InputError(
                f"{self} is not what it was when {INDEX} was made: expected the same bytes. Copy the shard "
                "again; if it was changed on purpose, remove the index."
            )
        return content

    def described(self) -> str:
        """Return size and checksum, which tell it from others."""
        return f"{self.size} {self.crc:08x}"


def open_shards(root: Path) -> PhotoSource:
    """Open photos in tar files, such as train-000.tar and test-000.tar, which may be deeper in the folder.

    A photo's class is the folder that it is in, or what KEY.cls beside KEY.jpg says. Without a test part,
    the validation photos are for the test, and without these a fifth of each class.

    Raises:
        InputError: there are no shards, one is damaged, or a photo has no class.
    """
    shards = sorted(path for path in root.rglob("*.tar") if not path.name.startswith("."))
    if not shards:  # before an index is made of nothing
        raise InputError(NO_SHARDS.format(root=root))
    rows, classes = _indexed(root, shards)
    words = [re.findall("[a-z]+", str(path.relative_to(root)).lower()) for path in shards]
    said = [[PARTS[word] for word in found if word in PARTS] for found in words]
    parts = np.array([found[-1] if found else 0 for found in said], dtype=int)[rows["shard"]]
    if 0 not in parts:
        raise InputError(NO_SHARDS.format(root=root))
    if len(classes) < 2 or len(set(rows["label"][parts == 0].tolist())) < len(classes):
        raise InputError(
            f"{root} has training photos of too few classes: expected two or more, and each that the other "
            "parts have. Add photos."
        )
    note = ""
    if 2 not in parts:
        parts[parts == 1] = 2
    if 2 not in parts:
        names = [f"{shards[row['shard']].name}/{row['offset']}" for row in rows]
        held_out, note = draw(names, rows["label"].tolist(), classes, root)
        parts[held_out] = 2
    files = [PackedPhoto(shards[row[0]], *row[1:4]) for row in rows.tolist()]
    order = np.argsort(parts, kind="stable").tolist()
    samples = [(files[number], int(rows["label"][number])) for number in order]
    known, validation, _ = np.bincount(parts, minlength=3).tolist()
    train, test = Photos.of(samples[: known + validation]), Photos.of(samples[known + validation :])
    return PhotoSource(train, test, classes, validation, note=note)


def _indexed(root: Path, shards: list[Path]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return a row for each photo, (N,) of `ROW`, and the classes; the index is made where it does not fit.

    It fits if the shards have the names, sizes and dates that they had when it was made.
    """
    found = [(path.relative_to(root).as_posix(), path.stat()) for path in shards]
    stamp = "\n".join(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in found)
    cached = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16] + ".npz"
    places = [root / INDEX]
    with contextlib.suppress(InputError):  # there is no home folder
        places.append(download_folder("data") / "shards" / cached)
    for place in places:
        try:
            with np.load(regular_file(place), allow_pickle=False) as index:
                rows, classes = index["rows"], tuple(index["classes"].tolist())
                fits = str(index["stamp"]) == stamp and rows.dtype == ROW
                if fits and rows["shard"].max() < len(shards) and rows["label"].max() < len(classes):
                    return rows, classes
        except (OSError, EOFError, ValueError, LookupError, MemoryError, BadZipFile):  # none, or damaged
            continue
    photos = [(number, *photo) for number, path in enumerate(shards) for photo in _photos_in(path)]
    labels = sorted(
        {photo[-1] for photo in photos}, key=lambda label: (label.isdecimal() and len(label), label)
    )
    number_of = {label: number for number, label in enumerate(labels)}
    rows = np.array([(*place, number_of[label]) for *place, label in photos], dtype=ROW)
    content = io.BytesIO()
    np.savez(content, stamp=stamp, rows=rows, classes=labels)
    for place in places:
        with contextlib.suppress(InputError):
            write_atomically(place, content.getvalue())
            break
    return rows, tuple(labels)


def _photos_in(path: Path) -> Iterator[tuple[int, int, int, str]]:
    """Yield first byte, size, CRC-32 and class of each photo of a tar file."""
    photos, classes = [], {}
    try:
        with tarfile.open(regular_file(path), "r:") as tar:
            for member in tar:
                folder, _, name = member.name.rpartition("/")
                kind = Path(name).suffix.lower()
                if not member.isfile() or name.startswith(".") or kind not in (*PICTURES, ".cls"):
                    continue
                content = tar.extractfile(member).read()  # type: ignore[union-attr]  # it is a file
                key = (folder, name.partition(".")[0])
                if kind == ".cls":
                    classes[key] = content.decode().strip()
                else:
                    photos.append((key, member.offset_data, member.size, zlib.crc32(content)))
            tar.fileobj.seek(tar.offset)  # type: ignore[union-attr]  # tarfile takes damage for the end
            if any(tar.fileobj.read(tarfile.RECORDSIZE) or b"cut"):  # type: ignore[union-attr]
                raise tarfile.ReadError(f"it is damaged or cut short at byte {tar.offset:,}")
    except (OSError, tarfile.TarError, ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a whole tar file ({reason(error)}). Copy it again.") from None
    for (folder, key), *place in photos:
        label = classes.get((folder, key), folder.rpartition("/")[2])
        if not label:
            raise InputError(f"{path} has no class for {key}: expected the photo in a folder, or {key}.cls.")
        yield (*place, os.fsencode(label).decode("utf-8", "replace"))
