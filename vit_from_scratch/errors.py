"""The exceptions that the package raises, and helpers for their sentences. Nothing here needs PyTorch."""

import difflib
import re
from collections.abc import Iterable


class InputError(ValueError):
    """Wrong input: says what was given, what was expected and what to do."""


class DivergedError(RuntimeError):
    """The loss has become huge, or it or a weight is no longer a finite number."""


def unknown_name(kind: str, given: object, known: Iterable[str]) -> InputError:
    """Build the error for a name that is not known, of a kind such as "variant"; it proposes the closest."""
    names = [str(name) for name in known]
    close = difflib.get_close_matches(shown(given).strip("'"), names, n=1, cutoff=0.7)
    advice = f"did you mean {close[0]!r}?" if close else "pick one of these."
    listed = ", ".join(map(repr, names))
    if len(listed) > 300:
        listed = f"{', '.join(map(repr, names[:6]))} and {len(names) - 6} more"
    return InputError(f"unknown {kind} {shown(given)}: expected one of {listed}; {advice}")


def shown(value: object, most: int = 100) -> str:
    """Return a value as a message shows it: as in Python, and cut where it is longer than ``most``."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list in lists in lists
        return f"({type(value).__name__}, too long to print)"
    return text if len(text) <= most else f"{text[: most // 2]}... ({len(text):,} characters)"


def reason(error: BaseException) -> str:
    """Return why something failed: the first sentence of the message, or the kind of error if it has none.

    What libraries say goes on for pages at times; an `OSError` is named without its number and its file.
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    line = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    sentence = re.split(r"(?<=[.!?]) +(?=[A-Z])", line, maxsplit=1)[0]
    return sentence if len(sentence) <= 200 else f"{sentence[:200]}..."
