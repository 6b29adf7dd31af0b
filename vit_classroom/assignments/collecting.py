"""What was handed in, put where nbgrader and `vit assignment grade` look: STUDENT/CHAPTER/CHAPTER.ipynb.

A list beside the notebooks has a row for each, and for everybody of whom there is none. What is there stays:
a newer notebook takes an older one's place, which is kept in a folder of its own.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from vit_classroom.assignments.inbox import Found, files_in
from vit_classroom.assignments.notebooks import cells_of, chapter_of, notebook_of
from vit_classroom.assignments.roster import Person, Roster, names_apart, read_roster, whose
from vit_classroom.assignments.tables import Row, Table, as_csv, harmless, read_csv
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import remove_leftovers, write_atomically, writing

LIST, EARLIER = "collected.csv", ".earlier"
WHEN = "handed_in"
COLUMNS = ["student", "name", "email", "chapter", "file", WHEN, "note"]
STAMP = "timestamp.txt"
"""Where nbgrader looks when something was handed in."""
NOTHING = "handed in nothing"
Rows = dict[tuple[str, str], Row]
"""By student and chapter."""


@dataclass
class Hand:
    """All that one person handed in.

    Attributes:
        person: by whose id it goes.
        notebooks: by chapter.
        others: everything else, in words.
        notes: on all of it.
    """

    person: Person
    notebooks: dict[str, list[Found]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def collect(inbox: Path, out: Path, roster: Path | None = None) -> list[Row]:
    """Put notebooks where they are graded, and list what there is of everybody.

    Args:
        inbox: a folder or a zip, as Moodle, Canvas, Google Classroom or a shared folder gives it.
        out: a folder for the notebooks, with those of earlier calls.
        roster: a list of participants, as CSV; None where there is none.

    Returns:
        The rows of the list.

    Raises:
        InputError: there is nothing to read, or one of the files cannot be read.
    """
    if inbox.resolve() == out.resolve() or inbox.resolve() in out.resolve().parents:
        raise InputError(f"{out} is in {inbox}, which is read: expected another folder for what comes of it.")
    people = read_roster(roster) if roster else Roster()
    before = (there := read_list(out)).rows
    hands: dict[str, Hand] = {}
    files = [(found, *_told(found)) for found in files_in(inbox)]
    apart = names_apart(((found.parts, chapter, found.content) for found, chapter, _ in files), people)
    for found, chapter, other in files:
        person, notes = whose(found.parts, people, apart.get(found.parts, ""))
        if found.parts in apart:
            notes.append(
                f"{found.parts[0]} holds different notebooks of a chapter, so each goes by its own name"
            )
        hand = hands.setdefault(person.id, Hand(person))
        hand.notes += [note for note in notes if note not in hand.notes]
        if chapter:
            hand.notebooks.setdefault(chapter, []).append(found)
        else:
            hand.others.append(other)
    rows: Rows = {(row["student"], row["chapter"]): row for row in before}
    with writing(out):
        for hand in hands.values():
            for row in _placed(hand, out, rows):
                rows[row["student"], row["chapter"]] = row
        _move_away(rows, [row for row in before if row["student"] not in hands], hands, out)
        listed = [_with_typed(row, before) for row in _listed(rows, people)]
        remove_leftovers(out, [LIST])
        content = as_csv(replace(there, rows=listed))
        if not (out / LIST).exists() or (out / LIST).read_bytes() != content:
            write_atomically(out / LIST, content)
    return listed


def read_list(out: Path) -> Table:
    """Return the list of what was collected into a folder, with columns of a person's own; or an empty one.

    Raises:
        InputError: it cannot be read.
    """
    expected = f"is not the list of what was collected: expected the columns {', '.join(COLUMNS)}. Remove it."
    try:
        there = read_csv(out / LIST, lambda head: {*COLUMNS} - {WHEN} <= {*head}, expected)
    except FileNotFoundError:
        return Table(COLUMNS)
    columns = list(dict.fromkeys([*there.columns, WHEN]))  # which older lists lack
    return replace(there, columns=columns, rows=[{WHEN: "", **row} for row in there.rows])


def _with_typed(row: Row, before: list[Row]) -> Row:
    """Give a row what a person has typed in columns of their own, for it or for what it was before."""
    about = (row["student"], row["chapter"])
    for old in sorted(before, key=lambda old: (old["student"], old["chapter"]) != about):
        moved = row["chapter"] and all(old[column] == row[column] for column in ("file", "chapter"))
        if moved or (old["student"] == row["student"] and old["chapter"] in ("", row["chapter"])):
            row = old | {column: value for column, value in row.items() if value or column in COLUMNS}
    return row


def _told(found: Found) -> tuple[str, str]:
    """Return the chapter of a file's worksheet, "" if it is none, and then what it is, in words."""
    name = "/".join(found.parts)
    if found.problem:
        return "", f"{name} {found.problem}"
    if not found.content:
        return "", f"{name} is empty" if name.endswith(("/", ".ipynb")) else name
    try:
        chapter = chapter_of(cells_of(notebook_of(found.content, name)))
    except InputError as error:
        return "", str(error)
    return chapter, f"{name} is a notebook and not one of the worksheets in exercises/"


def _placed(hand: Hand, out: Path, rows: Rows) -> Iterator[Row]:
    """Write somebody's notebooks, and yield a row for each, or one that says what there is instead."""
    others = "; ".join(hand.others[:5])
    also = [f"also there: {others}"] if others else []
    for chapter, found in hand.notebooks.items():
        *older, newest = sorted(found, key=_age)
        name = "/".join(newest.parts)
        path = out / hand.person.id / chapter / f"{chapter}.ipynb"
        if _write(path, newest, out):
            notes = [f"newer than {'/'.join(one.parts)}" for one in older if one.content != newest.content]
            kept = Path(EARLIER, hand.person.id, chapter)
            notes += [f"what was collected before is in {kept.as_posix()}"] if (out / kept).exists() else []
            yield _row(hand.person, chapter, name, [*hand.notes, *notes, *also], _time_of(newest))
        else:
            row = rows.get((hand.person.id, chapter)) or _row(hand.person, chapter, "", hand.notes)
            said = [row["note"], harmless(f"{name} differs, is older, and was left out")]
            yield row if said[1] in said[0] else {**row, "note": "; ".join(filter(None, said))}
    if not hand.notebooks:
        yield _row(hand.person, "", "", [*hand.notes, f"no worksheet: {others}"])


def _write(path: Path, found: Found, out: Path) -> bool:
    """Write a notebook, as UTF-8, and keep another that is there; False where that one is newer."""
    content = found.content
    try:
        json.loads(content.decode("utf-8"))
    except ValueError:  # in another encoding
        content = (json.dumps(notebook_of(content, ""), indent=1) + "\n").encode()
    stamp = path.with_name(STAMP)
    remove_leftovers(path.parent, [path.name, STAMP])
    there = path.read_bytes() if path.exists() else None
    if there not in (None, content):
        if int(found.time) < int(path.stat().st_mtime):
            return False
        _keep(path, out)
    if there != content:
        write_atomically(path, content)
    os.utime(path, (found.time, found.time))
    written = f"{_time_of(found)}\n".encode()
    if not stamp.exists() or stamp.read_bytes() != written:
        write_atomically(stamp, written)
    return True


def _keep(path: Path, out: Path) -> None:
    """Write a notebook that is to make room to where nothing looks for it."""
    content, written = path.read_bytes(), path.stat().st_mtime
    name = f"{path.stem}_{hashlib.sha256(content).hexdigest()[:8]}.ipynb"
    earlier = out / EARLIER / path.parent.relative_to(out) / name
    remove_leftovers(earlier.parent, [name])
    write_atomically(earlier, content)
    os.utime(earlier, (written, written))


def _move_away(rows: Rows, old: list[Row], hands: dict[str, Hand], out: Path) -> None:
    """Move away what lies under a name that has become somebody's on the roster."""
    theirs = [row for row in rows.values() if row["student"] in hands and row["chapter"]]
    placed = {(row["file"], row["chapter"]) for row in theirs}
    for row in old:
        if (row["file"], row["chapter"]) in placed:
            path = out / row["student"] / row["chapter"] / f"{row['chapter']}.ipynb"
            if path.exists():
                _keep(path, out)
                path.with_name(STAMP).unlink(missing_ok=True)
                path.unlink()
            del rows[row["student"], row["chapter"]]


def _listed(rows: Rows, people: Roster) -> list[Row]:
    """Return the rows, and one for everybody of whom there is none, in the order of the roster."""
    there, listed = {student for student, chapter in rows if chapter}, {student for student, _ in rows}
    whole = [
        row
        for (student, chapter), row in rows.items()
        if chapter or row["note"] != NOTHING or student not in there
    ]
    whole += [_row(person, "", "", [NOTHING]) for person in people.people if person.id not in listed]
    order = {person.id: number for number, person in enumerate(people.people)}
    return sorted(whole, key=lambda row: (order.get(row["student"], len(order)), *list(row.values())[:4]))


def _age(found: Found) -> tuple[int, int, tuple[str, ...]]:
    """Return what orders notebooks of one person by age: their time, then the number that a copy has."""
    number = re.search(r"(?:\((\d+)\)|[-_](\d+))\.ipynb$", found.parts[-1])
    return int(found.time), int(number[1] or number[2]) if number else 0, found.parts


def _time_of(found: Found) -> str:
    return f"{datetime.fromtimestamp(int(found.time), UTC):%Y-%m-%d %H:%M:%S} UTC"


def _row(person: Person, chapter: str, file: str, notes: list[str], handed_in: str = "") -> Row:
    values = (person.id, person.name, person.email, chapter, file, handed_in, "; ".join(notes))
    return {column: harmless(value) for column, value in zip(COLUMNS, values, strict=True)}
