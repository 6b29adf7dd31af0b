"""A chapter shows the code that one has to read, and folds the rest; its picture comes first."""

import re

import jupytext
import pytest
from chapter_export.cells import HIDING_TAGS
from project_facts import ROOT, chapter_number, chapters

CHAPTERS = chapters(ROOT)
LONGEST_CELL = 15  # lines that can be taken in at once
FIGURE = r"```\{code-cell\} ipython3\n---\n(?:(?!---).*\n)*?  figure:\n"
PICTURE = re.compile(rf"```\{{(?:drawing|figure)\}}|{FIGURE}")
BOX = re.compile(r"^:::\{admonition\} Your turn.*?^```\{code-cell\}", re.DOTALL | re.MULTILINE)
HINT = re.compile(r"^:::\{admonition\} (?:Hint|A second hint)\n:class: tip dropdown\n", re.MULTILINE)


def most_lines(number):
    """How many lines may stand open before the exercises: Part I, where one learns to write, has few."""
    return 60 if number <= 6 else 110


def open_cells(path):
    """The lines, without empty ones, of each cell of code that stands unfolded before the exercises."""
    for cell in jupytext.read(path, fmt="md:myst").cells:
        if cell.cell_type == "markdown" and re.search("^## Exercises$", cell.source, re.MULTILINE):
            return
        if cell.cell_type == "code" and not HIDING_TAGS & set(cell.metadata.get("tags", [])):
            yield [line for line in cell.source.splitlines() if line.strip()]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_what_stands_open_can_be_read(path):
    cells = list(open_cells(path))
    assert [cell[0] for cell in cells if len(cell) > LONGEST_CELL] == []
    assert 0 < sum(map(len, cells)) <= most_lines(chapter_number(path.stem))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_first_thing_under_the_picture_is_the_picture(path):
    below = path.read_text(encoding="utf-8").partition("\n## The picture\n")[2]
    assert PICTURE.match(below.lstrip("\n"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_box_has_two_hints(path):
    boxes = BOX.findall(path.read_text(encoding="utf-8"))
    assert boxes or path.stem == "06_parity"
    assert [len(HINT.findall(box)) for box in boxes] == [2] * len(boxes)


@pytest.mark.parametrize("path", CHAPTERS[7:], ids=lambda path: path.stem)
def test_the_verdict_stands_at_the_top(path):
    text = path.read_text(encoding="utf-8").partition("\n## The picture\n")[2].partition("\n## ")[0]
    assert text.count("\n\n**What we found.** ") == 1
    verdict = text.partition("**What we found.** ")[2].partition("\n\n")[0].strip()
    assert verdict.endswith(".")
    assert ". " not in verdict, "one sentence"
    folds = re.findall(
        r"(?m)^:::+\{admonition\} For the careful reader", text.partition("**What we found.**")[0]
    )
    assert not folds
