"""Trials: one recipe with a setting changed at a time, compared on held-out images alone.

This is how settings are chosen and how a chapter can say what each of them buys. The test set is never
touched. A page of trials is TOML: a base recipe, changes that all trials share, and the trials in order.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.settings import check_fields, from_table, merged, require
from vit_lab.experiments.packaged import packaged_names, page_table
from vit_lab.experiments.recipes import Recipe, check_name, load_recipe


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
        seeds: each trial is run once for each of them.

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
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        """Refuse an empty page, and names that are no folders of their own."""
        check_fields(self, "")
        check_name(self.name)
        require(len(self.trials) > 0, "trials", self.trials, "at least one")
        for name, own in self.trials.items():
            require(isinstance(own, dict), f"trials.{name}", own, "a table of changes")
        require(len(self.seeds) > 0, "seeds", list(self.seeds), "at least one")
        require(len(set(self.seeds)) == len(self.seeds), "seeds", list(self.seeds), "each of them once")
        require(all(0 <= seed < 2**63 for seed in self.seeds), "seeds", list(self.seeds), "0 to 2^63 - 1")
        check_folders("trial", self.trials)

    def recipes(self) -> dict[str, Recipe]:
        """Return each trial's recipe by the trial's name."""
        recipes, kept = {}, self.changes
        for name, own in self.trials.items():
            here = merged(kept, own)
            recipes[name] = replace(load_recipe(self.base, here), name=slug(name))
            if self.cumulative:
                kept = here
        return recipes


def trials_names() -> list[str]:
    """Return the names of the pages that ship with the package."""
    return packaged_names("trials", ".toml")


def load_trials(name: str) -> Trials:
    """Read a page of trials: one that ships with the package by name, or the path of a TOML file.

    Raises:
        InputError: no such page, no TOML, or an unknown option in it.
    """
    return from_table(Trials, page_table("trials", name), "")


def runs_of(trial: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the runs of a trial as its summary holds it, one a seed.

    Summaries of the first version had one run for each trial, its numbers in the trial itself.
    """
    alone = {key: trial[key] for key in ("validation_accuracy", "seconds", "curves") if key in trial}
    return trial.get("runs") or [{"seed": 0, **alone}]


def check_folders(kind: str, names: Iterable[str]) -> None:
    """Refuse names that are no folders of their own, as `slug` makes them.

    Args:
        kind: what is called so, for the message: "trial".
        names: of all of them.

    Raises:
        InputError: one of them has no letter or digit, or too many, or two would share a folder.
    """
    folders: dict[str, str] = {}
    for name in names:
        folder = slug(name)
        if not re.search("[a-z0-9]", folder) or len(folder) > 200 or folder == "summary.json":
            raise InputError(
                f"{kind} {name!r} cannot name a folder: expected letters from a to z or digits, "
                "200 at most. Rename it."
            )
        if folder in folders:
            raise InputError(
                f"{kind}s {folders[folder]!r} and {name!r} would share the folder {folder!r}: "
                "expected names that differ in letters or digits. Rename one."
            )
        folders[folder] = name


def slug(name: str) -> str:
    """Turn a trial's name into one for a folder: "+ flip, shift" becomes "flip-shift"."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
