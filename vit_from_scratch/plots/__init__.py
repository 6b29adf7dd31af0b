"""Figures in one style: readable on a light and on a dark page, in grey, and by the colour-blind.

Backgrounds are transparent and texts mid-grey, so that one picture serves both themes. The colours are
near those of Okabe and Ito, none too pale for white or too deep for black. Every function draws on the Axes
it is given, or on new ones, and returns them. `AttentionExplorer` is not a figure but a page to play with.
"""

from vit_from_scratch.plots.basic import confusion_matrix, curves, image, image_row, matrix, patch_mosaic
from vit_from_scratch.plots.explorer import AttentionExplorer
from vit_from_scratch.plots.inspection import (
    attention_distance,
    attention_grid,
    attention_overlay,
    colour_maps,
    filters,
    position_similarity,
)
from vit_from_scratch.plots.masked import masked_rows
from vit_from_scratch.plots.style import (
    BLUE,
    DIVERGING,
    GREEN,
    GREY,
    ORANGE,
    ORDERED,
    PINK,
    RED,
    SEQUENTIAL,
    SKY,
    legend_above,
    legend_beside,
    use_style,
)

__all__ = [
    "BLUE",
    "DIVERGING",
    "GREEN",
    "GREY",
    "ORANGE",
    "ORDERED",
    "PINK",
    "RED",
    "SEQUENTIAL",
    "SKY",
    "AttentionExplorer",
    "attention_distance",
    "attention_grid",
    "attention_overlay",
    "colour_maps",
    "confusion_matrix",
    "curves",
    "filters",
    "image",
    "image_row",
    "legend_above",
    "legend_beside",
    "masked_rows",
    "matrix",
    "patch_mosaic",
    "position_similarity",
    "use_style",
]
