"""Marks typed beside the answers, in the page of a question, are saved as they are read back; no others."""

import pytest

from vit_classroom.assignments.marks_table import comment_column, read_saved, was_column
from vit_classroom.assignments.notebooks import read_chapter
from vit_classroom.assignments.report import write_report

pytestmark = pytest.mark.site

QUESTION, WORDS = "ex-cost", 'say "hi",\nthen more'


def record(student):
    marks = [
        {"name": task.name, "title": task.title, "of": task.points, "points": 0, "state": "to read"}
        | {"message": "", "own": "T squared.", "printed": ""}
        for task in read_chapter("03_attention").tasks
    ]
    about = {"student": student, "notebook": f"{student}.ipynb", "chapter": "03_attention"}
    return {**about, "marks": marks, "suspicions": [], "limits": {}}


def test_marks_are_saved_and_read_back(page, tmp_path, axe_source):
    write_report(tmp_path, [record("ada"), record('o"bob')], {"ada.ipynb": {QUESTION: "2,5"}})
    page.goto((tmp_path / "03_attention" / f"{QUESTION}.html").as_uri())
    leaves = "dispatchEvent(new Event('beforeunload', { cancelable: true }))"
    assert page.evaluate(leaves), "nothing is typed yet"
    page.get_by_label("Points").nth(1).fill("2")
    assert not page.evaluate(leaves)
    with page.expect_download():
        page.get_by_role("button").click()
    assert page.evaluate(leaves)
    page.get_by_label("Points").nth(1).fill("35")
    page.get_by_role("button").click()
    assert not page.evaluate(leaves), "35 of 5 points are not saved"
    page.get_by_label("Points").nth(1).fill("3.5")
    page.get_by_label("Comment").nth(1).fill(WORDS)
    comment = comment_column(QUESTION)
    with page.expect_download() as saved:
        page.get_by_role("button").click()
    saved.value.save_as(tmp_path / saved.value.suggested_filename)
    assert read_saved(tmp_path / f"03_attention_{QUESTION}.csv").rows == [
        {"notebook": 'o"bob.ipynb', QUESTION: "3.5", was_column(QUESTION): '["","2"]'}
        | {comment: WORDS, was_column(comment): '[""]'}
    ]
    page.add_script_tag(content=axe_source)
    assert page.evaluate("axe.run().then((found) => found.violations.map((one) => one.id))") == []
