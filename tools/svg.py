"""Pieces of SVG in the book's look: in a page they take its typeface and its colours.

Opened alone they have those of the light page, or of the dark one where the reader's system is dark.
"""

from html import escape

from torch import Tensor

STYLE = """
.vd{--vd-ink:var(--pst-color-text-base,#23282f);--vd-soft:var(--pst-color-text-muted,#59636e);
--vd-blue:var(--vit-blue,#12669e);--vd-orange:var(--vit-orange,#a85400);--vd-line:var(--vit-line,#dfe3e8)}
@media (prefers-color-scheme:dark){.vd{--vd-ink:var(--pst-color-text-base,#d5dae1);
--vd-soft:var(--pst-color-text-muted,#9aa5b1);--vd-blue:var(--vit-blue,#7cc0ee);
--vd-orange:var(--vit-orange,#f0ab4a);--vd-line:var(--vit-line,#353c45)}}
.vd text{font:15px var(--pst-font-family-base,Georgia,serif);fill:var(--vd-soft)}
.vd .name{fill:var(--vd-ink);font-weight:600}
.vd .shape{font:12.5px var(--pst-font-family-monospace,monospace)}
.vd image{image-rendering:pixelated}
.vd .arrow{fill:none;stroke:var(--vd-soft);stroke-width:1.5}
.vd .blue{fill:var(--vd-blue)}.vd .orange{fill:var(--vd-orange)}.vd .pale{fill:var(--vd-line)}
.vd .best{fill:var(--vd-orange);font-weight:650}
.vd .curve{fill:none;stroke:var(--vd-blue);stroke-width:3;stroke-linejoin:round}
.vd .ray{stroke:var(--vd-orange);stroke-linecap:round}
"""


def text(x: float, y: float, words: str, name: str = "", anchor: str = "middle") -> str:
    """A line of text."""
    return f'<text class="{name}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def rect(
    x: float, y: float, width: float, height: float, names: str = "", radius: float = 2, ink: float = 1
) -> str:
    """A rectangle with round corners, as opaque as `ink` says."""
    opacity = "" if ink == 1 else f' opacity="{ink:.2f}"'
    corner = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}"'
    return f'<rect class="{names}" {corner}{opacity}/>'


def squares(x: float, y: float, size: float, values: Tensor | None = None, count: int = 8) -> str:
    """A grid of squares with gaps, white, as opaque as values (rows, columns) say."""
    step, drawn = size / count, ""
    for row in range(count):
        for column in range(count):
            left, top = x + step * (column + 0.06), y + step * (row + 0.06)
            ink = 1 if values is None else values[row, column].item()
            drawn += rect(left, top, 0.88 * step, 0.88 * step, ink=ink)
    return drawn


def arrow(way: str) -> str:
    """An arrow along a path."""
    return f'<path class="arrow" d="{way}"/>'


def drawing(name: str, width: float, height: float, label: str, content: str, key: str) -> str:
    """A whole file; `key` says what it was drawn from."""
    root = f'<svg xmlns="http://www.w3.org/2000/svg" class="vd {name}" viewBox="0 0 {width:g} {height:g}"'
    style = f"<style>{STYLE.replace(chr(10), '')}</style>"
    named = f'role="img" aria-label="{escape(label)}" data-drawn-from="{key}"'
    return f"{root} {named}>{style}{content}</svg>\n"
