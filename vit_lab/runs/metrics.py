"""A run's metrics.jsonl: a line of JSON for each epoch."""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically, writing
from vit_from_scratch.settings import from_table, require
from vit_from_scratch.training.state import EpochMetrics

METRICS = "metrics.jsonl"


def read_metrics(folder: Path) -> list[EpochMetrics]:
    """Read a run's metrics.jsonl.

    Raises:
        InputError: there is none, it is empty, a line is damaged or an epoch is missing before the last.
    """
    path = folder / METRICS
    try:
        metrics = as_history([json.loads(line) for line in path.read_text("utf-8").splitlines()])
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read ({error}): expected a line of JSON for each epoch. Restore it."
        ) from error
    if not metrics:
        raise InputError(f"{path} is empty: expected a line of JSON for each epoch. Restore it.")
    return metrics


def write_metrics(folder: Path, history: Sequence[EpochMetrics]) -> None:
    """Write metrics.jsonl anew, all or nothing."""
    with writing(folder / METRICS):
        write_atomically(folder / METRICS, _lines(history))


def add_metrics(folder: Path, last: EpochMetrics) -> None:
    """Add an epoch's line to metrics.jsonl."""
    with writing(folder / METRICS), (folder / METRICS).open("ab") as file:
        file.write(_lines([last]))
        file.flush()
        os.fsync(file.fileno())  # a finished model must not outlive its last line


def as_history(rows: Sequence[Any]) -> list[EpochMetrics]:
    """Turn the tables of `dataclasses.asdict`, one an epoch, back into metrics.

    Raises:
        InputError: a row is not a table, lacks a number, or is not of the epoch that is due.
    """
    history = []
    for due, row in enumerate(rows, start=1):
        require(isinstance(row, dict), f"epoch {due}", row, "a table")
        history.append(from_table(EpochMetrics, row, f"epoch {due}"))
        require(history[-1].epoch == due, "epoch", history[-1].epoch, str(due))
    return history


def _lines(history: Sequence[EpochMetrics]) -> bytes:
    return "".join(json.dumps(dataclasses.asdict(metrics)) + "\n" for metrics in history).encode()
