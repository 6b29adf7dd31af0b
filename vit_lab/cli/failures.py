"""One sentence and an exit code for everything that may go wrong in a command."""

from vit_from_scratch.errors import DivergedError, InputError, LostProcessError, reason, shown

WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130

TRAINS = ("train", "finetune", "study")
"""The commands that train."""

TRAINING = (
    "the model or the batch is too large for this device. Try train.accumulation=2 or more, "
    "train.precision=bfloat16, a smaller batch or a smaller model; for a run, in another folder."
)
ANYTHING = "what was asked for is too large for this machine. Try a smaller picture or a smaller model."

FULL_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "storage size calculation overflowed",
)
"""What torch says of a full memory, which only its words tell."""


def explained(error: Exception, command: str | None) -> tuple[str, int]:
    """Say in one sentence why a command failed.

    Args:
        error: what was raised.
        command: the command's name; None if it is not known.

    Returns:
        The sentence and the exit code.
    """
    if isinstance(error, InputError):
        return str(error), WRONG_INPUT
    if isinstance(error, DivergedError | LostProcessError):
        return str(error), FAILED
    if is_out_of_memory(error):
        return f"out of memory: {TRAINING if command in TRAINS else ANYTHING}", FAILED
    if isinstance(error, RecursionError):
        return "something is nested too deeply: expected lists and tables of a few levels.", FAILED
    if isinstance(error, OSError) and error.strerror:
        files = [shown(name, 300) for name in (error.filename, error.filename2) if name is not None]
        where = f"{' and '.join(files)}: " if files else ""
        return f"{where}{error.strerror}. Check that the file or folder can be read and written.", FAILED
    return (
        f"a fault of vit_from_scratch, which is not your doing ({type(error).__name__}: {reason(error)}). "
        "With VIT_DEBUG=1 before it, the command shows where; please report that.",
        FAILED,
    )


def is_out_of_memory(error: Exception) -> bool:
    """Say whether an error means that a CPU's or GPU's memory is full."""
    said = str(error).lower() if isinstance(error, RuntimeError) else ""
    return isinstance(error, MemoryError) or any(words in said for words in FULL_MEMORY)
