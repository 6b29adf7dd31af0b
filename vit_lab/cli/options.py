"""Options that several commands share, and what commands check before they begin."""

import argparse
import os
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.files import writing
from vit_from_scratch.paths import own_path, stat_of
from vit_from_scratch.settings import merged
from vit_lab.experiments.packaged import parse_toml
from vit_lab.experiments.suited import DATA_NAMES
from vit_lab.runs.trained_models import KNOWN

DEVICE = re.compile(r"cpu|mps|(cuda|xpu)(:\d{1,3})?")


def weights_help(names: Iterable[str]) -> str:
    """Say what can be named where a trained model is asked for."""
    return f"{', '.join(names)}, a .safetensors file or a run's folder"


SHARED: dict[str, dict[str, Any]] = {
    "--data": {"metavar": "NAME", "required": True, "help": ", ".join(DATA_NAMES)},
    "--data-dir": {
        "type": own_path,
        "metavar": "DEST",
        "help": "folder that holds the data set (default: VIT_DATA_DIR, else a download)",
    },
    "--weights": {"metavar": "NAME", "required": True, "help": weights_help(KNOWN)},
    "--image-size": {"type": int, "metavar": "S", "help": "side in pixels (default: the model's own)"},
    "--device": {"help": "cpu, cuda, cuda:1, mps, xpu (default: cuda where there is one, else cpu)"},
    "--epochs": {"type": int, "help": "passes over the training images"},
    "--batch-size": {"type": int, "help": "images in a step"},
    "--lr": {"type": float, "dest": "learning_rate", "help": "base learning rate"},
    "--seed": {"type": int, "help": "initial weights, order, augmentation"},
    "--seeds": {"type": int, "nargs": "+", "metavar": "N", "help": "one run for each, and a summary"},
    "--set": {
        "action": "extend",
        "nargs": "+",
        "default": [],
        "metavar": "TABLE.OPTION=VALUE",
        "help": "any setting of the tables data, model and train, such as model.dim=64; with "
        "train.precision=bfloat16 also where that is slow",
    },
    "--show": {"action": "store_true", "help": "print the recipe, changes included, and stop"},
    "--out": {
        "type": own_path,
        "metavar": "DIR",
        "help": "folder of the run (default: runs/NAME-seed-N), or for several runs (runs/NAME)",
    },
    "--results": {"type": own_path, "metavar": "FILE", "help": "also write the summary of the runs here"},
    "--add-to-results": {
        "action": "store_true",
        "help": "keep the runs already in FILE, say from another machine; run only what is missing",
    },
    "--keep-epochs": {
        "type": int,
        "nargs": "+",
        "default": [],
        "metavar": "N",
        "help": "keep the model after these epochs, too, in the run's folder; 0 is the untrained one",
    },
}


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], None],
    *,
    help: str,
    description: str,
    epilog: str = "",
) -> argparse.ArgumentParser:
    """Add a command, carried out by a function of its options, and return its parser."""
    raw = argparse.RawDescriptionHelpFormatter if epilog else argparse.HelpFormatter  # examples keep lines
    parser = commands.add_parser(name, help=help, description=description, epilog=epilog, formatter_class=raw)
    parser.set_defaults(run=run)
    return parser


def add_shared(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add some of the shared options."""
    for name in names:
        parser.add_argument(name, **SHARED[name])


def refuse_existing(files: Iterable[Path], instead: str) -> None:
    """Raise an `InputError` if a file that is to be written exists or cannot be made; say what else to do."""
    for file in files:
        if os.path.lexists(file):
            raise InputError(f"{file} exists: expected no such file. Move it away, or {instead}.")
        with writing(file):
            above = next(folder for folder in file.absolute().parents if folder.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise InputError(
                f"cannot write {file}: {above} is not a folder that you may write to. Choose another place."
            )


def refuse_file(folder: Path) -> None:
    """Raise an `InputError` if --out names something that is not a folder."""
    if stat_of(folder) is not None and not folder.is_dir():
        raise InputError(f"--out {folder} is a file: expected a folder. Choose another name.")


def chosen_device(name: str | None) -> str:
    """Return a device that works here; an `InputError` says that there is no such device."""
    if name is not None and not DEVICE.fullmatch(name):
        raise InputError(f"--device {name}: expected cpu, cuda, cuda:1, mps or xpu. Choose one of them.")
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        on_gpu = name != "cpu" and torch.cuda.is_available()
        return f"cuda:{torch.cuda.current_device()}" if on_gpu else "cpu"
    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        if name == "mps" and not torch.backends.mps.is_available():
            raise RuntimeError("There is none here.")  # what torch says is about its kernels
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"--device {name}: {reason(error).rstrip('.')}. Expected a device of this machine, such as cpu."
        ) from None
    return name


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """Turn `--set model.dim=64 train.optimiser=sgd` into nested tables.

    A value is read as TOML (64, 0.1, true, [0.9, 0.99]); what is not TOML is a string.

    Raises:
        InputError: no "=", a key outside the tables data, model and train, or a value that is too large or
            too deep to be read.
    """
    tables: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        path = key.strip().split(".")
        if not equals or len(path) < 2 or path[0] not in ("data", "model", "train") or not all(path):
            raise InputError(
                f"--set {assignment[:200]}: expected TABLE.OPTION=VALUE with one of the tables data, model, "
                "train; for instance --set model.dim=64."
            )
        try:
            value: Any = parse_toml(f"value = {text}", f"--set {key}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()
        nested = {path[-1]: value}
        for name in reversed(path[:-1]):
            nested = {name: nested}
        tables = merged(tables, nested)
    return tables
