"""Trials: one recipe with a setting changed at a time, compared on held-out images alone.

This is how settings are chosen and how a chapter can say what each of them buys. The test set is never
touched. A page of trials is TOML: a base recipe, changes that all trials share, and the trials in order.
"""

import dataclasses
import json
import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.cost import count_parameters
from vit_from_scratch.settings import check_fields, from_table, merged, require
from vit_from_scratch.training.callbacks import ProgressBar
from vit_from_scratch.training.data import open_dataset
from vit_from_scratch.training.environment import environment
from vit_from_scratch.training.loop import train
from vit_from_scratch.training.recipes import Recipe, load_recipe, packaged_text
from vit_from_scratch.training.run_folder import writing
from vit_from_scratch.training.runs import write_json
from vit_from_scratch.training.state import best_epoch


@dataclass(frozen=True, kw_only=True)
class Trials:
    """A page of trials.

    Attributes:
        name: the file's name without `.toml`.
        claim: what is asked.
        command: what to type.
        base: the recipe that all begin from.
        cumulative: whether a trial keeps the changes of those before it.
        changes: nested tables laid over the base in every trial.
        trials: for each trial, by name and in order, the tables of its own changes.

    Raises:
        InputError: a value of another type, or no trial.
    """

    name: str
    claim: str
    command: str
    base: str
    cumulative: bool = False
    changes: dict[str, Any] = field(default_factory=dict)
    trials: dict[str, Any]

    def __post_init__(self) -> None:
        """Refuse an empty page."""
        check_fields(self, "")
        require(len(self.trials) > 0, "trials", self.trials, "at least one")
        for name, own in self.trials.items():
            require(isinstance(own, dict), f"trials.{name}", own, "a table of changes")

    def recipes(self) -> dict[str, Recipe]:
        """Return each trial's recipe by the trial's name."""
        recipes, kept = {}, self.changes
        for name, own in self.trials.items():
            here = merged(kept, own)
            recipes[name] = replace(load_recipe(self.base, here), name=slug(name))
            if self.cumulative:
                kept = here
        return recipes


def load_trials(name: str) -> Trials:
    """Read a page of trials: one that ships with the package by name, or the path of a TOML file.

    Raises:
        InputError: no such page, no TOML, or an unknown option in it.
    """
    path = Path(name)
    try:
        text = path.read_text("utf-8") if name.endswith(".toml") else packaged_text("trials", f"{name}.toml")
        table = tomllib.loads(text)
    except OSError as error:
        raise InputError(
            f"no trials {name!r}: expected the name of a page of this package or a TOML file. Check the name."
        ) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"trials {name!r} are not TOML: {error}. Correct the file.") from error
    return from_table(Trials, {**table, "name": path.stem}, "")


def run_trials(
    page: Trials,
    out_dir: Path,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    report: Callable[[dict[str, Any]], None] = lambda trial: None,
) -> dict[str, Any]:
    """Train every trial and write `out_dir/summary.json`; those that are in their folders already are kept.

    Args:
        page: what to try.
        out_dir: the folder over the trials' folders.
        data_dir: where the data lie; see `load_dataset`.
        device: where to train.
        report: called with each trial's entry as it ends.

    Returns:
        What summary.json holds: for each trial its changes, validation accuracy, seconds and curves.

    Raises:
        InputError: a trial holds no images out, or its settings do not fit.
    """
    recipes, trials = page.recipes(), []
    threads = max(recipe.train.threads for recipe in recipes.values())
    origin = environment(threads, device)  # of the code that trains, should it change meanwhile
    for name, recipe in recipes.items():
        data = open_dataset(recipe.data, data_dir)
        if not data.size_of("validation"):
            raise InputError(f"trial {name!r} holds no images out: expected data.validation_size above 0.")
        model = recipe.seeded(data).to(device)
        history = train(model, data, recipe.train, out_dir / recipe.name, [ProgressBar(name)])
        kept = best_epoch(history) if recipe.train.patience else -1
        entry = {
            "name": name,
            "changes": page.trials[name],
            "validation_accuracy": history[kept].validation_accuracy,
            "seconds": sum(epoch.seconds for epoch in history),
            "parameters": count_parameters(model),
            "config": recipe.tables(),
            "curves": [dataclasses.asdict(epoch) for epoch in history],
        }
        trials.append(entry)
        report(entry)
    facts = {key: getattr(page, key) for key in ("name", "claim", "command", "base", "cumulative", "changes")}
    summary = facts | {"trials": trials} | origin
    with writing(out_dir):
        write_json(out_dir / "summary.json", json.loads(json.dumps(summary)))
    return summary


def slug(name: str) -> str:
    """Turn a trial's name into one for a folder: "+ flip, shift" becomes "flip-shift"."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
