"""A course folder for nbgrader: the chapters with marked answers and hidden tests, and its settings."""

import json
import secrets
from collections.abc import Sequence
from pathlib import Path

from vit_classroom.assignments.notebooks import STUB, TO_WRITE, Chapter, for_students
from vit_classroom.assignments.variations import assigned, seeds_of
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically

HIDDEN = """\
### BEGIN HIDDEN TESTS
{call}, seeds={seeds})
### END HIDDEN TESTS"""

CONFIG = '''\
"""Settings of nbgrader for a course of vit_from_scratch."""

c = get_config()  # noqa: F821 - nbgrader brings it

c.CourseDirectory.course_id = {course!r}
# Not handed out, nor back: look_at.txt is for who grades.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", "look_at.txt"]

# What students find in place of an answer.
c.ClearSolutions.code_stub = {{"python": {stub!r}}}
c.ClearSolutions.text_stub = {to_write!r}

# A cell that somebody deleted, doubled or stripped of its metadata comes back, and counts. What other cells
# have printed stays: it belongs to the answers in words.
c.Autograde.sanitize_preprocessors = [
    "vit_classroom.assignments.nbgrader_plugin.RepairCells",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# In place of running the notebook: each answer is called in a process of its own and judged from outside.
c.Autograde.autograde_preprocessors = [
    "vit_classroom.assignments.nbgrader_plugin.JudgeAnswers",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.JudgeAnswers.seconds = 30  # for a cell; a call of an answer has ten
c.JudgeAnswers.megabytes = 4000

# No page runs what a student typed: outputs go through the first of these filters, words through the second.
c.HTMLExporter.sanitize_html = True
c.HTMLExporter.filters = dict.fromkeys(
    ["clean_html", "strip_files_prefix"], "vit_classroom.assignments.course.without_scripts"
)

# Feedback without the hidden tests.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
'''
SHOWN = (
    "a b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img li ol p pre s span strong "
    "sub summary sup table tbody td th thead tr ul"
)
"""Tags that a page keeps; of others it shows what was typed."""


def build_course(
    names: Sequence[str], out: Path, seed: int | None = None, variant: int | None = None
) -> tuple[int, list[str]]:
    """Write a course folder, or add chapters to one.

    Args:
        names: of chapters, or their numbers.
        out: the folder; settings and chapters that are there already stay as they are.
        seed: decides what the hidden tests draw; None for a secret one.
        variant: the seed of a variation in each chapter (see `assigned`); None for none. With one, what
            students receive is in `worksheets/` as well, for who grades without nbgrader.

    Returns:
        The seed, and the names of the chapters that were built: not of those that are there already.

    Raises:
        InputError: an unknown chapter, or none that the course does not have already.
    """
    asked = [assigned(name, variant) for name in names]
    chapters = [chapter for chapter in asked if not notebook_path(out, chapter).exists()]
    if not chapters:
        raise InputError(
            f"{notebook_path(out, asked[0])} is there already: expected a new chapter or a new folder. "
            "Students may have this version; remove it yourself, if nobody has."
        )
    seed = secrets.randbelow(2**31) if seed is None else seed
    config = out / "nbgrader_config.py"
    if not config.exists():
        settings = CONFIG.format(course=out.resolve().name, stub=STUB, to_write=TO_WRITE)
        write_atomically(config, settings.encode())
    for chapter in chapters:  # the notebook last: where it is there, the rest is
        write_atomically(out / "rubrics" / f"{chapter.name}.md", rubrics(chapter).encode())
        if variant is not None:
            write_atomically(out / "worksheets" / f"{chapter.name}.ipynb", worksheet(chapter).encode())
        write_atomically(notebook_path(out, chapter), with_hidden_tests(chapter, seed).encode())
    return seed, [chapter.name for chapter in chapters]


def notebook_path(out: Path, chapter: Chapter) -> Path:
    """Return where nbgrader looks for the instructor's version of a chapter."""
    return out / "source" / chapter.name / f"{chapter.name}.ipynb"


def with_hidden_tests(chapter: Chapter, seed: int) -> str:
    """Return a chapter's notebook with hidden tests, as JSON."""
    notebook = json.loads(chapter.text)
    for cell, read in zip(notebook["cells"], chapter.cells, strict=True):
        cell["metadata"].pop("assignment", None)  # it holds the rubric, and students receive metadata as well
        if "check" in read.assignment:
            name = read.assignment["name"]
            call = read.source.strip().removesuffix(")")
            hidden = HIDDEN.format(call=call, seeds=seeds_of(seed, name))
            cell["source"] = f"{read.source}\n{hidden}"
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def worksheet(chapter: Chapter) -> str:
    """Return what students receive of a chapter, as JSON."""
    notebook = json.loads(chapter.text)
    notebook["cells"] = [for_students(cell) for cell in notebook["cells"]]
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def without_scripts(html: str) -> str:
    """Return what can be shown of HTML that somebody handed in: nothing that runs, or that buttons go by."""
    import bleach  # which nbgrader brings

    attributes = {"a": ["href", "title"], "img": ["src", "alt", "title"]}
    return bleach.clean(html, SHOWN.split(), attributes, {"http", "https", "mailto", "data"})


def rubrics(chapter: Chapter) -> str:
    """Return what a person gives points for, with model answers, as Markdown."""
    lines = [f"# {chapter.title}", "", "Points for answers that a person reads.", ""]
    for task in chapter.tasks:
        if not task.check:
            lines += [f"## {task.name}, {task.points:g} points", "", task.answer, ""]
    return "\n".join(lines)
