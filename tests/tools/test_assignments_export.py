"""Of a chapter come an assignment with marked answers, and one for students without a line of them."""

import json
import re

import nbformat
import pytest
from chapter_export import ExportError, export_assignment
from chapter_export.assignments import TO_CODE, TO_THINK
from project_facts import ROOT, chapters
from test_export_notebooks import DATA

from vit_classroom.assignments.notebooks import BEGIN, END, STUB, TO_WRITE

CHAPTERS = chapters()
TRIVIAL = re.compile(
    r"```\w*|super\(\).*|pass|return \w+|return|else:|try:|print\(|\)|\]|\}|self\.(\w+) = \1|import \w+"
    r"|def forward\(.*\):|with torch\.no_grad\(\):|torch\.manual_seed\(\d\)"
)
"""Lines that say nothing about an answer."""


def code_of(line):
    """A line of code without its comment and its indentation."""
    return line.partition("  # ")[0].strip()


@pytest.fixture(scope="module")
def both(catalogue):
    texts = export_assignment(DATA / "99_everything.md", catalogue)
    return [nbformat.reads(text, as_version=4) for text in texts]


def graded(notebook):
    return {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}


def test_an_answer_is_marked_and_becomes_a_stub(both):
    whole, stubs = (graded(notebook) for notebook in both)
    assert whole["Layer"].source == (
        f"{BEGIN}\ndef helper(x):\n    return x + 17\n{END}\n\n\nclass Layer(nn.Module):\n"
        f"    def __init__(self, dim):  # D\n        super().__init__()\n        {BEGIN}\n"
        f"        self.weights = nn.Linear(dim, dim)\n        {END}\n\n"
        f"    def forward(self, z):  # (B, T, D)\n\n        {BEGIN}\n        total = helper(z)\n"
        f"        return self.weights(total)\n        {END}"
    )
    assert stubs["Layer"].source == (
        f"class Layer(nn.Module):\n    def __init__(self, dim):  # D\n        super().__init__()\n"
        f"        {STUB}\n\n    def forward(self, z):  # (B, T, D)\n\n        {STUB}"
    )
    assert stubs["answer"].source == f"def answer():\n    {STUB}"


def test_what_carries_the_points(both):
    for notebook in both:
        cells = graded(notebook)
        assert list(cells) == ["Layer", "check-Layer", "answer", "check-answer", "ex-words"]
        assert [c.metadata.nbgrader.get("points") for c in cells.values()] == [None, 7, None, 12, 5]
        assert [c.metadata.nbgrader.locked for c in cells.values()] == [False, True, False, True, False]
        assert cells["check-Layer"].source == 'sheet.check("Layer")'


def test_a_question_has_its_model_answer_in_one_and_a_place_to_write_in_the_other(both):
    whole, stubs = (graded(notebook) for notebook in both)
    assert whole["ex-words"].source == "Said.\n\n**Points.** 5 points for saying it."
    assert stubs["ex-words"].source == TO_WRITE
    assert whole["ex-words"].metadata.assignment == {"rubric": "5 points for saying it."}
    assert all("assignment" not in cell.metadata for cell in both[1].cells)


def test_what_a_solution_says_is_in_neither(both):
    for notebook in both:
        text = "\n".join(cell.source for cell in notebook.cells)
        assert "Some words first" not in text
        assert "Then some more" not in text


def test_it_opens_with_a_sheet_and_ends_with_the_progress(both):
    for notebook in both:
        assert "exercises/99_everything.ipynb" in notebook.cells[0].source
        assert notebook.cells[2].source.endswith('sheet = assignments.Worksheet("99_everything", globals())')
        assert notebook.cells[-1].source == "sheet.progress()"


BOX = ":::{admonition} Your turn: `f` · about 3 minutes\n:class: your-turn\nWrite it.\n:::\n\n"
CELL = "```{code-cell} ipython3\n%s\n```\n\n"
SOLVED = (
    "```{exercise} E\n:label: ex-e\n:nonumber:\nDo it.\n```\n\n"
    "```{solution-start} ex-e\n```\n\n%s```{solution-end}\n```\n"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOX, "f has no check"),
        (BOX + CELL % "def g():\n    return 1", "expected one function or class f"),
        (BOX + CELL % "f = 3", "expected one function or class f"),
        (BOX + CELL % "def f(): return 1", "expected a body below the line of `def`"),
        (BOX + CELL % "class f:\n    x = 1", "expected nothing but methods"),
        (BOX + CELL % "def f():\n    return 1", "f has no check"),
        (BOX + CELL % "def f():\n    return 1" + CELL % "f()", r"nothing but checks.NAME\(f\)"),
        (BOX + CELL % "def f():\n    return 1" + "A word.\n", "text where the answer or the check of f"),
        (BOX + BOX, "two boxes without an answer"),
        (SOLVED % "Words.\n\n", "the solution of ex-e has no line `% Rubric: ...`, and no check"),
        (SOLVED % (CELL % "checks.f(f)"), r"checks.f\(f\) has no answer before it"),
        (
            SOLVED % (CELL % "def f():\n    return 1" + CELL % "checks.f(f)") * 2,
            "f is asked for twice",
        ),
    ],
)
def test_a_chapter_that_breaks_the_form_is_an_error_that_says_so(text, message, tmp_path, catalogue):
    path = tmp_path / "97_bad.md"
    head = (DATA / "98_neighbour.md").read_text(encoding="utf-8").partition("# 98")[0]
    path.write_text(f"{head}# 97. Bad\n\n{text}", encoding="utf-8")
    with pytest.raises(ExportError, match=message):
        export_assignment(path, catalogue)


def answer_lines(name):
    """The lines of a chapter's answers, of code and of text, that say something; with the answer's name."""
    text = (ROOT / f"vit_classroom/assignments/chapters/{name}.ipynb").read_text(encoding="utf-8")
    for cell in json.loads(text)["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        inside = cell["cell_type"] == "markdown"
        for line in "".join(cell["source"]).splitlines() if about.get("solution") else ():
            if line.strip() in (BEGIN, END):
                inside = line.strip() == BEGIN
                continue
            wanted = code_of(line)
            if inside and wanted and not TRIVIAL.fullmatch(wanted) and not wanted.startswith("#"):
                yield about["grade_id"], wanted


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_line_of_an_answer_is_in_what_students_receive(path):
    """Nor in metadata, outputs or attachments: the file is searched as a whole."""
    text = (ROOT / f"exercises/{path.stem}.ipynb").read_text(encoding="utf-8")
    student = json.loads(text)
    lines = {code_of(line) for cell in student["cells"] for line in "".join(cell["source"]).splitlines()}
    own = list(answer_lines(path.stem))
    assert len(own) > 15
    for name, line in own:
        assert line not in lines, f"{name}: {line}"
    for name, line in [pair for other in CHAPTERS for pair in answer_lines(other.stem)]:
        if len(line) > 40:
            assert json.dumps(line, ensure_ascii=False)[1:-1] not in text, f"{name}: {line}"
    assert all(not cell.get("outputs") and "attachments" not in cell for cell in student["cells"])


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_asks_enough_and_checks_half_of_it(path):
    """At least two boxes in each chapter (but the one on parity), four exercises, half of them checked."""
    text = path.read_text(encoding="utf-8")
    boxes = len(re.findall(r"^:class: your-turn$", text, re.MULTILINE))
    exercises = re.findall(r"^```\{exercise\}", text, re.MULTILINE)
    solutions = re.findall(r"^```\{solution(?:-start)?\}", text, re.MULTILINE)
    gated = re.findall(r"^```\{solution-start\}.*?^```\{solution-end\}", text, re.DOTALL | re.MULTILINE)
    checked = sum("\nchecks." in solution for solution in gated)
    assert boxes >= (0 if path.stem == "06_parity" else 1 if path.stem[:2] in ("02", "05") else 2)
    assert len(exercises) == len(solutions) >= 4
    assert 2 * checked >= len(exercises)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_text_names_the_check_that_stands_below_the_answer(path, catalogue):
    for text in export_assignment(path, catalogue):
        notebook = nbformat.reads(text, as_version=4)
        prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        asked = {cell.metadata.nbgrader.grade_id for cell in notebook.cells if "nbgrader" in cell.metadata}
        named = re.findall(r'`sheet\.check\("(\w+)"\)`', prose)
        assert {f"check-{name}" for name in named} == {name for name in asked if name.startswith("check-")}
        assert not re.search(r"`checks\.\w+\(\w+\)`", prose)
        assert "**Exercises**" not in prose


def test_an_exercise_that_is_checked_and_asks_something_has_room_for_words(catalogue):
    for text in export_assignment(ROOT / "notebooks" / "01_patches.md", catalogue):
        cells = nbformat.reads(text, as_version=4).cells
        sources = [cell.source for cell in cells]
        assert sources.count(TO_THINK) == 1  # "How many windows ...? Predict the number first."
        place = sources.index(TO_THINK)
        assert sources[place - 2 : place] == ['sheet.check("overlapping_patches")', TO_CODE], "to try it out"
        assert "nbgrader" not in cells[place].metadata
