"""How large a figure's labels are, in inches and on a phone's screen."""

from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

COLUMN = 358  # pixels of the page: the column of a phone that is 390 wide
LEAST_LABEL = 9.0  # of those pixels, the size of a letter
POINTS = 72  # in an inch


def texts(figure: Figure) -> Iterator[Text]:
    """Every text that is seen in a figure that has been drawn."""
    for axes in figure.axes:
        hidden = set() if axes.axison else set(axes.xaxis.findobj(Text)) | set(axes.yaxis.findobj(Text))
        for text in axes.findobj(Text):
            if text not in hidden and text.get_visible() and text.get_text().strip():
                yield text
    yield from (text for text in figure.texts if text.get_visible() and text.get_text().strip())


def smallest(figure: Figure) -> float | None:
    """The size of the smallest text in points; None where there is none."""
    figure.canvas.draw()
    return min((text.get_fontsize() for text in texts(figure)), default=None)


def label_height(figure: Figure, margin: float = 0.1) -> float | None:
    """The size of the smallest text in pixels of the page, with the figure as wide as a phone's column.

    Args:
        figure: is drawn, to see what is in it.
        margin: white space on each side in inches.
    """
    points = smallest(figure)
    if points is None:
        return None
    return points * COLUMN / (POINTS * (figure.get_tightbbox().width + 2 * margin))


def scroll_width(figure: Figure, margin: float = 0.1) -> int:
    """The least width in pixels of the page at which the smallest text can be read."""
    height = label_height(figure, margin)
    return COLUMN if height is None else max(COLUMN, round(COLUMN * LEAST_LABEL / height + 0.5))


def least_points(width: float) -> float:
    """The smallest size of text in points that can be read in a figure of that width in inches."""
    return LEAST_LABEL * POINTS * width / COLUMN


def extent(text: Text) -> tuple[float, float]:
    """Width and height of a text in inches."""
    box = text.get_window_extent()
    return box.width / text.figure.dpi, box.height / text.figure.dpi


def has_ticks(axes: Axes) -> bool:
    """Say whether numbers or names stand along an axis."""
    labels = [*axes.get_xticklabels(), *axes.get_yticklabels()]
    return axes.axison and any(label.get_visible() and label.get_text() for label in labels)
