"""The summary of a class shows which answers were hard, how points spread, and which mistakes are common."""

import html
import re

from vit_classroom.assignments.notebooks import read_chapter
from vit_classroom.assignments.pages import feedback_page
from vit_classroom.assignments.report import mistakes, write_report

TASKS = read_chapter("03_attention").tasks
VALUES = "attention: the values are not right: {} of them agree, and at {} it has {} where 1e-05 is expected."


def record(student, **right):
    """Every answer right but those named, which are as given."""
    marks = []
    for task in TASKS:
        state = right.get(task.name, "right" if task.check else "to read")
        points = task.points if state == "right" else 0
        mark = {
            "name": task.name,
            "title": task.title,
            "of": task.points,
            "points": points,
            "own": "",
            "printed": "",
        }
        marks.append({**mark, "state": state, "message": "attention: wrong" if state == "not right" else ""})
    about = {"student": student, "notebook": f"{student}.ipynb", "chapter": "03_attention"}
    return {**about, "marks": marks, "suspicions": [], "limits": {"network": True}}


def test_the_hardest_comes_first_and_totals_count_what_was_typed(tmp_path):
    cls = [record("ada", attention="not right"), record("bob", attention="to do", masked_attention="to do")]
    cls.append(record("eve", attention="not right"))
    write_report(tmp_path, cls, {"ada.ipynb": {"ex-cost": "5", "streamed_attention": "4"}})
    text = html.unescape((tmp_path / "summary.html").read_text())
    rows = [
        re.split(r"</t[hd]>(?:<t[hd][^>]*>)?", row) for row in re.findall(r'<th scope="row">(.*?)</tr>', text)
    ]
    answers = [row[:6] for row in rows[: len(TASKS)]]
    assert [row[0].split(" (")[-1].rstrip(")") for row in answers[:3]] == [
        "attention",
        "masked_attention",
        "streamed_attention",
    ]
    assert answers[0] == ["Queries, keys and values (attention)", "0%", "0", "2", "1", "0"]
    assert answers[2][1] == "80%"
    assert answers[-1][:2] == ["Exercise 3.6: Is attention an explanation? (ex-explanation)", ""]
    assert dict(row[:2] for row in rows[len(TASKS) :]) == {
        f"{5.5 * low:g} to {5.5 * low + 5.5:g}": {5: "1", 6: "2"}.get(low, "0") for low in range(10)
    }


def test_a_student_reads_the_total_that_was_typed_and_no_mark_that_was_taken_away():
    text = feedback_page({**record("ada"), "remarks": []}, {"total": "12,5", "attention": ""}).decode()
    assert "<strong>12.5 of 35 points.</strong>" in text
    assert text.count("Up to 5 points; a person reads it.") == 4


def test_who_was_not_right_reads_where_the_hints_are():
    read = [
        feedback_page({**record("ada", **states), "remarks": []}, {})
        for states in ({}, {"attention": "not right"})
    ]
    assert [page.count(b"The hints are folded below this task") for page in read] == [0, 1]


def test_mistakes_that_differ_in_numbers_are_of_one_kind():
    said = [VALUES.format("3%", "(0, 1)", -0.5), VALUES.format("12%", "(1, 0)", "2.5e-07")]
    said.append("Conv2d: it returned shape (2, 3).")
    said.append("Mlp: it gives what each of these mistakes would give:\n  · one\n  · two")
    said += [f"{said[-1]}\n  At (0, {place}) it has {place} where 7 is expected." for place in (1, 2)]
    marks = [{"state": "not right", "message": f"{one}\n  Read again: there."} for one in said]
    marks.append({"state": "to do", "message": "attention: still to be written."})
    assert mistakes(marks) == {
        "attention: the values are not right: … of them agree, and at … it has … where … is expected.": 2,
        "Conv2d: it returned shape (2, 3).": 1,
        "Mlp: it gives what each of these mistakes would give: · one · two": 3,
    }
