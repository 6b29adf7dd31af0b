"""Whether progress is shown as a bar."""

import os
import sys


def progress_shown() -> bool:
    """Say whether to show bars: in a terminal, unless VIT_PROGRESS says 1 (always) or 0 (never)."""
    if "VIT_PROGRESS" in os.environ:
        return os.environ["VIT_PROGRESS"] != "0"
    return all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
