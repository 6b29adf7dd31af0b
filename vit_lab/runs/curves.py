"""The picture of a run: loss and accuracy against the epoch."""

import io
import os
from collections.abc import Sequence
from pathlib import Path

from vit_from_scratch.files import write_atomically
from vit_from_scratch.training.state import EpochMetrics


def save_curves(path: str | os.PathLike[str], history: Sequence[EpochMetrics]) -> None:
    """Draw loss (left) and accuracy (right) of each epoch, training and validation, to a PNG.

    The figure belongs to no window and no notebook, so it can be drawn anywhere.
    """
    # Imported here: matplotlib takes longer to load than a short command to run.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from vit_from_scratch.plots import curves

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    for axes, quantity in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        values = {
            part: [getattr(m, f"{part}_{quantity}") for m in history] for part in ("train", "validation")
        }
        measured = {part: numbers for part, numbers in values.items() if None not in numbers}
        curves(measured, axes, ylabel=quantity)
        axes.set_visible(bool(measured))  # pixels have a loss and no accuracy
        for line, style in zip(axes.get_lines(), ("-", "--"), strict=False):
            line.set_linestyle(style)  # told apart in grey too
        axes.grid(alpha=0.3)
    picture = io.BytesIO()
    canvas.print_png(picture)
    write_atomically(Path(path), picture.getvalue())
