"""A course goes through nbgrader for real: assigned, graded, given back."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from attacks import ATTACKS
from project_facts import ROOT

from vit_classroom.assignments.grading import seeds_of
from vit_classroom.assignments.notebooks import cells_of, read_chapter
from vit_classroom.assignments.variations import variations
from vit_lab.cli import main

pytest.importorskip("nbgrader", reason="comes with the extra `instructor`")
pytestmark = pytest.mark.slow

CHAPTER = "03_attention"
CHECKED, QUESTIONS = 35, 15
TRIED = ("endless loop in the answer", "exit without cleaning up", "patched check", "the package's answer")


def student(attack):
    return "".join(word.capitalize() for word in re.findall(r"\w+", attack))


def run(folder, *command):
    """Run a command of this environment, whose own commands nbgrader calls by their names."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | {"PATH": path}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def nbgrader(course, *arguments):
    return run(course, sys.executable, "-m", "nbgrader", *arguments)


def filled(release, **written):
    notebook = json.loads(release.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in written:
            cell["source"] = written[name]
    return notebook


def scores_in(folder):
    with open(folder / "grades.csv", newline="", encoding="utf-8") as file:
        return {
            row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)
        }


@pytest.fixture(scope="module")
def course(tmp_path_factory, answers):
    """A course of chapter 3 with all kinds of submissions, graded and exported."""
    folder = tmp_path_factory.mktemp("course")
    assert main(["assignment", "build", "3", "--out", str(folder), "--seed", "2027"]) == 0
    config = folder / "nbgrader_config.py"
    config.write_text(config.read_text().replace("seconds = 30", "seconds = 10"))
    nbgrader(folder, "generate_assignment", CHAPTER)
    release = folder / "release" / CHAPTER / f"{CHAPTER}.ipynb"
    wrong = answers["attention"].replace("math.sqrt(q.shape[-1])", "q.shape[-1]")
    bias = answers["MultiHeadSelfAttention"].replace("3 * dim", "3 * dim, bias=False")
    handed_in = {
        "full": filled(release, **answers),
        "empty": filled(release),
        "wrong": filled(release, **answers | {"attention": wrong}),
        "bias": filled(release, **answers | {"MultiHeadSelfAttention": bias}),
        "half": filled(release, attention=answers["attention"]),
    }
    for attack in TRIED:
        handed_in[student(attack)] = filled(release, **answers | {"attention": ATTACKS[attack][0]})
    without = filled(release, **answers | {"attention": wrong})
    without["cells"] = [cell for cell in without["cells"] if "sheet.check" not in str(cell["source"])]
    handed_in["withoutTests"] = without
    full = filled(release, **answers)["cells"]
    double = next(place for place, cell in enumerate(full) if "sheet.check" in str(cell["source"]))
    damaged = {
        "doubled": [*full[: double + 1], full[double], *full[double + 1 :]],
        "deleted": [cell for cell in full if "masked_attention" not in str(cell["metadata"])],
        "stripped": [cell | {"metadata": {}} for cell in full],
        "elsewhere": [
            *filled(release)["cells"],
            {**full[0], "id": "words", "source": "The value may be small."},
        ],
    }
    for name, cells in damaged.items():
        handed_in[name] = filled(release) | {"cells": cells}
    for name, notebook in handed_in.items():
        path = folder / "submitted" / name / CHAPTER / f"{CHAPTER}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook), encoding="utf-8")
    (folder / "autograde.log").write_text(nbgrader(folder, "autograde", CHAPTER))
    nbgrader(folder, "generate_feedback", CHAPTER)
    nbgrader(folder, "export")
    return folder


@pytest.fixture(scope="module")
def scores(course):
    return scores_in(course)


def test_answers_get_what_they_deserve(scores):
    assert scores["full"] == (CHECKED, CHECKED + QUESTIONS)
    assert scores["empty"][0] == 0
    assert scores["wrong"][0] == CHECKED - 4
    assert scores["bias"][0] == CHECKED - 3
    assert scores["half"][0] == 5


@pytest.mark.parametrize(
    ("name", "points"), [("doubled", CHECKED), ("deleted", CHECKED - 5), ("stripped", CHECKED)]
)
def test_a_damaged_notebook_gets_what_it_deserves(name, points, scores):
    assert scores[name][0] == points


def test_words_in_a_cell_of_their_own_wait_for_a_person(course):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        for name, waiting in (("elsewhere", 3), ("stripped", 3), ("empty", 0)):
            notebook = book.find_submission_notebook(CHAPTER, CHAPTER, name)
            assert sum(grade.needs_manual_grade for grade in notebook.grades) == waiting


@pytest.mark.parametrize("attack", TRIED)
def test_an_attack_costs_its_points_and_is_reported(attack, scores, course):
    assert scores[student(attack)][0] == CHECKED - 5
    look = course / "autograded" / student(attack) / CHAPTER / "look_at.txt"
    assert ATTACKS[attack][1] in look.read_text(encoding="utf-8")


def test_tests_that_were_deleted_come_back_and_are_reported(scores, course):
    assert scores["withoutTests"][0] == CHECKED - 4
    look = course / "autograded" / "withoutTests" / CHAPTER / "look_at.txt"
    assert "check-attention" in look.read_text(encoding="utf-8")


def test_what_a_person_reads_makes_full_marks_full(course):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        notebook = book.find_submission_notebook(CHAPTER, CHAPTER, "full")
        waiting = [grade for grade in notebook.grades if grade.needs_manual_grade]
        assert sorted(grade.name for grade in waiting) == ["ex-cost", "ex-explanation", "ex-shift"]
        for grade in waiting:
            grade.manual_score = grade.max_score
        book.db.commit()
        assert book.find_submission_notebook(CHAPTER, CHAPTER, "full").score == CHECKED + QUESTIONS


def test_hidden_tests_are_in_the_source_and_nowhere_else(course):
    seeds = str(seeds_of(2027, "attention"))
    source = course / "source" / CHAPTER / f"{CHAPTER}.ipynb"
    assert seeds in source.read_text(encoding="utf-8")
    for folder in ("release", "feedback"):
        pages = [path for path in (course / folder).rglob("*") if path.is_file()]
        assert pages
        for path in pages:
            text = path.read_text(encoding="utf-8")
            assert "HIDDEN TESTS" not in text
            assert str(seeds_of(2027, "attention")[0]) not in text


def test_what_students_receive_is_what_the_repository_has_for_them(course):
    release = json.loads((course / "release" / CHAPTER / f"{CHAPTER}.ipynb").read_text(encoding="utf-8"))
    ours = json.loads((ROOT / f"exercises/{CHAPTER}.ipynb").read_text(encoding="utf-8"))

    def texts(notebook):
        return ["".join(cell["source"]).strip() for cell in notebook["cells"]]

    assert texts(release) == texts(ours)


def test_feedback_says_what_was_wrong(course):
    page = (course / "feedback" / "wrong" / CHAPTER / f"{CHAPTER}.html").read_text(encoding="utf-8")
    assert "the scores are divided by Dh" in page
    assert "Points: shape 1 of 1, values 0 of 3, gradients 0 of 1." in page
    page = (course / "feedback" / "full" / CHAPTER / f"{CHAPTER}.html").read_text(encoding="utf-8")
    assert "the scores are divided by Dh;" not in page


def test_a_notebook_that_cannot_be_judged_gets_nothing(course, tmp_path, monkeypatch):
    """Should the judge itself fail, no answer counts as right."""
    import nbformat

    from vit_classroom.assignments import nbgrader_plugin

    def fails(*_arguments):
        raise RuntimeError("broken")

    monkeypatch.setattr(nbgrader_plugin, "grade", fails)
    notebook = nbformat.read(course / "autograded" / "full" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    place = {"nbgrader": {"notebook": CHAPTER, "student": "full"}}
    notebook, _ = nbgrader_plugin.JudgeAnswers().preprocess(notebook, place)
    checks = [cell for cell in notebook.cells if nbgrader_plugin._is_check(cell)]
    assert len(checks) == 5
    assert all(cell.outputs[0].output_type == "error" for cell in checks)


def test_a_chapter_is_never_overwritten(course, capsys):
    assert main(["assignment", "build", "3", "--out", str(course)]) == 2
    assert "is there already" in capsys.readouterr().err
    config = (course / "nbgrader_config.py").read_text()
    assert main(["assignment", "build", "4", "--out", str(course)]) == 0
    assert (course / "nbgrader_config.py").read_text() == config
    assert (course / "source" / "04_encoder" / "04_encoder.ipynb").exists()


def test_a_variation_is_judged_as_the_instructor_built_it(tmp_path):
    """The book's answer earns nothing, and another year's no more than its shape, whatever its cell says."""
    name = "01_patches"
    built = ["assignment", "build", "1", "--out", str(tmp_path), "--seed", "7", "--variant", "2027"]
    assert main(built) == 0
    nbgrader(tmp_path, "generate_assignment", name)
    release, one = tmp_path / "release" / name / f"{name}.ipynb", variations()[name]
    worksheet = json.loads((tmp_path / "worksheets" / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert [cell.source for cell in cells_of(filled(release))] == [
        cell.source for cell in cells_of(worksheet)
    ]
    book = next(task.answer for task in read_chapter(name).tasks if task.name == one.task)
    other = {one.name: one.answer(book, one.asked(2028)), f"check-{one.name}": "sheet.check(variant=2028)"}
    handed_in = {
        "right": {one.name: one.answer(book, one.asked(2027))},
        "copied": {one.name: one.answer(book, ())},
        "other": other,
    }
    for student_, written in handed_in.items():
        path = tmp_path / "submitted" / student_ / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(filled(release, **written)), encoding="utf-8")
    nbgrader(tmp_path, "autograde", name)
    nbgrader(tmp_path, "export")
    assert scores_in(tmp_path) == {"right": (5, 35), "copied": (0, 35), "other": (1, 35)}


def walk_throughs():
    """The commands of the page for instructors, block by block."""
    text = (ROOT / "book" / "for_instructors.md").read_text(encoding="utf-8")
    return re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_walk_through_of_the_page_for_instructors_works(tmp_path):
    (tmp_path / "exercises").mkdir()
    shutil.copy(ROOT / f"exercises/{CHAPTER}.ipynb", tmp_path / "exercises")
    run(tmp_path, "bash", "-c", "set -euo pipefail\n" + "\n".join(walk_throughs()))
    (row,) = csv.DictReader((tmp_path / "marks.csv").read_text().splitlines())
    assert (row["student"], row["email"], row["points"]) == ("1001", "ada@uni.edu", "0")
    assert row["of"] == str(CHECKED)
    assert (tmp_path / "course" / "feedback" / "ada" / CHAPTER / f"{CHAPTER}.html").exists()
    assert (tmp_path / "course" / "rubrics" / f"{CHAPTER}.md").exists()
