"""What the courses of the page for instructors ask of a student in a week."""

import json
import re

import pytest
from project_facts import ROOT
from vit_book.assigned import minutes, row, week
from vit_book.recipes import table

from vit_classroom.assignments.notebooks import chapter_names

PAGE = (ROOT / "book" / "for_instructors.md").read_text(encoding="utf-8")
COURSES = [
    [week(line) for line in body.splitlines()]
    for body in re.findall(r"^```\{syllabus\}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
]


@pytest.mark.parametrize("course", COURSES, ids=len)
def test_no_week_asks_for_more_than_the_page_says(course):
    (most,) = re.findall(r"No week asks for more than (\d+)", PAGE)
    assert {topic: round(minutes(names)) for topic, names in course if minutes(names) > int(most)} == {}


def test_the_table_of_how_to_says_what_each_course_costs():
    hours = [f"{sum(minutes(names) for _, names in course) / 60:.0f}" for course in COURSES]
    assert (
        f"| plan hours | {hours[0]}, {hours[1]} and {hours[2]} for a student in a course of 4, 8 and" in PAGE
    )


def test_numbers_end_at_the_right_and_lists_of_chapters_do_not():
    rows = [("3", "1,200", "2, softmax"), ("5", "7 s", "1, 2, 3"), ("9", "", "8")]
    assert table(("chapter", "photos", "assumes"), rows)[1] == "| --- | ---: | --- |"


def test_each_course_is_as_long_as_it_says_and_repeats_nothing():
    assert [len(course) for course in COURSES] == [4, 8, 14]
    for course in COURSES:
        assigned = [name for _, names in course for name in names]
        assert assigned == sorted(set(assigned))
    assert assigned == chapter_names()


def test_the_table_counts_what_a_worksheet_checks_and_what_a_person_reads():
    cells = json.loads((ROOT / "exercises/03_attention.ipynb").read_text(encoding="utf-8"))["cells"]
    marks = [cell["metadata"].get("nbgrader", {}) for cell in cells]
    checked = [mark["points"] for mark in marks if mark.get("grade_id", "").startswith("check-")]
    read = [mark["points"] for mark in marks if mark.get("grade") and mark["solution"]]
    said = row("03_attention", "")[4:6]
    assert said == [f"{len(some)} ({sum(some)})" for some in (checked, read)]
