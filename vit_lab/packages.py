"""Packages that only some commands need: here, or missed in one sentence before anything is computed."""

from collections.abc import Sequence
from importlib.util import find_spec

from vit_from_scratch.errors import InputError


def missing_packages(names: Sequence[str]) -> list[str]:
    """Return those of the packages that are not installed; none is imported."""
    return [name for name in names if find_spec(name) is None]


def require_packages(names: Sequence[str], purpose: str) -> None:
    """Raise an `InputError` that says what to install, unless all packages are here.

    Args:
        names: as they are imported and installed.
        purpose: what needs them, for the message, such as "--format onnx".
    """
    if missing := missing_packages(names):
        raise InputError(
            f"{purpose} needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not "
            f"installed here: expected {', '.join(names)}. Run: pip install {' '.join(missing)}"
        )
