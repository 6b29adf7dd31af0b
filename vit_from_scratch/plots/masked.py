"""Figures of pre-training without labels: photos, what the model saw of them, and what it answered."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.plots.basic import image

TITLES = ("photo", "seen", "answer")


def masked_rows(
    photos: Tensor, seen: Tensor, answer: Tensor, titles: Sequence[str] = TITLES, size: float = 1.5
) -> np.ndarray[Any, Any]:
    """Draw a row for each photo: the original, what the model saw, what it answered.

    For masked patch prediction these are a `Prediction`'s `seen` (masked patches grey, replaced ones as what
    stands there) and `answer` (the predicted mean colours); for masked autoencoding a `Reconstruction`'s.

    Args:
        photos: (n, C, H, W) in [0, 1], for instance `normalise.undo(images)`.
        seen: of the same shape.
        answer: likewise.
        titles: a text above each column.
        size: side of one picture in inches.

    Returns:
        The Axes, (n, 3).

    Raises:
        InputError: no photo, pictures of different shapes, or other than three titles.
    """
    columns = (photos, seen, answer)
    if len(titles) != len(columns):
        raise InputError(f"titles = {list(titles)}: expected three, one a column.")
    shapes = [tuple(pictures.shape) for pictures in columns]
    if len(set(shapes)) > 1 or len(shapes[0]) != 4 or not shapes[0][0]:
        raise InputError(
            f"pictures of shapes {', '.join(map(str, shapes))}: expected three times (n, C, H, W), a photo "
            "or more; pass what was seen and answered of the same photos."
        )
    count = len(photos)
    figsize = (len(columns) * size, count * size + 0.3)
    _, axes = plt.subplots(count, len(columns), figsize=figsize, squeeze=False)
    for column, (pictures, title) in enumerate(zip(columns, titles, strict=True)):
        for row, picture in enumerate(pictures):
            image(picture, axes[row, column], title if row == 0 else "")
    return axes
