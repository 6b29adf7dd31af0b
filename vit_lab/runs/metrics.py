"""A run's history in its folder: metrics.jsonl, a line of JSON for each epoch, and a picture of it."""

import dataclasses
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically
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
        problem = "" if metrics else "is empty"
    except (OSError, ValueError) as error:
        metrics, problem = [], f"cannot be read ({error})"
    if problem:
        raise InputError(f"{path} {problem}: expected a line of JSON for each epoch. Restore it.")
    return metrics


def write_metrics(folder: Path, history: Sequence[EpochMetrics]) -> None:
    """Write metrics.jsonl anew, all or nothing."""
    lines = [json.dumps(dataclasses.asdict(metrics)) + "\n" for metrics in history]
    write_atomically(folder / METRICS, "".join(lines).encode())


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


def save_curves(path: Path, history: Sequence[EpochMetrics]) -> None:
    """Draw loss (left) and accuracy (right) of each epoch, training and validation, to a PNG.

    The figure belongs to no window and no notebook, so it can be drawn anywhere.
    """
    # Imported here: matplotlib takes longer to load than a short command to run.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from vit_from_scratch.plots import curves

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, quantity in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        parts = ("train", "validation")
        values = {part: [getattr(epoch, f"{part}_{quantity}") for epoch in history] for part in parts}
        measured = {part: numbers for part, numbers in values.items() if None not in numbers}
        curves(measured, axes, ylabel=quantity)
        axes.set_visible(bool(measured))  # pixels have a loss and no accuracy
        for line, style in zip(axes.get_lines(), ("-", "--"), strict=False):
            line.set_linestyle(style)  # told apart in grey too
        axes.grid(alpha=0.3)
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture)
    write_atomically(path, picture.getvalue())
