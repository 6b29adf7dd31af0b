"""How much a chapter may compute: the one switch ``VIT_BUDGET=quick|full``."""

import os
from typing import TypeVar

from vit_from_scratch.errors import unknown_name

Value = TypeVar("Value")


def budget() -> str:
    """The budget in force: ``"quick"`` (two CPU cores, offline; the default) or ``"full"`` (a GPU).

    Raises:
        InputError: if the environment variable ``VIT_BUDGET`` holds anything else.
    """
    value = os.environ.get("VIT_BUDGET", "quick")
    if value not in ("quick", "full"):
        raise unknown_name("VIT_BUDGET", value, ("quick", "full"))
    return value


def by_budget(quick: Value, full: Value) -> Value:
    """Choose a setting by the budget in force."""
    return full if budget() == "full" else quick
