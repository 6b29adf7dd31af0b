"""What the instructor reads of a class: a summary, and a page for each question that a person marks."""

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vit_classroom.assignments.likeness import Alike
from vit_classroom.assignments.marks_table import KEY, comment_column, number_of, was_column
from vit_classroom.assignments.notebooks import Task, read_chapter
from vit_classroom.assignments.pages import page, points_of
from vit_classroom.assignments.tables import Row, harmless
from vit_from_scratch.files import write_atomically

STATES = ("right", "not right", "to do", "to read")
# A number, or a shape, in what a check says.
NUMBER = re.compile(r"\([\d, ]+\)|(?<![\w.])-?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?%?")
# Of each field there are all values that it has shown or saved; what nobody touched is not saved.
SAVE = """<p><button>Save these marks</button></p>
<script>
const about = document.querySelector("[data-columns]");
const rows = [...document.querySelectorAll("section")].map((one) =>
  ({ notebook: one.dataset.notebook, fields: [...one.querySelectorAll("input, textarea")] }));
const fields = rows.flatMap((row) => row.fields);
const was = new Map(fields.map((field) => [field, [field.defaultValue]]));
const isTouched = (field) => field.value !== was.get(field)[0] || was.get(field).length > 1;
const isUnsaved = (field) => field.value !== was.get(field).at(-1);
document.querySelector("button").onclick = () => {
  if (!fields.filter(isUnsaved).every((field) => field.reportValidity())) return;
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const values = (field) => isTouched(field) ? [field.value, JSON.stringify(was.get(field))] : ["", ""];
  const touched = rows.filter((row) => row.fields.some(isTouched));
  const lines = touched.map((row) => [row.notebook, ...row.fields.flatMap(values)].map(quoted).join(","));
  const text = [JSON.parse(about.dataset.columns).map(quoted).join(","), ...lines].join("\\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text + "\\n"], { type: "text/csv" }));
  link.download = about.dataset.file;
  link.click();
  for (const field of fields.filter(isUnsaved)) was.get(field).push(field.value);
};
addEventListener("beforeunload", (event) => fields.some(isUnsaved) && event.preventDefault());
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
    write_atomically(place / "summary.html", _summary(records, rows, alike))
    for name in sorted({record["chapter"] for record in records if "problem" not in record}):
        mine = [one for one in records if one["chapter"] == name and "problem" not in one]
        for task in read_chapter(name).tasks:
            if not task.check:
                text = _question_page(name, task, mine, rows)
                write_atomically(place / name / f"{task.name}.html", text)


def _question_page(chapter: str, task: Task, records: list[dict[str, Any]], rows: dict[str, Row]) -> bytes:
    """Return a page with everybody's answer to a question, below what there are points for."""
    columns = [task.name, comment_column(task.name)]
    sections, empty = [], []
    for record in records:
        (mark,) = [mark for mark in record["marks"] if mark["name"] == task.name]
        who = html.escape(" ".join(filter(None, (record["student"], record.get("name")))))
        if mark["state"] == "to do":
            empty.append(who)
            continue
        row = rows.get(harmless(record[KEY]), {})
        points, words = (html.escape(row.get(column, "")) for column in columns)
        points = "" if number_of(points) is None else points.replace(",", ".")
        printed = f"<p>Printed:</p>\n<pre>{html.escape(mark['printed'])}</pre>\n" if mark["printed"] else ""
        sections.append(
            f'<section data-notebook="{html.escape(harmless(record[KEY]))}">\n<h2>{who}</h2>\n'
            f"<pre>{html.escape(mark['own'])}</pre>\n{printed}"
            f'<p><label>Points <input type="number" min="0" max="{task.points:g}" step="any" '
            f'value="{points}"></label> of {task.points:g}</p>\n'
            f"<p><label>Comment<br><textarea>{words}</textarea></label></p>\n</section>"
        )
    nothing = f"<p>Nothing from {', '.join(empty)}.</p>" if empty else ""
    heads = [KEY, *(name for column in columns for name in (column, was_column(column)))]
    about = html.escape(json.dumps(heads))
    return page(
        f"{task.title} ({task.name})",
        f'<div data-columns="{about}" data-file="{chapter}_{task.name}.csv">\n'
        f"<details open><summary>The book's answer, and what there are up to {task.points:g} points for"
        f"</summary><pre>{html.escape(task.answer)}</pre></details>\n"
        + "\n".join([*sections, nothing])
        + f"\n</div>\n{SAVE}",
    )


def mistakes(marks: list[dict[str, Any]]) -> Counter[str]:
    """Count how often each kind of mistake was made, in a check's words; one kind may differ in numbers."""
    found: dict[str, list[str]] = {}
    for mark in marks:
        if mark["state"] == "not right":
            said = re.split(r"\n  (?:Tried with|Read again|At \(|It has )", mark["message"])[0]
            said = " ".join(said.split()) if said.partition("\n")[0].endswith(":") else said.splitlines()[0]
            found.setdefault(NUMBER.sub("…", said), []).append(said)
    return Counter({kind if len({*all_}) > 1 else all_[0]: len(all_) for kind, all_ in found.items()})


def _summary(records: list[dict[str, Any]], rows: dict[str, Row], alike: Sequence[Alike]) -> bytes:
    """Return a page: how each answer went, which mistakes were made, and what to look at."""
    graded = [record for record in records if "problem" not in record]
    parts = [f"<p>{len(graded)} of {len(records)} notebooks were graded.</p>"]
    problems = [f"{one['student']}: {one['problem']}" for one in records if "problem" in one]
    parts += _listed("Not graded", problems, 3)
    if loose := sorted({name for one in graded for name, holds in one["limits"].items() if not holds}):
        parts.append(f"<p>On this system nothing limits the students' code in: {', '.join(loose)}.</p>")
    for name in sorted({record["chapter"] for record in graded}):
        mine = [record for record in graded if record["chapter"] == name]
        marks = [record["marks"] for record in mine]
        points = [[points_of(mark, rows.get(harmless(r[KEY]), {})) for mark in r["marks"]] for r in mine]
        parts.append(f"<h2>{html.escape(read_chapter(name).title)}</h2>")
        parts += _answers(marks, points)
        parts += _totals([sum(filter(None, row)) for row in points], sum(mark["of"] for mark in marks[0]))
        common = mistakes([mark for row in marks for mark in row]).most_common(20)
        parts += _listed("Mistakes", [f"{count} × {text}" for text, count in common], 3)
    looks = [f"{record['student']}, {one}" for record in graded for one in record["suspicions"]]
    parts += _listed("Please look at these", looks)
    parts += _listed("Answers that are alike", [str(one) for one in alike])
    return page("Summary", "\n".join(parts))


def _answers(marks: list[list[dict[str, Any]]], points: list[list[float | None]]) -> Iterator[str]:
    """Yield a table of a chapter's answers, the hardest first; those that nobody has read come last."""
    found: list[tuple[float, str]] = []
    for one, earned in zip(zip(*marks, strict=True), zip(*points, strict=True), strict=True):
        read = [value for value in earned if value is not None]
        share = sum(read) / len(read) / one[0]["of"] if read else 2.0
        states = Counter(mark["state"] for mark in one)
        values = [f"{share:.0%}" if read else "", *(str(states[state]) for state in STATES)]
        about = f"{html.escape(one[0]['title'])} ({html.escape(one[0]['name'])})"
        cells = "".join(f"<td>{value}</td>" for value in values)
        found.append((share, f'<tr><th scope="row">{about}</th>{cells}</tr>'))
    heads = "".join(f"<th>{head}</th>" for head in ("answer, the hardest first", "points", *STATES))
    lines = "\n".join(line for _, line in sorted(found, key=lambda pair: pair[0]))
    yield f"<table><tr>{heads}</tr>\n{lines}</table>"


def _totals(totals: list[float], possible: float) -> Iterator[str]:
    """Yield how many notebooks have how many points, in tenths of all that there are."""
    bins = Counter(min(int(10 * total / possible), 9) for total in totals)
    lines = []
    for tenth in range(10):
        low, high = tenth * possible / 10, (tenth + 1) * possible / 10
        bar = "█" * round(30 * bins[tenth] / len(totals))
        lines.append(f'<tr><th scope="row">{low:g} to {high:g}</th><td>{bins[tenth]}</td><td>{bar}</td></tr>')
    yield "<h3>Totals, as far as answers are read</h3>"
    yield "<table><tr><th>points</th><th>notebooks</th><td></td></tr>\n" + "\n".join(lines) + "</table>"


def _listed(title: str, lines: list[str], level: int = 2) -> Iterator[str]:
    """Yield a list with a heading; nothing of an empty one."""
    if lines:
        items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
        yield f"<h{level}>{title}</h{level}><ul>{items}</ul>"
