"""The directive `recipes`: the table that `vit recipes` prints. And what every such table is made of."""

import re
from collections.abc import Callable, Iterable, Sequence
from inspect import signature

from docutils import nodes
from docutils.nodes import Node
from docutils.statemachine import StringList
from project_facts import ROOT, chapters
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from vit_lab.experiments.recipes import NOT_RUN, recipe_rows

NUMBER = re.compile(r"[-+\u2212]?\d(?!.*, )")  # a list of them is none
BRACKETS = re.compile(r"\([^()]*\)")


def add_table(app: Sphinx, name: str, lines: Callable[..., list[str]]) -> None:
    """Register a directive that stands for Markdown made of recipes and results, anew when one changes.

    Args:
        app: the book's.
        name: of the directive.
        lines: writes the Markdown; takes the directive's argument if it has one.
    """

    also = chapters() if name == "deviations" else []

    class FromResults(SphinxDirective):
        required_arguments = len(signature(lines).parameters)
        final_argument_whitespace = True

        def run(self) -> list[Node]:
            for file in (*ROOT.glob("vit_lab/recipes/*"), *ROOT.glob("vit_lab/results/*"), *also):
                self.env.note_dependency(str(file))
            parent = nodes.container(classes=["recipes"])
            self.state.nested_parse(StringList(lines(*self.arguments)), 0, parent)
            return [parent]

    app.add_directive(name, FromResults)


def recipes() -> list[str]:
    """Write a table of the recipes that have run, without aims, which the log has, and the others' names."""
    (first, *heads), *rows = ([name, *cells, time] for name, _, *cells, _, time in recipe_rows())
    run = [(name, *cells) for name, *cells in rows if cells[0] != NOT_RUN]
    others = [f"`{name}`" for name, reached, *_ in rows if reached == NOT_RUN]
    lines = table((first, *heads), ([f"`{name}`", *map(unbroken, cells)] for name, *cells in run))
    return [*lines, "", f"Not run yet: {', '.join(others)}."] if others else lines


def unbroken(cell: str) -> str:
    """Let no line of a narrow cell end within brackets.

    >>> unbroken("26.0 min (CPU, 2 threads)")
    '26.0 min (CPU,\\xa02\\xa0threads)'
    """
    return BRACKETS.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), cell)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write a table in Markdown; columns after the first end at the right where most of them is numbers.

    >>> table(("run", "minutes"), [("digits", "1.1"), ("1 % of it", "27.0"), ("poster", "not yet run")])[1]
    '| --- | ---: |'
    """
    rows = list(rows)
    filled = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    numbers = [sum(bool(NUMBER.match(cell)) for cell in column) for column in filled]
    right = [place > 0 and 2 * numbers[place] > len(column) for place, column in enumerate(filled)]
    sides = ["---:" if side else "---" for side in right]
    return [f"| {' | '.join(cells)} |" for cells in (head, sides, *rows)]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    add_table(app, "recipes", recipes)
