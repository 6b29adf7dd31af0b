"""A folder of notebooks becomes a table, a page for each student and a summary."""

import csv
import html
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import pytest
from attacks import ATTACKS

from vit_classroom import command
from vit_classroom.assignments import classes, grading
from vit_classroom.assignments.classes import Submission, grade_class, submissions
from vit_classroom.assignments.collecting import collect
from vit_classroom.assignments.limits import Limits
from vit_classroom.assignments.marks_table import read_table
from vit_classroom.assignments.notebooks import read_chapter
from vit_classroom.assignments.variations import seeds_of
from vit_lab.cli import main

WRONG = "def attention(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v"


@pytest.fixture
def hand_in(tmp_path):
    """A function that puts notebooks into a folder, each under its name, and returns the folder."""

    def put(notebooks):
        for name, notebook in notebooks.items():
            (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "in" / name).write_text(json.dumps(notebook), encoding="utf-8")
        return tmp_path / "in"

    return put


@pytest.fixture
def folder(hand_in, handed_in, answers):
    notebooks = {
        "ada.ipynb": handed_in(**answers),
        "bob/03_attention/03_attention.ipynb": handed_in(attention=WRONG),
        "eve.ipynb": handed_in(attention=ATTACKS["exit in the answer"][0]),
        ".ipynb_checkpoints/ada-checkpoint.ipynb": handed_in(),
    }
    place = hand_in(notebooks)
    (place / "zoe.ipynb").write_text("no notebook", encoding="utf-8")
    return place


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def test_a_class_is_graded(folder, answers, tmp_path, capsys):
    table = tmp_path / "marks.csv"
    assert main(["assignment", "grade", str(folder), "--csv", str(table), "--jobs", "2"]) == 0
    out = capsys.readouterr().out
    assert "3 of 4 notebooks were graded" in out
    assert "not graded: zoe" in out
    marks = rows(table)
    assert list(marks) == ["ada", "bob", "eve", "zoe"]
    assert (marks["ada"]["points"], marks["ada"]["of"], marks["ada"]["to_read"]) == ("40", "40", "15")
    assert (marks["bob"]["points"], marks["bob"]["attention"]) == ("1", "1")
    assert marks["ada"]["ex-cost"] == ""
    assert "os._exit" in marks["eve"]["look_at"]
    assert "is not a Jupyter notebook" in marks["zoe"]["problem"]
    pages = tmp_path / "marks_feedback"
    bob = (pages / "bob" / "03_attention" / "03_attention.html").read_text()
    assert "not divided by sqrt(Dh)" in bob
    assert "Points: shape 1 of 1, values 0 of 3, gradients 0 of 1." in bob
    assert "attention: 1 of 5 points, not right." in bob
    assert WRONG in html.unescape(bob)
    assert "exercises" not in bob
    assert re.search(
        r'<a href="https://github.com/[^"]+/notebooks/03_attention.ipynb">chapter 3. Attention</a>', bob
    )
    assert "<h2>… Exercise 3.5: What attention costs</h2>" in (pages / "ada.html").read_text()
    assert "40 of 40 points.</strong>\n Answers for up to 15 more" in (pages / "ada.html").read_text()
    report = tmp_path / "marks_report"
    question = html.unescape((report / "03_attention" / "ex-cost.html").read_text())
    assert answers["ex-cost"] in question.partition("<section")[0], "the rubric stands above the answers"
    assert "<h2>ada</h2>" in question
    assert "Nothing from bob, eve." in question
    summary = (report / "summary.html").read_text()
    assert "<td>40%</td><td>1</td><td>2</td><td>0</td><td>0</td>" in summary, "(5 + 1 + 0) / 15"
    assert "1 × attention: the scores are not divided by sqrt(Dh)" in summary
    assert "eve, cell" in summary


def test_where_nothing_is_set_apart_the_command_says_so_before_it_runs(folder, tmp_path, capsys, monkeypatch):
    grade = ["assignment", "grade", str(folder), "--csv", str(tmp_path / "marks.csv")]
    said = []
    monkeypatch.setattr(command, "grade_class", lambda *_: said.append(capsys.readouterr().err) or [])
    for apart in (False, True):
        monkeypatch.setattr(command, "can_be_set_apart", lambda apart=apart: apart)
        assert main(grade) == 0
    assert "Dockerfile" in said[0]
    assert "Dockerfile" not in said[1]


def test_a_class_is_collected_graded_and_given_to_a_platform(tmp_path, hand_in, handed_in, capsys):
    """Everybody has a row; what was typed stays when others hand in late, and the platform gets the total."""
    roster, submitted, table = tmp_path / "roster.csv", tmp_path / "submitted", tmp_path / "marks.csv"
    roster.write_text("id,name,email\n1,Ada Lovelace,ada@uni.edu\n2,Bob,bob@uni.edu\n3,Eve,eve@uni.edu\n")
    inbox = hand_in({"Ada Lovelace/Copy of 03_attention.ipynb": handed_in(**{"ex-cost": "T squared."})})
    (inbox / "bob.py").write_text("x = 1")
    collect = ["assignment", "collect", str(inbox), "--out", str(submitted), "--roster", str(roster)]
    grade = ["assignment", "grade", str(submitted), "--csv", str(table), "--format"]
    assert main(collect) == main([*grade, "moodle"]) == 0
    out = capsys.readouterr().out
    assert "no worksheet of 03_attention from 2, 3" in out
    assert "before a person has given points: 1" in out
    marks = rows(table)
    assert list(marks) == ["1", "2", "3"]
    about = [marks["1"][name] for name in ("email", "file", "total", "to_read")]
    assert about == ["ada@uni.edu", "Ada Lovelace/Copy of 03_attention.ipynb", "0", "5"]
    stamp = submitted / "1" / "03_attention" / "timestamp.txt"
    assert marks["1"]["handed_in"] == stamp.read_text().strip()
    assert marks["2"]["handed_in"] == ""
    assert (marks["2"]["problem"], marks["3"]["problem"]) == (
        "no worksheet: bob.py",
        "handed in nothing",
    )
    text = table.read_text(encoding="utf-8").splitlines()
    head = text[0].split(",")
    typed = dict(zip(head, next(csv.reader([text[1]])), strict=True)) | {"ex-cost": "4"}
    text[1] = ",".join(f'"{typed[name]}"' for name in head)
    table.write_text("\n".join(text), encoding="utf-8")
    saved, heads = tmp_path / "saved.csv", "notebook,ex-cost,ex-cost comment,total comment"
    saved.write_text(f'{heads}\n1/03_attention/03_attention.ipynb,,"Yes, <b>but</b>",A day late.\n')
    assert main([*grade, "moodle", "--marks", str(saved)]) == 0
    page = (tmp_path / "marks_feedback/1/03_attention/03_attention.html").read_text()
    assert "ex-cost: 4 of 5 points, read." in page
    assert "<pre>Yes, &lt;b&gt;but&lt;/b&gt;</pre>" in page
    assert "<pre>A day late.</pre>" in page
    assert "before a person has given points" not in capsys.readouterr().out
    read = html.unescape(page.partition("ex-cost: 4 of 5 points, read.")[2].partition("<h2>")[0])
    (task,) = [task for task in read_chapter("3").tasks if task.name == "ex-cost"]
    assert task.answer in read
    assert page.count("The book's answer") == 1, "of what nobody has read it is kept back"
    assert "<strong>4 of 55 points.</strong>" in page
    hand_in({"Eve.ipynb": handed_in()})
    assert (
        main(collect)
        == main([*grade, "canvas"])
        == main([*grade, "nbgrader"])
        == main([*grade, "moodle"])
        == 0
    )
    marks = rows(table)
    assert list(marks) == ["1", "2", "3"]
    assert [marks[student]["total"] for student in marks] == ["4", "", "0"]
    assert marks["1"]["ex-cost comment"] == "Yes, <b>but</b>"
    assert (marks["3"]["file"], marks["3"]["problem"]) == ("Eve.ipynb", "")

    def exported(platform):
        path = tmp_path / f"marks_{platform}.csv"
        return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))

    assert [(row["Email address"], row["3. Attention"]) for row in exported("moodle")] == [
        ("ada@uni.edu", "4"),
        ("bob@uni.edu", ""),
        ("eve@uni.edu", "0"),
    ]
    assert [(row["ID"], row["3. Attention"]) for row in exported("canvas")] == [
        ("", "55"),
        ("1", "4"),
        ("2", ""),
        ("3", "0"),
    ]
    ada = exported("nbgrader")[0]
    names = ("assignment", "student_id", "first_name", "last_name", "score", "max_score")
    assert [ada[name] for name in names] == ["03_attention", "1", "Ada", "Lovelace", "4", "55"]


def test_grading_goes_on_where_it_was_stopped(folder, tmp_path, monkeypatch):
    table, done = tmp_path / "marks.csv", []

    def one_by_one(waiting, given, jobs, variant):
        for submission, digest, record in waiting:
            if len(done) == 2:
                raise KeyboardInterrupt
            done.append(submission.student)
            yield (submission, digest, record), classes.grade_file(submission.path, *given)

    monkeypatch.setattr(classes, "_graded", one_by_one)
    with pytest.raises(KeyboardInterrupt):
        grade_class(folder, table, limits=Limits(seconds=5))
    assert not table.exists()
    first = list(done)
    done.clear()
    grade_class(folder, table, limits=Limits(seconds=5))
    assert first + done == ["ada", "bob", "eve", "zoe"]
    done.clear()
    (folder / "zoe.ipynb").write_text("still none", encoding="utf-8")
    grade_class(folder, table, limits=Limits(seconds=5))
    assert done == ["zoe"]


def test_what_reaches_a_limit_beside_others_is_tried_again_alone(
    tmp_path, hand_in, handed_in, answers, ends_once
):
    """The first call that there ever is ends its process."""
    notebooks = {"bob.ipynb": handed_in(), "ada.ipynb": handed_in(attention=ends_once(answers["attention"]))}
    records = grade_class(hand_in(notebooks), tmp_path / "marks.csv", jobs=2)
    assert {record["student"]: record["points"] for record in records} == {"ada": 5, "bob": 0}


def test_the_seed_of_the_command_reaches_every_check(tmp_path, hand_in, handed_in, answers, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        grading, "check_of", lambda task: lambda piece, seed, name: drawn.append((name, seed))
    )
    folder = hand_in({"ada.ipynb": handed_in(**answers)})
    call = ["assignment", "grade", str(folder), "--csv", str(tmp_path / "marks.csv"), "--jobs", "1"]
    names = [task.name for task in read_chapter("3").tasks if task.check]
    for seed in (4711, 12):  # with another seed all is graded anew
        assert main([*call, "--seed", str(seed)]) == 0
        assert drawn == [(name, one) for name in names for one in seeds_of(seed, name)]
        drawn.clear()


def test_every_option_of_the_command_reaches_grading(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(command, "grade_class", lambda *given: seen.append(given[2:]) or [])
    options = [
        "--chapter",
        "3",
        "--seed",
        "7",
        "--memory",
        "900",
        "--seconds",
        "4",
        "--jobs",
        "2",
        "--variant",
        "5",
    ]
    assert main(["assignment", "grade", str(tmp_path), "--csv", str(tmp_path / "m.csv"), *options]) == 0
    assert seen == [("3", 7, Limits(900, 4.0), 2, [], 5)]


def test_with_other_limits_all_is_graded_anew(tmp_path, hand_in, handed_in, monkeypatch):
    calls, one = [], {"chapter": "", "points": 0, "of": 0, "marks": [], "problem": "x"}
    monkeypatch.setattr(classes, "grade_file", lambda *given, **more: calls.append(given) or dict(one))
    folder = hand_in({"ada.ipynb": handed_in()})
    for seconds in (30, 60):
        grade_class(folder, tmp_path / "marks.csv", limits=Limits(seconds=seconds))
    assert len(calls) == 2


def test_after_a_change_of_the_code_that_judges_all_is_graded_anew(tmp_path, hand_in, handed_in, monkeypatch):
    folder, table = hand_in({"ada.ipynb": handed_in()}), tmp_path / "marks.csv"
    package = tmp_path / "package"
    package.mkdir()
    (package / "checks.py").write_text("right = 1")
    monkeypatch.setattr(classes, "PACKAGES", (package,))
    graded = []
    whole = classes.grade_file
    monkeypatch.setattr(
        classes, "grade_file", lambda path, *how, **more: graded.append(1) or whole(path, *how, **more)
    )
    for text in ("right = 1", "right = 1", "right = 2"):
        (package / "checks.py").write_text(text)
        grade_class(folder, table)
    assert len(graded) == 2
    assert all((place / "__init__.py").exists() for place in monkeypatch.undo() or classes.PACKAGES)


def test_what_a_student_writes_is_text_in_every_page(tmp_path, hand_in, handed_in):
    """A name, a message, what a cell has printed or why it stopped is neither HTML nor a formula."""
    own = "def attention(q, k, v):\n    raise ValueError('<script>alert(1)</script>')"
    stops = "raise ValueError('<script>alert(3)</script>')"
    notebook = handed_in(stops, attention=own, **{"ex-cost": "</pre><script>alert(2)</script>"})
    names = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in notebook["cells"]]
    printed = [{"output_type": "stream", "name": "stdout", "text": "<script>alert(4)</script>"}]
    measured = {"cell_type": "code", "metadata": {}, "source": "x = 1", "outputs": printed}
    notebook["cells"].insert(names.index("ex-cost"), measured)
    grade_class(hand_in({"=cmd()<script>alert(5).ipynb": notebook}), tmp_path / "marks.csv")
    assert "'=cmd()" in (tmp_path / "marks.csv").read_text()
    pages = [*(tmp_path / "marks_feedback").rglob("*.html"), *(tmp_path / "marks_report").rglob("*.html")]
    assert len(pages) == 5
    for page in pages:
        text = page.read_text()
        assert "<script>alert" not in text
        assert "&lt;script&gt;" in text or "Nothing from" in text


WIRE = """import sys
frame = sys._getframe()
while "outgoing" not in frame.f_locals:
    frame = frame.f_back
echo = frame.f_locals["message"]["echo"]
frame.f_globals["wire"].send(frame.f_locals["outgoing"], {}, [])"""
ODD = {
    "far too deep": ("1", "q" + ".mT" * 450),
    "far too deep above an answer": ("q" + ".mT" * 450, WRONG),
    "what Python cannot write again": ("print(f\"{'\u00a0'.join('ab')}\")", WRONG),
    "half a character": ("1", "def attention(q, k, v):\n    raise ValueError('\\ud800\ud800')"),
    "a list for the judge": (WIRE.format("[1]"), WRONG),
    "a number for the judge": (WIRE.format("{'echo': echo, 'error': 5}"), WRONG),
    "a dtype that torch does not have for the judge": (
        """import json\nwrite = json.dumps\nodd = {"packed": {"elsewhere": [], "dtype": "x"}}
json.dumps = lambda say, **how: write(say | odd if "packed" in say else say, **how)""",
        WRONG,
    ),
    "half a character for the judge": (
        """import json\njson.dumps = lambda say, **_: '{"echo": %d, "error": "\\\\ud800"}' % say["echo"]""",
        WRONG,
    ),
}
"""Cells that no grading may stop at: one above the answer, and the answer."""


@pytest.mark.parametrize("name", ODD)
def test_one_notebook_never_stops_the_class(name, tmp_path, hand_in, handed_in):
    add, own = ODD[name]
    folder = hand_in({"bob.ipynb": handed_in(add, attention=own)})
    for _ in range(2):
        (record,) = grade_class(folder, tmp_path / "marks.csv", limits=Limits(seconds=5))
        assert "problem" not in record
        assert record["points"] <= 1
        assert not any("could not be judged" in mark["message"] for mark in record["marks"])
    assert (tmp_path / "marks_feedback" / "bob.html").exists()


@pytest.mark.parametrize("damage", ["{", "[1]", "\0", '{"marks": null}', '{"notebook": "../../../x.ipynb"}'])
def test_a_damaged_record_is_made_anew(damage, tmp_path, hand_in, handed_in):
    folder, table = hand_in({"in/ada.ipynb": handed_in()}), tmp_path / "marks.csv"
    (first,) = grade_class(folder, table, limits=Limits(seconds=5))
    for path in [path for path in (tmp_path / "marks_records").rglob("*") if path.is_file()]:
        kept = json.loads(path.read_text())
        path.write_text(json.dumps(kept | json.loads(damage)) if damage.endswith("}") else damage)
    assert grade_class(folder, table, limits=Limits(seconds=5)) == [first]
    assert [path.name for path in tmp_path.rglob("x.*")] == []


def test_what_is_no_file_is_named_and_no_name_is_too_odd(tmp_path, hand_in, capsys):
    """In a folder that somebody has sorted; `collect` names what it does not read, too."""
    odd = ["ada.ipynb", "ada.json/x.ipynb", "ada.html/x.ipynb", "table.ipynb", "table.json/x.ipynb"]
    odd += ["ida.IPYNB", f"{'n' * 249}.ipynb", f"{'n' * 248}m.ipynb"]
    odd += [os.fsdecode(name) for name in (b"caf\xe8.ipynb", b"caf\xe9.ipynb")]
    folder = hand_in({name: {"cells": []} for name in odd})
    (folder / "a.ipynb").mkdir()
    (folder / "b.ipynb").symlink_to("nowhere")
    (folder / "c.ipynb").symlink_to("/dev/zero")
    (folder / "d").symlink_to(tmp_path)
    (folder / "g.ipynb").symlink_to(folder / "ada.ipynb")
    for name in ("e.ipynb", "f.zip"):
        os.mkfifo(folder / name)
    grade = ["assignment", "grade", str(folder), "--csv", str(tmp_path / "marks.csv"), "--chapter", "3"]
    for _ in range(2):
        assert main([*grade, "--seconds", "5"]) == 0
        said = [line for line in capsys.readouterr().out.splitlines() if "not graded" in line]
        assert [line.split(": ")[1] for line in said] == ["a", "b", "c", "d", "e", "g"]
        assert all("is not a file: expected an .ipynb" in line for line in said)
        assert len(read_table(tmp_path / "marks.csv").rows) == len(odd) + 6
        pages = [path for path in (tmp_path / "marks_feedback").rglob("*.html") if path.is_file()]
        assert len(pages) == len(odd) + 6
    rows = {row["file"] or row["note"] for row in collect(folder, tmp_path / "out")}
    for name in ("b.ipynb", "c.ipynb", "d", "e.ipynb", "f.zip", "g.ipynb", "caf\\udce9.ipynb"):
        assert any(name in row for row in rows), name


LEFT_ALONE = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from vit_classroom.assignments.classes import _one_thread
if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _one_thread)
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 600)
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells a process of its parent's end")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_worker_outlives_the_command(number, tmp_path):
    (tmp_path / "alone.py").write_text(LEFT_ALONE)
    with subprocess.Popen(
        [sys.executable, tmp_path / "alone.py"], stdout=subprocess.PIPE, text=True
    ) as main_one:
        worker = Path(f"/proc/{int(main_one.stdout.readline())}/status")
        main_one.send_signal(number)
    for _ in range(200):
        if not worker.exists() or "State:\tZ" in worker.read_text():
            return
        time.sleep(0.1)
    os.kill(int(worker.parent.name), signal.SIGKILL)
    raise AssertionError("it lives")


def dies_in_a_pool(*_given, **_named):
    if multiprocessing.parent_process():
        os.kill(os.getpid(), signal.SIGKILL)
    return {"chapter": "", "points": 0, "of": 0, "marks": [], "problem": "alone"}


def test_a_worker_that_is_ended_from_outside_stops_nobody(tmp_path, hand_in, handed_in, monkeypatch):
    """As a system does that has no memory left: what waited is graded alone."""
    monkeypatch.setattr(classes, "grade_file", dies_in_a_pool)
    folder = hand_in({f"{name}.ipynb": handed_in() for name in ("ada", "bob", "eve")})
    assert [one["problem"] for one in grade_class(folder, tmp_path / "marks.csv", jobs=2)] == ["alone"] * 3


def test_windows_grades_as_many_at_once_as_it_can(monkeypatch):
    def submit(pool, function, path, *given):
        done = Future()
        done.set_result({"path": path})
        return done

    monkeypatch.setattr(sys, "platform", "win32")  # where a pool refuses more than 61
    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit)
    waiting = [(Submission("", Path(f"{number}.ipynb")), "", Path()) for number in range(70)]
    found = list(classes._graded(waiting, ("", 0, Limits()), 99, None))
    assert sorted(result["path"] for _, result in found) == sorted(one.path for one, *_ in waiting)


def test_a_fault_of_grading_is_one_notebooks_alone_and_is_tried_again(
    tmp_path, hand_in, handed_in, monkeypatch
):
    whole, faulty = grading.grade, []

    def grade(chapter, cells, *given):
        if not faulty:
            faulty.append(cells)
            raise KeyError("check-attention")
        return whole(chapter, cells, *given)

    monkeypatch.setattr(grading, "grade", grade)
    folder = hand_in({f"{name}.ipynb": handed_in() for name in ("ada", "bob")})
    found = grade_class(folder, tmp_path / "marks.csv", jobs=1)
    said = "it could not be graded (KeyError: 'check-attention'): please report this."
    assert [one.get("problem", "") for one in found] == [said, ""]
    assert [one.get("problem", "") for one in grade_class(folder, tmp_path / "marks.csv", jobs=1)] == ["", ""]


def test_no_page_or_record_stands_for_two_notebooks(tmp_path, hand_in, handed_in):
    table = tmp_path / "marks.csv"
    right = "from vit_from_scratch.model.attention import explicit_attention as attention"
    answers = {"ada/x": "def attention(q, k, v):\n    return v", "ada_x": right}
    folder = hand_in({f"{name}.ipynb": handed_in(attention=own) for name, own in answers.items()})
    first = grade_class(folder, table, limits=Limits(seconds=5))
    pages = [tmp_path / "marks_feedback" / f"{name}.html" for name in ("ada/x", "ada_x")]
    assert [page.read_text().count("<title>ada,") for page in pages] == [1, 0]
    known = [path.stat().st_mtime_ns for path in sorted((tmp_path / "marks_records").glob("[!t]*"))]
    assert grade_class(folder, table, limits=Limits(seconds=5)) == first
    again = [path.stat().st_mtime_ns for path in sorted((tmp_path / "marks_records").glob("[!t]*"))]
    assert (len(known), again) == (2, known), "nothing is graded twice"


def test_the_chapter_is_named_or_read_from_the_notebook(tmp_path, hand_in, handed_in):
    notebook = handed_in()
    kept = [cell for cell in notebook["cells"][5:] if "sheet.check" not in str(cell["source"])]
    notebook["cells"] = [cell | {"metadata": {}} for cell in kept]
    folder = hand_in({"ada.ipynb": notebook})
    (record,) = grade_class(folder, tmp_path / "marks.csv")
    assert "does not say which chapter it is: name it, with --chapter" in record["problem"]
    (record,) = grade_class(folder, tmp_path / "marks.csv", chapter="3")
    assert record["chapter"] == "03_attention"


def test_what_a_student_measured_stands_below_their_words(tmp_path, hand_in, handed_in):
    notebook = handed_in(**{"ex-cost": "It grows like T squared."})
    names = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in notebook["cells"]]
    shown = [{"output_type": "stream", "text": ["40 ms\n"]}, {"data": {"image/png": "iVBO"}}]
    cell = {"cell_type": "code", "metadata": {}, "source": "print(time_of(8))", "outputs": shown}
    notebook["cells"].insert(names.index("ex-cost"), cell)
    grade_class(hand_in({"ada.ipynb": notebook}), tmp_path / "marks.csv")
    page = (tmp_path / "marks_report" / "03_attention" / "ex-cost.html").read_text()
    assert "It grows like T squared.</pre>\n<p>Printed:</p>\n<pre>40 ms\n(a figure)</pre>" in page


def test_the_worksheet_of_another_chapter_is_named_and_not_graded(tmp_path, hand_in, handed_in):
    folder = hand_in({"ada.ipynb": handed_in()})
    (record,) = grade_class(folder, tmp_path / "marks.csv", chapter="9")
    assert record["problem"] == "ada.ipynb is the worksheet of 03_attention: expected that of 09_small_data."
    assert (record["chapter"], record["points"], record.get("suspicions")) == ("09_small_data", 0, None)
    collect(folder, tmp_path / "submitted")
    (record,) = grade_class(tmp_path / "submitted", tmp_path / "other.csv", chapter="9")
    assert record["problem"] == "handed in 03_attention, and nothing for it"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "is not a folder"),
        (["."], "holds no notebook"),
        ([".", "--chapter", "99"], "unknown chapter '99'"),
        ([".", "--jobs", "0"], "--jobs 0: expected more than 0"),
        ([".", "--memory", "-1"], "--memory -1: expected more than 0"),
        (["in", "--csv", "in/ada.ipynb"], "in/ada.ipynb has no column called notebook"),
        (["in", "--csv", "notes.txt"], "notes.txt has no column called notebook"),
        (["in", "--csv", "/dev/null"], "/dev/null is not a file"),
        (["in", "--csv", "/dev/zero"], "/dev/zero is not a file"),
    ],
)
def test_wrong_input_is_one_sentence(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    texts = {name: (tmp_path / name) for name in ("in/ada.ipynb", "notes.txt")}
    for path in texts.values() if arguments[0] == "in" else ():
        path.write_text("my own\n")
    assert main(["assignment", "grade", "--csv", "marks.csv", *arguments]) == 2
    assert all(path.read_text() == "my own\n" for path in texts.values() if path.exists())
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "marks.csv").exists()


def test_students_go_by_file_or_folder(folder):
    assert [one.student for one in submissions(folder)] == ["ada", "bob", "eve", "zoe"]


def test_one_unreadable_notebook_among_collected_ones_adds_no_rows_for_others(tmp_path, hand_in, handed_in):
    """Nobody is asked for the chapter that it does not name."""
    inbox = hand_in({f"{who}/03_attention.ipynb": handed_in() for who in ("ada", "bob")})
    collect(inbox, tmp_path / "out")
    (tmp_path / "out/ada/03_attention/notes.ipynb").write_text("no notebook", encoding="utf-8")
    found = grade_class(tmp_path / "out", tmp_path / "marks.csv", limits=Limits(seconds=5))
    assert [(one["student"], "problem" in one) for one in found] == [
        ("ada", False),
        ("ada", True),
        ("bob", False),
    ]


def test_the_list_of_chapters(capsys):
    assert main(["assignment", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("03_attention") and "40 points" in line for line in lines)


def test_a_rubric_says_what_a_person_gives_points_for(capsys):
    assert main(["assignment", "rubric", "3"]) == 0
    text = capsys.readouterr().out
    questions = [task for task in read_chapter("03_attention").tasks if not task.check]
    assert text.count("**Points.**") == text.count("\n## ") == len(questions) > 1
    assert all(f"## {task.name}, {task.points:g} points" in text for task in questions)
    for name in ("99", "²", "٣٣"):
        assert main(["assignment", "rubric", name]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_whoever_grades_with_nbgrader_gets_the_same_list_of_what_is_alike_or_taken_over(
    tmp_path, hand_in, handed_in, answers, capsys
):
    """Over the folders that nbgrader collects into, and nothing in them runs."""
    words = answers["ex-explanation"].replace("attention", "the map")
    own = f"open({str(tmp_path / 'ran')!r}, 'w')"
    finished = "def attention(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)"
    written = {
        "ada": {"ex-explanation": words, "attention": finished},
        "bob": {"ex-explanation": f"{words} So I think.", "add": own},
        "eve": {},
        "zoe": {"attention_einsum": "attention_einsum = attention"},
    }
    folder = hand_in(
        {f"{who}/03_attention/03_attention.ipynb": handed_in(**one) for who, one in written.items()}
    )
    (folder / "ida.ipynb").write_text("no notebook", encoding="utf-8")
    assert main(["assignment", "alike", str(folder)]) == 0
    assert not (tmp_path / "ran").exists()
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 4
    assert listed[-1] == "03_attention, ex-explanation: ada, bob, the book"
    graded = grade_class(folder, tmp_path / "marks.csv", limits=Limits(seconds=5))
    looks = [
        f"03_attention, {record['student']}, {one}"
        for record in graded
        for one in record.get("suspicions", [])
    ]
    summary = (tmp_path / "marks_report" / "summary.html").read_text()
    assert looks == listed[:-1]
    assert listed[-1] in summary
    (tmp_path / "empty").mkdir()
    assert main(["assignment", "alike", str(tmp_path / "empty")]) == 2
