"""Chapters as assignments: their cells, and the pieces that are asked for in them. No PyTorch needed."""

import ast
import copy
import json
import re
import symtable
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from vit_from_scratch.errors import InputError, reason, unknown_name

CHAPTERS = Path(__file__).parent / "chapters"
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
SET_UP = re.compile(r"#\s*@title Set-up")
"""How the set-up cell of every notebook begins."""
OPENING = re.compile(r"Worksheet\(\s*[\"'](\w+)[\"']")  # the line that says which chapter it is
STUB = 'raise NotImplementedError("your turn")'
TO_WRITE = "*Your answer.*"
"""What students find in place of an answer, in code and in words."""
PYTHON_MAGICS = ("time", "capture", "prun")
"""Magics of cells whose names the notebook goes on with; those of `%%timeit` it does not know either."""
LONGEST_PRINT = 4000
"""Characters that are kept of what a cell has printed."""
LARGEST = 50_000_000
"""Bytes of a submitted notebook; a larger one is not read."""
LONGEST_CELL = 200_000
"""Characters of code that are read; to read it takes hundreds of bytes for each."""
Entry = TypeVar("Entry", bound=dict[str, Any])
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What reading code ends in that is not Python, or far too deep or too long."""


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook.

    Attributes:
        kind: "code", "markdown" or "raw".
        source: its text.
        about: nbgrader's entry in its metadata.
        assignment: ours, in a chapter: which check looks at which piece, or for what a reader gives points.
        printed: what stands below it, as text; a figure is "(a figure)".
    """

    kind: str
    source: str
    about: dict[str, Any]
    assignment: dict[str, Any]
    printed: str = ""

    @property
    def name(self) -> str:
        """Its name for nbgrader, "" if it has none."""
        return str(self.about.get("grade_id", ""))

    @property
    def form(self) -> str:
        """What tells it from another: its text, and of code whatever a formatter leaves as it is."""
        return form_of(self.source) if self.kind == "code" else self.source.strip()


@dataclass(frozen=True)
class Task:
    """Something that earns points.

    Attributes:
        name: of the function or class that is asked for, or the label of a question.
        points: how many.
        check: the function of `vit_classroom.checks` that judges it; "" for what a person reads.
        answer: the book's answer: code, or text with what there are points for.
        title: of the exercise or the section that asks for it.
        variant: the seed of a variation.
    """

    name: str
    points: float
    check: str
    answer: str
    title: str = ""
    variant: int | None = None

    @property
    def cell_name(self) -> str:
        """The name, for nbgrader, of the cell that carries the points."""
        return f"check-{self.name}" if self.check else self.name


@dataclass(frozen=True)
class Chapter:
    """A chapter as an assignment.

    Attributes:
        name: such as "03_attention".
        text: the notebook, as JSON.
    """

    name: str
    text: str

    @cached_property
    def cells(self) -> list[Cell]:
        """All of its cells, with the answers."""
        return cells_of(json.loads(self.text))

    @cached_property
    def tasks(self) -> list[Task]:
        """What there are points for, in the chapter's order."""
        answers = {cell.name: cell for cell in self.cells if cell.about.get("solution")}
        found, title = [], ""
        for cell in self.cells:
            if cell.kind == "markdown" and not cell.name:
                title = next(reversed(re.findall(r"^#+ (.+)", cell.source, re.MULTILINE)), title)
            if cell.about.get("grade"):
                check, name = cell.assignment.get("check", ""), cell.assignment.get("name", cell.name)
                answer, variant = without_marks(answers[name].source), cell.assignment.get("variant")
                found.append(Task(name, cell.about["points"], check, answer, title, variant))
        return found

    @property
    def title(self) -> str:
        """Its heading."""
        lines = [line for cell in self.cells if cell.kind == "markdown" for line in cell.source.splitlines()]
        return next(line.removeprefix("# ") for line in lines if line.startswith("# "))

    @property
    def address(self) -> str:
        """Where to read it, with all answers; the link of its worksheet says in which repository."""
        found = re.search(r"colab\.research\.google\.com/(github/\S+?)/exercises/", self.cells[0].source)
        return (
            f"https://{found[1].replace('github', 'github.com', 1)}/notebooks/{self.name}.ipynb"
            if found
            else ""
        )

    @property
    def given(self) -> list[str]:
        """The code that students receive and need not change."""
        return [cell.source for cell in self.cells if cell.kind == "code" and not cell.about]


def chapter_names() -> list[str]:
    """Return the names of the chapters that can be assigned, in the book's order."""
    return sorted(path.stem for path in CHAPTERS.glob("*.ipynb"))


def read_chapter(name: str) -> Chapter:
    """Return a chapter by its name or by its number: "03_attention", "03" or "3".

    Raises:
        InputError: there is none.
    """
    names = chapter_names()
    wanted = [known for known in names if name in {known, known[:2], known[:2].lstrip("0")}]
    if not wanted:
        raise unknown_name("chapter", name, names)
    return Chapter(wanted[0], (CHAPTERS / f"{wanted[0]}.ipynb").read_text(encoding="utf-8"))


def earlier_answers(names: Iterable[str]) -> str:
    """Return the book's answers of these names, from whichever chapters ask for them.

    Raises:
        InputError: no chapter asks for one of them.
    """
    tasks = [task for name in chapter_names() for task in read_chapter(name).tasks]
    known = {task.name: task.answer for task in tasks if task.check}
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise unknown_name("answer", name, known)
    return "\n\n\n".join(known[name] for name in wanted)


def brought_in(source: str) -> str:
    """Return the definitions that a cell `sheet.bring(...)` brings along; any other cell as it is."""
    found = re.fullmatch(r"sheet\.bring\((.*)\)", form_of(source))
    return earlier_answers(re.findall(r"'(\w+)'", found[1])) if found else source


def read_submission(path: Path) -> list[Cell]:
    """Read the cells of a notebook that somebody handed in.

    Raises:
        InputError: it cannot be read, or it is not a notebook.
    """
    return cells_of(notebook_of(content_of(path), str(path)))


def content_of(path: Path) -> bytes:
    """Return what stands in a file that somebody handed in.

    Raises:
        InputError: it cannot be read, is too large, or a folder, a device or a link.
    """
    try:
        if path.is_symlink() or not path.is_file():
            raise InputError(f"{path} is not a file: expected an .ipynb, and not a link to one.")
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} has more than {LARGEST // 1_000_000} MB: expected a notebook.")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}.") from error


def notebook_of(content: bytes, name: str) -> dict[str, Any]:
    """Read a notebook in whichever encoding an editor left it.

    Raises:
        InputError: it is not a notebook.
    """
    try:
        try:
            notebook = json.loads(content)  # UTF-8, 16 or 32, with a mark in front or without
        except UnicodeDecodeError:
            notebook = json.loads(content.decode("cp1252", errors="replace"))
        cells_of(notebook)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise InputError(f"{name} is not a Jupyter notebook ({reason(error)}): expected an .ipynb.") from None
    return notebook


def chapter_of(cells: Iterable[Cell]) -> str:
    """Return the name of the chapter that a notebook is the worksheet of; "" if it is none.

    Where the line that makes the worksheet is gone, two of the names and checks of its cells say it, if no
    other chapter has as many.
    """
    cells = list(cells)
    if found := next((match[1] for cell in cells if (match := OPENING.search(cell.source))), ""):
        return found if found in chapter_names() else ""
    known = _chapters_of_marks()
    marks = {mark for cell in cells for mark in (cell.name, cell.form) if mark in known}
    counted = Counter(known[mark] for mark in marks).most_common(2)
    (name, most), (_, other) = [*counted, ("", 0), ("", 0)][:2]
    return name if most > max(1, other) else ""


@lru_cache(maxsize=1)
def _chapters_of_marks() -> dict[str, str]:
    """Return what tells a chapter's cells from others', the names and the checks, each with its chapter."""
    return {
        mark: name
        for name in chapter_names()
        for cell in read_chapter(name).cells
        if cell.name
        for mark in (cell.name, *([cell.form] if cell.name.startswith("check-") else []))
    }


def cells_of(notebook: dict[str, Any]) -> list[Cell]:
    """Read the cells of a notebook of format 4."""
    found = []
    for cell in notebook["cells"]:
        source, metadata = cell["source"], cell.get("metadata", {})
        text = _text(source).replace("\r\n", "\n")
        given = [metadata.get(name) for name in ("nbgrader", "assignment")]
        about, ours = (one if isinstance(one, dict) else {} for one in given)
        found.append(Cell(str(cell["cell_type"]), text, about, ours, _printed(cell.get("outputs"))))
    return found


def _text(given: Any) -> str:
    """Return text that a notebook holds whole or in lines; half a character is none."""
    whole = "".join(map(str, given)) if isinstance(given, list) else str(given)
    return whole.encode(errors="replace").decode()


def _printed(outputs: Any) -> str:
    """Return what a cell has printed; what is not an output of Jupyter's is left out."""
    found = []
    for one in outputs if isinstance(outputs, list) else []:
        shown = one.get("data") if isinstance(one, dict) else None
        given = shown if isinstance(shown, dict) else one if isinstance(one, dict) else {}
        if "image/png" in given:
            found.append("(a figure)")
        else:
            found.append(_text(given.get("text") or given.get("text/plain") or ""))
    return "\n".join(one.strip("\n") for one in found if one)[:LONGEST_PRINT]


def with_set_up(chapter: Chapter, cells: list[Cell]) -> list[Cell]:
    """Put the chapter's own set-up cell in place of a student's, with its budget or of another release."""
    (own,) = filter(SET_UP.match, chapter.given)
    return [
        replace(cell, source=own) if SET_UP.match(cell.source) and not cell.about else cell for cell in cells
    ]


def without_marks(source: str) -> str:
    """Return an answer without the lines that mark it."""
    return "\n".join(line for line in source.splitlines() if line.strip() not in (BEGIN, END))


def for_students(cell: Entry) -> Entry:
    """Return what a student receives of a chapter's cell: stubs in place of answers."""
    cell = copy.deepcopy(cell)
    cell["metadata"].pop("assignment", None)
    if not cell["metadata"].get("nbgrader", {}).get("solution"):
        return cell
    lines, inside = [], False
    for line in "".join(cell["source"]).splitlines():
        mark = line.strip()
        inside = mark == BEGIN or (inside and mark != END)
        if mark == BEGIN and line != BEGIN:  # a helper, at the edge, leaves nothing
            lines.append(line.replace(BEGIN, STUB))
        elif not inside and mark != END:
            lines.append(line)
    cell["source"] = TO_WRITE if cell["cell_type"] == "markdown" else "\n".join(lines).strip("\n")
    return cell


def plain_python(source: str) -> str:
    """Return a cell without what only IPython knows, as far as the cell's own code goes on without it.

    A cell under `%%time` or another magic that runs Python is that Python; under `%%bash` it is nothing. What
    `%time` measures runs. Lines of other magics, of the shell and of help (`name?`) do nothing.
    """
    magic = re.match(r"\s*%%(\w+)[^\n]*\n?", source)
    if magic:
        return plain_python(source[magic.end() :]) if magic[1] in PYTHON_MAGICS else ""
    if statements_of(source):
        return source
    measured = re.sub(r"^([^\S\n]*)%time[^\S\n]+", r"\1", source, flags=re.MULTILINE)
    for_ipython = r"^([^\S\n]*)(?:[%!?].*|[\w.]+\s*=\s*[%!].*|[\w.*()\[\]'\"]+\?{1,2}[^\S\n]*)$"
    return re.sub(for_ipython, r"\1pass", measured, flags=re.MULTILINE)


@lru_cache(maxsize=1000)
def form_of(source: str) -> str:
    """Return a cell's code as it is whatever its layout and its comments; its text where it is not Python."""
    try:
        return "\n".join(map(ast.unparse, statements_of(plain_python(source)))) or source.strip()
    except (AssertionError, *UNREADABLE):  # what Python reads, and cannot write again
        return source.strip()


def needed(given: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Of given cells, keep the statements that bind names which the wanted code uses, and what these use.

    Statements that bind nothing, such as a call that draws, are gone.
    """
    names = set().union(*(globals_of(source) for source in wanted))
    cells = [statements_of(plain_python(source)) for source in given]
    taken: set[ast.stmt] = set()
    every = [statement for statements in cells for statement in statements]
    while fresh := [one for one in every if one not in taken and not names.isdisjoint(bound_by(one))]:
        taken.update(fresh)
        names.update(*(globals_of(ast.unparse(one)) for one in fresh))
    return ["\n".join(ast.unparse(one) for one in statements if one in taken) for statements in cells]


def parsed(source: str) -> ast.Module:
    """Read code.

    Raises:
        MemoryError: it has more than `LONGEST_CELL` characters; what is no Python raises others.
    """
    if len(source) > LONGEST_CELL:
        raise MemoryError(f"{len(source):,} characters of code: expected {LONGEST_CELL:,} at most.")
    return ast.parse(source)


def statements_of(source: str) -> list[ast.stmt]:
    """Return the statements of a cell; none where it cannot be read."""
    try:
        return parsed(source).body
    except UNREADABLE:
        return []


def definitions_in(source: str) -> str:
    """Return what a cell imports, defines and names, such as EPS = 1e-6, without what it runs."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    runs = (ast.Call, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

    def is_kept(one: ast.stmt) -> bool:
        value = one.value if isinstance(one, ast.Assign | ast.AnnAssign) else None
        if value is None or isinstance(value, ast.Lambda):
            return isinstance(one, kinds) or value is not None
        return not any(isinstance(node, runs) for node in ast.walk(value))

    return "\n".join(ast.unparse(one) for one in statements_of(source) if is_kept(one))


def bound_by(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a cell binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    bound: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name.partition(".")[0])
    return bound


def globals_of(source: str) -> set[str]:
    """Return the global names that code uses, in its functions too; none where it cannot be read."""
    if len(source) > LONGEST_CELL:
        return set()
    try:
        return set(_global_names(symtable.symtable(source, "cell", "exec")))
    except UNREADABLE:
        return set()


def _global_names(table: symtable.SymbolTable) -> Iterator[str]:
    top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (top or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _global_names(child)
