"""What commands print to: closed, full and strict outputs, and readers that leave early."""

import io
import os
import sys
from typing import TextIO


def prepare_streams() -> None:
    """Make printing safe: to a closed output it says nothing, and every file's name can be printed.

    Python has None for a stream that the shell closed (`>&-`). The number of a closed one is free, and the
    next file that is opened would get it, and with it what other libraries print.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in the order of their numbers
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (it stays open to the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # for names that are no UTF-8


def lost_output() -> OSError | None:
    """Return why nothing can be printed any more, as after `vit recipes | head`; None if all is well."""
    try:
        print(flush=True)  # fails then, even if what failed before was not kept
    except OSError as error:
        _discard(sys.stdout)
        return error
    return None


def complain(sentence: str) -> None:
    """Print one line to the standard error."""
    try:
        print(f"vit: {' '.join(sentence.splitlines())}", file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Let a stream that fails end nowhere, or the interpreter fails again on leaving."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
