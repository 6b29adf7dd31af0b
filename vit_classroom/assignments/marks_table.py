"""The table of marks: written for a person to fill in, and read again as a spreadsheet left it.

What a person types stays, in any column and in columns and rows of their own. It is told from what stood
there before by a file beside the table, which holds the values that were written last.
"""

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vit_classroom.assignments.tables import Row, Table, as_csv, harmless, read_csv
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically, write_json

KEY, TOTAL = "notebook", "total"
ABOUT = ("student", KEY, "chapter", TOTAL, "points", "of", "to_read", "look_at", "problem")
"""Columns in front of those of the answers; `total` is their sum, unless a person typed another."""
PERSON = ("name", "email", "file", "handed_in", "note")
"""Columns behind the first, of notebooks that `collecting` has put where they are."""
Written = dict[str, dict[str, list[str]]]
"""By notebook and column: what the program wrote there."""


def read_table(path: Path) -> Table:
    """Read a table, with the delimiter and encoding of whichever spreadsheet wrote it; empty if not there.

    Raises:
        InputError: it cannot be read, or it is not a table of marks.
    """
    expected = (
        f"has no column called {KEY}: expected the table of marks, whose rows go by it. Give the "
        "column its name again, or name another file."
    )
    try:
        table = read_csv(path, lambda head: KEY in head, expected)
    except FileNotFoundError:
        return Table()
    names = [_key(row) for row in table.rows if _key(row)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{path} has two rows for {twice[0]}: expected one. Remove or rename the other.")
    return table


def read_saved(path: Path) -> Table:
    """Read the marks that a page of a question has saved.

    Raises:
        InputError: it is not there, or it holds none.
    """
    if not path.is_file():
        raise InputError(f"{path} is not there: expected marks that a page of a question has saved.")
    return read_table(path)


def read_kept(path: Path) -> dict[str, Any]:
    """Read what the program keeps for itself; nothing where that is missing or damaged."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        kept = json.loads(path.read_bytes())
        return kept if isinstance(kept, dict) else {}
    return {}


def update_table(
    path: Path, beside: Path, records: Sequence[dict[str, Any]], saved: Sequence[Path] = ()
) -> dict[str, Row]:
    """Write the table anew; what a person typed into it stays.

    Args:
        path: of the table.
        beside: the file that keeps what was written last. It is written before the table, with the old values
            as well, and after it, so that nothing is taken for typed, or for written, wherever it is stopped.
        records: of the notebooks, one each.
        saved: marks that pages of questions have saved, as typed now.

    Returns:
        Its rows, by notebook.

    Raises:
        InputError: a file cannot be read, or it has marks of a notebook that is not among these.
    """
    there = read_table(path)
    known: Written = read_kept(beside)
    fresh = {row[KEY]: row for row in table_rows(records)}
    for file in saved:
        for kept in _type_in(there, read_saved(file), fresh, known, file):
            print(kept)
    table = merged(there, fresh, known)
    now = {name: {column: [value] for column, value in row.items()} for name, row in fresh.items()}
    both = {
        name: {column: [*known.get(name, {}).get(column, []), *values] for column, values in row.items()}
        for name, row in now.items()
    }
    write_json(beside, known | both)
    write_atomically(path, as_csv(table))
    write_json(beside, known | now)
    return {_key(row): row for row in table.rows}


def _type_in(there: Table, saved: Table, fresh: dict[str, Row], known: Written, file: Path) -> Iterator[str]:
    """Put what was saved into a table, as if it had been typed there; yield what was typed there since."""
    rows = {_key(row): row for row in there.rows}
    columns = [name for name in saved.columns if name != KEY and name not in map(was_column, saved.columns)]
    there.columns += [column for column in columns if column not in there.columns]
    for row in saved.rows:
        name = _key(row)
        if name not in fresh:
            raise InputError(f"{file} has marks for {name}: expected a notebook of this folder.")
        if name not in rows:
            there.rows.append({KEY: name})
            rows[name] = there.rows[-1]
        for column in columns:
            value, was, now = row.get(column, ""), row.get(was_column(column), ""), rows[name].get(column, "")
            if value or was:
                shown = ["", *known.get(name, {}).get(column, [])]  # to who wrote the file by hand
                with contextlib.suppress(ValueError):
                    shown = [str(one) for one in json.loads(was)]
                if any(_same(now, one) for one in (value, *shown)):
                    rows[name][column] = value
                else:
                    said = f"{column} of {name} stays {now or 'empty'}, which was typed since"
                    yield f"{file}: {said}, and does not become {value or 'empty'}."


def merged(there: Table, fresh: dict[str, Row], known: Written) -> Table:
    """Put new values into a table, except where a person has typed others; new rows go to the end."""
    columns = list(dict.fromkeys([*there.columns, *(column for row in fresh.values() for column in row)]))
    old = {_key(row): row for row in there.rows if _key(row)}
    rows = []
    for row in [*there.rows, *({KEY: name} for name in fresh if name not in old)]:
        written, mine = known.get(_key(row), {}), fresh.get(_key(row), {})
        typed = {name: value for name, value in row.items() if _is_typed(name, value, written.get(name))}
        whole = row | mine | typed
        if mine:
            marks = [number_of(whole[column]) for column in mine if column not in (*ABOUT, *PERSON)]
            numbers = [number for number in marks if number is not None]
            mine[TOTAL] = f"{sum(numbers):g}" if numbers else ""
            whole[TOTAL] = typed.get(TOTAL, mine[TOTAL])
        rows.append(whole)
    return Table(columns, rows, there.delimiter, there.encoding)


def _is_typed(column: str, value: str, written: list[str] | None) -> bool:
    """Say whether a person has typed a value, or taken a mark away; `written` is what stood there."""
    if column == KEY or (not value and column in (*ABOUT, *PERSON)):
        return False
    if written is None:
        return bool(value) and column != TOTAL
    return not any(_same(value, one) for one in written)


def table_rows(records: Sequence[dict[str, Any]]) -> list[Row]:
    """Return a row for each record: a column for each answer, empty where a person reads it."""
    names = dict.fromkeys(mark["name"] for record in records for mark in record["marks"])
    person = [column for column in PERSON if any(column in record for record in records)]
    columns = [ABOUT[0], *person, *ABOUT[1:]]
    rows = []
    for record in records:
        numbers = {column: f"{record.get(column, 0):g}" for column in ("points", "of", "to_read")}
        texts = (
            record
            | numbers
            | {"look_at": "; ".join([*record.get("suspicions", []), *record.get("alike", [])])}
        )
        row = {column: harmless(texts.get(column, "")) for column in columns}
        row |= dict.fromkeys(names, "")
        row |= {one["name"]: f"{one['points']:g}" for one in record["marks"] if one["state"] != "to read"}
        rows.append(row)
    return rows


def _key(row: Row) -> str:
    return row.get(KEY, "")


def comment_column(name: str) -> str:
    """Return the column for what a person says of an answer, which its student gets to read."""
    return f"{name} comment"


def was_column(name: str) -> str:
    """Return the column for all that a page has shown of another, as a list in JSON."""
    return f"{name} was"


def number_of(text: str) -> float | None:
    """Return the number that a text is, with a point or a comma; None if it is none."""
    with contextlib.suppress(ValueError):
        number = float(text.replace(",", "."))
        return number if math.isfinite(number) and "_" not in text else None
    return None


def _same(value: str, written: str) -> bool:
    """Say whether a value is what was written, which a spreadsheet may show as 5.0 or 5,0."""
    numbers = number_of(value), number_of(written)
    return value.split() == written.split() or (numbers[0] is not None and numbers[0] == numbers[1])
