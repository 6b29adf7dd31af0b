"""Marks for a whole class: a folder of notebooks, several at once, with feedback pages and a summary."""

import contextlib
import functools
import hashlib
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from vit_classroom.assignments.alignment import own_answers, repaired
from vit_classroom.assignments.collecting import read_list
from vit_classroom.assignments.likeness import like_others, likenesses
from vit_classroom.assignments.limits import Limits
from vit_classroom.assignments.marks_table import read_kept, read_saved, read_table, update_table
from vit_classroom.assignments.notebooks import (
    STUB,
    chapter_names,
    chapter_of,
    content_of,
    read_chapter,
    read_submission,
)
from vit_classroom.assignments.nursery import end_with_parent
from vit_classroom.assignments.pages import feedback_page, points_of
from vit_classroom.assignments.report import write_report
from vit_classroom.assignments.suspicion import suspicions
from vit_classroom.assignments.tables import Row, harmless
from vit_classroom.assignments.variations import assigned, seeds_of, variant_of
from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.files import write_atomically, write_json
from vit_from_scratch.progress import progress_shown

PACKAGES = tuple(Path(__file__).parents[2] / name for name in ("vit_classroom", "vit_from_scratch"))
"""What judges, and what it judges by."""
LONGEST_NAME = 200
"""Bytes of a page's name, to which a system must be able to add."""


class Submission(NamedTuple):
    """A notebook that was handed in; the student goes by the name of the file, or of its folder."""

    student: str
    path: Path

    def about(self, folder: Path) -> dict[str, str]:
        """Return what a record says of it."""
        return {"student": self.student, "notebook": self.path.relative_to(folder).as_posix()}


Waiting = tuple[Submission, str, Path]
"""With its digest, and where its record goes."""


def submissions(folder: Path) -> list[Submission]:
    """Find the notebooks in a folder, STUDENT.ipynb or STUDENT/.../NAME.ipynb, and what may stand for one.

    Raises:
        InputError: there is no such folder, or no notebook in it.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: expected one with the notebooks that were handed in.")
    found = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        wanted = path.suffix.lower() == ".ipynb" or (path.is_symlink() and path.is_dir())
        if wanted and not any(part.startswith(".") for part in parts):
            found.append(Submission(parts[0] if len(parts) > 1 else path.stem, path))
    if not found:
        raise InputError(f"{folder} holds no notebook: expected STUDENT.ipynb, or a folder for each student.")
    return found


def grade_class(
    folder: Path,
    table: Path,
    chapter: str = "",
    seed: int = 0,
    limits: Limits | None = None,
    jobs: int = 1,
    saved: Sequence[Path] = (),
    variant: int | None = None,
) -> list[dict[str, Any]]:
    """Grade a folder of notebooks.

    Beside the table come three folders: one to hand back, with a page for each notebook, in folders as they
    were handed in; one of reports (see `write_report`); and one of records, so that a second call goes on
    where the first was stopped.
    What a person has typed into the table stays (see `marks_table`).

    Args:
        folder: see `submissions`.
        table: the CSV file to write.
        chapter: what was assigned; "" to ask each notebook.
        seed: decides what is drawn for the checks.
        limits: for the students' code.
        jobs: notebooks at the same time.
        saved: files of marks that pages of questions have saved.
        variant: the seed of the variation that was assigned (see `assigned`); None for none.

    Returns:
        What was found, a record for each notebook, and in a folder that `collect` wrote one for everybody of
        whom there is none.

    Raises:
        InputError: there is nothing to grade, an unknown chapter, or a table that cannot be read.
    """
    limits = limits or Limits()
    wanted = read_chapter(chapter).name if chapter else ""
    found, listed = submissions(folder), read_list(folder).rows
    if listed and wanted:  # several chapters may have been collected
        others = {*chapter_names()} - {wanted}
        found = [one for one in found if one.path.parent.name not in others]
    place, kept = beside(table, "feedback"), beside(table, "records")
    for read, path in ((read_table, table), *((read_saved, path) for path in saved)):
        read(path)  # what is wrong with it is said before hours of grading
    # What decides the marks, with a notebook:
    decides = f"{_code_digest()} {wanted} {seed} {limits} {variant}".encode()
    records: dict[Path, dict[str, Any]] = {}
    waiting: list[Waiting] = []
    for submission in found:
        content = b""
        with contextlib.suppress(InputError):  # who grades it says what is wrong with it
            content = content_of(submission.path)
        digest = hashlib.sha256(decides + content).hexdigest()
        name = os.fsencode(submission.about(folder)["notebook"])
        record = kept / f"{hashlib.sha256(name).hexdigest()}.json"
        known = read_kept(record)
        if known.get("digest") == digest and isinstance(known.get("marks"), list):
            records[submission.path] = known | submission.about(folder)
        else:
            waiting.append((submission, digest, record))
    with tqdm(total=len(found), initial=len(records), disable=not progress_shown(), unit=" notebooks") as bar:
        for (submission, digest, record), result in _graded(waiting, (wanted, seed, limits), jobs, variant):
            result = {"digest": digest} | result | submission.about(folder)
            write_json(record, result)
            records[submission.path] = result
            bar.update()
    ordered = with_people([records[submission.path] for submission in found], listed, wanted)
    alike = likenesses(ordered)
    for record in ordered:
        record["alike"] = like_others(record, alike)
    rows = update_table(table, kept / "table.json", ordered, saved)
    there = [record for record in ordered if not record.get("absent")]
    for record in there:
        page, row = page_path(place, record["notebook"]), rows[harmless(record["notebook"])]
        write_atomically(page, feedback_page(record, row))
        record["unread"] = sum(points_of(mark, row) is None for mark in record["marks"])
    write_report(beside(table, "report"), there, rows, alike)
    return ordered


def look_through(folder: Path) -> list[str]:
    """Return what `grade_class` lists to look at, without running or grading anything: a line each.

    Raises:
        InputError: there is nothing to look at.
    """
    records, lines = [], []
    for submission in submissions(folder):
        with contextlib.suppress(InputError):  # who grades it says what is wrong with it
            cells = read_submission(submission.path)
            if name := chapter_of(cells):
                chapter = assigned(name, variant := variant_of(name, cells))
                cells = [cell for cell, _ in repaired(chapter, cells)]
                marks = [
                    {"name": task.name, "own": own, "state": "to do" if STUB in own else ""}
                    for task, own in own_answers(chapter, cells).items()
                ]
                about = {"student": submission.student, "chapter": name, "variant": variant}
                records.append(about | {"marks": marks})
                found = suspicions(chapter, cells)
                lines += [f"{name}, {submission.student}, {one}" for one in found]
    return [*lines, *map(str, likenesses(records))]


def with_people(records: list[dict[str, Any]], listed: list[Row], chapter: str = "") -> list[dict[str, Any]]:
    """Add to records whose they are, and records of everybody else on the list of what was collected."""
    if not listed:
        return records
    rows = {(row["student"], row["chapter"]): row for row in listed}
    people = {row["student"]: {"name": row["name"], "email": row["email"]} for row in listed}
    about_file = ("file", "handed_in", "note")
    empty = dict.fromkeys(("name", "email", *about_file), "")
    whole = []
    for record in records:
        row = rows.get((record["student"], record["chapter"]), {})
        about = {column: row.get(column, "") for column in about_file}
        whole.append(record | empty | people.get(record["student"], {}) | about)
    there = {(record["student"], record["chapter"]) for record in records}
    for name in sorted(({record["chapter"] for record in records} | {chapter}) - {""}):
        for student, about in people.items():
            if (student, name) not in there:
                others = ", ".join(other for who, other in rows if who == student and other)
                other = f"handed in {others}, and nothing for it"
                note = rows.get((student, ""), {}).get("note", other)
                one = {"student": student, "notebook": f"{student}/{name}/{name}.ipynb", "chapter": name}
                one |= {"points": 0, "of": 0, "marks": [], "problem": note, "absent": True}
                whole.append(empty | about | one)
    order = {student: number for number, student in enumerate(people)}
    return sorted(whole, key=lambda one: (order.get(one["student"], len(order)), one["notebook"]))


def beside(table: Path, what: str) -> Path:
    """Return the folder of something that belongs to a table: marks.csv has feedback in marks_feedback."""
    return table.with_name(f"{table.stem}_{what}")


def page_path(place: Path, notebook: str) -> Path:
    """Return where the page of a notebook goes: under its name, as far as that leaves every page its own."""
    *folders, name = notebook.split("/")
    folders = [f"{folder}_" if folder.endswith(".html") else folder for folder in folders]
    stem = name.removesuffix(".ipynb")
    if len(whole := os.fsencode(stem)) > LONGEST_NAME:
        stem = f"{stem[:40]}_{hashlib.sha256(whole).hexdigest()[:8]}"
    return place.joinpath(*folders, f"{stem}.html")


def _code_digest() -> str:
    """Return what differs as soon as a check, a task, or what an answer is compared with differs."""
    whole = hashlib.sha256()
    for place in PACKAGES:
        for path in sorted(place.rglob("*")):
            if path.suffix in {".py", ".toml", ".ipynb"}:
                whole.update(path.relative_to(place).as_posix().encode())
                whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _graded(
    waiting: list[Waiting], given: tuple[str, int, Limits], jobs: int, variant: int | None
) -> Iterator[tuple[Waiting, dict[str, Any]]]:
    """Yield each submission with its record, as they are done; those that reach a limit alone, in the end."""
    jobs = min(jobs, len(waiting), 61 if sys.platform == "win32" else jobs)  # a pool takes no more there
    if jobs < 2:
        for one in waiting:
            yield one, grade_file(one[0].path, *given, variant=variant)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _one_thread) as pool:
        futures = {pool.submit(grade_file, one[0].path, *given, 1, variant): one for one in waiting}
        limited = []
        try:
            for future in as_completed(futures):
                # A worker may have ended, for want of memory.
                if isinstance(future.exception(), BrokenProcessPool) or future.result().get("limited"):
                    limited.append(futures[future])
                else:
                    yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for one in limited:
        yield one, grade_file(one[0].path, *given, 1, variant)


def _one_thread() -> None:
    import torch

    end_with_parent()
    torch.set_num_threads(1)


def grade_file(
    path: Path, chapter: str, seed: int, limits: Limits, tries: int = 2, variant: int | None = None
) -> dict[str, Any]:
    """Grade one notebook, and return what is kept of it."""
    from vit_classroom.assignments.grading import grade, limit_reached

    try:
        cells = read_submission(path)
        said = chapter_of(cells)
        found = chapter or said
        if not found:
            raise InputError(f"{path.name} does not say which chapter it is: name it, with --chapter.")
        if said not in ("", found):
            raise InputError(f"{path.name} is the worksheet of {said}: expected that of {found}.")
        whole = assigned(found, variant)
    except InputError as error:
        return {"chapter": chapter, "points": 0, "of": 0, "marks": [], "problem": str(error)}
    try:
        marks = grade(whole, cells, functools.partial(seeds_of, seed), limits, tries)
    except Exception as error:  # so that it is this notebook's alone
        problem = f"it could not be graded ({type(error).__name__}: {reason(error)}): please report this."
        again = {"digest": ""}  # the next time
        return {"chapter": whole.name, "points": 0, "of": 0, "marks": [], "problem": problem} | again
    looks = [str(one) for one in marks.suspicions]
    if (told := variant_of(whole.name, cells)) is not None and told != variant:
        looks.append(f"it asks for a variation: grade it with --variant {told}")
    return {
        "chapter": whole.name,
        "variant": variant,
        "points": marks.points,
        "of": sum(mark.task.points for mark in marks.marks if mark.task.check),
        "to_read": sum(mark.task.points for mark in marks.marks if mark.state == "to read"),
        "suspicions": looks,
        "remarks": marks.remarks,
        "limits": marks.held,
        "limited": any(map(limit_reached, [*marks.remarks, *(mark.message for mark in marks.marks)])),
        "marks": [
            {"name": mark.task.name, "title": mark.task.title, "of": mark.task.points}
            | {name: getattr(mark, name) for name in ("points", "state", "message", "own", "printed")}
            for mark in marks.marks
        ],
    }
