"""What a learning platform gives: a folder or a zip, with folders and zips in it, read where it lies."""

import io
import os
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from vit_classroom.assignments.notebooks import LARGEST
from vit_from_scratch.errors import InputError, reason

DEEPEST = 3
"""Zips in zips that are opened."""
UNPACKED = 2_000_000_000
"""Bytes that a zip and those in it may hold once they are unpacked; in an inbox, each zip in it by itself."""
PACKING = 200
"""Times that a zip of more than a notebook's size may become larger; notebooks stay far below."""
READ = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Ways of packing that are read: of others Python unpacks all before a limit is looked at."""
BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError)
BROKEN += (MemoryError,)
"""What reading a zip ends in that is damaged or has a password."""


@dataclass(frozen=True)
class Found:
    """A file that was handed in.

    Attributes:
        parts: the folders and zips on the way to it, and its name, "" for a folder with nothing in it.
        time: when it was written, in seconds.
        content: of a notebook; of other files nothing is read.
        problem: why it cannot be read, "" if it can.
    """

    parts: tuple[str, ...]
    time: float = 0
    content: bytes = b""
    problem: str = ""


def files_in(inbox: Path) -> Iterator[Found]:
    """Yield all that is in a folder or a zip, in an order of its own kind.

    Raises:
        InputError: it is neither, or a zip that is damaged, dangerous or too large.
    """
    if inbox.is_dir():
        yield from _of_folder(inbox)
    elif zipfile.is_zipfile(inbox):
        with inbox.open("rb") as file:
            for found in _of_zip(file, ()):
                if found.problem and not found.parts:
                    raise InputError(f"{inbox} {found.problem}")
                yield found
    else:
        raise InputError(f"{inbox} is neither a folder nor a zip: expected what a learning platform gives.")


def _of_folder(folder: Path) -> Iterator[Found]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        within = Path(place).relative_to(folder).parts
        names = sorted(name for name in files if not _is_hidden(name))
        if within and not folders and not names:
            yield Found((*within, ""))
        links = [name for name in folders if Path(place, name).is_symlink()]
        for path in (Path(place, name) for name in [*links, *names]):
            parts = (*within, path.name)
            try:
                if path.is_symlink() or not path.is_file():
                    yield Found(parts, problem="is a link or a device, and was not read")
                elif path.suffix.lower() == ".zip":
                    with path.open("rb") as file:
                        yield from _of_zip(file, parts)
                else:
                    state = path.stat()
                    yield _file(parts, state.st_mtime, state.st_size, path.read_bytes)
            except OSError as error:
                yield Found(parts, problem=f"cannot be read: {reason(error)}.")


def _of_zip(
    file: IO[bytes], parts: tuple[str, ...], depth: int = 1, before: list[int] | None = None
) -> Iterator[Found]:
    """Yield what is in a zip; nothing of it is written to disk, so no name in it reaches anything.

    `before` are the bytes in those around it and before it, to which its own are added.
    """
    sizes = [] if before is None else before
    try:
        with zipfile.ZipFile(file) as archive:
            members = [member for member in archive.infolist() if not _is_hidden(*_parts_of(member))]
            if problem := _danger(members, depth, sizes):
                yield Found(parts, problem=problem)
                return
            within = (*parts[:-1], Path(parts[-1]).stem) if parts else ()
            full = {folder for member in members for folder in PurePosixPath(member.filename).parents}
            for member in sorted(members, key=lambda one: one.filename):
                whole = (*within, *_parts_of(member))
                if member.is_dir():
                    yield from () if PurePosixPath(member.filename) in full else [Found((*whole, ""))]
                elif whole[-1].lower().endswith(".zip"):
                    inner = io.BytesIO(_read(archive, member))
                    yield from _of_zip(inner, whole, depth + 1, sizes if parts else None)
                else:
                    written = time.mktime((*member.date_time, 0, 0, -1))
                    yield _file(whole, written, member.file_size, partial(_read, archive, member))
    except BROKEN as error:
        yield Found(parts, problem=f"is a zip that cannot be read: {reason(error)}.")


def _file(parts: tuple[str, ...], written: float, size: int, read: Callable[[], bytes]) -> Found:
    """Return a file, with its content if it is a notebook."""
    if not parts[-1].lower().endswith(".ipynb"):
        return Found(parts, written)
    if size > LARGEST:
        problem = f"has more than {LARGEST // 1_000_000} MB: expected a notebook."
        return Found(parts, written, problem=problem)
    return Found(parts, written, read())


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return a member's content, of which no more is unpacked than it says that there is."""
    with archive.open(member) as file:
        return file.read(member.file_size + 1)


def _danger(members: list[zipfile.ZipInfo], depth: int, sizes: list[int]) -> str:
    """Say why a zip is not read, "" if it is, and add to `sizes` what it holds besides other zips."""
    unpacked, packed = (sum(getattr(one, size) for one in members) for size in ("file_size", "compress_size"))
    sizes += [one.file_size for one in members if not one.filename.lower().endswith(".zip")]
    if max(sum(sizes), unpacked) > UNPACKED or (unpacked > LARGEST and unpacked > PACKING * packed):
        whole = max(sum(sizes), unpacked) / 1e6
        return f"is a zip that would unpack to {whole:,.0f} MB: expected notebooks. It was not read."
    if any(one.compress_type not in READ for one in members):
        return "is a zip that is packed in a rare way: expected Deflate, the usual one. It was not read."
    if depth > DEEPEST:
        return f"is a zip in more than {DEEPEST} others: expected a zip of notebooks. It was not read."
    for member in members:
        if ".." in _parts_of(member) or re.match(r"([A-Za-z]:)?[/\\]", member.filename):
            return f"is a zip with the path {member.filename}: expected names inside of it. It was not read."
    return ""


def _parts_of(member: zipfile.ZipInfo) -> tuple[str, ...]:
    """Return the parts of a member's path, with the signs that some programs mean and do not declare."""
    name = member.filename
    if not member.flag_bits & 0x800:
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = member.filename
    return tuple(part for part in name.replace("\\", "/").split("/") if part)


def _is_hidden(*names: str) -> bool:
    hidden = {"__MACOSX", "Thumbs.db", "desktop.ini"}
    return any(name in hidden or (name.startswith(".") and name != "..") for name in names)
