"""What a learning platform gives: a folder or a zip, with folders and zips in it, read where it lies."""

import io
import os
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vit_classroom.assignments.notebooks import LARGEST
from vit_from_scratch.errors import InputError, reason

DEEPEST = 3
"""Zips in zips that are opened."""
UNPACKED = 2_000_000_000
"""Bytes that a zip may hold once it is unpacked."""
PACKING = 200
"""Times that a zip of more than a notebook's size may become larger; notebooks stay far below."""
BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError)
"""What reading a zip ends in that is damaged or has a password."""


class Found(NamedTuple):
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
        parts = Path(place).relative_to(folder).parts
        names = sorted(name for name in files if not _is_hidden(name))
        if parts and not folders and not names:
            yield Found((*parts, ""))
        for name in names:
            path = Path(place, name)
            if not path.is_file() or path.is_symlink():
                continue
            try:
                state = path.stat()
                if name.lower().endswith(".zip"):
                    with path.open("rb") as file:
                        yield from _of_zip(file, (*parts, name))
                else:
                    large = _too_large(name, state.st_size)
                    content = path.read_bytes() if _is_notebook(name) and not large else b""
                    yield Found((*parts, name), state.st_mtime, content, large)
            except OSError as error:
                yield Found((*parts, name), problem=f"cannot be read: {reason(error)}.")


def _of_zip(
    file: io.BufferedIOBase | io.BufferedReader, parts: tuple[str, ...], depth: int = 1
) -> Iterator[Found]:
    """Yield what is in a zip; nothing of it is written to disk, so no name in it reaches anything."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [member for member in archive.infolist() if not _is_hidden(*_parts_of(member))]
            if problem := _danger(members, depth):
                yield Found(parts, problem=problem)
                return
            within = (*parts[:-1], re.sub(r"\.zip$", "", parts[-1], flags=re.IGNORECASE)) if parts else ()
            for member in sorted(members, key=lambda one: one.filename):
                whole = (*within, *_parts_of(member))
                if member.is_dir():
                    if not any(
                        one.filename.startswith(member.filename) for one in members if one is not member
                    ):
                        yield Found((*whole, ""))
                elif whole[-1].lower().endswith(".zip"):
                    yield from _of_zip(io.BytesIO(archive.read(member)), whole, depth + 1)
                else:
                    large = _too_large(whole[-1], member.file_size)
                    content = archive.read(member) if _is_notebook(whole[-1]) and not large else b""
                    written = time.mktime((*member.date_time, 0, 0, -1))
                    yield Found(whole, written, content, large)
    except BROKEN as error:
        yield Found(parts, problem=f"is a zip that cannot be read: {reason(error)}.")


def _danger(members: list[zipfile.ZipInfo], depth: int) -> str:
    """Say why a zip is not read, "" if it is."""
    unpacked, packed = (sum(getattr(one, size) for one in members) for size in ("file_size", "compress_size"))
    if unpacked > UNPACKED or (unpacked > LARGEST and unpacked > PACKING * packed):
        return f"is a zip that would unpack to {unpacked / 1e6:,.0f} MB: expected notebooks. It was not read."
    if depth > DEEPEST:
        return f"is a zip in more than {DEEPEST} others: expected a zip of notebooks. It was not read."
    for member in members:
        if ".." in _parts_of(member) or re.match(r"[/\\]|[A-Za-z]:", member.filename):
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


def _is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb")


def _too_large(name: str, size: int) -> str:
    large = _is_notebook(name) and size > LARGEST
    return f"has more than {LARGEST // 1_000_000} MB: expected a notebook." if large else ""
