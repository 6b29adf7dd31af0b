"""Plant chapter 6's bugs as the chapter does, and keep for its page what each does to each part of the model.

    python tools/export_bugs.py            # writes book/widgets/hunt.html; then: make notebooks
    python tools/export_bugs.py --check    # fails when the page holds other numbers than the chapter's cells

Bugs, models and ladder are the chapter's own cells. Differences below 1e-9 are rounding, and kept as 0.
"""

import argparse
import contextlib
import copy
import json
import re
import sys
from typing import Any

import matplotlib
import torch
from project_facts import ROOT

from vit_from_scratch.files import write_atomically

CHAPTER = ROOT / "notebooks/06_parity.md"
PAGE = ROOT / "book/widgets/hunt.html"
UNTIL = "trained = load_pretrained("  # how the first cell begins that is not needed
ROUNDING = 1e-9
DRAWS = 4  # measurements of what differs from one to the next
NAMES = {  # the chapter's names of the bugs, those of the page, and what gives each away
    None: ("no bug", "The whole model is equal, and all the others are in it."),
    "score over sqrt(D)": (
        "scores divided by √D",
        "Attention is off by the same amount each time, and by less than with the other wrong scale: "
        "scores only √3 times too small still find the right tokens.",
    ),
    "score times sqrt(Dh)": (
        "scores multiplied by √Dₕ",
        "Attention is off by the same amount each time, and by a lot: with scores 64 times too large, "
        "one token gets nearly all the weight.",
    ),
    "dropout left on": (
        "dropout left on",
        "Attention is off by a different amount each time: something is random.",
    ),
    "norm never called": (
        "a norm never called",
        "Attention and MLP are equal, and the block that joins them is far off: "
        "something around them is missing, here the norm before attention.",
    ),
    "no final norm": (
        "no final norm",
        "The block is equal, and the encoder is further off than with any other: "
        "something after the blocks is missing.",
    ),
    "tanh for erf GELU": (
        "GELU in its tanh form",
        "The MLP is only slightly off: its curve is nearly the right one.",
    ),
    "LayerNorm eps 1e-5": (
        "LayerNorm with another eps",
        "Attention and MLP are equal, and the block is off by least of all: "
        "the norms are there, with another constant.",
    ),
}


def kept(difference: float) -> float:
    """Return a difference with two digits, or 0 for rounding."""
    return 0 if difference < ROUNDING else float(f"{difference:.2g}")


def measured() -> list[dict[str, Any]]:
    """Return of each bug its name, what gives it away, and how far off each part is with it."""
    matplotlib.use("Agg")
    cells = re.findall(
        r"^```\{code-cell\} ipython3\n(?:---\n.*?^---\n)?(.*?)^```$", CHAPTER.read_text("utf-8"), re.M | re.S
    )
    names: dict[str, Any] = {}
    for cell in cells[: next(i for i, cell in enumerate(cells) if cell.startswith(UNTIL))]:
        with contextlib.redirect_stdout(None):
            exec(cell, names)  # the book's own
    bugs = {None: lambda model: None, **names["bugs"]}
    if bugs.keys() != NAMES.keys():
        raise SystemExit(
            f"error: chapter 6 has other bugs ({[*bugs]}); expected those of NAMES ({[*NAMES]})."
        )
    found = []
    for key, plant in bugs.items():
        model = copy.deepcopy(names["mine"])
        plant(model)
        torch.manual_seed(0)  # dropout draws
        climbs = [names["ladder"](model, names["theirs"], names["pair"]) for _ in range(DRAWS)]
        off = {part: [kept(climb[part]) for climb in climbs] for part in climbs[0]}
        off = {part: values if len({*values}) > 1 else values[:1] for part, values in off.items()}
        found.append({"name": NAMES[key][0], "clue": NAMES[key][1], "off": off})
    return found


def page(bugs: list[dict[str, Any]]) -> str:
    """Return the element of the page: what was measured, and a still picture of the parts."""
    boxes = [(0, 0, "whole model"), (12, 34, "patch embedding"), (12, 72, "tokens"), (12, 110, "encoder"),
             (24, 144, "block"), (36, 178, "attention"), (36, 216, "MLP")]  # fmt: skip
    high = {"whole model": 276, "encoder": 154, "block": 108}
    shapes = []
    for x, y, name in boxes:
        wide = 340 - 2 * x
        shapes += [
            f'<rect x="{x + 1}" y="{y + 1}" width="{wide}" height="{high.get(name, 30)}" rx="5" '
            'fill="none" stroke="currentColor"/>',
            f'<text x="{x + 10}" y="{y + 21}">{name}</text>',
            f'<text x="{x + wide - 9}" y="{y + 21}" text-anchor="end">?</text>',
        ]
    data = json.dumps({"bugs": bugs}, ensure_ascii=False).replace("'", "&#39;")
    names = 'class="vit-widget in-chapter vit-hunt" id="vit-hunt"'
    alt = (
        "Boxes inside each other: the whole model holds patch embedding, tokens and encoder, the encoder "
        "a block, the block attention and MLP. Each has a question mark."
    )
    return "\n".join(
        [
            f"<div {names} data-bugs='{data}'>",
            "<figure>",
            '<svg viewBox="0 0 342 278" width="342" height="278" fill="currentColor" role="img" '
            f'aria-label="{alt}">',
            *shapes,
            "</svg>",
            "<figcaption>The parts of the model, each inside the one that holds it. "
            "Comparing them needs JavaScript.</figcaption>",
            "</figure>",
            "</div>\n",
        ]
    )


def held() -> list[dict[str, Any]]:
    """Return what the page holds."""
    data = re.search(r"data-bugs='(.*?)'", PAGE.read_text("utf-8"))
    return json.loads(data[1].replace("&#39;", "'"))["bugs"] if data else []


def same(there: list[dict[str, Any]], here: list[dict[str, Any]]) -> bool:
    """Whether two hold the same, up to another processor's rounding, and to what dropout draws."""

    def near(a: list[float], b: list[float]) -> bool:
        room = 1.1 if len({*a, *b}) <= 2 else 2
        return (len({*a}) > 1) == (len({*b}) > 1) and min(b) <= room * min(a) <= room * room * min(b)

    if [one["name"] for one in there] != [one["name"] for one in here]:
        return False
    return all(
        old["clue"] == new["clue"]
        and old["off"].keys() == new["off"].keys()
        and all(near(old["off"][part], new["off"][part]) for part in new["off"])
        for old, new in zip(there, here, strict=True)
    )


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--check", action="store_true", help="look whether the page is that of the chapter")
    if options.parse_args(arguments).check:
        fresh = PAGE.exists() and same(held(), measured()) and PAGE.read_text("utf-8") == page(held())
        if not fresh:
            print(f"error: {PAGE.name} is not of chapter 6; run tools/export_bugs.py.", file=sys.stderr)
        return not fresh
    write_atomically(PAGE, page(measured()).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
