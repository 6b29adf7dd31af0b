"""An answer of each chapter that is asked for again with changes: another task for another seed.

No page and no notebook of the book shows one. Its answer is the book's, changed; `variations.toml` says how.
"""

import copy
import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vit_classroom.assignments.notebooks import (
    Cell,
    Chapter,
    Task,
    brought_in,
    needed,
    read_chapter,
    without_marks,
)
from vit_from_scratch.errors import InputError

if TYPE_CHECKING:
    from vit_classroom.checks.judging import Check, Instead

TABLE = Path(__file__).parent / "variations.toml"
POINTS = 5
ROUNDS = 2
"""Inputs are drawn anew so many times for each answer."""
BELOW = "## Where next"
"""The heading below a variation."""
# How the call says which variation it checks.
ASKED = re.compile(r"sheet\.check\(.*\bvariant=(-?\d+)")
TEXT = """\
### One more: `{name}`

Write `{name}`. It is called as `{task}` is, and does the same, but for this:

{changes}

The book has no answer to it. Check yours with `{call}`.
"""


class Change(NamedTuple):
    """What is asked, and what of the book's answer becomes what."""

    asked: str
    edits: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Variation:
    """An answer that is asked for again.

    Attributes:
        chapter: that has it.
        task: its name there.
        groups: of changes. At most one of a group is asked, and it goes with those of other groups.
    """

    chapter: str
    task: str
    groups: tuple[tuple[Change, ...], ...]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.task + ("Varied" if self.task[0].isupper() else "_varied")

    @property
    def tasks(self) -> list[tuple[Change, ...]]:
        """All tasks that can be made of it, each by what is asked."""
        chosen: list[tuple[Change, ...]] = [()]
        for group in self.groups:
            chosen += [(*one, change) for one in chosen for change in group]
        return chosen[1:]

    def asked(self, seed: int) -> tuple[Change, ...]:
        """Return what a seed asks for; the next seed asks for something else."""
        return self.tasks[seed % len(self.tasks)]

    def answer(self, book: str, changes: tuple[Change, ...]) -> str:
        """Return the book's answer with changes, under the variation's name.

        Raises:
            InputError: the table does not fit the answer.
        """
        for old, new in (edit for change in changes for edit in change.edits):
            if book.count(old) != 1:
                times = f"{book.count(old)} times in {self.task}"
                raise InputError(f"{TABLE.name}: {old!r} stands {times}: expected once.")
            book = book.replace(old, new)
        return re.sub(rf"\b{self.task}\b", self.name, book)


@functools.cache
def variations() -> dict[str, Variation]:
    """Return what can be asked for again, by chapter."""
    found = {}
    for chapter, entry in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        groups = tuple(
            tuple(Change(said, tuple(zip(edits[::2], edits[1::2], strict=True))) for said, *edits in group)
            for group in entry["changes"]
        )
        found[chapter] = Variation(chapter, entry["task"], groups)
    return found


def assigned(name: str, variant: int | None = None) -> Chapter:
    """Return a chapter as it is assigned: with a variation, by its seed, unless that is None.

    Raises:
        InputError: there is no such chapter, or the table does not fit it.
    """
    chapter = read_chapter(name)
    if variant is None:
        return chapter
    one, notebook = variations()[chapter.name], json.loads(chapter.text)
    names = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in notebook["cells"]]
    places = names.index(one.task), names.index(f"check-{one.task}")
    answer, check = (copy.deepcopy(notebook["cells"][place]) for place in places)
    call = f'sheet.check("{one.name}", variant={variant})'
    changes = "\n".join(f"- {change.asked}" for change in one.asked(variant))
    words = TEXT.format(name=one.name, task=one.task, changes=changes, call=call)
    title = notebook["cells"][0]  # its button opens the notebook without this task
    title["source"] = "".join(title["source"]).partition("\n\n[![Open in Colab]")[0]
    text = {"cell_type": "markdown", "metadata": {}, "source": words}
    answer["source"] = one.answer("".join(answer["source"]), one.asked(variant))
    answer["metadata"]["nbgrader"]["grade_id"] = one.name
    check["source"] = call
    check["metadata"]["nbgrader"] |= {"grade_id": f"check-{one.name}", "points": POINTS}
    check["metadata"]["assignment"] |= {"name": one.name, "variant": variant}
    place = next(n for n, cell in enumerate(notebook["cells"]) if "".join(cell["source"]).startswith(BELOW))
    notebook["cells"][place:place] = [
        cell | {"id": f"variation-{number}"} for number, cell in enumerate((text, answer, check))
    ]
    return replace(chapter, text=json.dumps(notebook, ensure_ascii=False))


def variant_of(chapter: str, cells: Iterable[Cell]) -> int | None:
    """Return the seed of the variation that a chapter's notebook asks for; None where it asks for none."""
    name = f"check-{variations()[chapter].name}" if chapter in variations() else ""
    asked = (ASKED.search(cell.source) for cell in cells if cell.name == name)
    return next((int(found[1]) for found in asked if found), None)


def check_of(task: Task) -> "Check":
    """Return what judges an answer."""
    from vit_classroom import checks  # imported here, as below: it takes seconds

    check = getattr(checks, task.check)
    return check if task.variant is None else check.varied(_instead(task))


def seeds_of(seed: int, name: str) -> tuple[int, ...]:
    """Return the seeds with which an answer is checked: other ones for each year's seed and each name."""
    digests = [hashlib.sha256(f"{seed} {name} {number}".encode()).digest() for number in range(ROUNDS)]
    return tuple(int.from_bytes(digest[:4], "big") % 2**31 for digest in digests)


@functools.cache
def _instead(task: Task) -> "Instead":
    """Return what gives the right results of a variation, and those that were not asked for."""
    from vit_classroom.checks.judging import UNCHANGED, Instead

    one = next(one for one in variations().values() if one.name == task.name)
    chapter = read_chapter(one.chapter)
    code = [without_marks(brought_in(cell.source)) for cell in chapter.cells if cell.kind == "code"]
    book = next(other.answer for other in chapter.tasks if other.name == one.task)
    asked = one.asked(task.variant or 0)

    def made(changes: tuple[Change, ...]) -> Callable[..., Any]:
        source = one.answer(book, changes)
        space: dict[str, Any] = {"__name__": "variation"}
        for part in [*needed(code, [source]), source]:
            exec(compile(part, "<a variation>", "exec"), space)
        return space[one.name]

    others = {}
    for changes in [(), *one.tasks]:
        if changes != asked:
            said = [] if changes else [UNCHANGED]
            said += [f"This is asked and missing: {one.asked}" for one in asked if one not in changes]
            said += [f"This is not asked: {one.asked}" for one in changes if one not in asked]
            others[" ".join(said)] = made(changes)
    return Instead(made(asked), others)
