"""Summaries of several runs, and of a sweep: what one tells of is never lost to another."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_lab.experiments.recipes import Recipe
from vit_lab.experiments.transfers import Transfers
from vit_lab.experiments.trials import Trials, runs_of
from vit_lab.runs.run_settings import differences

SUMMARY, SWEEP = "summary.json", "sweep.json"


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


def check_sweep(path: str | os.PathLike[str], recipe: Recipe, rates: Sequence[float]) -> None:
    """Look at what the record of a new sweep would replace, before anything is trained.

    Args:
        path: of sweep.json.
        recipe: what is trained at each rate, with its first seed.
        rates: that are to be tried.

    Raises:
        InputError: a file lies there that is no record of a sweep, or one of another recipe, seed or start,
            or of rates that would not be tried.
    """
    path = Path(path)
    if not os.path.lexists(path):
        return
    seed, settings = recipe.seeds[0], _without_rate(_settings(recipe))
    changed: list[str] = []
    try:
        sweep = json.loads(path.read_text("utf-8"))
        lost = [row["rate"] for row in sweep["rates"] if row["rate"] not in rates]
        if "config" in sweep:  # the first version noted the rates alone
            changed += [f"seed ({sweep['seed']} there, {seed} now)"] if sweep["seed"] != seed else []
            changed += differences(_without_rate(sweep["config"]), settings)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"{path} is no record of a sweep, and one would replace it: expected none, or an earlier one of "
            "the same recipe. Nothing was written; move it away or choose another folder."
        ) from None
    changed += [f"rate {rate:g} would be lost" for rate in lost]
    if changed:
        raise InputError(
            f"{path} tells of another sweep ({'; '.join(changed)}): expected the same rates, or more, of the "
            "same recipe. Nothing was written; name those, too, or choose another folder."
        )


def _runs(made_by: Recipe | Trials | Transfers) -> dict[str, Any]:
    """Return each run's settings by what a summary calls it: by its seed, or by the trial's name."""
    if isinstance(made_by, Transfers):
        return {
            f"{task}, {start}, seed {seed}": found
            for (task, start), recipe in made_by.pairs().items()
            for found in [_without_rate(_settings(recipe))]
            for seed in made_by.seeds
        }
    if isinstance(made_by, Trials):
        tables = {name: _without_seed(_settings(recipe)) for name, recipe in made_by.recipes().items()}
        return {_of_seed(name, seed): found for name, found in tables.items() for seed in made_by.seeds}
    found = _without_seed(_settings(made_by))
    return {f"seed {seed}": found for seed in made_by.seeds}


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
            f"{pair['task']}, {pair['start']}, seed {seed}": _without_rate(pair["config"])
            for pair in summary["pairs"]
            for seed in _seeds_of(pair)
        }
    config = _without_seed(summary["config"] | {"objective": summary.get("objective", "classes")})
    return summary["recipe"], {f"seed {seed}": config for seed in _seeds_of(summary)}


def _seeds_of(told: Mapping[str, Any]) -> list[int]:
    """Return the seeds that a summary or a pair tells of, those with which training diverged included."""
    return [run["seed"] for run in told["runs"]] + told.get("diverged", [])


def _of_seed(trial: str, seed: int) -> str:
    """Return what a run of a trial is called: by the trial alone, if its seed is the usual one."""
    return f"{trial}, seed {seed}" if seed else trial


def _settings(recipe: Recipe) -> dict[str, Any]:
    """Return what decides a recipe's runs: its tables, its objective and what it begins from."""
    return recipe.tables() | {"objective": recipe.objective} | recipe.start()


def _without_seed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are compared, without the seed, which each run has for itself.

    What a run began from is its weights and whether it kept their head, whatever they are called.
    """
    train = {key: value for key, value in settings["train"].items() if key != "seed"}
    start = {key: value for key, value in settings.get("start", {}).items() if key != "name"}
    return {
        "objective": settings.get("objective", "classes"),
        "data": settings["data"],
        "model": settings["model"],
        "train": train,
        "start": start,
    }


def _without_rate(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are compared, without the seed and the rate that a sweep chooses."""
    kept = _without_seed(settings)
    return kept | {"train": {key: v for key, v in kept["train"].items() if key != "learning_rate"}}
