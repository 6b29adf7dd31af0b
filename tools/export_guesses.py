"""Write the curves that a reader draws before seeing them, from what the runs measured.

    python tools/export_guesses.py            # writes book/widgets/guess-*.html, then: make notebooks
    python tools/export_guesses.py --check    # fails when a page holds other numbers than its result

Each holds the numbers for guess.js, and the still picture of what is told at the start.
"""

import argparse
import json
import math
import sys
from typing import Any

from project_facts import ROOT

from vit_from_scratch.files import write_atomically
from vit_lab import load_result

FOLDER = ROOT / "book/widgets"
WIDE, LEFT, BOTTOM, TOP, INSET = 360, 40, 190, 10, 30  # as in guess.js
KNOWN, MEASURED = 'stroke="#cc7a00" stroke-dasharray="6 3"', 'stroke="#1878b8"'


def per_cent(row: dict[str, Any]) -> list[float]:
    """Return the held-out accuracy of each seed of a row, in per cent."""
    return [round(100 * run["validation_accuracy"], 1) for run in row["runs"]]


def mean(row: dict[str, Any]) -> float:
    """Return the mean held-out accuracy of a row, in per cent."""
    return round(100 * sum(run["validation_accuracy"] for run in row["runs"]) / len(row["runs"]), 1)


def photos() -> tuple[dict[str, Any], str, str]:
    """Return what guess-photos holds, its picture in words, and its caption."""
    rows = load_result("data_hunger")["rows"]
    vit, resnet = ([row for row in rows if row["name"] == name] for name in ("ViT", "ResNet"))
    known = [mean(row) for row in resnet]
    told = {
        "what": "photos",
        "x": [row["config"]["data"]["train_size"] for row in vit],
        "range": [0, 100],
        "known": {"ResNet": known},
        "told": 0,
        "wanted": "ViT",
        "runs": [per_cent(row) for row in vit],
    }
    return (
        told,
        f"Accuracy of a ResNet against 500 to 45,000 training photos; it climbs from {known[0]:.0f} to "
        f"{known[-1]:.0f} percent. There is room for a second curve.",
        "What a ResNet reaches with 500 to 45,000 photos (dashed). Where does the ViT's curve lie? "
        "Drawing it needs JavaScript.",
    )


def sizes() -> tuple[dict[str, Any], str, str]:
    """Return what guess-sizes holds, its picture in words, and its caption."""
    found = load_result("larger_tiny_imagenet")["accuracy"]
    runs = [[round(100 * each["grid"], 1)] for each in found.values()]
    told = {
        "what": "pixels",
        "x": [int(size) for size in found],
        "range": [20, 70],
        "known": {},
        "told": 1,
        "wanted": "Measured",
        "runs": runs,
    }
    return (
        told,
        f"One dot: at 64 pixels the model is right on {runs[0][0]} percent of the photos. There is room "
        "at 96 and 128 pixels.",
        "At the 64 pixels that it was trained on. What does the model reach at 96 and at 128? "
        "Guessing needs JavaScript.",
    )


def patches() -> tuple[dict[str, Any], str, str]:
    """Return what guess-patches holds, its picture in words, and its caption."""
    rows = {row["name"]: row for row in load_result("patch_size")["rows"]}
    known = [mean(rows[f"{size} pixels"]) for size in (4, 8, 16)]
    dear = ("4 pixels", *(f"{size} pixels, as many operations" for size in (8, 16)))
    told = {
        "what": "pixels",
        "x": [4, 8, 16],
        "range": [40, 65],
        "known": {"Equal width": known},
        "told": 1,
        "wanted": "Equal cost",
        "runs": [per_cent(rows[name]) for name in dear],
    }
    fine, middle, coarse = known
    return (
        told,
        f"Accuracy of models of one width with patches of 4, 8 and 16 pixels: {fine:.0f}, {middle:.0f} and "
        f"{coarse:.0f} percent. There is room for a second curve that begins at the same 4 pixels.",
        "Patches of 4, 8 and 16 pixels in models of one width (dashed). Where would models of equal cost "
        "lie? Drawing it needs JavaScript.",
    )


PAGES = {"guess-photos": photos, "guess-sizes": sizes, "guess-patches": patches}


def page(name: str) -> str:
    """Return the element of a page: numbers, still picture, caption."""
    told, alt, caption = PAGES[name]()
    (low, high), first = told["range"], math.log(told["x"][0])
    wide = math.log(told["x"][-1]) - first
    across = [LEFT + INSET + (WIDE - LEFT - 2 * INSET) * (math.log(x) - first) / wide for x in told["x"]]

    def up(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low)

    def text(words: str, x: float, y: float, anchor: str) -> str:
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        return f'<text {place} font-size="12" fill="currentColor">{words}</text>'

    def line(values: list[float], stroke: str) -> list[str]:
        dots = [(f"{x:.1f}", f"{up(value):.1f}") for x, value in zip(across, values, strict=False)]
        points, fill = " ".join(map(",".join, dots)), stroke.split()[0].replace("stroke", "fill")
        circles = [f'<circle cx="{x}" cy="{y}" r="4" {fill}/>' for x, y in dots]
        return [f'<polyline points="{points}" fill="none" {stroke} stroke-width="2.5"/>', *circles]

    ticks = [low + i * (high - low) / 5 for i in range(6)]
    starts = [sum(runs) / len(runs) for runs in told["runs"][: told["told"]]]
    shapes = [
        f'<path d="M{LEFT} {TOP}V{BOTTOM}H{WIDE - 4}" fill="none" stroke="currentColor"/>',
        *(text(f"{tick:g}", LEFT - 6, up(tick) + 4, "end") for tick in ticks),
        *(text(f"{x:,}", at, BOTTOM + 17, "middle") for x, at in zip(told["x"], across, strict=True)),
        text(told["what"], (LEFT + WIDE) / 2, BOTTOM + 34, "middle"),
        *(shape for values in told["known"].values() for shape in line(values, KNOWN)),
        *(line(starts, MEASURED) if starts else []),
    ]
    names = f'class="vit-widget in-chapter vit-guess vit-{name}" id="vit-{name}"'
    return "\n".join(
        [
            f"<div {names} data-runs='{json.dumps(told)}'>",
            "<figure>",
            f'<svg viewBox="0 0 {WIDE} 230" width="{WIDE}" height="230" role="img" aria-label="{alt}">',
            *shapes,
            "</svg>",
            f"<figcaption>{caption}</figcaption>",
            "</figure>",
            "</div>\n",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--check", action="store_true", help="look whether the files are those of the results"
    )
    check = options.parse_args(arguments).check
    paths = {FOLDER / f"{name}.html": page(name) for name in PAGES}
    stale = [path for path, text in paths.items() if not path.exists() or path.read_text("utf-8") != text]
    if check:
        for path in stale:
            print(f"error: {path.name} is not of its result; run tools/export_guesses.py.", file=sys.stderr)
        return bool(stale)
    for path in stale:
        write_atomically(path, paths[path].encode())
        print(f"wrote: {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
