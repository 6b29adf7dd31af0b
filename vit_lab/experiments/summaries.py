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
    """Look at what the summary of a recipe (with the rates that it is swept over) or a study would replace.

    Raises:
        InputError: a file is there that is not a summary, or that tells of runs that the new one will not.
    """
    name, rows = read_summary(path)
    if not rows:
        return
    there, now = {}, {}
    for row in rows:
        there |= _runs(row.label, row.config, row.objective, row.seeds, [rate.rate for rate in row.rates])
    if isinstance(made_by, Recipe):
        planned = [("", made_by, rates)]
    else:
        planned = [(variant.label, variant.recipe, variant.rates) for variant in made_by.variants()]
    for label, recipe, tried in planned:
        now |= _runs(label, recipe.tables() | recipe.start(), recipe.objective, made_by.seeds, tried)
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


def _runs(
    label: str, config: Mapping[str, Any], objective: str, seeds: Sequence[int], rates: Sequence[float]
) -> dict[str, dict[str, Any]]:
    """Return what is compared of each run of a row, by what messages call it: by its seed or its rate.

    Left out are the seed, a rate that a sweep chooses, and what the weights that it began from are called.
    """
    varied = ("seed", "learning_rate") if rates else ("seed",)
    settings = {
        "objective": objective,
        "data": config["data"],
        "model": config["model"],
        "train": {key: value for key, value in config["train"].items() if key not in varied},
        "start": {key: value for key, value in config.get("start", {}).items() if key != "name"},
    }
    names = [*(f"seed {seed}" for seed in seeds), *(f"rate {rate:g}" for rate in rates)]
    return {f"{label}, {name}" if label else name: settings for name in names}
