"""Marks for a whole class: a folder of notebooks, several at once, with feedback pages and a summary."""

import functools
import hashlib
import html
import io
import json
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from vit_classroom.assignments.collecting import read_list
from vit_classroom.assignments.limits import Limits
from vit_classroom.assignments.marks_table import read_table, update_table
from vit_classroom.assignments.notebooks import chapter_of, read_chapter, read_submission
from vit_classroom.assignments.tables import Row
from vit_from_scratch import __version__
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically, write_json
from vit_from_scratch.progress import progress_shown


class Submission(NamedTuple):
    """A notebook that was handed in; the student goes by the name of the file, or of its folder."""

    student: str
    path: Path


def submissions(folder: Path) -> list[Submission]:
    """Find the notebooks in a folder: STUDENT.ipynb, or STUDENT/.../NAME.ipynb.

    Raises:
        InputError: there is no such folder, or no notebook in it.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: expected one with the notebooks that were handed in.")
    found = []
    for path in sorted(folder.rglob("*.ipynb")):
        parts = path.relative_to(folder).parts
        if not any(part.startswith(".") for part in parts):
            found.append(Submission(parts[0] if len(parts) > 1 else path.stem, path))
    if not found:
        raise InputError(f"{folder} holds no notebook: expected STUDENT.ipynb, or a folder for each student.")
    return found


def grade_class(
    folder: Path, table: Path, chapter: str = "", seed: int = 0, limits: Limits | None = None, jobs: int = 1
) -> list[dict[str, Any]]:
    """Grade a folder of notebooks.

    Beside the table come two folders: one with a page for each notebook, in folders as they were handed in,
    and a summary; and one of records, so that a second call goes on where the first was stopped.
    What a person has typed into the table stays (see `marks_table`).

    Args:
        folder: see `submissions`.
        table: the CSV file to write.
        chapter: what was assigned; "" to ask each notebook.
        seed: decides what is drawn for the checks.
        limits: for the students' code.
        jobs: notebooks at the same time.

    Returns:
        What was found, a record for each notebook, and in a folder that `collect` wrote one for everybody of
        whom there is none.

    Raises:
        InputError: there is nothing to grade, an unknown chapter, a notebook called summary, or a table that
            cannot be read.
    """
    if (folder / "summary.ipynb").exists():
        raise InputError(
            f"{folder / 'summary.ipynb'}: expected the student's name, since a page of its own has this one. "
            "Rename it."
        )
    limits = limits or Limits()
    wanted = read_chapter(chapter).name if chapter else ""
    found, listed = submissions(folder), read_list(folder)
    if listed and wanted:
        found = [one for one in found if wanted in one.path.parts]
    place, kept = feedback_folder(table), records_folder(table)
    read_table(table)  # what is wrong with it is said before hours of grading
    decides = f"{__version__} {wanted} {seed} {limits}".encode()  # the marks, with a notebook
    records: dict[Path, dict[str, Any]] = {}
    waiting: list[tuple[Submission, str, Path]] = []
    for submission in found:
        digest = hashlib.sha256(decides + submission.path.read_bytes()).hexdigest()
        record = (kept / submission.path.relative_to(folder)).with_suffix(".json")
        known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
        if known.get("digest") == digest:
            records[submission.path] = known
        else:
            waiting.append((submission, digest, record))
    with tqdm(total=len(found), initial=len(records), disable=not progress_shown(), unit=" notebooks") as bar:
        for (submission, digest, record), result in _graded(waiting, wanted, seed, limits, jobs):
            result |= {"digest": digest, "student": submission.student}
            result["notebook"] = submission.path.relative_to(folder).as_posix()
            write_json(record, result)
            records[submission.path] = result
            bar.update()
    ordered = with_people([records[submission.path] for submission in found], listed, wanted)
    update_table(table, kept / "table.json", ordered)
    there = [record for record in ordered if not record.get("absent")]
    for record in there:
        page = (place / record["notebook"]).with_suffix(".html")
        write_atomically(page, feedback_page(record).encode())
    write_summary(place, there)
    return ordered


def with_people(records: list[dict[str, Any]], listed: list[Row], chapter: str = "") -> list[dict[str, Any]]:
    """Add to records whose they are, and records of everybody else on the list of what was collected."""
    if not listed:
        return records
    rows = {(row["student"], row["chapter"]): row for row in listed}
    people = {row["student"]: {"name": row["name"], "email": row["email"]} for row in listed}
    empty = {"name": "", "email": "", "file": "", "note": ""}
    whole = []
    for record in records:
        row = rows.get((record["student"], record["chapter"]), {})
        about = {column: row.get(column, "") for column in ("file", "note")}
        whole.append(record | empty | people.get(record["student"], {}) | about)
    there = {(record["student"], record["chapter"]) for record in records}
    for name in sorted({record["chapter"] for record in records} | ({chapter} - {""})):
        for student, about in people.items():
            if (student, name) not in there:
                note = rows.get((student, ""), {}).get("note", "handed in nothing for it")
                one = {"student": student, "notebook": f"{student}/{name}/{name}.ipynb", "chapter": name}
                one |= {"points": 0, "of": 0, "marks": [], "problem": note, "absent": True}
                whole.append(empty | about | one)
    order = {student: number for number, student in enumerate(people)}
    return sorted(whole, key=lambda one: (order.get(one["student"], len(order)), one["notebook"]))


def feedback_folder(table: Path) -> Path:
    """Return where the pages go: marks.csv has them in marks_feedback."""
    return table.with_name(f"{table.stem}_feedback")


def records_folder(table: Path) -> Path:
    """Return where records of what is graded go: marks.csv has them in marks_records."""
    return table.with_name(f"{table.stem}_records")


def _graded(
    waiting: list[tuple[Submission, str, Path]], chapter: str, seed: int, limits: Limits, jobs: int
) -> Iterator[tuple[tuple[Submission, str, Path], dict[str, Any]]]:
    """Yield each submission with its record, as they are done; those that reach a limit alone, in the end."""
    jobs = min(jobs, len(waiting))
    if jobs < 2:
        for one in waiting:
            yield one, grade_file(one[0].path, chapter, seed, limits)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _one_thread) as pool:
        futures = {pool.submit(grade_file, one[0].path, chapter, seed, limits, 1): one for one in waiting}
        limited = []
        try:
            for future in as_completed(futures):
                if future.result().get("limited"):
                    limited.append(futures[future])
                else:
                    yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for one in limited:
        yield one, grade_file(one[0].path, chapter, seed, limits, 1)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def grade_file(path: Path, chapter: str, seed: int, limits: Limits, tries: int = 2) -> dict[str, Any]:
    """Grade one notebook, and return what is kept of it."""
    from vit_classroom.assignments.grading import grade, limit_reached, seeds_of

    try:
        cells = read_submission(path)
        found = chapter or chapter_of(cells)
        if not found:
            raise InputError(f"{path.name} does not say which chapter it is: name it, with --chapter.")
        assigned = read_chapter(found)
    except InputError as error:
        return {"chapter": chapter, "points": 0, "of": 0, "marks": [], "problem": str(error)}
    marks = grade(assigned, cells, functools.partial(seeds_of, seed), limits, tries)
    return {
        "chapter": assigned.name,
        "points": marks.points,
        "of": sum(mark.task.points for mark in marks.marks if mark.task.check),
        "to_read": sum(mark.task.points for mark in marks.marks if mark.state == "to read"),
        "suspicions": [str(one) for one in marks.suspicions],
        "remarks": marks.remarks,
        "limits": marks.held,
        "limited": any(map(limit_reached, [*marks.remarks, *(mark.message for mark in marks.marks)])),
        "marks": [
            {"name": mark.task.name, "of": mark.task.points}
            | {name: getattr(mark, name) for name in ("points", "state", "message")}
            for mark in marks.marks
        ],
    }


STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem;
  color-scheme: light dark; }
pre { white-space: pre-wrap; background: color-mix(in srgb, currentColor 8%, transparent); padding: .6rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; }
img { max-width: 100%; background: white; }"""


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
    parts = [
        f"<p><strong>{record['points']:g} of {record['of']:g} points</strong> for answers that a check reads."
    ]
    if record["to_read"]:
        parts.append(f" Answers for up to {record['to_read']:g} more are read by a person.")
    parts.append("</p>")
    for mark in record["marks"]:
        sign = {"right": "✓", "not right": "✗", "to do": "○", "to read": "…"}[mark["state"]]
        parts.append(f"<h2>{sign} {html.escape(mark['name'])}</h2>")
        if mark["state"] == "to read":
            parts.append(f"<p>Up to {mark['of']:g} points; a person reads it.</p>")
        else:
            parts.append(f"<p>{mark['points']:g} of {mark['of']:g} points, {mark['state']}.</p>")
        if mark["message"]:
            parts.append(f"<pre>{html.escape(mark['message'])}</pre>")
    if record["remarks"]:
        lines = "".join(f"<li>{html.escape(remark)}</li>" for remark in record["remarks"])
        parts.append(f"<h2>Cells that stopped</h2><ul>{lines}</ul>")
    return _page(f"{record['student']}, {read_chapter(record['chapter']).title}", "\n".join(parts))


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
        _draw_mistakes(place / "mistakes.png", common)
        items = "".join(f"<li>{count} × {html.escape(text)}</li>" for text, count in common)
        parts.append(
            '<h2>Mistakes</h2><img src="mistakes.png" alt="How often each of the mistakes below was made">'
            f"<ol>{items}</ol>"
        )
    looks = [(record["student"], one) for record in graded for one in record["suspicions"]]
    if looks:
        items = "".join(f"<li>{html.escape(student)}, {html.escape(one)}</li>" for student, one in looks)
        parts.append(f"<h2>Please look at these</h2><ul>{items}</ul>")
    write_atomically(place / "summary.html", _page("Summary", "\n".join(parts)).encode())


def _draw_mistakes(path: Path, common: list[tuple[str, int]]) -> None:
    from matplotlib.figure import Figure  # imported here: it takes a moment
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(9, 0.5 + 0.4 * len(common)), layout="constrained")
    axes = figure.subplots()
    texts = ["".join(sign for sign in text if sign <= "\uffff") for text, _ in common]  # no emoji in its font
    texts = [text if len(text) <= 80 else f"{text[:78]}…" for text in texts]
    places = range(len(common))
    axes.barh(places, [count for _, count in common], color="#0072B2")
    axes.set_yticks(places, [text.replace("$", r"\$") for text in texts], fontsize=8)
    axes.invert_yaxis()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("notebooks with this mistake")
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_atomically(path, picture.getvalue())
