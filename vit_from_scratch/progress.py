"""Whether progress is shown as a bar."""

import os
import sys


def progress_shown() -> bool:
    """Say whether to show bars: in a terminal, unless VIT_PROGRESS says 1 (always) or 0 (never)."""
    if "VIT_PROGRESS" in os.environ:
        return not progress_refused()
    return all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))


def progress_refused() -> bool:
    """Say whether VIT_PROGRESS forbids bars and lines: whether it is 0."""
    return os.environ.get("VIT_PROGRESS") == "0"
