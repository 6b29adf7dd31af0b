"""The directives `assignments` and `syllabus`: what a chapter asks of a student, and what a course does."""

from collections.abc import Sequence

from docutils import nodes
from docutils.nodes import Node
from docutils.statemachine import StringList
from project_facts import ROOT, measured_chapters, reading_minutes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from vit_book.recipes import table
from vit_classroom.assignments.notebooks import CHAPTERS, chapter_names, read_chapter

HEAD = (
    "Chapter",
    "In all, min",
    "To read, min",
    "To run, s",
    "Checked answers (points)",
    "Questions (points)",
    "Assumes",
)
WEEK = ("Week", "In class", "Assigned", "Minutes")


class Assignments(SphinxDirective):
    """`{assignments}` stands for a table with a row for each chapter; its body says what each assumes."""

    has_content = True

    def run(self) -> list[Node]:
        """Let MyST read the table."""
        assumes = dict(line.split(": ", 1) for line in self.content if line)
        if assumes.keys() != set(chapter_names()):
            raise self.error(f"expected a line for each of {', '.join(chapter_names())}")
        return self.read(table(HEAD, [row(name, assumes[name]) for name in chapter_names()]))

    def read(self, lines: list[str]) -> list[Node]:
        """Let MyST read lines that hang on the chapters."""
        for name in chapter_names():
            self.env.note_dependency(str(CHAPTERS / f"{name}.ipynb"))
            self.env.note_dependency(str(ROOT / "notebooks" / f"{name}.md"))
        parent = nodes.container()
        self.state.nested_parse(StringList(lines), 0, parent)
        return [parent]


class Syllabus(Assignments):
    """`{syllabus}` stands for a table with a row for each week, from lines such as `patches: 1, 2`."""

    def run(self) -> list[Node]:
        """Let MyST read the table, and what the course costs."""
        weeks = [week(line) for line in self.content if line]
        rows = [
            (
                str(number),
                topic,
                ", ".join(f"{{doc}}`{int(name[:2])} </notebooks/{name}>`" for name in names),
                f"{minutes(names):.0f}" if names else "",
            )
            for number, (topic, names) in enumerate(weeks, start=1)
        ]
        hours = sum(minutes(names) for _, names in weeks) / 60
        return self.read(
            [*table(WEEK, rows), "", f"About {hours:.0f} hours for a student, beside the class."]
        )


def week(line: str) -> tuple[str, list[str]]:
    """Return what is done in class in a week, and which chapters are assigned."""
    topic, _, numbers = line.partition(": ")
    return topic, [read_chapter(number).name for number in numbers.split(", ") if number]


def minutes(names: Sequence[str]) -> float:
    """Return what chapters take to read, to solve and to run; a point stands for a minute of work."""
    return sum(
        reading_minutes(name)
        + sum(task.points for task in read_chapter(name).tasks)
        + measured_chapters()[name]["cpu"]["seconds"] / 60
        for name in names
    )


def row(name: str, assumes: str) -> list[str]:
    """Say what one chapter asks."""
    tasks = read_chapter(name).tasks
    checked, asked = ([task for task in tasks if bool(task.check) == kind] for kind in (True, False))
    seconds = measured_chapters()[name]["cpu"]["seconds"]
    return [
        f"{{doc}}`/notebooks/{name}`",
        f"{minutes([name]):.0f}",
        f"{reading_minutes(name)}",
        f"{seconds:.0f}",
        *(f"{len(some)} ({sum(task.points for task in some):g})" for some in (checked, asked)),
        assumes,
    ]


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("assignments", Assignments)
    app.add_directive("syllabus", Syllabus)
