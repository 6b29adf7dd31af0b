"""Where the cells of a chapter are in a student's notebook, whatever was doubled, deleted or moved."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from difflib import SequenceMatcher

from vit_classroom.assignments.notebooks import (
    STUB,
    TO_WRITE,
    Cell,
    Chapter,
    Task,
    bound_by,
    plain_python,
    statements_of,
)
from vit_classroom.assignments.suspicion import is_check

GONE = {"gone": True}
"""What marks a cell that stands in for one that was deleted."""


def repaired(
    chapter: Chapter, cells: list[Cell], names: Collection[str] | None = None
) -> list[tuple[Cell, int | None]]:
    """Give a notebook each cell with a name once, and under its name; all of the student's cells stay.

    Of two checks of an answer, the first below the answer counts. A check is gone, too, if only the stub
    stands above it, and the answer between it and the next check. A cell that is gone comes back empty, a
    check below its answer; it is marked as `GONE`.

    Args:
        chapter: what was assigned.
        cells: what was handed in.
        names: of the cells to look after; None for all of the chapter's.

    Returns:
        The cells, each with the place that it had among the student's, None for one that was gone.
    """
    wanted = {one.name: one for one in chapter.cells if one.name and (names is None or one.name in names)}
    chosen = _chosen(chapter, cells)
    named = {place: wanted[name] for name, place in chosen.items() if name in wanted}
    known = {cell.name for cell in chapter.cells}
    seen: set[str] = set()
    kept: list[Cell] = []
    for place, cell in enumerate(cells):
        others = bool(cell.name) and cell.name not in known and cell.name not in seen  # an instructor's own
        seen.add(cell.name)
        about = named[place].about if place in named else cell.about if others else {}
        gone = GONE if cell.assignment == GONE else {}
        kept.append(replace(cell, about=about, assignment=gone))
    added: dict[int, list[Cell]] = {}
    places = aligned(chapter, cells, chosen)
    for number, cell in enumerate(chapter.cells):
        if cell.name in wanted and cell.name not in chosen:
            after = max((place for index, place in places.items() if index < number), default=-1)
            if is_check(cell):
                source = cell.source
                after = max([after, *_binding(chapter, cells, cell.name.removeprefix("check-"))])
            else:
                source = TO_WRITE if cell.kind == "markdown" else ""
            added.setdefault(after, []).append(replace(cell, source=source, assignment=GONE))
    result: list[tuple[Cell, int | None]] = [(cell, None) for cell in added.get(-1, [])]
    for place, cell in enumerate(kept):
        result += [(cell, place), *((one, None) for one in added.get(place, []))]
    return result


def aligned(chapter: Chapter, cells: list[Cell], chosen: dict[str, int]) -> dict[int, int]:
    """Return the places in the notebook of the chapter's cells, by number, as far as they are in order.

    A cell with a heading goes by it, whatever else was typed there.
    """
    names = {place: name for name, place in chosen.items()}
    ours = [(cell.name, "" if cell.name else _known_by(cell)) for cell in chapter.cells]
    theirs = [
        (names[place], "") if place in names else ("", _known_by(cell)) for place, cell in enumerate(cells)
    ]
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return {block.a + step: block.b + step for block in blocks for step in range(block.size)}


def to_read(chapter: Chapter, cells: list[Cell]) -> dict[str, list[int]]:
    """Return, for each question that a person reads, the places of the cells with something to read.

    That is what a student wrote anywhere between the question's heading and the next. Where that is nothing,
    it is the words that stand below other answers, which may be meant for it.

    Args:
        chapter: what was assigned.
        cells: what was handed in, `repaired`.
    """
    places = aligned(chapter, cells, {cell.name: place for place, cell in enumerate(cells) if cell.name})
    own = [place for place, cell in enumerate(cells) if _is_own(chapter, cell)]
    stretches = dict(_stretches(chapter, places, len(cells)))
    begin = min((start for start, _ in stretches.values()), default=len(cells))
    found: dict[str, list[int]] = {}
    loose = {
        place
        for place in own
        if cells[place].kind == "markdown" and not cells[place].name
        if place > begin or (place and cells[place - 1].name)
    }
    for name, (start, end) in stretches.items():
        found[name] = [
            place
            for place in own
            if cells[place].name == name or (start <= place < end and not cells[place].name)
        ]
        if not any(cells[place].name for place in found[name]):
            loose.difference_update(found[name])
    return {name: mine or sorted(loose) for name, mine in found.items()}


def own_answers(chapter: Chapter, cells: list[Cell]) -> dict[Task, str]:
    """Return what a student wrote for each task; `cells` are `repaired`."""
    written = {cell.name: [cell.source] for cell in cells}
    words = {name: [cells[n].source for n in places] for name, places in to_read(chapter, cells).items()}
    return {task: "\n\n".join((written | words).get(task.name, [])) for task in chapter.tasks}


def _chosen(chapter: Chapter, cells: list[Cell]) -> dict[str, int]:
    """Return the place of each cell with a name that is there, with or without its metadata."""
    checks = {cell.form: cell.name for cell in chapter.cells if is_check(cell)}
    copies: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        copies.setdefault(checks.get(cell.form, cell.name), []).append(place)
    chosen: dict[str, int] = {}
    for cell in chapter.cells:
        there = copies.get(cell.name, []) if cell.name else []
        if is_check(cell):
            there = [place for place in there if cells[place].kind == "code"]
            exact = [place for place in there if cells[place].form == cell.form]
            bound = _binding(chapter, cells, cell.name.removeprefix("check-"))
            last = max(bound, default=-1)
            below = [place for place in exact or there if place > last]
            there = below[:1] or (exact or there)[-1:]
            if exact and there[0] < last and STUB not in cells[last].source:
                above = [cells[place].source for place in bound if place < there[0]]
                others = [one for one in cells[there[0] + 1 : last] if one.form in checks or is_check(one)]
                if all(STUB in source for source in above) and not others:
                    there = []  # the answer was written below it
        elif cell.name and cell.kind == "code":
            binding = _binding(chapter, cells, cell.name)
            free = [place for place in binding if cells[place].name in ("", cell.name)]
            written = [place for place in free if STUB not in cells[place].source]
            stubs = all(STUB in cells[place].source for place in there)
            there = ([place for place in there if place in binding] or there or binding)[-1:]
            there = written[-1:] if written and stubs else there
        else:
            there = ([place for place in there if not _is_blank(cells[place])] or there)[:1]
        if there and there[0] not in chosen.values():
            chosen[cell.name] = there[0]
    taken = set(chosen.values())
    for name, (start, end) in _stretches(chapter, aligned(chapter, cells, chosen), len(cells)):
        words = [p for p in range(start + 1, end) if cells[p].kind == "markdown" and p not in taken]
        words = [place for place in words if cells[place].form not in _given(chapter)]
        if name not in chosen and words:
            chosen[name] = next((place for place in words if not _is_blank(cells[place])), words[0])
            taken.add(chosen[name])
    return chosen


def _known_by(cell: Cell) -> str:
    heading = re.search(r"^#+ .+", cell.source, re.MULTILINE) if cell.kind == "markdown" else None
    return heading[0] if heading else cell.form


def _stretches(chapter: Chapter, places: dict[int, int], count: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the name of each question that a person reads, and between which places its answer belongs."""
    headings = [
        number
        for number, cell in enumerate(chapter.cells)
        if cell.kind == "markdown" and not cell.name and re.search(r"^#+ ", cell.source, re.MULTILINE)
    ]
    for number, cell in enumerate(chapter.cells):
        if cell.name and cell.kind == "markdown":
            above = max((one for one in headings if one < number), default=0)
            below = min((one for one in headings if one > number), default=len(chapter.cells))
            start = max((place for one, place in places.items() if one <= above), default=-1)
            end = min((place for one, place in places.items() if one >= below), default=count)
            yield cell.name, (start, end)


def _binding(chapter: Chapter, cells: list[Cell], name: str) -> list[int]:
    """Return the places of the student's cells that define a name."""
    return [
        place
        for place, cell in enumerate(cells)
        if cell.kind == "code"
        and _is_own(chapter, cell)
        and re.search(rf"\b{re.escape(name)}\b", cell.source)
        if any(name in bound_by(one) for one in statements_of(plain_python(cell.source)))
    ]


def _given(chapter: Chapter) -> set[str]:
    return {cell.form for cell in chapter.cells if not cell.name or is_check(cell)}


def _is_blank(cell: Cell) -> bool:
    return cell.source.strip() in ("", TO_WRITE)


def _is_own(chapter: Chapter, cell: Cell) -> bool:
    """Say whether there is something of the student's in a cell."""
    return not (_is_blank(cell) or is_check(cell) or cell.form in _given(chapter))
