"""The directive `assignments`: what each chapter asks, in minutes and points."""

from docutils import nodes
from docutils.nodes import Node
from docutils.statemachine import StringList
from project_facts import ROOT, measured_chapters, reading_minutes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from vit_book.recipes import table
from vit_classroom.assignments.notebooks import CHAPTERS, chapter_names, read_chapter

HEAD = ("Chapter", "Assumes", "To read", "To run", "Checked answers", "Questions", "In all")


class Assignments(SphinxDirective):
    """`{assignments}` stands for a table with a row for each chapter; its body says what each assumes."""

    has_content = True

    def run(self) -> list[Node]:
        """Let MyST read the table."""
        assumes = dict(line.split(": ", 1) for line in self.content if line)
        if assumes.keys() != set(chapter_names()):
            raise self.error(f"expected a line for each of {', '.join(chapter_names())}")
        for name in assumes:
            self.env.note_dependency(str(CHAPTERS / f"{name}.ipynb"))
            self.env.note_dependency(str(ROOT / "notebooks" / f"{name}.md"))
        parent = nodes.container()
        lines = table(HEAD, [row(name, assumes[name]) for name in chapter_names()])
        self.state.nested_parse(StringList(lines), 0, parent)
        return [parent]


def row(name: str, assumes: str) -> list[str]:
    """Say what one chapter asks."""
    tasks = read_chapter(name).tasks
    checked, asked = ([task for task in tasks if bool(task.check) == kind] for kind in (True, False))
    seconds = measured_chapters()[name]["cpu"]["seconds"]
    return [
        f"{{doc}}`/notebooks/{name}`",
        assumes,
        f"{reading_minutes(name)} min",
        f"{seconds:.0f} s",
        *(f"{len(some)}, {sum(task.points for task in some):g} points" for some in (checked, asked)),
        f"about {reading_minutes(name) + sum(task.points for task in tasks):.0f} min",
    ]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("assignments", Assignments)
