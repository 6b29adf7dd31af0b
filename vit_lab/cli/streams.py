"""What commands print to, and the one sentence and the exit code for everything that may go wrong."""

import contextlib
import io
import os
import sys
import unicodedata
from collections.abc import Iterator
from typing import Any, TextIO

from vit_from_scratch.errors import DivergedError, InputError, reason, shown
from vit_lab.failures import LostProcessError

WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130

TRAINS = ("train", "finetune", "study")
"""The commands that train."""

STOPPED = "stopped. What the last finished epoch reached is kept; the same command goes on from there."
TOO_LARGE_TO_TRAIN = (
    "the model or the batch is too large for this device. Try train.accumulation=2 or more, "
    "train.precision=bfloat16, a smaller batch or a smaller model; for a run, in another folder."
)
TOO_LARGE = "what was asked for is too large for this machine. Try a smaller picture or a smaller model."

FULL_MEMORY = ("allocate memory", "not enough memory", "out of memory", "storage size calculation overflowed")
"""What torch says of a processor's full memory, for which it has no class of error."""


class Plain:
    """A stream that writes control characters, as names of files may have them, as escapes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        """Do everything else as the stream itself does."""
        return getattr(self.stream, name)

    def flush(self) -> None:
        """Hand over what is written."""
        self.stream.flush()

    def write(self, text: str) -> int:
        """Write text of which a terminal obeys nothing but line ends and tabs."""
        plain = (one in "\n\t" or not unicodedata.category(one).startswith("C") for one in text)
        said = (one if is_plain else repr(one)[1:-1] for one, is_plain in zip(text, plain, strict=True))
        return self.stream.write("".join(said))


@contextlib.contextmanager
def safe_streams() -> Iterator[None]:
    """Make printing safe: to a closed output it says nothing, and every file's name can be printed.

    Python has None for a stream that the shell closed (`>&-`). The number of a closed one is free, and the
    next file that is opened would get it, and with it what other libraries print.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in the order of their numbers
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (it stays open to the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")  # for alphabets that a terminal does not have
    with contextlib.redirect_stdout(Plain(sys.stdout)):
        yield


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
        print(f"vit: {' '.join(sentence.splitlines())}", file=Plain(sys.stderr), flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Let a stream that fails end nowhere, or the interpreter fails again on leaving."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def explained(error: BaseException, command: str | None) -> tuple[str, int]:
    """Return the sentence that says why a command failed, if its name is known yet, and the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return STOPPED if command in TRAINS else "stopped.", INTERRUPTED
    if isinstance(error, InputError):
        return str(error), WRONG_INPUT
    if isinstance(error, DivergedError | LostProcessError):
        return str(error), FAILED
    if is_out_of_memory(error):
        return f"out of memory: {TOO_LARGE_TO_TRAIN if command in TRAINS else TOO_LARGE}", FAILED
    if isinstance(error, RecursionError):
        return "something is nested too deeply: expected lists and tables of a few levels.", FAILED
    if isinstance(error, OSError) and error.strerror:
        files = [shown(name, 300) for name in (error.filename, error.filename2) if name is not None]
        where = f"{' and '.join(files)}: " if files else ""
        return f"{where}{error.strerror}. Check that the file or folder can be read and written.", FAILED
    return (
        f"a bug in vit_from_scratch, not a mistake of yours ({type(error).__name__}: {reason(error)}). "
        "With the environment variable VIT_DEBUG=1, the command shows where; please report that.",
        FAILED,
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Say whether an error means that a processor's or GPU's memory is full."""
    said = str(error).lower() if isinstance(error, RuntimeError) else ""
    return isinstance(error, MemoryError) or any(words in said for words in FULL_MEMORY)
