"""`vit recipes`: every recipe, and what those that were run have reached."""

import argparse
from typing import Any

from vit_lab.cli.options import add_command
from vit_lab.experiments.paper import paper_names
from vit_lab.experiments.recipes import recipe_rows


def add_parser(commands: Any) -> None:
    """Add `recipes` to the commands."""
    add_command(
        commands,
        "recipes",
        run,
        help="list the recipes and what they reach",
        description="List the recipes: the least that a repeat should reach, what the run that "
        "ships with the package reached, and how long it took. `vit train --recipe NAME --show` prints one.",
    )


def run(options: argparse.Namespace) -> None:
    """Carry out `vit recipes`."""
    rows = recipe_rows()
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(f"\nThe paper's settings, for --show: {', '.join(paper_names())}.")
