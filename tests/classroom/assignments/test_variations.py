"""An answer that is asked for again with changes: its own answer is right, and the book's is not."""

import contextlib
import csv
import dataclasses
import itertools
import json
import re

import pytest
from project_facts import ROOT
from stopping import Death, Killed

from vit_classroom import checks
from vit_classroom.assignments import variations as module
from vit_classroom.assignments.course import build_course
from vit_classroom.assignments.grading import grade
from vit_classroom.assignments.notebooks import (
    SET_UP,
    Cell,
    Chapter,
    brought_in,
    cells_of,
    chapter_names,
    for_students,
    needed,
    without_marks,
)
from vit_classroom.assignments.variations import POINTS, assigned, check_of, variations
from vit_classroom.assignments.worksheet import Worksheet
from vit_classroom.checks.judging import UNCHANGED
from vit_lab.cli import main

EVERY = [(name, seed) for name, one in variations().items() for seed in range(len(one.tasks))]
QUICK = ("01_patches", 2), ("03_attention", 0), ("04_encoder", 1)


def parts_of(name, seed):
    """A chapter with its variation, the variation, and its task."""
    chapter = assigned(name, seed)
    (task,) = [task for task in chapter.tasks if task.variant is not None]
    return chapter, variations()[name], task


def as_the_book_has_it(chapter, one):
    """The book's answer, under the name of the variation."""
    return one.answer(next(task.answer for task in chapter.tasks if task.name == one.task), ())


def test_a_course_that_was_stopped_anywhere_is_built_by_the_same_command(tmp_path, monkeypatch):
    death = Death(monkeypatch)
    for operations in itertools.count():
        out = tmp_path / str(operations)
        death.comes_after(operations)
        with contextlib.suppress(Killed):
            build_course(["3", "5"], out, 1, 2027)
            break
        death.comes_after(-1)
        if not (out / "source/05_vision_transformer/05_vision_transformer.ipynb").exists():
            build_course(["3", "5"], out, 1, 2027)
        assert len([path for path in out.rglob("*") if path.is_file() and path.name[0] != "."]) == 7
    assert operations > 20


def test_every_chapter_has_two_private_tasks_or_more_and_the_next_year_has_another():
    assert list(variations()) == chapter_names()
    for one in variations().values():
        assert one.asked(2027) != one.asked(2028)


@pytest.mark.parametrize(("name", "seed"), EVERY)
def test_a_stub_shows_nothing_of_what_is_asked(name, seed):
    """It is that of the book's own task."""
    chapter, one, task = parts_of(name, seed)
    cells = {
        cell.name: {"cell_type": "code", "metadata": {"nbgrader": cell.about}, "source": cell.source}
        for cell in chapter.cells
        if cell.name
    }
    book = for_students(cells[one.task])["source"]
    assert for_students(cells[task.name])["source"] == re.sub(rf"\b{one.task}\b", one.name, book)
    assert task.answer != book


def test_a_table_that_does_not_fit_is_one_sentence(tmp_path, monkeypatch, capsys):
    table = tmp_path / "variations.toml"
    table.write_text('[01_patches]\ntask = "patchify"\nchanges = [[["Another order.", "(p2 p1 c)", ""]]]')
    monkeypatch.setattr(module, "TABLE", table)
    variations.cache_clear()
    built = ["assignment", "build", "1", "--out", str(tmp_path / "course"), "--variant", "1"]
    assert main(built) == 2
    variations.cache_clear()
    err = capsys.readouterr().err
    assert "variations.toml: '(p2 p1 c)' stands 0 times in patchify: expected once." in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(("name", "seed"), EVERY)
def test_what_is_asked_is_right_and_what_others_are_asked_is_told_apart(name, seed, capsys):
    """The book's answer among them, which earns no part of the points either."""
    chapter, one, task = parts_of(name, seed)
    code = [without_marks(brought_in(cell.source)) for cell in chapter.cells if cell.kind == "code"]
    space, sheet = {}, Worksheet(name, {})
    book = next(other.answer for other in chapter.tasks if other.name == one.task)
    answers = {changes: one.answer(book, changes) for changes in [(), *one.tasks]}
    for part in needed(code, answers.values()):
        exec(part, space)

    def written(source):
        exec(compile(source, "a student's", "exec"), space)
        return space[task.name]

    check_of(task)(written(answers.pop(one.asked(seed))), seed=0, name=task.name)
    assert capsys.readouterr().out.startswith(f"✓ {task.name}: ")
    for changes, answer in answers.items():
        with pytest.raises(checks.CheckFailed) as failure:
            check_of(task)(written(answer), seed=0, name=task.name)
        said = str(failure.value)
        assert said.startswith(f"{task.name}: ")
        assert all(change.asked in said for change in {*one.asked(seed)} ^ {*changes}), said
        assert (UNCHANGED in said, failure.value.parts == {}) == (not changes, not changes)
    sheet.check(task.name, variant=seed)  # nothing is written there, and nothing stands in for it
    assert f"{task.name}: nothing has this name yet" in capsys.readouterr().err
    assert (sheet.states, sheet.namespace) == ({task.name: "not yet right"}, {})


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *QUICK,
        *(pytest.param(*one, marks=pytest.mark.slow) for one in EVERY if one[1] == 0 and one not in QUICK),
    ],
)
def test_it_earns_its_points_in_a_notebook_and_the_books_answer_none(name, seed):
    chapter, one, task = parts_of(name, seed)
    sources = [without_marks(brought_in(cell.source)) * (cell.kind == "code") for cell in chapter.cells]
    asked = [task.answer, as_the_book_has_it(chapter, one)]
    used = [
        part or task.name in source or SET_UP.match(source)
        for part, source in zip(needed(sources, asked), sources, strict=True)
    ]
    cells = [cell for cell, keep in zip(chapter.cells, used, strict=True) if keep]
    notebook = json.loads(chapter.text)
    kept = [entry for entry, keep in zip(notebook["cells"], used, strict=True) if keep]
    alone = Chapter(chapter.name, json.dumps({"cells": kept}))
    (mark,) = grade(alone, cells).marks
    assert (mark.points, mark.state, mark.message) == (POINTS, "right", "")
    copied = as_the_book_has_it(chapter, one)
    cells = [dataclasses.replace(cell, source=copied) if cell.name == task.name else cell for cell in cells]
    (mark,) = grade(alone, cells).marks
    assert (mark.points, mark.state) == (0, "not right")
    assert UNCHANGED in mark.message


def test_nothing_stands_in_for_a_variation_whose_answer_is_not_right():
    """The book has none, and what a student's cells below it can read might come back in a message."""
    chapter, _, task = parts_of("01_patches", 0)
    cells = [cell for cell in chapter.cells if not cell.about.get("grade") or cell.name == task.cell_name]
    cells = [dataclasses.replace(cell, source="") if cell.name == task.name else cell for cell in cells]
    marks = grade(chapter, [*cells, Cell("code", f"kept = {task.name}", {}, {})])
    assert any(f"name '{task.name}' is not defined" in remark for remark in marks.remarks)


@pytest.fixture
def course(tmp_path, capsys):
    built = [
        "assignment",
        "build",
        "1",
        "--out",
        str(tmp_path / "course"),
        "--seed",
        "7",
        "--variant",
        "2027",
    ]
    assert main(built) == 0
    capsys.readouterr()
    return tmp_path / "course"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def texts(notebook):
    return [cell.source for cell in cells_of(notebook)]


def test_a_worksheet_is_the_public_one_with_one_task_more_and_no_answer(course):
    private = texts(read(course / "worksheets" / "01_patches.ipynb"))
    public = texts(read(ROOT / "exercises" / "01_patches.ipynb"))
    public[0] = public[0].partition("\n\n[![Open in Colab]")[0]  # which opens the public one
    more = [text for text in private if text not in public]
    assert [text for text in private if text in public] == public
    assert len(more) == 3
    _, one, task = parts_of("01_patches", 2027)
    assert all(change.asked in more[0] for change in one.asked(2027))
    assert "NotImplementedError" in more[1]
    assert all(new not in str(private) for change in one.asked(2027) for _, new in change.edits)
    assert more[2] == f'sheet.check("{task.name}", variant=2027)'
    source = texts(read(course / "source" / "01_patches" / "01_patches.ipynb"))
    assert any(
        text.startswith(f"{more[2]}\n### BEGIN HIDDEN TESTS\n{more[2][:-1]}, seeds=(") for text in source
    )


def test_no_public_notebook_or_page_holds_one():
    for place in ("notebooks", "exercises", "book"):
        for path in (ROOT / place).glob("*.[im]*"):
            text = path.read_text(encoding="utf-8")
            assert not [one.name for one in variations().values() if one.name in text], path


def test_a_class_is_graded_with_the_variation_that_the_command_names(course, tmp_path, capsys):
    """What a notebook says of itself does not count: another year's may have an answer that is known."""
    chapter, one, task = parts_of("01_patches", 2027)
    worksheet = read(course / "worksheets" / "01_patches.ipynb")
    place = next(n for n, text in enumerate(texts(worksheet)) if text.startswith(f"def {task.name}"))
    other = assigned("01_patches", 2028)
    for student, answer, call in (
        ("ada", task.answer, None),
        ("bob", as_the_book_has_it(chapter, one), None),
        ("eve", next(one.answer for one in other.tasks if one.name == task.name), "variant=2028"),
    ):
        worksheet["cells"][place]["source"] = answer
        if call:
            worksheet["cells"][place + 1]["source"] = f'sheet.check("{task.name}", {call})'
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{student}.ipynb").write_text(json.dumps(worksheet), encoding="utf-8")
    grading = [
        "assignment",
        "grade",
        str(tmp_path / "in"),
        "--csv",
        str(tmp_path / "marks.csv"),
        "--jobs",
        "1",
    ]

    def rows():
        with open(tmp_path / "marks.csv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    assert main([*grading, "--variant", "2027", "--format", "nbgrader"]) == 0
    assert [(row["points"], row["of"], row[task.name]) for row in rows()] == [
        ("5", "25", "5"),
        ("0", "25", "0"),
        ("1", "25", "1"),
    ]
    assert f"check-{task.name} was changed" in rows()[2]["look_at"]
    assert "grade it with --variant 2028" in rows()[2]["look_at"]
    exported = (tmp_path / "marks_nbgrader.csv").read_text(encoding="utf-8").splitlines()
    assert exported[1].endswith(",35"), "20 and 5 that are checked, 10 that are read"
    for student in ("bob", "eve"):
        (tmp_path / "in" / f"{student}.ipynb").unlink()
    assert main(grading) == 0
    assert rows()[0]["of"] == "20"
    assert "grade it with --variant 2027" in rows()[0]["look_at"]
