"""What a student's process may not do, as far as the system can see to it. Nothing here imports torch:
only a process that has a single thread can be set apart.
"""

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

APART = 0x10000000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x00020000
"""CLONE_NEWUSER, NEWPID, NEWNET, NEWIPC and NEWNS."""
CAPABILITIES = 0x20080522  # the version of capset
BIND, SET_ATTRIBUTES, HERE, ALL_BELOW, READ_ONLY = 0x5000, 442, -100, 0x8000, 1  # of mount, mount_setattr
COVERED = ("/run", "/tmp")
"""Where programs wait for what is said to them: a socket takes it where nothing can be written, too."""
SEEN = ("MPLCONFIGDIR", "XDG_CACHE_HOME", "VIT_DATA_DIR", "VIT_WEIGHTS_DIR")
"""Variables that name folders which code of a chapter reads."""
LARGEST_FILE = 100_000_000
NOT_APART = (
    "This system does not set the students' code apart: it can write to your files and use the network. In a "
    "container of the repository's Dockerfile it cannot; the book's page for instructors has the command."
)
PROBE = """
from vit_classroom.assignments.limits import set_apart, write_only_in
raise SystemExit(not (set_apart() and write_only_in({folder!r})))
"""


@dataclass(frozen=True)
class Limits:
    """What a student's code may take.

    Attributes:
        megabytes: of memory.
        seconds: of processor time for one cell; one call of an answer has ten.
    """

    megabytes: int = 4000
    seconds: float = 30


def set_apart() -> bool:
    """Leave this process without a network, and its next child alone, and say whether that was possible.

    On Linux, it mostly is. The child can touch no process but those that it starts, which end with it, and
    nothing that it mounts is seen elsewhere.
    """
    return ctypes.CDLL(None, use_errno=True).unshare(APART) == 0


def write_only_in(folder: str) -> bool:
    """Let a process that was set apart write in one folder only, for good; say whether that was possible.

    Of what lies beside the folder, and of `COVERED`, it then sees what Python and its packages need.
    """
    library = ctypes.CDLL(None, use_errno=True)

    def bound(source: str, place: str) -> bool:
        return library.mount(source.encode(), place.encode(), None, ctypes.c_ulong(BIND), None) == 0

    def changed(path: str, below: int, read_only: int) -> bool:
        attributes = (ctypes.c_uint64 * 4)(read_only, READ_ONLY - read_only, 0, 0)
        return library.syscall(SET_ATTRIBUTES, HERE, path.encode(), below, attributes, 32) == 0

    def covered(place: str) -> bool:
        kept = {path: os.open(path, os.O_PATH) for path in _needed(folder) if path.startswith(f"{place}/")}
        cover = tempfile.mkdtemp(prefix=".", dir=folder)  # no new file system: nobody here may write in one
        for path in kept:
            os.makedirs(cover + path.removeprefix(place), exist_ok=True)
        sources = {place: cover} | {path: f"/proc/self/fd/{number}" for path, number in kept.items()}
        done = all(bound(source, path) for path, source in sources.items())
        for number in kept.values():  # or they would lead to what is covered
            os.close(number)
        return done

    done = False
    with contextlib.suppress(OSError):
        places = {os.path.realpath(path) for path in (*COVERED, os.path.dirname(folder))}
        done = all(covered(place) for place in sorted(places) if os.path.isdir(place))
        done = done and changed("/", ALL_BELOW, READ_ONLY) and changed(folder, 0, 0)
    version = (ctypes.c_uint32 * 2)(CAPABILITIES, 0)
    return library.capset(version, (ctypes.c_uint32 * 6)()) == 0 and done  # or it could change that back


def _needed(folder: str) -> set[str]:
    """Return the folders that a student's process needs, each as it is named and as it is."""
    root = Path(__file__).parents[2]
    named = [os.environ.get(name, "") for name in SEEN]
    paths = [folder, sys.prefix, sys.base_prefix, root, *root.glob("vit_*"), *sys.path, *named]
    both = {way(path) for path in paths if path for way in (os.path.abspath, os.path.realpath)}
    return set(filter(os.path.isdir, both))


def can_be_set_apart() -> bool:
    """Say whether this system lets a student's process be set apart, by trying with another one."""
    with tempfile.TemporaryDirectory(prefix="vit-student-") as folder:
        tried = [sys.executable, "-c", PROBE.format(folder=folder)]
        return subprocess.run(tried, capture_output=True, check=False).returncode == 0


def limit_memory(megabytes: int) -> bool:
    """Limit memory and the size of files, and say whether that was possible: on Linux.

    Args:
        megabytes: that this process may take beyond what it has now.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
        with open("/proc/self/statm", encoding="ascii") as file:  # elsewhere, nothing limits addresses
            pages = int(file.read().split()[0])
        most = pages * resource.getpagesize() + megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        return True
    return False
