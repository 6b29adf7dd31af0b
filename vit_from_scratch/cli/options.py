"""Options that several commands share, and what they mean."""

import argparse
import tomllib
from typing import Any

import torch

from vit_from_scratch.errors import InputError
from vit_from_scratch.settings import merged


def add_data_dir(parser: argparse._ActionsContainer) -> None:
    """Add --data-dir."""
    parser.add_argument(
        "--data-dir",
        metavar="DEST",
        help="folder that holds the data set (default: VIT_DATA_DIR, else a download)",
    )


def add_device(parser: argparse._ActionsContainer) -> None:
    """Add --device."""
    parser.add_argument(
        "--device", help="cpu, cuda, cuda:1, mps (default: cuda where there is one, else cpu)"
    )


def chosen_device(name: str | None) -> str:
    """Return a device that works here.

    Raises:
        InputError: no such device.
    """
    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"--device {name}: {reason} Expected a device of this machine, such as cpu."
        ) from error
    return name


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """Turn `--set model.dim=64 train.optimiser=sgd` into nested tables.

    A value is read as TOML (64, 0.1, true, [0.9, 0.99]); what is no TOML is a string.

    Raises:
        InputError: no "=", or a key outside the tables data, model and train.
    """
    tables: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        path = key.strip().split(".")
        if not equals or len(path) < 2 or path[0] not in ("data", "model", "train") or not all(path):
            raise InputError(
                f"--set {assignment}: expected TABLE.OPTION=VALUE with one of the tables data, model, train; "
                "for instance --set model.dim=64."
            )
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()
        nested = {path[-1]: value}
        for name in reversed(path[:-1]):
            nested = {name: nested}
        tables = merged(tables, nested)
    return tables
