"""Marks as a learning platform takes them in: one row a person, one column a chapter."""

from collections.abc import Callable
from pathlib import Path

from vit_classroom.assignments.marks_table import number_of, read_table
from vit_classroom.assignments.notebooks import read_chapter
from vit_classroom.assignments.tables import Row, Table, as_csv
from vit_from_scratch.files import write_atomically

Marks = dict[str, dict[str, str]]
"""By student and chapter, the points; "" where nothing was handed in."""


def write_export(platform: str, marks: Path) -> Path:
    """Write the table for a platform beside the table of marks, and return where it is.

    Args:
        platform: a name of `PLATFORMS`.
        marks: the table of marks, with what a person typed into it.
    """
    people: dict[str, Row] = {}
    points: Marks = {}
    for row in read_table(marks).rows:
        student, chapter = row.get("student", ""), row.get("chapter", "")
        if student and chapter:
            people.setdefault(student, row)
            mine, total = points.setdefault(student, {}), row.get("total", "")
            if number_of(total) is not None or chapter not in mine:
                mine[chapter] = total
    path = marks.with_name(f"{marks.stem}_{platform}.csv")
    write_atomically(path, as_csv(PLATFORMS[platform](people, points)))
    return path


def possible(chapter: str) -> str:
    """Return how many points there are for a chapter, with those that a person gives."""
    return f"{sum(task.points for task in read_chapter(chapter).tasks):g}"


def _titles(points: Marks) -> dict[str, str]:
    chapters = sorted({chapter for mine in points.values() for chapter in mine})
    return {chapter: read_chapter(chapter).title for chapter in chapters}


def _moodle(people: dict[str, Row], points: Marks) -> Table:
    """Return what Grades > Import > CSV file takes, whichever column people go by there."""
    titles = _titles(points)
    rows = [
        {"ID number": student, "Full name": row.get("name", ""), "Email address": row.get("email", "")}
        | {title: points[student].get(chapter, "") for chapter, title in titles.items()}
        for student, row in people.items()
    ]
    return Table(["ID number", "Full name", "Email address", *titles.values()], rows)


def _canvas(people: dict[str, Row], points: Marks) -> Table:
    """Return what the gradebook's Import takes; people go by the number of an exported gradebook."""
    titles = _titles(points)
    rows = [{"Student": "    Points Possible"} | {titles[chapter]: possible(chapter) for chapter in titles}]
    for student, row in people.items():
        marks = {title: points[student].get(chapter, "") for chapter, title in titles.items()}
        rows.append({"Student": row.get("name", ""), "ID": student, **marks})
    return Table(["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *titles.values()], rows)


def _nbgrader(people: dict[str, Row], points: Marks) -> Table:
    """Return what `nbgrader export` writes: a row for each person and assignment."""
    rows: list[Row] = []
    for student, row in people.items():
        first, _, last = row.get("name", "").rpartition(" ")
        about = {"student_id": student, "first_name": first, "last_name": last, "email": row.get("email", "")}
        for chapter, total in points[student].items():
            score = {"raw_score": total, "score": total, "max_score": possible(chapter)}
            rows.append({"assignment": chapter, **about, **score})
    columns = (
        "assignment student_id last_name first_name email raw_score late_submission_penalty score max_score"
    )
    return Table(columns.split(), rows)


PLATFORMS: dict[str, Callable[[dict[str, Row], Marks], Table]] = {
    "moodle": _moodle,
    "canvas": _canvas,
    "nbgrader": _nbgrader,
}
"""How each platform takes marks."""
