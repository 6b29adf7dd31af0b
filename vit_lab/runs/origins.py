"""Where a run was trained: its folder says so from the start, since another process may go on with it.

What is in it::

    origins.json   {"origins": [...]}: hardware, versions, commit and date of each stretch, `from_epoch` on
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import remove_leftovers, write_json, writing
from vit_from_scratch.training.state import Callback, TrainingState
from vit_lab.runs.finished import ORIGIN

ORIGINS = "origins.json"

NOTED = (*ORIGIN, "date", "origins", "measured_by")
"""What a run's result may say of where it was made."""


class NoteOrigin(Callback):
    """Note in a run's folder where it is trained, as training begins or goes on there; after `RunFolder`."""

    def __init__(self, folder: Path, here: Mapping[str, Any]) -> None:
        """Say which folder, and what `environment` says of this process."""
        self.folder, self.here = folder, here

    def on_start(self, state: TrainingState) -> None:
        """Add this process, unless the stretch before was trained there, too, or the run is finished.

        Raises:
            InputError: as in `read_origins`, or the note cannot be written.
        """
        if state.finished:
            return
        # A process that ended before the end of its first epoch left nothing of the run.
        noted = [stretch for stretch in read_origins(self.folder) if stretch["from_epoch"] <= state.epoch]
        if not noted or differs(noted[-1], self.here):
            noted.append({"from_epoch": state.epoch + 1, **self.here})
        remove_leftovers(self.folder, [ORIGINS])
        with writing(self.folder):
            write_json(self.folder / ORIGINS, {"origins": noted})


def read_origins(folder: Path) -> list[dict[str, Any]]:
    """Read where the stretches of a run were trained, in order; none before its first epoch.

    Raises:
        InputError: the note is damaged.
    """
    path = folder / ORIGINS
    kinds = {"from_epoch": int, "hardware": dict, "versions": dict, "commit": str | None, "date": str}
    try:
        noted = json.loads(path.read_text("utf-8"))["origins"]
        whole = all(isinstance(stretch[key], kind) for stretch in noted for key, kind in kinds.items())
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError):
        whole, noted = False, []
    if not whole:
        raise InputError(
            f"{path} cannot be read: expected where this run was trained. Restore it, or remove it if that "
            "is no longer known."
        )
    return noted


def trained_at(folder: Path, here: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a run was trained: hardware, versions, commit and date of its last stretch.

    Args:
        folder: the run's.
        here: what `environment` says of this process; it is taken where nothing is noted.

    Returns:
        Those, and "origins", every stretch that is noted, unless a single one is all of the run: an empty
        list says that nothing is.

    Raises:
        InputError: as in `read_origins`.
    """
    noted = read_origins(folder)
    last = noted[-1] if noted else here
    whole = [stretch["from_epoch"] for stretch in noted] == [1]
    return {key: last[key] for key in (*ORIGIN, "date")} | ({} if whole else {"origins": noted})


def made_at(folder: Path, here: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a run was trained, as `trained_at`, and "measured_by", this process, if it is another."""
    trained = trained_at(folder, here)
    return trained | ({"measured_by": dict(here)} if differs(trained, here) else {})


def differs(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether two origins differ in more than their date."""
    return any(one[key] != other[key] for key in ORIGIN)


def said_once(entries: Sequence[Mapping[str, Any]], origin: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return entries without what their summary says for them all: the parts of an origin that are equal."""
    return [
        {key: value for key, value in entry.items() if key not in ORIGIN or value != origin[key]}
        for entry in entries
    ]


def spelt_out(entries: Sequence[Mapping[str, Any]], origin: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return entries as they were before `said_once`."""
    return [{key: origin[key] for key in ORIGIN if key in origin} | dict(entry) for entry in entries]
