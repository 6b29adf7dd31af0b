"""Photos in shards: tar files in the convention of WebDataset, read at any place through an index.

For each photo a tar file holds KEY.jpg (or another ending) and, beside it, KEY.cls with its class number.
`index.npz` says where each photo is, and which checksum its bytes have. So any order of an epoch can be read,
by any number of processes, and a shard that was exchanged is noticed. Nothing here needs PyTorch.
"""

import itertools
import re
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload
from zipfile import BadZipFile

import numpy as np

from vit_from_scratch.data.folders import PICTURES, draw, no_test_part
from vit_from_scratch.data.photos import regular_file
from vit_from_scratch.data.sources import Photos, PhotoSource
from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.files import writing

INDEX = "index.npz"
"""The file beside the shards that says where each photo is."""

FIELDS = ("names", "sizes", "rows", "counts", "classes", "note")
"""In the index: the shards' names and sizes, a row a photo, photos in each part, classes, a sentence."""

DAMAGE = (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, MemoryError, BadZipFile)
"""What reading a damaged index ends in."""

ROW = np.dtype([("shard", "<u4"), ("offset", "<u8"), ("size", "<u8"), ("crc", "<u4"), ("label", "<u4")])
"""A photo in the index: its shard, its first byte there, its size in bytes, their CRC-32, its class."""

PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
"""What the name of a shard says about the part that it belongs to; without a word it is for training."""

BLOCK = 8 * 2**20
"""Bytes of a shard whose photos are read at about the same time; see `reading_order`."""


@dataclass(frozen=True)
class PackedPhoto:
    """A photo in a shard.

    Attributes:
        shard: the tar file.
        offset: its first byte there.
        size: its bytes.
        crc: their CRC-32.
    """

    shard: Path
    offset: int
    size: int
    crc: int

    def __str__(self) -> str:
        """Say where it is, as a message names it."""
        return f"{self.shard} (at byte {self.offset:,})"

    def read(self) -> bytes:
        """Return the bytes of its file.

        Raises:
            InputError: the shard is gone, or was changed.
        """
        try:
            with self.shard.open("rb") as file:
                file.seek(self.offset)
                content = file.read(self.size)
        except OSError as error:
            raise InputError(f"{self} cannot be read ({reason(error)}). Put the shard back.") from None
        if zlib.crc32(content) != self.crc:
            raise InputError(
                f"{self} is damaged, or the shard is another one than when {INDEX} was written: expected the "
                "same bytes. Put it back, or write the index anew."
            )
        return content

    def described(self) -> str:
        """Return size and checksum, which tell it from others."""
        return f"{self.size} {self.crc:08x}"


@dataclass(frozen=True, eq=False)
class PackedPhotos(Sequence[PackedPhoto]):
    """Photos in shards.

    Attributes:
        shards: the tar files.
        rows: of the index, (N,) of `ROW`.
    """

    shards: list[Path]
    rows: np.ndarray

    def __len__(self) -> int:
        """The number of photos."""
        return len(self.rows)

    @overload
    def __getitem__(self, number: int) -> PackedPhoto: ...
    @overload
    def __getitem__(self, number: slice) -> "PackedPhotos": ...
    def __getitem__(self, number: int | slice) -> "PackedPhoto | PackedPhotos":
        """Return a photo, or some."""
        if isinstance(number, slice):
            return PackedPhotos(self.shards, self.rows[number])
        shard, offset, size, crc, _ = self.rows[number].tolist()
        return PackedPhoto(self.shards[shard], offset, size, crc)


def open_shards(root: Path) -> PhotoSource:
    """Open photos in shards through their index; of the shards the sizes are compared.

    Raises:
        InputError: there is no index, it is damaged, or a shard is missing or has another size.
    """
    path = root / INDEX
    if not path.exists():
        raise InputError(
            f"no shards at {root} (there is no {INDEX}): expected tar files with an index. `vit pack` writes "
            "both; `vit pack --index` writes the index of tar files that others made."
        )
    try:
        with np.load(regular_file(path), allow_pickle=False) as index:
            names, sizes, rows, counts, classes, note = (index[name] for name in FIELDS)
        _, validation, test = counts.tolist()
        fit = rows.dtype == ROW and counts.sum() == len(rows) and rows["label"].max() < len(classes)
        if not (fit and (rows["offset"] + rows["size"] <= sizes[rows["shard"]]).all()):
            raise ValueError
    except DAMAGE:
        raise InputError(
            f"{path} is damaged: expected what `vit pack` writes. Copy the folder again."
        ) from None
    shards = [root / name for name in names.tolist()]
    for shard, size in zip(shards, sizes.tolist(), strict=True):
        if not shard.is_file() or shard.stat().st_size != size:
            raise InputError(
                f"{shard} is missing or damaged: expected all {len(shards)} shards that {INDEX} names, this "
                f"one with {size:,} bytes. Copy it again."
            )
    known, tested = (
        Photos(PackedPhotos(shards, some), some["label"].tolist()) for some in np.split(rows, [-test])
    )
    place = rows["shard"].astype(np.uint64) << np.uint64(40) | rows["offset"] // np.uint64(BLOCK)
    blocks = np.unique(place[:-test], return_inverse=True)[1].tolist()
    names = tuple(classes.tolist())
    return PhotoSource(known, tested, names, validation, blocks=blocks, note=str(note).format(root=root))


def write_index(root: Path, classes: Sequence[str] | None = None, note: str = "") -> None:
    """Read shards once through, and write their index.

    In each part photos are in the order of their keys. Without a test part, the validation photos are for the
    test, and without these a fifth of each class.

    Args:
        root: the folder with the tar files, which may be deeper.
        classes: K names; None for the class numbers.
        note: what a user should know, with {root} for the folder.

    Raises:
        InputError: there are no shards, or one is damaged or holds something else.
    """
    shards = sorted(path for path in root.rglob("*.tar") if not path.name.startswith("."))
    names = [path.relative_to(root).as_posix() for path in shards]
    parts, keys, rows = [], [], []
    for number, (path, name) in enumerate(zip(shards, names, strict=True)):
        words = re.findall("|".join(sorted(PARTS, reverse=True)), name.lower())
        for key, *place in _photos_in(path):
            parts.append(PARTS[words[-1]] if words else 0)
            keys.append(key)
            rows.append((number, *place))
    if 0 not in parts:
        raise InputError(f"no shards at {root}: expected tar files for training, such as train-000000.tar.")
    labels = [row[-1] for row in rows]
    known = list(classes or map(str, range(max(labels) + 1)))
    if len(set(labels)) < 2:
        raise InputError(f"{root} has photos of one class: expected two or more. Add another.")
    if 2 not in parts:
        parts = [2 if part == 1 else part for part in parts]
    if 2 not in parts:
        unlike = [f"{names[row[0]]}/{key}" for row, key in zip(rows, keys, strict=True)]
        parts = [2 if drawn else 0 for drawn in draw(unlike, labels, known, f"{root} has")]
        note = no_test_part(Path("{root}"), parts.count(2), len(parts))
    order = sorted(range(len(rows)), key=lambda number: (parts[number], keys[number]))
    sizes = [path.stat().st_size for path in shards]
    table = np.array([rows[number] for number in order], dtype=ROW)
    values = (names, sizes, table, np.bincount(parts, minlength=3), known, note)
    with writing(root / INDEX):
        np.savez(root / INDEX, **dict(zip(FIELDS, map(np.asarray, values), strict=True)))


def _photos_in(path: Path) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield key, first byte, size, CRC-32 and class of each photo of a tar file.

    Raises:
        InputError: it is damaged, or a photo or a class is missing.
    """
    try:
        with tarfile.open(regular_file(path), "r:") as tar:
            for key, members in itertools.groupby(_members(tar), key=lambda member: _key(member[0])):
                files = list(members)
                pictures = [file for file in files if file[0].name.lower().endswith(PICTURES)]
                labels = [content for file, content in files if file.name.lower().endswith(".cls")]
                if len(pictures) != 1 or len(labels) != 1 or not re.fullmatch(rb"\d{1,9}\s*", labels[0]):
                    raise InputError(
                        f"{path} has {len(pictures)} photos and {len(labels)} classes for the key {key}: "
                        "expected one photo, KEY.jpg, and one class number, KEY.cls. Pack it anew."
                    )
                picture, content = pictures[0]
                yield key, picture.offset_data, picture.size, zlib.crc32(content), int(labels[0])
    except (OSError, tarfile.TarError, ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a whole tar file ({reason(error)}). Copy it again.") from None


def _members(tar: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield the files in a tar file, with their content."""
    before = -1
    for member in tar:
        if member.offset <= before:  # a negative size leads back, for ever
            raise tarfile.ReadError("its sizes are wrong")
        before = member.offset
        file = tar.extractfile(member)
        if file is not None and not member.name.rpartition("/")[2].startswith("."):
            content = file.read()
            if len(content) != member.size:
                raise tarfile.ReadError("it is cut short")
            yield member, content
    tar.fileobj.seek(tar.offset)  # type: ignore[union-attr]  # tarfile takes a damaged head for the end
    rest = tar.fileobj.read(tarfile.RECORDSIZE)  # type: ignore[union-attr]
    if not rest or any(rest):
        raise tarfile.ReadError(f"it is damaged or cut short at byte {tar.offset:,}")


def _key(member: tarfile.TarInfo) -> str:
    folder, slash, file = member.name.rpartition("/")
    return folder + slash + file.partition(".")[0]
