"""Which answers of a class are alike, or like the book's. It is a list to look at, and costs nobody points.

Short right answers are alike by nature, so they are left out.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from vit_classroom.assignments.notebooks import LONGEST_CELL, UNREADABLE, plain_python
from vit_classroom.assignments.variations import assigned

BOOK = "the book"


class Measure(NamedTuple):
    """How answers of one kind are compared: by the runs of words, or signs, that they share.

    A `run` is so many words in a row. Two answers are alike from this `share` on, of runs in both among those
    in either, if each has the `least` number of runs.
    """

    run: int
    share: float
    least: int


CODE, WORDS = Measure(5, 0.8, 60), Measure(3, 0.5, 30)


class Alike(NamedTuple):
    """Answers that are alike: who wrote them (see `BOOK`), and whether all are the same."""

    chapter: str
    name: str
    students: tuple[str, ...]
    same: bool

    def __str__(self) -> str:
        """In one line."""
        return f"{self.chapter}, {self.name}: {', '.join(self.students)}{', all the same' * self.same}"


def likenesses(records: list[dict[str, Any]]) -> list[Alike]:
    """Find them in the records of a class."""
    return [
        alike
        for name in sorted({record["chapter"] for record in records if record["marks"]})
        for alike in _in_chapter(name, [record for record in records if record["chapter"] == name])
    ]


def like_others(record: dict[str, Any], found: list[Alike]) -> list[str]:
    """Say, for a record, whose answers are like its own; of the book's, which all may read, nothing."""
    lines = []
    for one in found:
        others = [who for who in one.students if who != record["student"]]
        mine = one.chapter == record["chapter"] and len(others) < len(one.students)
        if mine and BOOK not in others:
            shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
            lines.append(f"{one.name} is {'the same as' if one.same else 'much like'} that of {shown}")
    return lines


def _in_chapter(name: str, records: list[dict[str, Any]]) -> Iterator[Alike]:
    variant = next((one for record in records if (one := record.get("variant")) is not None), None)
    for task in assigned(name, variant).tasks:
        measure = CODE if task.check else WORDS
        texts = {
            record["student"]: mark["own"][:LONGEST_CELL]
            for record in records
            for mark in record["marks"]
            if mark["name"] == task.name and mark["state"] != "to do"
        }
        runs = {who: _runs(text, measure) for who, text in (texts | {BOOK: task.answer}).items()}
        groups: list[list[str]] = []
        for who, mine in runs.items():
            near = [group for group in groups if any(_are_like(mine, runs[one], measure) for one in group)]
            rest = [group for group in groups if group not in near]
            groups = [*rest, [*(one for group in near for one in group), who]]
        for group in groups:
            if len(group) > 1:
                yield Alike(name, task.name, tuple(group), all(runs[who] == runs[group[0]] for who in group))


def _are_like(one: frozenset[str], other: frozenset[str], measure: Measure) -> bool:
    return min(len(one), len(other)) >= measure.least and len(one & other) >= measure.share * len(one | other)


def _runs(text: str, measure: Measure) -> frozenset[str]:
    words = re.findall(r"\w+|[^\w\s]", _plain(text)) if measure == CODE else re.findall(r"\w+", text.lower())
    return frozenset(" ".join(words[i : i + measure.run]) for i in range(len(words) - measure.run + 1))


def _plain(text: str) -> str:
    """Return code without comments, docstrings, annotations and the names that it chooses itself."""
    try:
        tree = ast.parse(plain_python(text))
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in own:
                node.id = "_"
            elif isinstance(node, ast.arg):
                node.arg, node.annotation = "_", None
            elif isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        return ast.unparse(tree)
    except UNREADABLE:
        return text
