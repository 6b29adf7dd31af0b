"""Marks as a learning platform takes them in."""

from pathlib import Path

from vit_classroom.assignments.marks_table import number_of, read_table
from vit_classroom.assignments.notebooks import read_chapter
from vit_classroom.assignments.tables import Row, Table, as_csv, harmless
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically

HEADS = {
    "moodle": ["Full name", "ID number", "Email address"],
    "canvas": ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"],
}
"""By which columns a platform knows people. Behind them comes one for each chapter."""


def write_export(platform: str, marks: Path) -> Path:
    """Write the table that a platform imports beside the table of marks, and return where it is.

    Args:
        platform: "moodle", "canvas", or "nbgrader" for what `nbgrader export` writes.
        marks: the table of marks, with what a person typed into it.

    Raises:
        InputError: the table cannot be read, or it has two totals for one student and chapter.
    """
    people: dict[str, Row] = {}
    checked: dict[str, float] = {}  # points of a chapter, which may hold a variation
    totals: dict[str, dict[str, str]] = {}
    for row in read_table(marks).rows:
        student, chapter = row.get("student", ""), row.get("chapter", "")
        if student and chapter:
            checked[chapter] = max(checked.get(chapter, 0), number_of(row.get("of", "")) or 0)
            people.setdefault(student, row)
            mine, total = totals.setdefault(student, {}), number_of(row.get("total", ""))
            if total is not None and mine.get(chapter):
                raise InputError(
                    f"{marks} has two totals for {student} in {chapter}: expected one. Remove the other "
                    "notebook and its row."
                )
            if total is not None or chapter not in mine:
                mine[chapter] = "" if total is None else f"{total:g}"
    chapters = {name: read_chapter(name) for name in sorted(set().union(*totals.values()))}
    points = {
        name: [sum(task.points for task in one.tasks if bool(task.check) == kind) for kind in (True, False)]
        for name, one in chapters.items()
    }
    possible = {name: f"{max(both[0], checked[name]) + both[1]:g}" for name, both in points.items()}
    rows: list[Row] = []
    for student, row in people.items():
        name, email = row.get("name", ""), row.get("email", "")
        if platform == "nbgrader":
            last, comma, first = name.partition(", ")
            if not comma:
                first, _, last = name.rpartition(" ")
            last, first = harmless(last), harmless(first)  # what stood inside of a name stands in front now
            about = {"student_id": student, "last_name": last, "first_name": first, "email": email}
            for chapter, total in totals[student].items():
                rows.append({"assignment": chapter, **about, "score": total, "max_score": possible[chapter]})
        else:
            known = [name, student, email if platform == "moodle" else ""]
            about = dict(zip(HEADS[platform], known, strict=False))
            rows.append(about | {one.title: totals[student].get(key, "") for key, one in chapters.items()})
    if platform == "canvas":
        rows.insert(
            0,
            {"Student": "    Points Possible"} | {one.title: possible[key] for key, one in chapters.items()},
        )
    columns = [*HEADS.get(platform, []), *(name for row in rows for name in row)]
    path = marks.with_name(f"{marks.stem}_{platform}.csv")
    write_atomically(path, as_csv(Table(list(dict.fromkeys(columns)), rows)))
    return path
