"""Photos in shards: tar files in the convention of WebDataset, read at any place through an index.

A folder of shards, as `vit pack` writes it, holds

- train-000000.tar and so on: for each photo KEY.cls (its class number) and KEY.jpg (its file, byte for byte);
  validation-000000.tar and test-000000.tar likewise;
- index.json: classes, photos in each part, the shards with their sizes and checksums;
- photos.npy: where each photo lies, a row each: shard, first byte, size, class;
- names.json: what each photo's file was called.

The rows stand in the order in which the folder was listed (train, validation, test) while the training photos
were shuffled before they were packed. So photos keep their numbers, and with them the split and the random
changes that they had in the folder, and any order of an epoch can be read: nothing depends on how many
processes share the work. Shards without an index, made by others, are read once through (see `tars`).

Nothing here needs PyTorch.
"""

import hashlib
import io
import json
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, overload

import numpy as np

from vit_from_scratch.data.config import Part
from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.files import sha256, write_atomically, writing

FORMAT = "vit-shards-1"
INDEX, TABLE, NAMES, PLAN = "index.json", "photos.npy", "names.json", "packing.json"
"""The files beside the shards; the last one is there until all are written."""

ROW = np.dtype([("shard", "<u4"), ("offset", "<u8"), ("size", "<u8"), ("label", "<u4")])
"""Of the table: the shard's number, the photo's first byte in it, its bytes, its class."""

PARTS: tuple[Part, ...] = ("train", "validation", "test")

OPEN = 64
"""How many shards a process keeps open."""


@dataclass(frozen=True)
class Shard:
    """A tar file.

    Attributes:
        name: of the file, below the folder.
        photos: how many it holds.
        bytes: the file's size.
        sha256: the file's checksum; "" if nobody has computed it.
    """

    name: str
    photos: int
    bytes: int
    sha256: str = ""


class OpenFiles:
    """Files that stay open for reading, the last ones used; each process has its own."""

    def __init__(self) -> None:
        self.files: OrderedDict[Path, BinaryIO] = OrderedDict()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        """Go to another process as a new one, with no file open."""
        return OpenFiles, ()

    def read(self, path: Path, offset: int, size: int) -> bytes:
        """Return so many bytes of a file from a place on, fewer where it ends before."""
        if path not in self.files:
            self.files[path] = path.open("rb", buffering=0)
            if len(self.files) > OPEN:
                self.files.popitem(last=False)[1].close()
        self.files.move_to_end(path)
        file = self.files[path]
        if hasattr(os, "pread"):  # a forked worker shares the file, and its position with it
            return os.pread(file.fileno(), size, offset)
        file.seek(offset)
        return file.read(size)


@dataclass(frozen=True, eq=False)
class ShardIndex:
    """Where the photos of a folder of shards lie.

    Attributes:
        root: the folder.
        classes: K names.
        shards: the tar files.
        counts: photos in train, validation and test.
        table: (N,) of `ROW`, train first, then validation, then test.
        drawn: whether the test photos were drawn from the others, since nothing was there for the test.
        plan: what was packed and how, to know it again; empty for shards made by others.
        known_names: N names; None for those in `NAMES`.
    """

    root: Path
    classes: tuple[str, ...]
    shards: tuple[Shard, ...]
    counts: tuple[int, int, int]
    table: np.ndarray
    drawn: bool
    plan: dict[str, Any] = field(default_factory=dict)
    known_names: Sequence[str] | None = None
    open_files: OpenFiles = field(default_factory=OpenFiles)

    @cached_property
    def names(self) -> Sequence[str]:
        """N names, read when the first one is wanted."""
        if self.known_names is not None:
            return self.known_names
        try:
            return json.loads((self.root / NAMES).read_text("utf-8"))
        except (OSError, ValueError):  # they are for messages alone
            return [f"photo {number}" for number in range(len(self.table))]

    def photos(self, *parts: Part) -> "PackedPhotos":
        """Return the photos of parts that follow one another."""
        ends = np.cumsum((0, *self.counts)).tolist()
        numbers = [PARTS.index(part) for part in parts]
        return PackedPhotos(self, ends[numbers[0]], ends[numbers[-1] + 1])

    def write(self) -> None:
        """Write the index; index.json comes last, and with it the shards are a data set.

        Raises:
            InputError: the disk is full, or the folder may not be written to.
        """
        with writing(self.root / INDEX):
            with_header = _npy(self.table)
            write_atomically(self.root / TABLE, with_header)
            write_atomically(self.root / NAMES, json.dumps(list(self.names)).encode())
            index = {
                "format": FORMAT,
                "classes": list(self.classes),
                "counts": dict(zip(PARTS, self.counts, strict=True)),
                "drawn": self.drawn,
                "plan": self.plan,
                "table_sha256": sha256(self.root / TABLE),
                "shards": [asdict(shard) for shard in self.shards],
            }
            write_atomically(self.root / INDEX, (json.dumps(index, indent=1) + "\n").encode())


@dataclass(frozen=True, eq=False)
class PackedPhoto:
    """A photo in a shard.

    Attributes:
        index: of its shards.
        row: its place in the index.
    """

    index: ShardIndex
    row: int

    def __str__(self) -> str:
        """Say where it is, as a message names it."""
        return f"{self._shard} ({self.index.names[self.row]})"

    def read(self) -> bytes:
        """Return the bytes of its file.

        Raises:
            InputError: the shard is gone, or ends before.
        """
        _, offset, size, _ = self.index.table[self.row].tolist()
        try:
            content = self.index.open_files.read(self._shard, offset, size)
        except OSError as error:
            raise InputError(f"{self} cannot be read ({reason(error)}). Put the shard back.") from None
        if len(content) < size:
            raise InputError(f"{self} cannot be read: the shard ends before. Copy it again.")
        return content

    @property
    def _shard(self) -> Path:
        return self.index.root / self.index.shards[self.index.table["shard"][self.row]].name


@dataclass(frozen=True, eq=False)
class PackedPhotos(Sequence[PackedPhoto]):
    """The photos of one part or more, in the order of the index.

    Attributes:
        shards: with their index.
        first: row of the first photo.
        end: row after the last.
    """

    shards: ShardIndex
    first: int
    end: int

    def __len__(self) -> int:
        """The number of photos."""
        return self.end - self.first

    @overload
    def __getitem__(self, number: int) -> PackedPhoto: ...
    @overload
    def __getitem__(self, number: slice) -> list[PackedPhoto]: ...
    def __getitem__(self, number: int | slice) -> PackedPhoto | list[PackedPhoto]:
        """Return a photo, or some."""
        rows = range(self.first, self.end)[number]
        if isinstance(rows, range):
            return [PackedPhoto(self.shards, row) for row in rows]
        return PackedPhoto(self.shards, rows)

    def described(self) -> Iterator[str]:
        """Yield lines that tell these photos from others."""
        yield from (f"{shard.name} {shard.bytes}" for shard in self.shards.shards)
        yield hashlib.sha256(self.rows.tobytes()).hexdigest()

    @property
    def rows(self) -> np.ndarray:
        """The photos' rows of the table."""
        return self.shards.table[self.first : self.end]


def _npy(table: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, table, allow_pickle=False)
    return file.getvalue()
