"""Which notebooks changed, and which of them there is time for."""

import json
from pathlib import Path
from typing import Any

from changed import git
from project_facts import ROOT, chapter_number, measured_chapters

FOLDERS = ("notebooks", "exercises")
SECONDS = 120  # that `--changed` may take on a quiet machine, besides the shortest
SETUP = 25  # seconds of a notebook's set-up cell, which pip spends


def generated(root: Path = ROOT) -> list[Path]:
    """Every notebook that a reader opens in Colab, chapter by chapter."""
    found = [path for folder in FOLDERS for path in (root / folder).glob("*.ipynb")]
    return sorted(
        (path for path in found if chapter_number(path.stem) is not None),
        key=lambda path: (path.stem, FOLDERS.index(path.parent.name)),
    )


def _code(text: str) -> list[Any]:
    """What runs in a notebook, after the set-up."""
    return [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"][1:]


def changed(root: Path, base: str | None) -> list[Path]:
    """The notebooks whose code differs from that of a commit, the quickest first; prose does not run.

    A set-up cell that changed stands at the head of all of them: the shortest notebook speaks for it.
    """
    seconds = seconds_of(root)
    found = []
    for path in generated(root):
        old = git(root, "show", f"{base}:{path.relative_to(root).as_posix()}") if base else None
        if old is None or _code(old) != _code(path.read_text(encoding="utf-8")):
            found.append(path)
    return sorted(found, key=lambda path: seconds[path.stem])


def seconds_of(root: Path = ROOT) -> dict[str, float]:
    """How long each chapter runs on a CPU, as measured; one that was never measured comes last."""
    measured = measured_chapters(root)
    return {
        path.stem: measured.get(path.stem, {}).get("cpu", {}).get("seconds", float("inf"))
        for path in generated(root)
    }


def there_is_time_for(paths: list[Path], root: Path = ROOT) -> tuple[list[Path], list[Path]]:
    """Take both notebooks of the shortest chapter, then of others while their recorded seconds fit.

    Returns:
        What to rehearse, and what to leave out.
    """
    seconds = seconds_of(root)
    shortest = min(seconds, key=lambda name: (seconds[name], name))
    taken = [path for path in generated(root) if path.stem == shortest]
    left, total = [], 0.0
    for path in paths:
        if path in taken:
            continue
        total += seconds[path.stem] + SETUP
        (taken if total <= SECONDS else left).append(path)
    return taken, left
