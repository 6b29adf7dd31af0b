"""What is read of the marks: a page of feedback for each student, and a summary for the instructor."""

import html
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vit_classroom.assignments.notebooks import read_chapter
from vit_from_scratch.files import write_atomically

STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem;
  color-scheme: light dark; }
pre { white-space: pre-wrap; background: color-mix(in srgb, currentColor 8%, transparent); padding: .6rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; }"""


def _page(title: str, body: str) -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{html.escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def feedback_page(record: dict[str, Any]) -> str:
    """Return what one student gets to read, as HTML."""
    if "problem" in record:
        body = f"<p>This notebook could not be graded: {html.escape(record['problem'])}</p>"
        return _page(f"{record['student']}", body)
    chapter = read_chapter(record["chapter"])
    parts = [
        f"<p><strong>{record['points']:g} of {record['of']:g} points</strong> for answers that a check reads."
    ]
    if record["to_read"]:
        parts.append(f" Answers for up to {record['to_read']:g} more are read by a person.")
    link = f'<a href="{html.escape(chapter.address)}">chapter {html.escape(chapter.title)}</a>'
    parts.append(f" Read again in {link}.</p>")
    for mark in record["marks"]:
        parts += _about(mark)
    if record["remarks"]:
        lines = "".join(f"<li>{html.escape(remark)}</li>" for remark in record["remarks"])
        parts.append(f"<h2>Cells that stopped</h2><ul>{lines}</ul>")
    return _page(f"{record['student']}, {chapter.title}", "\n".join(parts))


def _about(mark: dict[str, Any]) -> Iterator[str]:
    """Yield what one answer earned, why, and what the student wrote."""
    sign = {"right": "✓", "not right": "✗", "to do": "○", "to read": "…"}[mark["state"]]
    yield f"<h2>{sign} {html.escape(mark['title'])}</h2>"
    if mark["state"] == "to read":
        yield f"<p>Up to {mark['of']:g} points; a person reads it.</p>"
    else:
        points = f"{mark['points']:g} of {mark['of']:g} points, {mark['state']}"
        yield f"<p>{html.escape(mark['name'])}: {points}.</p>"
    if mark["message"]:
        yield f"<pre>{html.escape(mark['message'])}</pre>"
    if mark["own"] and mark["state"] != "to do":
        yield f"<details><summary>What you wrote</summary><pre>{html.escape(mark['own'])}</pre></details>"


def mistakes(records: list[dict[str, Any]]) -> Counter[str]:
    """Count how often each mistake was made, in the checks' words."""
    return Counter(
        mark["message"].splitlines()[0]
        for record in records
        for mark in record["marks"]
        if mark["state"] == "not right"
    )


def write_summary(place: Path, records: list[dict[str, Any]]) -> None:
    """Write summary.html: how each answer went, which mistakes were made, and what to look at."""
    graded = [record for record in records if "problem" not in record]
    parts = [f"<p>{len(graded)} of {len(records)} notebooks were graded.</p>"]
    for record in records:
        if "problem" in record:
            parts.append(
                f"<p>Not graded: {html.escape(record['student'])}: {html.escape(record['problem'])}</p>"
            )
    if any(not record["limits"].get("network") for record in graded):
        parts.append("<p>This system did not let the students' code be cut off from the network.</p>")
    states: dict[str, Counter[str]] = {}
    for record in graded:
        for mark in record["marks"]:
            states.setdefault(f"{record['chapter']}: {mark['name']}", Counter())[mark["state"]] += 1
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td>"
        + "".join(f"<td>{counts[state]}</td>" for state in ("right", "not right", "to do", "to read"))
        + "</tr>"
        for name, counts in states.items()
    )
    heads = "".join(f"<th>{head}</th>" for head in ("answer", "right", "not right", "to do", "to read"))
    parts.append(f"<h2>Answers</h2><table><tr>{heads}</tr>{rows}</table>")
    common = mistakes(graded).most_common(20)
    if common:
        items = "".join(f"<li>{count} × {html.escape(text)}</li>" for text, count in common)
        parts.append(f"<h2>Mistakes</h2><ol>{items}</ol>")
    looks = [(record["student"], one) for record in graded for one in record["suspicions"]]
    if looks:
        items = "".join(f"<li>{html.escape(student)}, {html.escape(one)}</li>" for student, one in looks)
        parts.append(f"<h2>Please look at these</h2><ul>{items}</ul>")
    write_atomically(place / "summary.html", _page("Summary", "\n".join(parts)).encode())
