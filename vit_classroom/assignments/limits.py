"""What a student's process may not do, as far as the system can see to it. Nothing here imports torch:
the network can only be taken from a process that has a single thread.
"""

import contextlib
import ctypes
import sys
from dataclasses import dataclass

NEW_USERS, NEW_NETWORK = 0x10000000, 0x40000000  # Linux: CLONE_NEWUSER, CLONE_NEWNET
LARGEST_FILE = 100_000_000


@dataclass(frozen=True)
class Limits:
    """What a student's code may take.

    Attributes:
        megabytes: of memory.
        seconds: of processor time for one cell; one call of an answer has ten.
    """

    megabytes: int = 4000
    seconds: float = 30


def take_network() -> bool:
    """Leave this process without a network, and say whether that was possible: on Linux, mostly."""
    if sys.platform != "linux":
        return False
    return ctypes.CDLL(None, use_errno=True).unshare(NEW_USERS | NEW_NETWORK) == 0


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
