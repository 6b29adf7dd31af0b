"""Images, matrices and curves."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.plots.style import DIVERGING, GREY, SEQUENTIAL, bare, legend_beside, new_axes


def image(picture: Tensor, ax: Axes | None = None, title: str = "") -> Axes:
    """Show one image (C, H, W) or (1, C, H, W) with C = 1 or 3, values in [0, 1] for colour.

    Raises:
        InputError: a picture of another shape.
    """
    ax = new_axes(ax)
    _show(pixels_of(picture), ax)
    bare(ax)
    ax.set_title(title)
    return ax


def pixels_of(picture: Tensor) -> Tensor:
    """Return (C, H, W), or the only picture of a batch, as floats on the CPU; refuse other shapes."""
    pixels = picture[0] if picture.ndim == 4 and len(picture) == 1 else picture
    if pixels.ndim != 3 or pixels.shape[0] not in (1, 3):
        raise InputError(
            f"picture of shape {tuple(picture.shape)}: expected (C, H, W) with 1 or 3 channels; "
            "pass one image, channels first."
        )
    return pixels.detach().cpu().float()


def _show(pixels: Tensor, ax: Axes, **options: Any) -> None:
    """Draw (C, H, W), which are grey with the options, or in colours with values in [0, 1]."""
    if len(pixels) == 1:
        ax.imshow(pixels[0].numpy(), cmap="gray", **options)
    else:
        ax.imshow(pixels.clamp(0, 1).permute(1, 2, 0).numpy(), extent=options.get("extent"))


def patch_mosaic(picture: Tensor, patch_size: int, ax: Axes | None = None, title: str = "") -> Axes:
    """Show an image, (C, H, W) or (1, C, H, W), cut into its patches, with gaps between."""
    ax = new_axes(ax)
    pixels = pixels_of(picture)
    step = 1.15 * patch_size
    low, high = pixels.min().item(), pixels.max().item()
    patches = pixels.unfold(1, patch_size, patch_size).unfold(2, patch_size, patch_size)  # (C, gh, gw, P, P)
    rows, columns = patches.shape[1:3]
    for row, column in np.ndindex(rows, columns):
        left, top = column * step, row * step
        extent = (left, left + patch_size, top + patch_size, top)
        _show(patches[:, row, column], ax, extent=extent, vmin=low, vmax=high)
    ax.set(xlim=(-1, columns * step), ylim=(rows * step, -1), title=title)
    bare(ax)
    return ax


def ink_on(colour: Iterable[float]) -> str:
    """Return black or white, whichever stands out more from sRGB in [0, 1]: by 4.5:1 or more (WCAG 2.2)."""
    red, green, blue, *_ = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
    return "black" if luminance / 0.05 > 1.05 / luminance else "white"


def matrix(
    values: Tensor,
    ax: Axes | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    numbers: str | None = None,
    limits: tuple[float, float] | None = None,
    colorbar: str | None = None,
) -> Axes:
    """Show a matrix as coloured squares.

    Args:
        values: (rows, columns); diverging colours if the scale's lower limit is negative (without limits, if
            some values are), else sequential ones.
        numbers: a format such as ``".2f"`` to write every value into its square.
        limits: values of the ends of the colour scale.
        colorbar: label of a colour bar; none without it.
    """
    ax = new_axes(ax)
    array = values.detach().cpu().float().numpy()
    low, high = limits or (float(array.min()), float(array.max()))
    if low < 0 and limits is None:
        low, high = min(low, -high), max(-low, high)  # 0 in the middle
    shown = ax.imshow(array, cmap=DIVERGING if low < 0 else SEQUENTIAL, vmin=low, vmax=high, aspect="auto")
    if numbers is not None:
        shades = shown.to_rgba(array)  # (rows, columns, 4)
        for (row, column), value in np.ndenumerate(array):
            ink = ink_on(shades[row, column])
            ax.text(column, row, format(value, numbers), ha="center", va="center", color=ink, fontsize=9)
    ax.grid(False)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True))
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if colorbar is not None and ax.figure is not None:
        ax.figure.colorbar(shown, ax=ax, label=colorbar, shrink=0.85)
    return ax


def curves(
    lines: Mapping[str, Sequence[float]],
    ax: Axes | None = None,
    xlabel: str = "epoch",
    ylabel: str = "",
    title: str = "",
) -> Axes:
    """Draw one line for each name, points numbered from 1; the names become the legend."""
    ax = new_axes(ax, 6, 3.5)
    for name, values in lines.items():
        ax.plot(range(1, len(values) + 1), values, label=name)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    if len(lines) > 1:
        legend_beside(ax)
    return ax


def image_row(
    pictures: Tensor | Sequence[Tensor],
    titles: Sequence[str] | None = None,
    columns: int = 8,
    size: float = 1.1,
) -> np.ndarray[Any, Any]:
    """Show images (n, C, H, W) side by side, so many a row; return the Axes, (rows, columns).

    Raises:
        InputError: no picture, or one of another shape than `image` takes.
    """
    count = len(pictures)
    if not count:
        raise InputError("no pictures: expected one or more to put side by side.")
    columns = min(columns, count)
    rows = -(-count // columns)
    height = size * (1.25 if titles is not None else 1.0)
    _, axes = plt.subplots(rows, columns, figsize=(columns * size, rows * height), squeeze=False)
    for ax, picture, title in zip_longest(axes.flat, pictures, titles or ()):
        bare(ax)
        if picture is not None:
            image(picture, ax)
            ax.set_title(title or "", fontsize=8.5)
    return axes


def answers(photo: Tensor, chances: Tensor, names: Sequence[str], count: int = 5) -> np.ndarray[Any, Any]:
    """Draw a photo, (C, H, W) or (1, C, H, W) in [0, 1], and beside it bars of its likeliest classes.

    Args:
        photo: what the model saw.
        chances: (K,), what a softmax made of its logits.
        names: of the K classes.
        count: how many classes to show.

    Raises:
        InputError: not one probability for each name.
    """
    if chances.shape != (len(names),):
        raise InputError(
            f"probabilities of shape {tuple(chances.shape)} for {len(names)} names: expected one for each "
            "class; pass the softmax of one photo's logits, without the axis of the batch."
        )
    _, axes = plt.subplots(1, 2, figsize=(6.4, 2.6), width_ratios=(1, 1.2))
    image(photo, axes[0])
    values, places = chances.detach().cpu().float().topk(min(count, len(names)))
    bars = axes[1].barh(range(len(places)), 100 * values.numpy(), height=0.7)
    axes[1].bar_label(bars, [f"{value:.0%}" for value in values], padding=4, color=GREY)
    axes[1].set_yticks(range(len(places)), [names[int(place)] for place in places])
    axes[1].set(xlabel="probability, %", xlim=(0, 115 * values[0].item()))
    axes[1].invert_yaxis()
    axes[1].grid(False)
    return axes


def masked_rows(photos: Tensor, seen: Tensor, answer: Tensor) -> np.ndarray[Any, Any]:
    """Draw a row for each photo: the original, what the model saw, what it answered.

    Each is (n, C, H, W) in [0, 1]: the first for instance `normalise.undo(images)`, the others a
    `Prediction`'s `seen` and `answer`. The Axes are (n, 3).

    Raises:
        InputError: no photo, or pictures of different shapes.
    """
    columns = {"photo": photos, "seen": seen, "answer": answer}
    shapes = [tuple(pictures.shape) for pictures in columns.values()]
    if len(set(shapes)) > 1 or len(shapes[0]) != 4 or not shapes[0][0]:
        raise InputError(
            f"pictures of shapes {', '.join(map(str, shapes))}: expected three times (n, C, H, W), a photo "
            "or more; pass what was seen and answered of the same photos."
        )
    count = len(photos)
    _, axes = plt.subplots(count, 3, figsize=(4.5, 1.5 * count + 0.3), squeeze=False)
    for column, (title, pictures) in enumerate(columns.items()):
        for row, picture in enumerate(pictures):
            _show(pixels_of(picture), axes[row, column], vmin=0, vmax=1)
            bare(axes[row, column])
            axes[row, column].set_title(title if row == 0 else "")
    return axes
