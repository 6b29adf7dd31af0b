"""Figures of what a model looks at and what it has learned (Part III)."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from scipy.special import stdtrit
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.plots.basic import image, image_row, pixels_of
from vit_from_scratch.plots.style import BLUE, DIVERGING, GREY, SEQUENTIAL, legend_above, new_axes


def attention_overlay(picture: Tensor, attention: Tensor, ax: Axes | None = None, title: str = "") -> Axes:
    """Lay attention (gh, gw) in colours over an image in [0, 1], which turns pale and grey.

    The image is (C, H, W) or (1, C, H, W). The colours of `ax.images[1]` are shares of the largest attention,
    from 0 to 1, for a colour bar.
    """
    weights = attention.detach().cpu().float()[None, None]  # (1, 1, gh, gw), of any scale
    heat = F.interpolate(weights, picture.shape[-2:], mode="bilinear", align_corners=False)[0, 0]  # (H, W)
    pale = 0.3 + 0.7 * pixels_of(picture).mean(dim=0).expand(3, -1, -1)  # a dark photo stays visible
    ax = image(pale, ax, title)
    ax.imshow(heat / heat.max(), cmap=SEQUENTIAL, alpha=0.5, vmin=0, vmax=1)
    return ax


def attention_grid(
    picture: Tensor,
    maps: Tensor,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> np.ndarray[Any, Any]:
    """Lay maps (rows, columns, gh, gw), such as one a layer and head, over an image by `attention_overlay`.

    Names of rows stand on the left, those of columns above, a colour bar below; the Axes are (rows, columns).
    """
    down, across = maps.shape[:2]
    figure, axes = plt.subplots(down, across, figsize=(0.95 * across + 0.6, 0.95 * down + 0.9), squeeze=False)
    for ax, attention in zip(axes.flat, maps.flatten(0, 1), strict=True):
        attention_overlay(picture, attention, ax)
    bar = {"label": "share of each map's largest", "location": "bottom", "aspect": 40, "shrink": 0.6}
    figure.colorbar(axes[0, 0].images[1], ax=axes, **bar).ax.set_facecolor("0.6")  # as over a pale photo
    for ax, text in zip(axes[0], columns or (), strict=False):
        ax.set_title(text, fontsize=8.5)
    for ax, text in zip(axes[:, 0], rows or (), strict=False):
        ax.set_ylabel(text, fontsize=8.5)
    return axes


def attention_distance(
    distances: Tensor,
    ax: Axes | None = None,
    label: str = "",
    colour: str = BLUE,
    marker: str = "o",
    uniform: float | None = None,
) -> Axes:
    """Draw the mean attention distance of every head against the layer, as in the paper's Figure 7 (right).

    A line shows each layer's mean, with a band: its 95 % interval (Student's t) over the layer's heads.

    Args:
        distances: (L, h) in pixels.
        ax: call again with the same for a second model, which `label` names in the legend.
        uniform: distance of attention that is the same everywhere, as a dotted line.
    """
    ax = new_axes(ax, 6.0, 3.6)
    values = distances.detach().cpu().double()
    layers = torch.arange(1, len(values) + 1)
    points = layers[:, None].expand_as(values)
    ax.scatter(points.flatten(), values.flatten(), color=colour, marker=marker, s=28, label=label or None)
    mean, heads = values.mean(dim=1), values.shape[1]
    ax.plot(layers, mean, color=colour, ls="-", lw=1, alpha=0.6)
    if heads > 1:
        margin = stdtrit(heads - 1, 0.975) * values.std(dim=1) / heads**0.5
        ax.fill_between(layers, mean - margin, mean + margin, color=colour, alpha=0.2, lw=0)
    if uniform is not None:
        ax.axhline(uniform, color=GREY, ls=":", lw=1, label="uniform attention")
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    ax.set(xlabel="layer", ylabel="mean attention distance, pixels")
    ax.autoscale(axis="y")  # a second model may reach farther than the first
    ax.set_ylim(bottom=0)
    if label or uniform is not None:
        legend_above(ax)
    return ax


def position_similarity(similarity: Tensor, ax: Axes | None = None, title: str = "") -> Axes:
    """Tile the similarity maps (gh, gw, gh, gw), each in its patch's place, as in Figure 7 (centre)."""
    ax = new_axes(ax, 4.8, 4.2)
    rows, columns = similarity.shape[:2]
    padded = F.pad(similarity.detach().cpu().float(), (0, 1, 0, 1), value=torch.nan)  # a gap between the maps
    tiled = padded.permute(0, 2, 1, 3).reshape(rows * (rows + 1), columns * (columns + 1))[:-1, :-1]
    shown = ax.imshow(tiled.numpy(), cmap=DIVERGING, vmin=-1, vmax=1)
    ax.grid(False)
    for set_ticks, count in ((ax.set_xticks, columns), (ax.set_yticks, rows)):
        middles = [(count + 1) * place + (count - 1) / 2 for place in range(count)]
        set_ticks(middles, [str(place + 1) for place in range(count)])
    ax.tick_params(length=0)
    ax.set(title=title, xlabel="column of the patch", ylabel="row of the patch")
    if ax.figure is not None:
        ax.figure.colorbar(shown, ax=ax, label="cosine similarity", shrink=0.85)
    return ax


def filters(kernels: Tensor, columns: int = 7, titles: Sequence[str] | None = None, size: float = 0.9) -> Any:
    """Show filters (k, C, P, P), C = 1 or 3, each stretched to the full range, as in Figure 7 (left).

    Raises:
        InputError: no filters of that shape.
    """
    if kernels.ndim != 4 or kernels.shape[1] not in (1, 3):
        raise InputError(
            f"filters of shape {tuple(kernels.shape)}: expected (k, C, P, P) with 1 or 3 channels."
        )
    flat = kernels.detach().cpu().double().flatten(1)
    largest = flat.abs().amax(dim=1).clamp(min=1e-12)[:, None, None, None]
    pictures = 0.5 + 0.5 * kernels.detach().cpu().double() / largest  # 0 becomes mid-grey
    axes = image_row(pictures, titles, columns, size)
    for ax in axes.flat:
        for shown in ax.images:
            shown.set_clim(0, 1)  # grey ones would be stretched to their own range
    return axes
