"""A figure laid out anew for the width of a phone's column: fewer panels side by side, letters as before.

How large its labels are is measured in inches, and in pixels on a phone's screen.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

COLUMN = 358  # pixels of the page: the column of a phone that is 390 wide
LEAST_LABEL = 9.0  # of those pixels, the size of a letter
POINTS = 72  # in an inch
WIDTH = 4.0  # inches
LEAST_POINTS = LEAST_LABEL * POINTS * WIDTH / COLUMN  # the smallest size of text that can be read
GAP = 0.08  # between pictures, and around their titles
LEAST_PICTURE = 0.75  # the side of a picture, unless it was smaller before
TALLEST = {1: 2.8, 2: 3.3}  # a plot among so many, unless it was flatter before; with more of them 2.6


def texts(figure: Figure) -> Iterator[Text]:
    """Every text that is seen in a figure that has been drawn."""
    for axes in figure.axes:
        hidden = set() if axes.axison else set(axes.xaxis.findobj(Text)) | set(axes.yaxis.findobj(Text))
        for text in axes.findobj(Text):
            if text not in hidden and text.get_visible() and text.get_text().strip():
                yield text
    yield from (text for text in figure.texts if text.get_visible() and text.get_text().strip())


def label_height(figure: Figure, margin: float = 0.1) -> float | None:
    """The size of the smallest text in pixels of the page, with the figure as wide as a phone's column.

    Args:
        figure: is drawn, to see what is in it.
        margin: white space on each side in inches.
    """
    figure.canvas.draw()
    points = min((text.get_fontsize() for text in texts(figure)), default=None)
    if points is None:
        return None
    return points * COLUMN / (POINTS * (figure.get_tightbbox().width + 2 * margin))


def extent(text: Text) -> tuple[float, float]:
    """Width and height of a text in inches."""
    box = text.get_window_extent()
    return box.width / text.figure.dpi, box.height / text.figure.dpi


def has_ticks(axes: Axes) -> bool:
    """Say whether numbers or names stand along an axis."""
    labels = [*axes.get_xticklabels(), *axes.get_yticklabels()]
    return axes.axison and any(label.get_visible() and label.get_text() for label in labels)


def lay_out_narrow(figure: Figure) -> bool:
    """Lay a figure out anew, and say whether that was possible: with axes in a plain grid, and no drawing."""
    grid = _grid(figure)
    if grid is None:
        return False
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    panels = [axes for axes in grid.flat if axes is not None]
    if all(axes.images and not has_ticks(axes) for axes in panels):
        return _lay_out_pictures(figure, grid)
    _lay_out_plots(figure, grid)
    return True


def _grid(figure: Figure) -> np.ndarray | None:
    """The axes by row and column, without empty ones; None where they do not form a plain grid."""
    specs = {axes: axes.get_subplotspec() for axes in figure.axes if not hasattr(axes, "_colorbar")}
    if not specs or any(spec is None for spec in specs.values()) or figure.texts:
        return None
    if len(specs) == 1 and not next(iter(specs)).axison:
        return None  # boxes and arrows, placed by hand
    grids = {spec.get_gridspec() for spec in specs.values()}
    if len(grids) > 1:
        return None
    grid = np.full(grids.pop().get_geometry(), None, dtype=object)
    for axes, spec in specs.items():
        place = spec.rowspan.start, spec.colspan.start
        if len(spec.rowspan) > 1 or len(spec.colspan) > 1 or grid[place] is not None:
            return None
        if axes.has_data():
            grid[place] = axes
        else:
            axes.remove()
    return grid


def _place(figure: Figure, panels: list[Axes], shape: tuple[int, int], height: float) -> None:
    figure.set_size_inches(WIDTH, height)
    for axes, spec in zip(panels, GridSpec(*shape, figure=figure), strict=False):
        axes.set_subplotspec(spec)


def _lay_out_pictures(figure: Figure, grid: np.ndarray) -> bool:
    """Wrap a row of pictures into several; a table with headings keeps its rows and columns."""
    panels = [axes for axes in grid.flat if axes is not None]
    rows, columns = grid.shape
    titles = [axes.title for axes in panels]
    beside = 0.3 if any(axes.get_ylabel() for axes in panels) else 0.0
    if rows == 1 or all(title.get_text() for title in titles):
        before = figure.get_figwidth() / columns
        widest = max((extent(title)[0] for title in titles if title.get_text()), default=0) + GAP
        columns = max(1, min(columns, int(WIDTH / max(widest, min(LEAST_PICTURE, before)))))
        rows = math.ceil(len(panels) / columns)
        columns = math.ceil(len(panels) / rows)
    elif len(panels) < grid.size:
        return False
    side = (WIDTH - beside) / columns - GAP
    aspect = max(abs(np.ptp(axes.get_ylim()) / np.ptp(axes.get_xlim())) for axes in panels)
    labels = [axes.yaxis.label for axes in panels]
    _fit([title for title in titles if title.get_text()], side + GAP / 2, 0)
    _fit([label for label in labels if label.get_text()], side * aspect + GAP / 2, 1)
    heights = [extent(title)[1] + GAP if title.get_text() else 0 for title in titles]
    heads = sum(max(heights[start : start + columns]) for start in range(0, len(panels), columns))
    bars = [axes for axes in figure.axes if hasattr(axes, "_colorbar")]
    flat = [bar.get_tightbbox().height for bar in bars if bar._colorbar.orientation == "horizontal"]
    below = sum(height / figure.dpi + 2 * GAP for height in flat)
    _place(figure, panels, (rows, columns), rows * (side * aspect + GAP) + heads + below)
    return True


def _fit(texts: list, room: float, side: int) -> None:
    """Make texts as much smaller as the room in inches wants it, and phones allow it."""
    largest = max((extent(text)[side] for text in texts), default=0.0)
    if largest > room:
        for text in texts:
            text.set_fontsize(max(LEAST_POINTS, text.get_fontsize() * room / largest))


def _lay_out_plots(figure: Figure, grid: np.ndarray) -> None:
    """Put plots below one another, legends below them."""
    panels = [axes for axes in grid.flat if axes is not None]
    before = figure.get_size_inches() / grid.shape[::-1]
    height = min(before[1], TALLEST.get(len(panels), 2.6))
    if len(panels) == 1:
        height = max(height, before[1] * min(1.0, WIDTH / before[0]))
    for row in grid:
        for axes in row[1:]:
            if axes is not None and row[0] is not None:
                _stand_alone(axes, row[0])
    _place(figure, panels, (len(panels), 1), height * len(panels))
    for axes in panels:
        if axes.get_legend() is not None:
            axes.get_legend().set_in_layout(False)  # one in a row may be wider than the phone
    figure.canvas.draw()
    more = sum(_legend_below(axes) for axes in panels if axes.get_legend() is not None)
    figure.set_figheight(height * len(panels) + more)
    figure.canvas.draw()
    for axes in panels:
        _thin_ticks(axes)
        _fit_numbers(axes)


def _stand_alone(axes: Axes, first: Axes) -> None:
    """Give a plot what it has shared with the first of its row: the numbers and the name of an axis."""
    axes.tick_params(labelleft=True)
    if has_ticks(axes) and not axes.get_ylabel():
        axes.set_ylabel(first.get_ylabel())


def _legend_below(axes: Axes) -> float:
    """Move a legend below its plot, where there are no lines, and return its height in inches."""
    old = axes.get_legend()
    words = [extent(text)[0] for text in old.get_texts()]
    size = old.get_texts()[0].get_fontsize()
    room = 0.45  # inches for the mark beside a word
    columns = max(1, min(len(words), int((WIDTH - 0.3) / (max(words) + room))))
    below = axes.patch.get_window_extent().y0 - axes.xaxis.get_tightbbox().y0
    shift = ScaledTranslation(0, -below / axes.figure.dpi, axes.figure.dpi_scale_trans)
    handles, names = axes.get_legend_handles_labels()
    new = axes.legend(
        handles,
        names,
        title=old.get_title().get_text() or None,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=axes.transAxes + shift,
        ncols=columns,
        fontsize=size,
        columnspacing=1.2,
    )
    axes.figure.canvas.draw()
    return new.get_window_extent().height / axes.figure.dpi


def _thin_ticks(axes: Axes) -> None:
    """Leave out every second number along the horizontal axis where they touch."""
    labels = [label for label in axes.get_xticklabels() if label.get_visible() and label.get_text()]
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
    if all(left.x1 + 2 < right.x0 for left, right in pairwise(boxes)):
        return
    if isinstance(axes.xaxis.get_major_locator(), MaxNLocator):
        axes.xaxis.get_major_locator().set_params(nbins=5)
    else:
        axes.set_xticks(axes.get_xticks()[::2], [label.get_text() for label in axes.get_xticklabels()][::2])


def _fit_numbers(axes: Axes) -> None:
    """Keep numbers inside of the squares of a matrix."""
    if axes.images and axes.texts:
        cell = axes.get_window_extent().width / axes.figure.dpi / np.ptp(axes.get_xlim())
        _fit(list(axes.texts), 0.94 * cell, 0)
