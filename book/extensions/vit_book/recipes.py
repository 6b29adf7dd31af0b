"""The directive `recipes`: the table that `vit recipes` prints."""

from docutils import nodes
from docutils.nodes import Node
from docutils.statemachine import StringList
from project_facts import ROOT
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from vit_from_scratch.training.recipes import recipe_rows


class Recipes(SphinxDirective):
    """`{recipes}` stands for a table with a row for each recipe."""

    def run(self) -> list[Node]:
        """Write the table in Markdown and let MyST read it."""
        for file in (*ROOT.glob("vit_from_scratch/recipes/*"), *ROOT.glob("vit_from_scratch/results/*")):
            self.env.note_dependency(str(file))
        head, *rows = recipe_rows()
        table = [head, ["---"] * len(head), *([f"`{name}`", *cells] for name, *cells in rows)]
        parent = nodes.container(classes=["recipes"])
        self.state.nested_parse(StringList([f"| {' | '.join(cells)} |" for cells in table]), 0, parent)
        return [parent]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("recipes", Recipes)
