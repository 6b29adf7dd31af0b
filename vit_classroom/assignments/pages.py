"""The page of feedback that a student gets, and what every page of marks has in common."""

import html
from collections.abc import Iterator
from typing import Any

from vit_classroom.assignments.marks_table import TOTAL, comment_column, number_of
from vit_classroom.assignments.notebooks import read_chapter
from vit_classroom.assignments.tables import Row

STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem;
  color-scheme: light dark; }
pre { white-space: pre-wrap; background: color-mix(in srgb, currentColor 8%, transparent); padding: .6rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; }
input { width: 5rem; } textarea { width: 100%; }"""


def page(title: str, body: str) -> bytes:
    """Return a page; its body is HTML already."""
    text = (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{html.escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )
    return text.encode(errors="replace")


def points_of(mark: dict[str, Any], row: Row) -> float | None:
    """Return the points of an answer, with what a person typed; None where one has yet to read it."""
    judged = mark["name"] not in row and mark["state"] != "to read"
    return mark["points"] if judged else number_of(row.get(mark["name"], ""))


def feedback_page(record: dict[str, Any], row: Row) -> bytes:
    """Return what one student gets to read, as HTML; `row` is theirs in the table of marks."""
    if "problem" in record:
        body = f"<p>This notebook could not be graded: {html.escape(record['problem'])}</p>"
        return page(f"{record['student']}", body)
    chapter = read_chapter(record["chapter"])
    earned = [(mark["of"], points_of(mark, row)) for mark in record["marks"]]
    judged = sum(points for _, points in earned if points is not None)
    total = number_of(row.get(TOTAL, ""))  # which a person may have typed
    points = judged if total is None else total
    whole = sum(of for of, points in earned if points is not None)
    parts = [f"<p><strong>{points:g} of {whole:g} points.</strong>"]
    if unread := sum(of for of, points in earned if points is None):
        parts.append(f" Answers for up to {unread:g} more are read by a person.")
    link = f'<a href="{html.escape(chapter.address)}">chapter {html.escape(chapter.title)}</a>'
    parts.append(f" Read again in {link}.</p>")
    parts += _quoted(row.get(comment_column(TOTAL), ""))
    answers = {task.name: task.answer for task in chapter.tasks if not task.check}
    for mark in record["marks"]:
        parts += _about(mark, row, answers.get(mark["name"], ""))
    if record["remarks"]:
        lines = "".join(f"<li>{html.escape(remark)}</li>" for remark in record["remarks"])
        parts.append(f"<h2>Cells that stopped</h2><p>This alone costs no points.</p><ul>{lines}</ul>")
    return page(f"{record['student']}, {chapter.title}", "\n".join(parts))


def _quoted(words: str) -> Iterator[str]:
    if words:
        yield f"<pre>{html.escape(words)}</pre>"


def _about(mark: dict[str, Any], row: Row, books: str) -> Iterator[str]:
    """Yield what one answer earned, why, what the student wrote, and the book's once a person has read it."""
    sign = {"right": "✓", "not right": "✗", "to do": "○", "to read": "…"}[mark["state"]]
    yield f"<h2>{sign} {html.escape(mark['title'])}</h2>"
    points = points_of(mark, row)
    if points is None:
        yield f"<p>Up to {mark['of']:g} points; a person reads it.</p>"
    else:
        state = "read" if mark["state"] == "to read" else mark["state"]
        yield f"<p>{html.escape(mark['name'])}: {points:g} of {mark['of']:g} points, {state}.</p>"
    yield from _quoted(row.get(comment_column(mark["name"]), ""))
    yield from _quoted(mark["message"])
    if books and points is not None and mark["state"] == "to read":
        about = "The book's answer, and what there are points for"
        yield f"<details><summary>{about}</summary><pre>{html.escape(books)}</pre></details>"
    if mark["state"] == "not right" and not mark["name"].lower().endswith("varied"):
        yield "<p>The hints are folded below this task in your worksheet.</p>"
    if mark["own"] and mark["state"] != "to do":
        yield f"<details><summary>What you wrote</summary><pre>{html.escape(mark['own'])}</pre></details>"
