"""A run's config.toml: every setting, and how two sets of settings differ."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.settings import as_table, flattened
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.self_supervised import SelfSupervised
from vit_from_scratch.training.state import TrainingState, as_vit
from vit_lab.runs.fingerprints import data_fingerprint

CONFIG = "config.toml"
HEADER = "# Every setting of this run; `vit evaluate` reads it. To change one, start another run.\n\n"

WITHOUT_EFFECT = {"train.workers", "train.sharding"}
"""What changes no number beyond rounding, so that a run may go on with another value."""


def run_settings(state: TrainingState) -> dict[str, Any]:
    """Return everything that decides a run, as the tables of config.toml."""
    config = as_vit(state.model, "a run folder").config
    objective = {"objective": state.model.objective} if isinstance(state.model, SelfSupervised) else {}
    return objective | {
        "data": as_table(state.data.config),
        "model": config.to_dict(),
        "train": as_table(state.config),
        "images": {"sha256": data_fingerprint(state.data), "classes": list(state.data.class_names)},
    }


def write_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write a run's config.toml; it makes the folder a run's."""
    write_atomically(folder / CONFIG, (HEADER + tomli_w.dumps(settings)).encode())


def read_settings(folder: Path) -> dict[str, Any]:
    """Read a run's config.toml.

    Raises:
        InputError: there is none, it cannot be read, or it is not a run's.
    """
    path = folder / CONFIG
    try:
        settings = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read ({error}): expected the settings of a run, as `vit train` writes them. "
            "Name a run's folder."
        ) from error
    tables = all(isinstance(settings.get(table), dict) for table in ("data", "model", "train", "images"))
    classes = settings["images"].get("classes") if tables else None
    named = isinstance(classes, list) and all(isinstance(name, str) for name in classes)
    if not named or not isinstance(settings.get("objective", ""), str):
        raise InputError(
            f"{path} is not a run's: expected the tables [data], [model], [train] and [images], with a list "
            "of names images.classes. Nothing was written; choose another folder."
        )
    return settings


def check_same_run(folder: Path, now: Mapping[str, Any]) -> None:
    """Raise an `InputError` unless the run in a folder has the settings and images to go on with."""
    there, after = read_settings(folder), dict(now)
    before, images = there.pop("images"), after.pop("images")
    if changed := differences(there, after):
        raise InputError(
            f"{folder} holds a run with other settings: {'; '.join(changed)}. "
            "Use the same settings to go on with it, or another folder for a new run."
        )
    if before.get("sha256") != images["sha256"]:
        raise InputError(
            f"{folder} holds a run on other images than there are in {now['data']['name']} now: expected the "
            "same files with the same labels. Put them back, or take another folder for a new run."
        )


def differences(there: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say in words which settings differ between two groups of tables such as [model] and [train].

    An option that is left out has its default.
    """
    before, after = flattened(there), flattened(now)
    usual = {"objective": "classes", "model": ViTConfig().to_dict(), "train": as_table(TrainConfig())}
    both = (before.keys() | after.keys()) - WITHOUT_EFFECT
    defaults = {key: value for key, value in flattened(usual).items() if key in both}
    before, after = defaults | before, defaults | after
    return [
        f"{key} ({before.get(key, 'not set')} there, {after.get(key, 'not set')} now)"
        for key in sorted(both)
        if before.get(key) != after.get(key)
    ]
