"""A chapter as an assignment: answers marked for nbgrader, a check after each, and what students receive.

In a chapter, an answer is the code cell that follows a box "Your turn", or the first cell of an exercise's
solution whose second one is a call of `checks`. What the solution of another exercise says becomes the model
answer of a question that is read by a person; a line `% Rubric: ...` in it says for what there are points. An
exercise is worth five points, or what a line `% Points: N` in its solution says.
"""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from chapter_export.catalogue import Catalogue
from chapter_export.cells import EARLIER, CellWriter, chapter_cells, framed
from chapter_export.markup import ExportError
from vit_classroom.assignments.notebooks import BEGIN, END, for_students

BOX = re.compile(r"^:::\{admonition\} Your turn: `(\w+)` · about (\d+) minutes?$", re.MULTILINE)
CHECK = re.compile(r"checks\.(\w+)\((\w+)\)")
IN_TEXT = re.compile(rf"`{CHECK.pattern}`")
TO_ITSELF = re.compile(r" · \*\*Exercises\*\* \{source\}`[^`]*`")
SOLUTION = re.compile(
    r"^```\{solution(?:-start\} *(\S+)$(.*?)^```\{solution-end\}|\} *(\S+)$(.*?)^```$)",
    re.DOTALL | re.MULTILINE,
)
ASKING = re.compile(
    r"^```\{exercise\}.*\n:label: *(\S+)\n((?:(?!```).*\n)*?.*\?(?:.*\n)*?)```$", re.MULTILINE
)
RUBRIC = re.compile(r"^% Rubric: *(.+)$", re.MULTILINE)
WORTH = re.compile(r"^% Points: *(\d+)$", re.MULTILINE)
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
EXERCISE_POINTS = 5
TO_THINK = "*Your answer to the question, if you like. It is not marked.*"
TO_CODE = "# Your code."
OPENING = 'from vit_classroom import assignments\n\nsheet = assignments.Worksheet("{chapter}", globals())'
CLOSING = "sheet.progress()"


@dataclass
class Answer:
    """An answer that was announced, or whose check is still to come."""

    name: str
    points: int
    written: bool = False


class AssignmentWriter(CellWriter):
    """Collect the cells of one chapter, its answers between nbgrader's marks."""

    def __init__(self, catalogue: Catalogue, path: Path) -> None:
        super().__init__(catalogue, path.stem)
        source = path.read_text(encoding="utf-8")
        self.asking = {label for label, _ in ASKING.findall(source)}
        solutions = {"".join(parts[::2]): "".join(parts[1::2]) for parts in SOLUTION.findall(source)}
        self.rubrics = {
            label: found[1] for label, text in solutions.items() if (found := RUBRIC.search(text))
        }
        self.worth = {
            label: int(found[1]) for label, text in solutions.items() if (found := WORTH.search(text))
        }
        self.waiting: Answer | None = None
        self.label = ""
        self.code_of_solution: list[str] = []
        self.names: set[str] = set()

    def markdown(self, source: str) -> None:
        """Add a cell of text; a box in it announces an answer."""
        if self.waiting is not None:
            raise ExportError(f"text where the answer or the check of {self.waiting.name} should stand.")
        here = IN_TEXT.sub(r'`sheet.check("\2")`', TO_ITSELF.sub("", source))
        super().markdown(here)
        boxes = BOX.findall(source)
        if len(boxes) > 1:
            raise ExportError("two boxes without an answer between them.")
        if boxes:
            self.waiting = Answer(boxes[0][0], int(boxes[0][1]))

    def code(self, cell: NotebookNode) -> None:
        """Add a cell of code: an answer, its check, or one that is given."""
        if self.solution is not None:
            super().code(cell)
            self.code_of_solution.append(cell.source)
        elif EARLIER in cell.metadata.get("tags", []):
            names = [node.name for node in ast.parse(cell.source).body if isinstance(node, DEFINITIONS)]
            super().code(nbformat.v4.new_code_cell(f"sheet.bring({', '.join(map(repr, names))})"))
        elif self.waiting is None:
            super().code(cell)
        elif not self.waiting.written:
            self.add_answer(self.waiting.name, cell.source)
            self.waiting.written = True
        else:
            found = CHECK.fullmatch(cell.source.strip())
            if not found or found[2] != self.waiting.name:
                raise ExportError(f"expected a cell with nothing but checks.NAME({self.waiting.name}).")
            self.add_check(found[1], self.waiting.name, self.waiting.points)
            self.waiting = None

    def add_answer(self, name: str, source: str) -> None:
        """Add the cell of an answer."""
        if name in self.names:
            raise ExportError(f"{name} is asked for twice.")
        self.names.add(name)
        cell = nbformat.v4.new_code_cell(marked(name, source))
        cell.metadata["nbgrader"] = _nbgrader(name, solution=True)
        self.cells.append(cell)

    def add_check(self, check: str, name: str, points: int) -> None:
        """Add the cell in which an answer is checked."""
        cell = nbformat.v4.new_code_cell(f'sheet.check("{name}")')
        cell.metadata["nbgrader"] = _nbgrader(f"check-{name}", points=points, locked=True)
        cell.metadata["assignment"] = {"check": check, "name": name}
        self.cells.append(cell)

    def add_question(self, label: str, answer: str, with_code: bool) -> None:
        """Add the cell of an answer that a person reads, after one for code where the solution has some."""
        rubric = self.rubrics.get(label)
        if rubric is None:
            raise ExportError(f"the solution of {label} has no line `% Rubric: ...`, and no check.")
        if with_code:
            self.cells.append(nbformat.v4.new_code_cell(TO_CODE))
        cell = nbformat.v4.new_markdown_cell(f"{answer}\n\n**Points.** {rubric}")
        cell.metadata["nbgrader"] = _nbgrader(
            label, solution=True, points=self.worth.get(label, EXERCISE_POINTS)
        )
        cell.metadata["assignment"] = {"rubric": rubric}
        self.cells.append(cell)

    def _open(self, label: str) -> None:
        super()._open(label)
        self.label, self.code_of_solution = label, []

    def _close(self) -> None:
        body = self._solution_text()
        answer = ""
        for code in self.code_of_solution:
            if found := CHECK.fullmatch(code.strip()):
                if not answer:
                    raise ExportError(f"{found[0]} has no answer before it.")
                self.add_answer(found[2], answer)
                self.add_check(found[1], found[2], self.worth.get(self.label, EXERCISE_POINTS))
            answer = code
        checked = [bool(CHECK.fullmatch(code.strip())) for code in self.code_of_solution]
        if not any(checked):
            self.add_question(self.label, body, with_code=bool(checked))
            return
        if not checked[-1]:  # the solution goes on to try the answer out
            self.cells.append(nbformat.v4.new_code_cell(TO_CODE))
        if self.label in self.asking:
            self.cells.append(nbformat.v4.new_markdown_cell(TO_THINK))


def _nbgrader(name: str, points: int | None = None, **more: bool) -> dict[str, object]:
    """What nbgrader wants to know of a cell; `more` says whether it is a solution, or locked."""
    rest = {"solution": False, "locked": False, "task": False, **more}
    entry = {"schema_version": 3, "grade_id": name, "grade": points is not None, **rest}
    return entry if points is None else {**entry, "points": points}


def marked(name: str, source: str) -> str:
    """Put marks around what a student has to write: the body of a function, the bodies of a class's methods.

    Everything else in the cell, such as a helper, is the student's to think of and lies between marks too.
    """
    lines = source.splitlines()
    hidden = [True] * len(lines)
    shown = [node for node in ast.parse(source).body if getattr(node, "name", None) == name]
    if len(shown) != 1:
        raise ExportError(f"expected one function or class {name} in the cell of the answer.")
    (node,) = shown
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    for place in range(first - 1, node.end_lineno or 0):
        hidden[place] = False
    bodies = [node] if isinstance(node, ast.FunctionDef) else node.body
    for part in bodies:
        if not isinstance(part, ast.FunctionDef):
            raise ExportError(f"class {name}: expected nothing but methods.")
        body = [statement for statement in part.body if ast.unparse(statement) != "super().__init__()"]
        if not body or body[0].lineno == part.lineno:
            raise ExportError(f"{part.name}: expected a body below the line of `def`.")
        for place in range(body[0].lineno - 1, part.end_lineno or 0):
            hidden[place] = True
    return "\n".join(_with_marks(lines, hidden))


def _with_marks(lines: list[str], hidden: list[bool]) -> Iterable[str]:
    """Enclose the lines that are hidden, without the empty ones at the ends of a stretch."""
    for covered, group in groupby(zip(hidden, lines, strict=True), key=itemgetter(0)):
        stretch = [line for _, line in group]
        said = [number for number, line in enumerate(stretch) if line.strip()]
        if not (covered and said):
            yield from stretch
            continue
        first, last = said[0], said[-1]
        indent = stretch[first][: len(stretch[first]) - len(stretch[first].lstrip())]
        yield from stretch[:first]
        yield from [indent + BEGIN, *stretch[first : last + 1], indent + END]
        yield from stretch[last + 1 :]


def export_assignment(path: Path, catalogue: Catalogue) -> tuple[str, str]:
    """Turn a chapter into an assignment.

    Returns:
        The text of the .ipynb file with the answers, and of the one for students.
    """
    writer = AssignmentWriter(catalogue, path)
    chapter_cells(path, writer)
    if writer.waiting is not None:
        raise ExportError(f"{path.name}: {writer.waiting.name} has no check.")
    with_answers = [
        nbformat.v4.new_code_cell(OPENING.format(chapter=path.stem)),
        *writer.cells,
        nbformat.v4.new_markdown_cell("## How far you are"),
        nbformat.v4.new_code_cell(CLOSING),
    ]
    place = f"exercises/{path.stem}.ipynb"
    without = [for_students(cell) for cell in with_answers]
    return framed(path, catalogue, place, with_answers), framed(path, catalogue, place, without)
