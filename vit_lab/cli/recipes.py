"""`vit recipes`: every recipe, and what those that were run have reached."""

import argparse
from typing import Any

from vit_lab.experiments.paper import paper_names
from vit_lab.experiments.recipes import recipe_rows


def add_parser(commands: Any) -> None:
    """Add `recipes` to the commands."""
    parser = commands.add_parser(
        "recipes",
        help="list the recipes and what they reach",
        description="List the recipes: the least test accuracy that a repeat should reach, what the run that "
        "ships with the package reached, and how long it took. `vit train --recipe NAME --show` prints one.",
    )
    parser.set_defaults(run=recipes_command)


def recipes_command(options: argparse.Namespace) -> None:
    """Carry out `vit recipes`."""
    rows = recipe_rows()
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(f"\nThe paper's settings, to be read: {', '.join(paper_names())}.")
