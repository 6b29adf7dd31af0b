"""Whether progress is shown as a bar."""

import os
import sys


def progress_shown() -> bool:
    """Say whether to show bars: in a terminal, unless VIT_PROGRESS says 1 (always) or 0 (never)."""
    wish = os.environ.get("VIT_PROGRESS")
    if wish is not None:
        return wish != "0"
    return all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
