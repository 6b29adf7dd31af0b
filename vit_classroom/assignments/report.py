"""What the instructor reads of a class: a summary, and a page for each question that a person marks."""

import html
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vit_classroom.assignments.likeness import Alike
from vit_classroom.assignments.marks_table import KEY, comment_column, number_of
from vit_classroom.assignments.notebooks import Task, read_chapter
from vit_classroom.assignments.pages import page
from vit_classroom.assignments.tables import Row, harmless
from vit_from_scratch.files import write_atomically

SAVE = """<p><button>Save these marks</button></p>
<script>
document.querySelector("button").onclick = () => {
  const about = document.querySelector("[data-columns]");
  const rows = [...document.querySelectorAll("section")].map((one) =>
    [one.dataset.notebook, ...[...one.querySelectorAll("input, textarea")].map((field) => field.value)]);
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const lines = [JSON.parse(about.dataset.columns), ...rows].map((row) => row.map(quoted).join(","));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.join("\\n") + "\\n"], { type: "text/csv" }));
  link.download = about.dataset.file;
  link.click();
};
</script>"""


def write_report(
    place: Path, records: list[dict[str, Any]], rows: dict[str, Row], alike: Sequence[Alike] = ()
) -> None:
    """Write summary.html, and CHAPTER/QUESTION.html for each question that a person reads.

    Args:
        place: the folder.
        records: of the notebooks, one each.
        rows: of the table of marks, by notebook.
        alike: answers that are.
    """
    text = _summary(records, alike)
    write_atomically(place / "summary.html", text.encode())
    for name in sorted({record["chapter"] for record in records if "problem" not in record}):
        mine = [one for one in records if one["chapter"] == name and "problem" not in one]
        for task in read_chapter(name).tasks:
            if not task.check:
                text = _question_page(name, task, mine, rows)
                write_atomically(place / name / f"{task.name}.html", text.encode())


def _question_page(chapter: str, task: Task, records: list[dict[str, Any]], rows: dict[str, Row]) -> str:
    """Return a page with everybody's answer to a question, below what there are points for."""
    columns = [KEY, task.name, comment_column(task.name)]
    sections, empty = [], []
    for record in records:
        (mark,) = [mark for mark in record["marks"] if mark["name"] == task.name]
        who = html.escape(" ".join(filter(None, (record["student"], record.get("name")))))
        if mark["state"] == "to do":
            empty.append(who)
            continue
        row = rows.get(harmless(record[KEY]), {})
        points, words = (html.escape(row.get(column, "")) for column in columns[1:])
        points = "" if number_of(points) is None else points.replace(",", ".")
        sections.append(
            f'<section data-notebook="{html.escape(harmless(record[KEY]))}">\n<h2>{who}</h2>\n'
            f"<pre>{html.escape(mark['own'])}</pre>\n"
            f'<p><label>Points <input type="number" min="0" step="any" value="{points}"></label> of '
            f"{task.points:g}</p>\n<p><label>Comment<br><textarea>{words}</textarea></label></p>\n</section>"
        )
    nothing = f"<p>Nothing from {', '.join(empty)}.</p>" if empty else ""
    about = html.escape(json.dumps(columns))
    return page(
        f"{task.title} ({task.name})",
        f'<div data-columns="{about}" data-file="{chapter}_{task.name}.csv">\n'
        f"<details open><summary>The book's answer, and what there are up to {task.points:g} points for"
        f"</summary><pre>{html.escape(task.answer)}</pre></details>\n"
        + "\n".join([*sections, nothing])
        + f"\n</div>\n{SAVE}",
    )


def mistakes(records: list[dict[str, Any]]) -> Counter[str]:
    """Count how often each mistake was made, in the checks' words."""
    return Counter(
        mark["message"].splitlines()[0]
        for record in records
        for mark in record["marks"]
        if mark["state"] == "not right"
    )


def _summary(records: list[dict[str, Any]], alike: Sequence[Alike]) -> str:
    """Return a page: how each answer went, which mistakes were made, and what to look at."""
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
    if alike:
        items = "".join(f"<li>{html.escape(str(one))}</li>" for one in alike)
        parts.append(f"<h2>Answers that are alike</h2><ul>{items}</ul>")
    return page("Summary", "\n".join(parts))
