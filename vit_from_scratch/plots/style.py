"""Colours and the book's style of figures."""

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

BLUE, ORANGE, GREEN, PINK, SKY, RED = "#1a7fc1", "#e08a00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"
GREY = "#808080"

#: From small to large, told apart by colour-blind readers and in grey.
SEQUENTIAL = "viridis"
#: Orange below zero, blue above, pale grey at zero.
DIVERGING = LinearSegmentedColormap.from_list(
    "orange-blue", ["#b35900", "#f5b041", "#e8e8e8", "#5dade2", "#1a5276"]
)


def use_style() -> None:
    """Set the book's figure style; in a notebook also ask for pictures of twice the resolution."""
    plt.rcParams.update(
        {
            "axes.edgecolor": GREY,
            "axes.facecolor": "none",
            "axes.grid": True,
            "axes.grid.axis": "y",
            "axes.labelcolor": GREY,
            "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, PINK, SKY, RED])
            + cycler(linestyle=["-", "--", "-.", ":", "-", "--"]),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": GREY,
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "figure.facecolor": "none",
            "font.size": 10.5,
            "grid.alpha": 0.3,
            "grid.color": GREY,
            "image.interpolation": "nearest",
            "legend.frameon": False,
            "legend.labelcolor": GREY,
            "lines.linewidth": 2,
            "savefig.facecolor": "none",
            "text.color": GREY,
            "xtick.color": GREY,
            "ytick.color": GREY,
        }
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("retina")
    except (ImportError, AttributeError):
        pass  # no notebook: files keep the resolution that savefig is given


def new_axes(ax: Axes | None, width: float = 4.0, height: float = 4.0) -> Axes:
    """Return the Axes given, or new ones of a size in inches."""
    return plt.subplots(figsize=(width, height))[1] if ax is None else ax


def bare(ax: Axes) -> None:
    """Take ticks, grid and frame away: what a picture does not need."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
