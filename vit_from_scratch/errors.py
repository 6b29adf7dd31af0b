"""The one exception that the package raises for wrong input, and a helper for unknown names."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Wrong input: says what was given, what was expected and what to do."""


def unknown_name(kind: str, given: object, known: Iterable[str]) -> InputError:
    """Build the error for a name that is not in a list of known names.

    Args:
        kind: what the name stands for, for instance ``"variant"``.
        given: what the caller passed.
        known: every name that would have been accepted.

    Returns:
        The error, ready to raise; it proposes the closest known name when there is one.
    """
    names = [str(name) for name in known]
    close = difflib.get_close_matches(str(given), names, n=1, cutoff=0.7)
    advice = f"did you mean {close[0]!r}?" if close else "pick one of these."
    return InputError(f"unknown {kind} {given!r}: expected one of {', '.join(map(repr, names))}; {advice}")
