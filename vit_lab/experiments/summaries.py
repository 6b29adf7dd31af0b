"""Summaries of several runs: what one tells of is never lost to another."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_lab.experiments.recipes import Recipe
from vit_lab.experiments.records import Row, read_rows
from vit_lab.experiments.study import Study
from vit_lab.runs.run_settings import differences

SUMMARY = "summary.json"


def read_summary(path: str | os.PathLike[str]) -> tuple[str, list[Row]]:
    """Read a summary: the name of its recipe or study, and its rows; ("", []) where there is none.

    Raises:
        InputError: what is there is not a summary.
    """
    path = Path(path)
    if not os.path.lexists(path):
        return "", []
    try:
        summary: Any = json.loads(path.read_text("utf-8")) if path.is_file() else None
        return summary["name" if "rows" in summary else "recipe"], read_rows(summary)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise InputError(
            f"{path} is not a summary of runs, and one would replace it: expected a new name, or an earlier "
            "summary of the same runs. Nothing was written; move it away or choose another place."
        ) from None


def check_summary(path: str | os.PathLike[str], made_by: Recipe | Study, rates: Sequence[float] = ()) -> None:
    """Look at what a new summary would replace, before anything is trained.

    Args:
        path: where the summary goes.
        made_by: the recipe, with its seeds, or the study that it is to tell of.
        rates: that the recipe is swept over.

    Raises:
        InputError: a file is there that is not a summary, or that tells of runs that the new one will not.
    """
    name, rows = read_summary(path)
    if not rows:
        return
    there = {
        run: _compared(row.config | {"objective": row.objective}, bool(row.rates))
        for row in rows
        for run in _names(row.label, row.seeds, [rate.rate for rate in row.rates])
    }
    now = _runs(made_by, rates)
    if name != made_by.name:
        changed = [f"{name} there, {made_by.name} now"]
    elif left_out := [run for run in there if run not in now]:
        changed = [f"{', '.join(left_out)} would be lost"]
    else:
        changed = next((found for run in there if (found := differences(there[run], now[run]))), [])
    if changed:
        raise InputError(
            f"{path} tells of other runs ({'; '.join(changed)}): expected the same ones, or more. "
            "Nothing was written; name those, too, or choose another place."
        )


def _runs(made_by: Recipe | Study, rates: Sequence[float]) -> dict[str, Any]:
    """Return each run's settings by what messages call it: by its row, and its seed or its rate."""
    if isinstance(made_by, Recipe):
        rows = [("", made_by, rates)]
    else:
        rows = [(variant.label, variant.recipe, variant.rates) for variant in made_by.variants()]
    return {
        run: settings
        for label, recipe, tried in rows
        for settings in [
            _compared(recipe.tables() | {"objective": recipe.objective} | recipe.start(), bool(tried))
        ]
        for run in _names(label, made_by.seeds, tried)
    }


def _names(label: str, seeds: Sequence[int], rates: Sequence[float]) -> list[str]:
    """Return what messages call the runs of a row."""
    names = [*(f"seed {seed}" for seed in seeds), *(f"rate {rate:g}" for rate in rates)]
    return [f"{label}, {name}" if label else name for name in names]


def _compared(settings: Mapping[str, Any], swept: bool) -> dict[str, Any]:
    """Return the settings that are compared: without the seed, and without a rate that a sweep chooses.

    What a run began from is its weights and whether it kept their head, whatever they are called.
    """
    varied = ("seed", "learning_rate") if swept else ("seed",)
    return {
        "objective": settings["objective"],
        "data": settings["data"],
        "model": settings["model"],
        "train": {key: value for key, value in settings["train"].items() if key not in varied},
        "start": {key: value for key, value in settings.get("start", {}).items() if key != "name"},
    }
