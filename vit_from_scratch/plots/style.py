"""Colours and the book's style of figures."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.legend import Legend

#: Lines in any of these stand out 3:1 or more from a white page and from a nearly black one.
BLUE, ORANGE, GREEN, PINK, SKY, RED = "#1878b8", "#cc7a00", "#009e73", "#cc79a7", "#3d9ad8", "#c8452b"
#: Of all texts: 4.26:1 on white and on a nearly black page. No colour has more on both.
GREY = "#777b80"
#: The book's text face, for those letters that it has; symbols come from the second.
FONTS = ("Literata", "DejaVu Sans")

#: Of areas, from small to large, told apart by colour-blind readers and in grey.
SEQUENTIAL = "viridis"
#: Orange below zero, blue above, pale grey at zero.
DIVERGING = LinearSegmentedColormap.from_list(
    "orange-blue", ["#b35900", "#f5b041", "#e8e8e8", "#5dade2", "#1a5276"]
)


def use_style() -> None:
    """Set the book's figure style; in a notebook also ask for pictures of twice the resolution."""
    for file in sorted((Path(__file__).parent / "fonts").glob("*.ttf")):
        font_manager.fontManager.addfont(file)
    grey = ("axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "grid.color", "legend.labelcolor")
    grey += ("text.color", "xtick.color", "ytick.color")
    clear = ("axes.facecolor", "figure.facecolor", "savefig.facecolor")
    plt.rcParams.update(
        {
            **dict.fromkeys(grey, GREY),
            **dict.fromkeys(clear, "none"),
            "axes.grid": True,
            "axes.grid.axis": "y",
            "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, PINK, SKY, RED])
            + cycler(linestyle=["-", "--", "-.", ":", "-", "--"]),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "font.family": FONTS,
            "font.size": 10.5,
            "grid.alpha": 0.3,
            "image.interpolation": "nearest",
            "legend.frameon": False,
            "lines.linewidth": 2,
            "mathtext.fontset": "stix",
        }
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("retina")
    except (ImportError, AttributeError):
        pass  # no notebook: files keep the resolution that savefig is given


def legend_beside(ax: Axes, **options: Any) -> Legend:
    """Put the legend to the right of the Axes, where nothing runs through its text."""
    return ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), **options)


def legend_above(ax: Axes) -> Legend:
    """Put the legend of a few short words above the Axes, in one row, where nothing runs through its text."""
    count = len(ax.get_legend_handles_labels()[1])
    return ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=count, borderaxespad=0.2)


def new_axes(ax: Axes | None, width: float = 4.0, height: float = 4.0) -> Axes:
    """Return the Axes given, or new ones of a size in inches."""
    return plt.subplots(figsize=(width, height))[1] if ax is None else ax


def bare(ax: Axes) -> None:
    """Take ticks, grid and frame away: what a picture does not need."""
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    ax.spines[:].set_visible(False)
