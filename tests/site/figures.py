"""Contrast of the letters and lines in a figure that is drawn on nothing, on the ground of each theme."""

import re
from functools import cache
from pathlib import Path

import numpy as np
from contrast import contrast
from crawl import page_names
from PIL import Image
from scipy import ndimage

# One grey on white and on the dark ground (#12161b) reaches at most the root of their own contrast, 4.26:1;
# a picture's colours, rounded here and in its palette, may miss that by a little.
TEXT, LINES = 4.05, 3.0
COMMON = 200  # pixels that a colour must have to be looked at
MOST = 24  # colours of a figure that are looked at, the most common ones
THICK = 5  # pixels: what is wider both ways is an area, not a letter or a line


def thin_colours(path: Path) -> list[tuple[int, int, int]]:
    """Colours of the letters and lines that stand on nothing: thin, opaque, beside what is transparent."""
    pixels = np.asarray(Image.open(path).convert("RGBA"))
    nothing = ndimage.maximum_filter(pixels[..., 3] < 30, 9)
    solid = pixels[..., 3] > 250
    if not nothing.any():
        return []
    codes = (pixels[..., :3] // 4).astype(np.int32) @ np.array([1 << 12, 1 << 6, 1])
    values, counts = np.unique(codes[solid & nothing], return_counts=True)
    found = []
    for value in values[counts >= COMMON][np.argsort(-counts[counts >= COMMON])][:MOST]:
        mask = solid & (codes == value)
        beside = np.count_nonzero(mask & nothing) / np.count_nonzero(mask)
        thick = ndimage.minimum_filter(mask, THICK).sum() / np.count_nonzero(mask)
        if beside > 0.5 and thick < 0.1:
            found.append(tuple(int(value >> shift & 63) * 4 + 2 for shift in (12, 6, 0)))
    return found


def faint(path: Path, grounds: dict[str, tuple[float, ...]]) -> list[str]:
    """Sentences on colours of a figure that do not stand out from the ground of a theme."""
    found = []
    for colour in thin_colours(path):
        grey = max(colour) - min(colour) < 16
        for theme, ground in grounds.items():
            ratio = contrast(f"#{bytes(colour).hex()}", f"#{bytes(ground).hex()}")
            if ratio < (TEXT if grey else LINES):
                found.append(f"#{bytes(colour).hex()} has {ratio:.2f}:1 in {theme}")
    return found


def figures_of_pages(built: Path) -> dict[str, list[Path]]:
    """The figures that each page of the built book shows; earlier builds may have left others."""
    found = {}
    for page in page_names(built):
        text = (built / page).read_text(encoding="utf-8")
        names = set(re.findall(r"_images/([\w.-]+\.(?:png|webp))", text))
        if names:
            found[page] = [built / "_images" / name for name in sorted(names)]
    return found


def faint_on_pages(built: Path, grounds: dict[str, tuple[float, ...]]) -> dict[str, list[str]]:
    """What `faint` says of the figures of each page, each figure looked at once."""
    look = cache(lambda path: faint(path, grounds))
    return {
        page: [f"{sentence} ({path.name})" for path in paths for sentence in look(path)]
        for page, paths in figures_of_pages(built).items()
    }
