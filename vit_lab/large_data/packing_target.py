"""Where shards go: a new folder, or one where the same packing was begun; all else is left alone."""

import json
import os
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import remove_leftovers, write_json, writing
from vit_lab.large_data.shards import INDEX, PLAN


def check_target(target: Path) -> None:
    """Refuse a target that is no folder, or that holds something else than shards of ours."""
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file: expected a folder for the shards. Choose another name.")
    found = sorted(name for name in os.listdir(target) if not name.startswith(".")) if target.exists() else []
    if found and not {INDEX, PLAN} & set(found):
        raise holds_something_else(target, found[0])


def begin(target: Path, plan: dict[str, Any]) -> None:
    """Note what is packed, or see that it is the same as before; remove what a killed process left.

    Raises:
        InputError: another packing was begun there, or nothing can be written.
    """
    path = target / PLAN
    if path.exists():
        try:
            before = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            raise holds_something_else(target, PLAN) from None
        compare(target, before, plan)
    with writing(path):
        write_json(path, plan)
    remove_leftovers(target, [PLAN, INDEX])
    for leftover in target.glob(".*.tar.part"):
        with writing(leftover):
            leftover.unlink()


def compare(target: Path, before: Any, plan: dict[str, Any]) -> None:
    """Refuse to go on with what was begun from other photos, or with other settings."""
    if not isinstance(before, dict):
        raise holds_something_else(target, PLAN)
    for key, value in plan.items():
        if before.get(key) != value:
            differ = "other photos" if key == "photos" else f"{key} = {before.get(key)!r}, not {value!r}"
            raise InputError(
                f"{target} holds shards of another packing ({differ}): expected the same one, or a new "
                "folder. Nothing was written; remove it, or choose another folder."
            )


def holds_something_else(target: Path, name: str) -> InputError:
    """Build the error for a target that is not ours to write to."""
    return InputError(
        f"{target} holds something else ({name}): expected an empty or new folder for the shards. "
        "Nothing was written; choose another folder."
    )
