"""A course goes through nbgrader for real: assigned, graded, given back."""

import csv
import json
import re
import shutil

import pytest
from hand_ins import CHAPTER, CHECKED, MEASURED, QUESTIONS, filled, nbgrader, run, scores_in
from project_facts import ROOT

from vit_classroom.assignments.grading import Marks
from vit_classroom.assignments.notebooks import cells_of, read_chapter
from vit_classroom.assignments.variations import seeds_of, variations
from vit_lab.cli import main

PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
pytest.importorskip("nbgrader", reason="comes with the extra `instructor`")
pytestmark = pytest.mark.slow


def test_words_in_a_cell_of_their_own_wait_for_a_person(course):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        for name, waiting in (("elsewhere", 3), ("stripped", 3), ("empty", 0)):
            notebook = book.find_submission_notebook(CHAPTER, CHAPTER, name)
            assert sum(grade.needs_manual_grade for grade in notebook.grades) == waiting


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


def test_the_hidden_seeds_are_those_that_are_drawn(monkeypatch):
    import nbformat

    from vit_classroom.assignments import nbgrader_plugin
    from vit_classroom.assignments.course import with_hidden_tests

    seen = []

    def noted(chapter, cells, seeds, limits):
        seen.append(seeds("attention"))
        return Marks([])

    monkeypatch.setattr(nbgrader_plugin, "grade", noted)
    notebook = nbformat.reads(with_hidden_tests(read_chapter(CHAPTER), 2027), as_version=4)
    place = {"nbgrader": {"notebook": CHAPTER, "student": "ada"}}
    nbgrader_plugin.JudgeAnswers().preprocess(notebook, place)
    assert seen == [seeds_of(2027, "attention")]


def test_without_a_seed_each_course_has_a_secret_one(tmp_path):
    from vit_classroom.assignments.course import build_course

    assert len({build_course(["1"], tmp_path / str(number))[0] for number in range(3)}) == 3


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


def test_what_a_student_measured_is_there_for_who_marks_the_words(course):
    page = (course / "feedback" / "own-style" / CHAPTER / f"{CHAPTER}.html").read_text(encoding="utf-8")
    assert MEASURED["text"] in page


def test_what_to_look_at_is_not_handed_back(course):
    assert list((course / "autograded").glob("*/*/look_at.txt"))
    assert not list((course / "feedback").rglob("look_at.txt"))


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


def test_where_nothing_is_set_apart_it_says_so_once(monkeypatch, caplog):
    import nbformat

    from vit_classroom.assignments import nbgrader_plugin

    notebook = nbformat.read(ROOT / f"exercises/{CHAPTER}.ipynb", as_version=4)
    monkeypatch.setattr(nbgrader_plugin, "grade", lambda *_: Marks([]))
    for apart in (True, False):
        monkeypatch.setattr(nbgrader_plugin, "can_be_set_apart", lambda apart=apart: apart)
        nbgrader_plugin.warn_once.cache_clear()
        for student in ("ada", "bob"):
            place = {"nbgrader": {"notebook": CHAPTER, "student": student}}
            nbgrader_plugin.JudgeAnswers().preprocess(notebook, place)
        assert caplog.text.count("does not set the students' code apart") == (not apart)


SCRIPT = "<script>reach()</script><img src=x onerror=reach()><details><summary>Fold</summary></details>"
TYPED = [
    SCRIPT,
    f"```mermaid\n{SCRIPT}\n```",
    "[here](javascript:reach())",
    f"**Bold**, $a<b$ and $$a_i < b \\& c$$\n\n> quoted\n\n| one |\n|---|\n| 2 |\n\n![seen]({PIXEL})",
]


def test_no_page_of_nbgraders_runs_what_a_student_typed(course):
    import nbformat
    from bs4 import BeautifulSoup
    from nbconvert.exporters import HTMLExporter
    from nbgrader.server_extensions.formgrader.handlers import template_path
    from traitlets.config import PyFileConfigLoader

    from vit_classroom.assignments.nbgrader_plugin import RepairCells

    output = {"output_type": "display_data", "metadata": {"image/png": {"width": "1 onerror=reach()"}}}
    kinds = ["text/html", "text/markdown", "application/javascript", "image/svg+xml", "text/latex"]
    data = [{kind: f"said\n\n{SCRIPT}"} for kind in kinds] + [{"image/png": "x"}]
    outputs = [output | {"data": one} for one in data]
    code = {"cell_type": "code", "source": SCRIPT, "outputs": outputs, "execution_count": None}
    words = [{"cell_type": "markdown", "source": one} for one in TYPED]
    added = [one | {"metadata": {}, "id": str(number)} for number, one in enumerate([code, *words])]
    notebook = nbformat.read(course / "source" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    notebook.cells += nbformat.from_dict(added)
    place = {"notebook": CHAPTER, "assignment": CHAPTER, "db_url": f"sqlite:///{course / 'gradebook.db'}"}
    notebook, _ = RepairCells().preprocess(notebook, {"nbgrader": place})
    config = PyFileConfigLoader("nbgrader_config.py", str(course)).load_config()
    config.HTMLExporter.extra_template_basedirs = [template_path]
    config.HTMLExporter.template_name = "formgrade"
    page, _ = HTMLExporter(config=config).from_notebook_node(notebook, {"index": 0, "total": 1})
    assert "&lt;p&gt;" not in page
    soup = BeautifulSoup(page, features="html.parser")
    assert not [one for one in soup.find_all("script") if "reach" in one.text]
    assert not [one for one in soup.find_all(True) if "reach" in str(one.attrs)]
    assert soup.find(string=re.compile(r"\$a<b\$.*\$\$a_i < b \\& c\$\$"))
    for shown in ("strong", "blockquote", "td", "details", f'img[src="{PIXEL}"]'):
        assert soup.select(shown)


def test_a_chapter_is_never_overwritten(course, capsys):
    assert main(["assignment", "build", "3", "--out", str(course)]) == 2
    assert "is there already" in capsys.readouterr().err
    config = (course / "nbgrader_config.py").read_text()
    there = {path: path.read_bytes() for path in course.rglob("*.ipynb")}
    assert main(["assignment", "build", "3", "4", "--out", str(course)]) == 0
    said = capsys.readouterr().out
    assert "03_attention is there already, and stays as it is." in said
    assert "generate_assignment 04_encoder" in said
    assert "generate_assignment 03" not in said
    assert all(path.read_bytes() == content for path, content in there.items())
    assert (course / "nbgrader_config.py").read_text() == config
    assert (course / "source" / "04_encoder" / "04_encoder.ipynb").exists()


@pytest.mark.parametrize("name", ["05_vision_transformer", "12_scaling"])
def test_a_variation_is_judged_as_the_instructor_built_it(name, tmp_path):
    """The book's answer and another year's earn no more than their shape, whatever their cell says."""
    built = [
        "assignment",
        "build",
        name[:2].lstrip("0"),
        "--out",
        str(tmp_path),
        "--seed",
        "7",
        "--variant",
        "2027",
    ]
    assert main(built) == 0
    nbgrader(tmp_path, "generate_assignment", name)
    given = json.loads((tmp_path / "release" / name / f"{name}.ipynb").read_text(encoding="utf-8"))
    one = variations()[name]
    worksheet = json.loads((tmp_path / "worksheets" / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert [cell.source for cell in cells_of(filled(given))] == [cell.source for cell in cells_of(worksheet)]
    book = next(task.answer for task in read_chapter(name).tasks if task.name == one.task)
    other = {one.name: one.answer(book, one.asked(2028)), f"check-{one.name}": "sheet.check(variant=2028)"}
    handed_in = {
        "right": {one.name: one.answer(book, one.asked(2027))},
        "copied": {one.name: one.answer(book, ())},
        "other": other,
    }
    for student, written in handed_in.items():
        path = tmp_path / "submitted" / student / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(filled(given, **written)), encoding="utf-8")
    nbgrader(tmp_path, "autograde", name)
    nbgrader(tmp_path, "export")
    whole = sum(task.points for task in read_chapter(name).tasks) + 5
    scores = scores_in(tmp_path)
    assert scores["right"] == (5, whole)
    for student in ("copied", "other"):
        assert scores[student][0] <= 2
        assert scores[student][1] == whole


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
