"""Memory that a training step frees is kept for the next one, on a CPU under Linux.

A step allocates and frees hundreds of megabytes. The C library hands large pieces back to the system at once
and asks for new ones in the next operation, and the system clears every page before it gives it out, which
takes a good part of a step's time (`benchmarks/peers.py` measures it). Kept pages cost nothing.
"""

import contextlib
import ctypes
import os
import platform
import sys
from collections.abc import Iterator

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
"""The names of glibc's settings in `mallopt`."""
KEEPING = {MMAP_MAX: 0, TRIM_THRESHOLD: 2**31 - 1}
ADAPTED = {MMAP_MAX: 65536, TRIM_THRESHOLD: 64 * 2**20, MMAP_THRESHOLD: 32 * 2**20}
"""What is set afterwards: where glibc's own thresholds, which adapt, end up once large pieces were freed."""


@contextlib.contextmanager
def keeping_freed_memory(wanted: bool = True) -> Iterator[bool]:
    """Let the process keep freed memory for a while; afterwards what is not in use goes back to the system.

    It yields whether memory is kept: not where the C library is not glibc, or where its settings were made
    from outside (`MALLOC_...`, `GLIBC_TUNABLES`).
    """
    chosen = any(name.startswith("MALLOC_") for name in os.environ) or "GLIBC_TUNABLES" in os.environ
    glibc = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
    library = ctypes.CDLL(None) if wanted and not chosen and glibc else None
    kept = library is not None and all(library.mallopt(*setting) for setting in KEEPING.items())
    try:
        yield kept
    finally:
        if library is not None:
            for setting in ADAPTED.items():
                library.mallopt(*setting)
            library.malloc_trim(0)
