"""Summaries of several runs: what one tells of is never lost to another."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.experiments.recipes import Recipe
from vit_from_scratch.experiments.transfers import Transfers
from vit_from_scratch.experiments.trials import Trials, runs_of
from vit_from_scratch.model.stem_config import with_stem_table
from vit_from_scratch.training.run_settings import differences

SUMMARY = "summary.json"


def check_summary(path: str | os.PathLike[str], made_by: Recipe | Trials | Transfers) -> None:
    """Look at what a new summary would replace, before anything is trained.

    Args:
        path: where the summary goes.
        made_by: the recipe, with its seeds, or the page of trials or transfers that it is to tell of.

    Raises:
        InputError: a file lies there that is no summary, or that tells of runs that the new one will not.
    """
    path = Path(path)
    if not os.path.lexists(path):
        return
    try:
        summary = json.loads(path.read_text("utf-8")) if path.is_file() else None
        name, there = _told(summary)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"{path} is no summary of runs, and one would replace it: expected a new name, or an earlier "
            "summary of the same runs. Nothing was written; move it away or choose another place."
        ) from None
    now = _runs(made_by)
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


def _runs(made_by: Recipe | Trials | Transfers) -> dict[str, Any]:
    """Return each run's settings by what a summary calls it: by its seed, or by the trial's name."""
    if isinstance(made_by, Transfers):
        return {
            f"{task}, {start}, seed {seed}": _without_rate(recipe.tables())
            for (task, start), recipe in made_by.pairs().items()
            for seed in made_by.seeds
        }
    if isinstance(made_by, Trials):
        tables = {name: _without_seed(recipe.tables()) for name, recipe in made_by.recipes().items()}
        return {_of_seed(name, seed): found for name, found in tables.items() for seed in made_by.seeds}
    return {f"seed {seed}": _without_seed(made_by.tables()) for seed in made_by.seeds}


def _told(summary: Any) -> tuple[str, dict[str, Any]]:
    """Return of which recipe or page a summary is, and the settings of its runs, by name as in `_runs`."""
    if "trials" in summary:
        return summary["name"], {
            _of_seed(trial["name"], run["seed"]): _without_seed(trial["config"])
            for trial in summary["trials"]
            for run in runs_of(trial)
        }
    if "pairs" in summary:
        return summary["name"], {
            f"{pair['task']}, {pair['start']}, seed {run['seed']}": _without_rate(pair["config"])
            for pair in summary["pairs"]
            for run in pair["runs"]
        }
    config = _without_seed(summary["config"])
    return summary["recipe"], {f"seed {run['seed']}": config for run in summary["runs"]}


def _of_seed(trial: str, seed: int) -> str:
    """Return what a run of a trial is called: by the trial alone, if its seed is the usual one."""
    return f"{trial}, seed {seed}" if seed else trial


def _without_seed(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables [data], [model] and [train] without the seed, which each run has for itself."""
    train = {key: value for key, value in tables["train"].items() if key != "seed"}
    return {"data": tables["data"], "model": with_stem_table(tables["model"]), "train": train}


def _without_rate(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables without seed and learning rate, which a sweep chooses."""
    kept = _without_seed(tables)
    return kept | {"train": {key: v for key, v in kept["train"].items() if key != "learning_rate"}}
