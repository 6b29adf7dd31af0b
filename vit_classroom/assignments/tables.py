"""Tables as spreadsheets and learning platforms write them: with any delimiter and encoding."""

import contextlib
import csv
import io
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vit_from_scratch.errors import InputError, reason

ENCODINGS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""How a file is encoded that begins with these bytes."""

Row = dict[str, str]


@dataclass
class Table:
    """A table.

    Attributes:
        columns: their names, in order.
        rows: by column, each row of the table.
        delimiter: between two values.
        encoding: in which it is written.
    """

    columns: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    delimiter: str = ","
    encoding: str = "utf-8"


def read_csv(path: Path, is_head: Callable[[list[str]], bool], expected: str) -> Table:
    """Read a table, with the delimiter and encoding of whichever program wrote it.

    Args:
        path: of the file.
        is_head: says whether these are the names of the columns.
        expected: what the table is, for the error.

    Raises:
        FileNotFoundError: it is not there.
        InputError: it cannot be read, or it is another table.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file: expected one with a table. Name another.")
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}.") from error
    encoding = next((name for start, name in ENCODINGS.items() if content.startswith(start)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
        encoding = "utf-8-sig"  # which the same spreadsheets read, and which has a sign for every name
    found: list[list[str]] = []
    delimiter = ","
    with contextlib.suppress(csv.Error):
        for delimiter in (",", ";", "\t"):
            found = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
            if found and is_head(found[0]):
                break
    if not found or not is_head(found[0]):
        raise InputError(f"{path} {expected}")
    columns = [name or f"column {number}" for number, name in enumerate(found[0], start=1)]
    rows: list[Row] = []
    for line in found[1:]:
        columns += [f"column {number + 1}" for number in range(len(columns), len(line))]
        if any(line):
            rows.append(dict.fromkeys(columns, "") | dict(zip(columns, line, strict=False)))
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise InputError(f"{path} has two columns {twice[0]}: expected one. Remove or rename the other.")
    return Table(columns, rows, delimiter, encoding)


def as_csv(table: Table) -> bytes:
    """Return the file's content."""
    text = io.StringIO()
    writer = csv.DictWriter(text, table.columns, restval="", delimiter=table.delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _lines(value) for name, value in row.items()} for row in table.rows)
    return text.getvalue().encode(table.encoding)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")  # the writer would leave a lone one unquoted


def harmless(text: str) -> str:
    """Keep a spreadsheet from taking text for a formula, and a file from being unreadable.

    A spreadsheet may also begin a cell behind a sign that separates cells elsewhere.
    """
    text = _lines(text).encode(errors="backslashreplace").decode()  # a name of another encoding
    return "".join(map(_as_text, re.split(r"(?<=[;,\t\n])", text)))


def _as_text(text: str) -> str:
    seen = unicodedata.normalize("NFKC", text)  # "＝" is "=" to a spreadsheet
    first = next((sign for sign in seen if unicodedata.category(sign)[0] not in "CZ"), "")
    rest = text.lstrip()
    return f"{text[: len(text) - len(rest)]}'{rest}" if first in ("=", "+", "-", "@") else text
