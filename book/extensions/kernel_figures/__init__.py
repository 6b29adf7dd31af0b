"""A second, narrow picture of every figure whose labels would be too small on a phone.

The book's runner loads this into a chapter's kernel, so that neither chapters nor their notebooks know of it.
Besides `image/png` a figure's output then has the type `MIME`: a mapping with

    png     the narrow picture in base64, `width` pixels of the page wide, at twice that resolution
    labels  the height of its smallest letters in a phone's column, in pixels of the page

or, where a figure cannot be laid out anew, `{"scroll": width}`: the least width in pixels of the page at
which its labels can be read, on which the page lets it scroll.
"""

import base64
import io
from collections.abc import Callable
from typing import Any

from IPython.core.formatters import BaseFormatter
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure
from traitlets import ObjectName, Unicode

from kernel_figures.layout import COLUMN, LEAST_LABEL, label_height, lay_out_narrow

MIME = "application/vnd.vit.narrow+json"
MARGIN = 0.02  # inches


class NarrowFormatter(BaseFormatter):
    """Asks `narrow_picture` for the additional output of a figure, whatever has been registered.

    (IPython strikes figures off every formatter's list when a chapter asks for twice the resolution.)
    """

    format_type = Unicode(MIME)
    print_method = ObjectName("_repr_narrow_")
    _return_type = dict

    def lookup(self, obj: object) -> Callable[[Figure], dict[str, Any] | None]:
        """Return what draws an object; IPython expects a KeyError for one that is not a figure."""
        if not isinstance(obj, Figure):
            raise KeyError(type(obj))
        return narrow_picture


def narrow_picture(figure: Figure) -> dict[str, Any] | None:
    """Draw a figure for a phone; None where the picture for wide screens will do.

    The figure is laid out anew and not restored: IPython shows it once, and closes it.
    """
    before = label_height(figure)
    if before is None or before >= LEAST_LABEL:
        return None
    scroll = {"scroll": round(COLUMN * LEAST_LABEL / before + 0.5)}
    if not lay_out_narrow(figure):
        return scroll
    labels = label_height(figure, MARGIN)
    if labels is None or labels < LEAST_LABEL:
        return scroll
    file = io.BytesIO()
    width = figure.get_tightbbox().width + 2 * MARGIN
    dots = 2 * COLUMN / width
    figure.savefig(file, format="png", dpi=dots, bbox_inches="tight", pad_inches=MARGIN)
    png = base64.b64encode(file.getvalue()).decode("ascii")
    return {"png": png, "width": COLUMN, "labels": round(labels, 1)}


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the formatter behind those of IPython, which have drawn the wide picture before it runs."""
    shell.display_formatter.formatters[MIME] = NarrowFormatter(parent=shell.display_formatter)
    shell.display_formatter.active_types = [*shell.display_formatter.active_types, MIME]
