"""Draw what a link to the book shows in a chat or a feed, book/_static/social_card.png.

--check writes nothing, and fails when the picture is stale.
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import yaml
from matplotlib.axes import Axes
from project_facts import ROOT
from stamped_picture import is_fresh, save

from vit_from_scratch import examples, plots

PICTURE = ROOT / "book" / "_static" / "social_card.png"
SOURCES = (Path(__file__), ROOT / "vit_from_scratch" / "examples.py", ROOT / "_config.yml")
PIXELS, DPI = (1200, 630), 100
PHOTO, SIDE, GAP = 240, 5, 8  # pixels of the photo, patches a side, pixels between two of them on the card
INK, PAPER = "#1f2933", "#ffffff"


def draw_patches(ax: Axes, left: float, top: float, width: float) -> None:
    """Draw the photo as a grid of patches; `left`, `top` and `width` in pixels of the card."""
    pixels = examples.photo(PHOTO)[0].permute(1, 2, 0).numpy()
    size, step = PHOTO // SIDE, (width + GAP) / SIDE
    for number in range(SIDE**2):
        row, column = divmod(number, SIDE)
        patch = pixels[size * row : size * (row + 1), size * column : size * (column + 1)]
        x, y = left + step * column, top + step * row
        ax.imshow(patch, extent=(x, x + step - GAP, y + step - GAP, y), interpolation="bilinear")


def draw_tokens(ax: Axes, left: float, top: float) -> None:
    """Draw the sequence that the patches become: a class token and its followers."""
    for place in range(8):
        colour = plots.ORANGE if place == 0 else plots.BLUE
        ax.add_patch(plt.Rectangle((left + 62 * place, top), 48, 48, color=colour, alpha=1 - 0.1 * place))


def draw_card(title: str) -> plt.Figure:
    """Draw the whole card."""
    size = (PIXELS[0] / DPI, PIXELS[1] / DPI)
    figure = plt.figure(figsize=size, facecolor=PAPER, layout="none")
    ax = figure.add_axes((0, 0, 1, 1))
    draw_patches(ax, 60, 75, 480)
    words = title.split()
    lines = [" ".join(words[:-2]), " ".join(words[-2:])]
    for place, line in enumerate(lines):
        ax.text(600, 185 + 72 * place, line, fontsize=38, weight="bold", color=INK, va="center")
    about = "Rebuilt one piece at a time,\nand checked against the original:\na book, a package, assignments."
    ax.text(600, 385, about, fontsize=20, color=INK, va="center", linespacing=1.5)
    draw_tokens(ax, 600, 500)
    ax.set(xlim=(0, PIXELS[0]), ylim=(PIXELS[1], 0), aspect="auto")
    ax.axis("off")
    return figure


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; fail when the picture is stale")
    if options.parse_args(arguments).check:
        fresh = is_fresh(PICTURE, SOURCES)
        if not fresh:
            print("error: book/_static/social_card.png is stale; run `make pictures`.", file=sys.stderr)
        return int(not fresh)
    plots.use_style()
    title = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["title"]
    with matplotlib.rc_context({"savefig.bbox": "standard", "savefig.transparent": False}):
        save(draw_card(title), PICTURE, SOURCES, DPI)
    print(f"wrote: {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
