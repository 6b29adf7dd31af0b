"""Folders that one process at a time writes to."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import writing

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

HOW = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""How the lock is opened: no link is followed, and no pipe waited for."""
LOCK = ".lock"
"""The file in a folder that the process at work there has locked."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder for a while; it is made if it is not there.

    The system lets go of the lock when the process ends, however it ends. Where nothing can be locked, such
    as on a read-only disk, it goes on without.

    Raises:
        InputError: another process holds the folder, or the folder cannot be made.
    """
    made = not folder.is_dir()
    lock = _lock(folder)
    try:
        yield
    finally:
        if lock is not None:
            with lock, contextlib.suppress(OSError):
                if sys.platform == "win32":  # where no open file can be removed
                    lock.close()
                (folder / LOCK).unlink()  # elsewhere while it is still locked: nobody else's can be meant
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()  # if nothing was written to it


def _lock(folder: Path) -> BinaryIO | None:
    """Lock the file in a folder that stands for it; None where that cannot be done."""
    while True:
        if not folder.is_dir():
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = os.fdopen(os.open(folder / LOCK, HOW, 0o666), "ab")
        except FileNotFoundError:  # the folder was removed again just now
            continue
        except OSError:
            return None
        try:
            if sys.platform == "win32":
                msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
                return lock
            # Of the process, not of the file as `flock` is: the workers that read images never inherit it.
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(folder / LOCK)):
                return lock
        except FileNotFoundError:  # whoever held it removed it just now
            pass
        except OSError as error:
            lock.close()
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return None
            raise InputError(
                f"{folder} is in use by another process: expected one at a time. "
                "Wait until it has ended, or choose another folder."
            ) from None
        lock.close()
