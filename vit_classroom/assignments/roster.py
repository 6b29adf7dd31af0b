"""The people of a course, and which of them a file or a folder is of."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from vit_classroom.assignments.notebooks import chapter_names
from vit_classroom.assignments.tables import Row, read_csv
from vit_from_scratch.errors import InputError

HEADS = {
    "id": (
        "studentid idnumber matriculationnumber matrikelnummer studentnumber number id sisuserid username "
        "user login sisloginid identifier"
    ),
    "name": "name fullname studentname student displayname",
    "first": "firstname givenname vorname",
    "last": "lastname surname familyname nachname",
    "email": "email emailaddress mail emailadresse",
    "alias": "alias",
}
"""How platforms call the columns of a list of participants; of several for one thing, the first counts."""
SPECIAL = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})

MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)")
CANVAS = re.compile(  # the 03 of a chapter does not number a try
    rf"(?P<name>[^\d_][^_]*)(?P<late>_LATE)?_(?P<number>\d+)_(?!{'|'.join(chapter_names())})(?P<try>\d+)_(?P<file>.+)"
)
# What Drive and Jupyter put around a copy's name, and browsers behind the name of a second file.
COPY = re.compile(
    r"^(copy|kopie|copie|copia|cópia|kopia|kopi) (of|von|de|di|av|af|van) |[ -]+(copy|kopie)\d*$",
    re.IGNORECASE,
)
NUMBER = r"[ _-]*\(\d+\)$"


class Person(NamedTuple):
    """Somebody who takes part: by what files go by, in words, and where letters go."""

    id: str
    name: str = ""
    email: str = ""


class Roster:
    """Everybody who takes part, and the names by which a file may go.

    Args:
        people: in the order of the list.
        keys: by id, the names under which somebody's files may come.
    """

    def __init__(self, people: Iterable[Person] = (), keys: Iterable[Iterable[str]] = ()) -> None:
        self.people = list(people)
        self._known: dict[str, set[str]] = {}
        for person, names in zip(self.people, keys, strict=True):
            for name in filter(None, names):
                self._known.setdefault(name, set()).add(person.id)

    def find(self, names: Iterable[str]) -> Person | None:
        """Return whom the first of these names is of that is one person's alone; None if none is."""
        for name in names:
            found = self._known.get(letters(name), set())
            if len(found) == 1:
                return next(person for person in self.people if person.id in found)
        return None


def letters(text: str) -> str:
    """Return the letters and digits of a text, without accents, in lower case."""
    folded = unicodedata.normalize("NFKD", text.casefold().translate(SPECIAL))
    return "".join(sign for sign in folded if sign.isalnum())


def folder_name(text: str) -> str:
    """Return a text as the name of a folder that nbgrader and every system take."""
    kept = re.sub(r"[^\w.@-]+", "_", unicodedata.normalize("NFC", text))
    return kept.strip("_.-@")[:100] or "unknown"  # what begins with "@" gets another name in a table


def read_roster(path: Path) -> Roster:
    """Read a list of participants, such as a learning platform exports it.

    It has a column for an id, a name (or first and last name) or an e-mail address, and may have one called
    alias, with what the files of somebody are called.

    Raises:
        InputError: it cannot be read, has none of the columns, or has two people of one id.
    """
    expected = (
        "has no column for an id, a name or an e-mail address: expected a list of participants with a "
        "first line such as id,name,email."
    )
    try:
        table = read_csv(path, lambda head: bool(_columns(head).keys() - {"alias"}), expected)
    except FileNotFoundError:
        raise InputError(f"{path} is not there: expected a list of participants.") from None
    columns = _columns(table.columns)
    people, keys = [], []
    for row in table.rows:
        of = {kind: [row.get(name, "").strip() for name in names] for kind, names in columns.items()}
        parts = of.get("first", [])[:1] + of.get("last", [])[:1]
        name = next(iter(of.get("name", [])), "") or " ".join(parts)
        email = next(filter(None, of.get("email", [])), "")
        own = next(filter(None, of.get("id", [])), "") or email or name
        if own and letters(name) != "pointspossible":  # a line of Canvas
            people.append(Person(folder_name(own), " ".join(name.split()), email))
            keys.append(set(_keys(of, name, row)))
    folders = Counter(person.id.casefold() for person in people)  # as Windows and macOS tell them apart
    if twice := [person.id for person in people if folders[person.id.casefold()] > 1]:
        raise InputError(
            f"{path} has two people with the id {twice[0]} (capitals do not count): expected one. "
            "Correct one of them."
        )
    return Roster(people, keys)


def _columns(head: list[str]) -> dict[str, list[str]]:
    """Return which columns there are for each kind of entry, the most telling first."""
    found: dict[str, list[str]] = {}
    for kind, words in HEADS.items():
        names = [name for word in words.split() for name in head if letters(name) == word]
        if names:
            found[kind] = names
    return found


def _keys(of: dict[str, list[str]], name: str, row: Row) -> Iterator[str]:
    """Yield the names by which somebody's files may go, as `letters`."""
    for text in [*of.get("id", []), *of.get("alias", []), *of.get("email", [])]:
        yield letters(text)
    yield from (letters(email.partition("@")[0]) for email in of.get("email", []))
    if "SIS Login ID" in row and row.get("ID"):  # an export of Canvas, whose files go by this number
        yield f"canvas{letters(row['ID'])}"
    words = [letters(word) for word in re.split(r"[\s,]+", name)]
    for first in range(len(words)):  # "Ada Lovelace", "Lovelace, Ada"
        yield "".join(words[first:] + words[:first])


def whose(parts: tuple[str, ...], roster: Roster, own: str = "") -> tuple[Person, list[str]]:
    """Return whose a file is, going by the names on the way to it, and what there is to note.

    Whoever is not on the roster is called `own`, if that is given (see `names_apart`).
    """
    platform = _platform(parts)
    notes = ["late"] if platform and platform.get("late") else []
    if platform:
        kind = "canvas" if "late" in platform else "participant"
        own, shown = f"{platform['name']}_{platform['number']}", platform["name"]
        names = [shown, f"{kind}{platform['number']}", own]
    else:
        whole, stem, folders = _split(parts)
        names = [*folders, stem, _cleaned(re.sub(NUMBER, "", stem)), whole]
        pieces = [piece for name in names for piece in re.split(r"\s+-\s+|_", name)]
        names += [piece for piece in pieces if len(letters(piece)) > 2]
        shown = own or names[0]
        own = own or next(filter(None, [*folders, stem, whole]))
    person = roster.find(names)
    if person is None:
        person = Person(folder_name(own), shown)
        if roster.people:
            notes.append("not on the roster")
            if person.id in {one.id for one in roster.people}:
                person = person._replace(id=f"{person.id}_unknown")
    return person, notes


def names_apart(
    files: Iterable[tuple[tuple[str, ...], str, bytes]], roster: Roster
) -> dict[tuple[str, ...], str]:
    """Say how files are called whose outermost folder holds several people's that nobody knows.

    It does if it holds notebooks of one chapter that differ in their text and in their names. They go by the
    next name on the way, or by all so far where two have the same.

    Args:
        files: the names on the way to each, its chapter, "" if it is no worksheet, and its content.
        roster: the people who are known.
    """
    known = {person.id for person in roster.people}
    ways: dict[tuple[str, ...], tuple[str, ...]] = {}
    sheets: list[tuple[tuple[str, ...], str, bytes]] = []
    for parts, chapter, content in files:
        if not _platform(parts) and whose(parts, roster)[0].id not in known:
            whole, stem, folders = _split(parts)
            ways[parts] = tuple(filter(None, [*folders, stem])) or (whole,)
            sheets += [(parts, chapter, content)] if chapter else []
    taken = {parts: way[:1] for parts, way in ways.items()}
    crowded: set[tuple[str, ...]] = {()}
    while crowded:
        held: dict[tuple[tuple[str, ...], str], list[tuple[tuple[str, ...], bytes]]] = {}
        for parts, chapter, content in sheets:
            held.setdefault((taken[parts], chapter), []).append((ways[parts], content))
        crowded = {
            way
            for (way, _), each in held.items()
            if all(len(set(one)) > 1 for one in zip(*each, strict=True))
        }
        taken = {
            parts: ways[parts][: len(way) + 1] if way in crowded else way for parts, way in taken.items()
        }
    ends = Counter(folder_name(way[-1]) for way in set(taken.values()))
    return {
        parts: way[-1] if ends[folder_name(way[-1])] == 1 else " ".join(way)
        for parts, way in taken.items()
        if len(way) > 1
    }


def _platform(parts: tuple[str, ...]) -> dict[str, str] | None:
    """Return what Moodle or Canvas has put into a name; None if neither has."""
    matches = (MOODLE.fullmatch(part) or CANVAS.fullmatch(part) for part in parts)
    return next((match.groupdict() for match in matches if match), None)


def _split(parts: tuple[str, ...]) -> tuple[str, str, list[str]]:
    """Return a file's name, what it holds besides its chapter, and the folders that are not a chapter's."""
    whole = re.sub(r"\.\w+$", "", parts[-1])
    return whole, _cleaned(whole), [part for part in parts[:-1] if part not in chapter_names()]


def _cleaned(stem: str) -> str:
    """Return what a file's name holds besides its chapter and what programs add."""
    chapters = rf"({'|'.join(chapter_names())})([ _-]*\(\d+\)|-\d+)?"  # the number of a file that came again
    before = ""
    while stem != before:
        before = stem
        stem = re.sub(chapters, " ", COPY.sub("", stem).strip(" _-")).strip(" _-")
    return stem
