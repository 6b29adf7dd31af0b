"""Files that are whole at every moment, and one clear sentence where that cannot be."""

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError

# What holds no list and no table, such as the numbers of an epoch, gets a line if it fits.
_INNERMOST = re.compile(r'[\[{](?:[^\[\]{}"]|"(?:[^"\\]|\\.)*")*[\]}]')
_LONGEST_LINE = 300


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that at every moment either the old content or the new stands at ``path``.

    Raises:
        InputError: it cannot be written, say on a full disk.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        try:
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            for _ in range(20 if os.name == "nt" else 0):  # a scanner may have it open for a moment
                with contextlib.suppress(PermissionError):
                    return os.replace(temporary, path)
                time.sleep(0.1)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def remove_leftovers(folder: Path, names: Iterable[str]) -> None:
    """Remove what processes that were killed in `write_atomically` left of files with these names."""
    for name in names:
        for leftover in folder.glob(f".{name}.{'[a-z0-9_]' * 8}"):
            with contextlib.suppress(OSError):
                leftover.unlink()


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON that a person can read, all or nothing; a file that holds it already is left alone."""
    text = (_INNERMOST.sub(_on_one_line, json.dumps(content, indent=1)) + "\n").encode()
    with writing(path):
        if not (path.is_file() and path.read_bytes() == text):
            write_atomically(path, text)


def _on_one_line(found: re.Match[str]) -> str:
    line = re.sub(r"\n *", " ", found[0])  # JSON has no line break within a text
    return line if len(line) <= _LONGEST_LINE else found[0]


def sha256(path: Path) -> str:
    """Return the checksum of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failure to write, such as a full disk, into one clear error; what was there is still whole."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}. Expected a folder with room that you may write "
            "to. Make room, close what has the file open, or take another folder; then run the same again."
        ) from error
