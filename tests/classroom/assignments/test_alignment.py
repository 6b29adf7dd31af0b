"""Every cell of a worksheet is found again, and all that a student wrote is read."""

import copy
import json
from dataclasses import replace

import pytest

from vit_classroom.assignments.alignment import repaired, to_read
from vit_classroom.assignments.course import with_hidden_tests
from vit_classroom.assignments.grading import grade
from vit_classroom.assignments.notebooks import TO_WRITE, Cell, cells_of, chapter_names, read_chapter
from vit_classroom.assignments.suspicion import is_check

QUESTIONS = ("ex-shift", "ex-cost", "ex-explanation")


@pytest.fixture
def whole(handed_in):
    """The cells of a whole notebook; what is named is filled in."""
    return lambda **written: cells_of(handed_in(**written))


def place_of(cells, name):
    return next(place for place, cell in enumerate(cells) if cell.name == name)


def names_of(cells):
    return [cell.name for cell in cells if cell.name]


def markdown(text):
    return Cell("markdown", text, {}, {})


def doubled(cells, name):
    place = place_of(cells, name)
    return [*cells[: place + 1], cells[place], *cells[place + 1 :]]


def without(cells, *names):
    return [cell for cell in cells if cell.name not in names]


def stripped(cells):
    return [replace(cell, about={}) for cell in cells]


def become(cells, name, kind):
    """The cells, of which one is of another kind."""
    return [replace(cell, kind=kind) if cell.name == name else cell for cell in cells]


DAMAGE = {
    "a check became words": lambda cells: become(cells, "check-attention", "markdown"),
    "a check became raw": lambda cells: become(cells, "check-attention", "raw"),
    "a cell doubled": lambda cells: doubled(cells, "check-attention"),
    "an answer doubled": lambda cells: doubled(cells, "attention"),
    "words doubled": lambda cells: doubled(cells, "ex-cost"),
    "answer and check deleted": lambda cells: without(cells, "masked_attention", "check-masked_attention"),
    "all checks deleted": lambda cells: [cell for cell in cells if not is_check(cell)],
    "metadata stripped": stripped,
    "half of it": lambda cells: cells[: len(cells) // 2],
    "nothing": lambda cells: [],
}


@pytest.mark.parametrize("name", DAMAGE)
def test_whatever_was_done_each_cell_is_there_once_and_nothing_is_lost(name, chapter, whole, answers):
    damaged = DAMAGE[name](whole(**answers))
    pairs = repaired(chapter, damaged)
    cells = [cell for cell, _ in pairs]
    assert sorted(names_of(cells)) == sorted(names_of(chapter.cells))
    assert [place for _, place in pairs if place is not None] == list(range(len(damaged)))
    assert [cell.about for cell in cells if cell.name == "check-attention"] == [
        cell.about for cell in chapter.cells if cell.name == "check-attention"
    ]
    assert [cell for cell, _ in repaired(chapter, cells)] == cells, "a repaired notebook stays as it is"


def test_words_without_metadata_are_found_by_where_they_stand(chapter, whole, answers):
    cells = [cell for cell, _ in repaired(chapter, stripped(whole(**answers)))]
    found = {cell.name: cell.source for cell in cells if cell.name in QUESTIONS}
    assert found == {name: answers[name] for name in QUESTIONS}


def test_of_two_checks_the_first_below_the_answer_counts(chapter, whole, answers):
    """An answer written anew in a copy of both cells is the one that counts, at once."""
    cells = whole(**answers)
    place = place_of(cells, "attention")
    first = [replace(cells[place], source="def attention(q, k, v):\n    return v"), cells[place + 1]]
    again = [cell for cell, _ in repaired(chapter, [*cells[:place], *first, *cells[place:]])]
    assert (place_of(again, "attention"), place_of(again, "check-attention")) == (place + 2, place + 3)


@pytest.mark.parametrize("stays", [True, False])
def test_an_answer_in_a_new_cell_below_its_check_is_the_one_that_is_judged(
    stays, two_answers, cells, answers
):
    """The student has run the check again, above it; the stub stays, or is gone."""
    whole = cells(MultiHeadSelfAttention=answers["MultiHeadSelfAttention"])
    place = place_of(whole, "check-attention") + 1
    whole.insert(place, Cell("code", answers["attention"], {}, {}))
    whole = whole if stays else without(whole, "attention")
    marks = {mark.task.name: mark for mark in grade(two_answers, whole).marks}
    assert {name: mark.points for name, mark in marks.items()} == {
        "attention": 5,
        "MultiHeadSelfAttention": 15,
    }
    assert marks["attention"].own == answers["attention"]
    again = [cell for cell, _ in repaired(two_answers, whole)]
    assert [cell for cell, _ in repaired(two_answers, again)] == again


def test_an_answer_in_the_cell_of_its_check_stays_there_whatever_the_name_means_below(
    two_answers, cells, answers
):
    whole = cells()
    place = place_of(whole, "check-attention")
    both = f"{answers['attention']}\n\n\n{whole[place].source}"
    whole[place] = replace(whole[place], source=both)
    whole.insert(place + 1, Cell("code", "attention = torch.zeros(3)", {}, {}))
    assert [mark.points for mark in grade(two_answers, whole).marks] == [5, 0]


def test_a_name_that_is_used_again_below_other_answers_moves_no_check(two_answers, cells, answers):
    whole = cells(MultiHeadSelfAttention=answers["MultiHeadSelfAttention"])
    whole.append(Cell("code", "attention = torch.zeros(3)", {}, {}))
    marks = {mark.task.name: mark for mark in grade(two_answers, whole).marks}
    assert (marks["attention"].state, marks["MultiHeadSelfAttention"].points) == ("to do", 15)


@pytest.mark.parametrize(
    "name", ["a cell doubled", "metadata stripped", "all checks deleted", "a check became words"]
)
def test_right_answers_in_a_damaged_notebook_get_their_points(name, two_answers, cells, answers):
    marks = grade(two_answers, DAMAGE[name](cells(**answers)))
    assert {mark.task.name: mark.points for mark in marks.marks} == {
        "attention": 5,
        "MultiHeadSelfAttention": 15,
    }


def states(chapter, cells):
    """Of each question that a person reads: whether there is something to read, and in which cells."""
    return to_read(chapter, [cell for cell, _ in repaired(chapter, cells)])


def test_an_untouched_notebook_holds_nothing_to_read(chapter, whole):
    assert states(chapter, whole()) == {name: [] for name in QUESTIONS}


def test_words_and_code_in_new_cells_are_read(chapter, whole):
    cells = whole()
    place = place_of(cells, "ex-cost")
    for new in (markdown("It grows like T squared."), Cell("code", "print(time())", {}, {})):
        for at in (place, place + 1):
            added = [*cells[:at], new, *cells[at:]]
            assert states(chapter, added) == {"ex-shift": [], "ex-cost": [at], "ex-explanation": []}


def test_code_in_the_cell_that_is_there_for_it_is_read(chapter, whole):
    cells = whole()
    place = place_of(cells, "ex-shift") - 1
    assert cells[place].source == "# Your code."
    for source in ("keys = 8 * torch.eye(6)", "# Your code.\n# None: a shift of all scores changes nothing."):
        cells[place] = replace(cells[place], source=source)
        assert states(chapter, cells) == {"ex-shift": [place], "ex-cost": [], "ex-explanation": []}


@pytest.mark.parametrize("above", ["check-streamed_attention", "ex-cost"])
def test_words_below_another_answer_are_read_for_those_that_are_empty(above, chapter, whole):
    cells = whole(**{"ex-cost": "T squared."})
    place = place_of(cells, above) + 1
    found = states(chapter, [*cells[:place], markdown("3.6: the value may be small."), *cells[place:]])
    assert found["ex-explanation"] == found["ex-shift"] == [place]


def test_words_typed_into_the_question_itself_are_read(chapter, whole):
    cells = whole()
    place = place_of(cells, "ex-explanation") - 1
    cells[place] = replace(cells[place], source=f"{cells[place].source}\n\nNo: the value may be small.")
    assert states(chapter, cells) == {"ex-shift": [], "ex-cost": [], "ex-explanation": [place]}


def test_what_stands_elsewhere_is_to_read_and_said(chapter, handed_in):
    notebook = copy.deepcopy(handed_in())
    place = place_of(cells_of(notebook), "ex-shift")
    notebook["cells"].insert(place + 1, {"cell_type": "markdown", "metadata": {}, "source": "An answer."})
    marks = {mark.task.name: mark for mark in grade(chapter, cells_of(notebook)).marks}
    assert (marks["ex-shift"].state, marks["ex-cost"].state) == ("to read", "to do")
    assert marks["ex-shift"].message == f"ex-shift: to read in cell {place + 2}."


@pytest.mark.parametrize("name", chapter_names())
def test_every_chapters_own_cells_are_each_where_they_are(name):
    chapter = read_chapter(name)
    assert [place for _, place in repaired(chapter, chapter.cells)] == list(range(len(chapter.cells)))
    emptied = [
        replace(cell, source=TO_WRITE) if cell.kind == "markdown" and cell.name else cell
        for cell in chapter.cells
    ]
    assert not any(to_read(chapter, emptied).values())


@pytest.mark.parametrize("name", chapter_names())
def test_what_students_receive_holds_no_rubric(name):
    """nbgrader hands out the metadata of the course's notebook."""
    metadata = [cell["metadata"] for cell in json.loads(with_hidden_tests(read_chapter(name), 1))["cells"]]
    assert any("nbgrader" in one for one in metadata)
    assert not any("assignment" in one for one in metadata)
    assert "point for" not in json.dumps(metadata)
