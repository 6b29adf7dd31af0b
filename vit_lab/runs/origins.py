"""Where a run was trained: its origins.json says so from the start, since another process may go on with it.

It holds {"origins": [...]}: hardware, versions, commit and date of each stretch, `from_epoch` on.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import remove_leftovers, write_json
from vit_lab.runs.environment import environment

ORIGINS = "origins.json"

ORIGIN = ("hardware", "versions", "commit")
"""Where a run's number came from; a summary says it once, and again for a run that differs."""

NOTED = (*ORIGIN, "date", "origins", "measured_by")
"""What a run's result may say of where it was made."""


def note_origin(folder: Path, here: Mapping[str, Any], epoch: int) -> None:
    """Note that `here` trains a run after an epoch, unless the stretch before was trained there, too.

    Raises:
        InputError: as in `read_origins`, or the note cannot be written.
    """
    # A process that ended before the end of its first epoch left nothing of the run.
    noted = [stretch for stretch in read_origins(folder) if stretch["from_epoch"] <= epoch]
    if not noted or differs(noted[-1], here):
        noted.append({"from_epoch": epoch + 1, **here})
    remove_leftovers(folder, [ORIGINS])
    write_json(folder / ORIGINS, {"origins": noted})


def read_origins(folder: Path) -> list[dict[str, Any]]:
    """Read where the stretches of a run were trained, in order; none before its first epoch.

    Raises:
        InputError: the note is damaged.
    """
    path = folder / ORIGINS
    kinds = {"from_epoch": int, "hardware": dict, "versions": dict, "commit": str | None, "date": str}
    try:
        noted = json.loads(path.read_text("utf-8"))["origins"]
        if all(isinstance(stretch[key], kind) for stretch in noted for key, kind in kinds.items()):
            return noted
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError):
        pass
    raise InputError(
        f"{path} cannot be read: expected a record of where this run was trained. Restore the file, or "
        "remove it if there is no copy."
    )


def trained_at(folder: Path) -> dict[str, Any]:
    """Return where a run was trained: hardware, versions, commit and date of its last stretch.

    Beside them are its "origins", every stretch that is noted, unless a single one is all of the run. Where
    nothing is noted, this process is named, and the list is empty.
    """
    noted = read_origins(folder)
    last = noted[-1] if noted else environment()
    whole = [stretch["from_epoch"] for stretch in noted] == [1]
    return {key: last[key] for key in (*ORIGIN, "date")} | ({} if whole else {"origins": noted})


def differs(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether two origins differ in more than their date."""
    return any(one[key] != other[key] for key in ORIGIN)
