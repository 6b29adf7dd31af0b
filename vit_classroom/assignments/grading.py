"""Marks for one notebook: its own code runs in a process apart, the checks here."""

import ast
import contextlib
import functools
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import Literal

from vit_classroom import checks
from vit_classroom.assignments.alignment import own_answers, repaired, to_read
from vit_classroom.assignments.limits import Limits
from vit_classroom.assignments.notebooks import (
    STUB,
    Cell,
    Chapter,
    Task,
    brought_in,
    cells_of,
    definitions_in,
    for_students,
    form_of,
    needed,
    plain_python,
    statements_of,
    with_set_up,
)
from vit_classroom.assignments.proxies import ProcessEnded, StudentProcess, remote_piece
from vit_classroom.assignments.suspicion import Suspicion, is_check, own_code, suspicions
from vit_classroom.assignments.variations import check_of, seeds_of
from vit_classroom.assignments.worksheet import UNWRITTEN

State = Literal["right", "not right", "to do", "to read"]
MISSING = "there is none in the notebook"
REACHED = {
    "did not come to an end": "did not come to an end",
    "ended its process": "ended its process",
    "MemoryError": "took more memory than there was",
    "can't allocate memory": "took more memory than there was",
    "bad_alloc": "took more memory than there was",
}
"""Words of a message about a limit that was reached, and what it means."""
MOST_LATE = 10
"""After so many cells of a notebook that reached their time, the rest only define, or a class would wait;
after three times as many, they do not even do that."""
ONLY_DEFINES = "and those below only define"


@dataclass(frozen=True)
class Mark:
    """What one answer earned.

    Attributes:
        task: what was asked.
        points: earned, in part where a part is right; 0 for what a person has yet to read.
        state: "right", "not right", "to do" (a stub, or nothing), or "to read" (by a person).
        message: what a check says, or why there are no points.
        own: what the student wrote.
        printed: what stood below that in the notebook, where a person reads it.
    """

    task: Task
    points: float
    state: State
    message: str = ""
    own: str = ""
    printed: str = ""


@dataclass
class Marks:
    """What a notebook earned.

    Attributes:
        marks: one for each task of the chapter.
        suspicions: what a person should look at.
        remarks: cells that stopped with an error, in words.
        held: which limits held.
    """

    marks: list[Mark]
    suspicions: list[Suspicion] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    held: dict[str, bool] = field(default_factory=dict)

    @property
    def points(self) -> float:
        """All that was earned so far."""
        return sum(mark.points for mark in self.marks)


def limit_reached(message: str) -> str:
    """Return which limit a message is about, in words; "" if about none."""
    return next((what for words, what in REACHED.items() if words in message), "")


def points_for(parts: Mapping[str, float], whole: float) -> tuple[float, str]:
    """Return what the parts of an answer earn together, in half points, and in words what each does.

    A part has a fifth of the points, and values have what is left.

    Args:
        parts: how much of each is right (see `CheckFailed`).
        whole: all points of the answer.
    """
    of = dict.fromkeys(parts, whole / 5)
    of["values"] = whole - sum(of.values()) + of.get("values", 0)
    earned = {name: int(2 * of[name] * share + 1e-6) / 2 for name, share in parts.items()}
    told = ", ".join(f"{name} {points:g} of {of[name]:g}" for name, points in earned.items())
    total = min(sum(earned.values()), whole - 0.5)
    return total, f"\n  Points: {told}." if total else ""


class _Session:
    """A student's process that is started again where it was left, with what a cell that ended it defines."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.process = StudentProcess(limits)
        self.held = self.process.start()
        self.ran: list[tuple[str, str]] = []
        self.late = 0

    def run(self, source: str, place: str) -> str:
        """Run code, and return how it failed, "" if it did not."""
        try:
            reply, _ = self.process.ask({"do": "run", "source": source, "place": place})
        except TimeoutError:
            self.late += 1
            failed = f"did not come to an end within {self.limits.seconds:g} seconds"
        except ProcessEnded as error:
            failed = str(error)
        else:
            failed = f"stopped with {shorten(str(reply['error']), 150)}" if "error" in reply else ""
            if not (limit_reached(failed) and self.process.is_full()):
                self.ran.append((source, place))
                return failed
        self.again()
        before = len(self.ran)
        self.define(source, place)  # an experiment below an answer costs it nothing
        if self.process.is_full():  # or what it keeps would cost the answers below it theirs
            del self.ran[before:]
            self.again()
        return failed

    def define(self, source: str, place: str) -> None:
        """Run what a cell defines, statement by statement, so that one that fails loses only itself."""
        for statement in statements_of(definitions_in(source)):
            if self.late >= 3 * MOST_LATE:
                return
            part = ast.unparse(statement)
            try:
                message = {"do": "run", "source": part, "place": place}
                self.process.ask(message, seconds=self.limits.seconds / (10 if self.late >= MOST_LATE else 1))
            except (TimeoutError, ProcessEnded) as error:
                self.late += isinstance(error, TimeoutError)
                self.again()
            else:
                self.ran.append((part, place))

    def again(self) -> None:
        """Start a new process, and run what ran before; a cell that does not run again is left out."""
        self.process.close()
        self.process = StudentProcess(self.limits)
        self.process.start()
        for number, (source, place) in enumerate(self.ran):
            try:
                self.process.ask({"do": "run", "source": source, "place": place})
            except (TimeoutError, ProcessEnded):
                del self.ran[number]
                return self.again()

    def judge(self, task: Task, seeds: tuple[int, ...], tries: int) -> checks.CheckFailed | None:
        """Check an answer, once more where it reaches a limit, and return what is wrong, if anything is."""
        failure = self._judged(task, seeds)
        if failure is not None and limit_reached(str(failure)):
            self.again()  # whatever it left behind is in nobody's way
            return self.judge(task, seeds, tries - 1) if tries > 1 else checks.CheckFailed(*failure.args)
        return failure

    def _judged(self, task: Task, seeds: tuple[int, ...]) -> checks.CheckFailed | None:
        try:
            for seed in seeds:
                piece = remote_piece(self.process, task.name)
                with contextlib.redirect_stdout(io.StringIO()):
                    check_of(task)(piece, seed=seed, name=task.name)
        except checks.CheckFailed as failure:
            return failure
        except LookupError:
            said = f"{MISSING}."
        except TimeoutError:
            said = "it did not come to an end."
        except ProcessEnded as error:
            said = f"it {error}."
        except Exception as error:  # of a reply that makes no sense; nothing that goes wrong here is right
            said = f"it could not be judged ({type(error).__name__})."
        else:
            return None
        finally:
            if not self.process.alive:
                self.again()
        return checks.CheckFailed(f"{task.name}: {said}")


def grade(
    chapter: Chapter,
    cells: list[Cell],
    seeds: Callable[[str], tuple[int, ...]] | None = None,
    limits: Limits | None = None,
    tries: int = 2,
) -> Marks:
    """Mark a notebook.

    Each answer is judged where its check stands, with what the student's cells above it have made. After one
    that is not right, the book's own takes its place, so that a mistake costs its points once.

    Args:
        chapter: what was assigned.
        cells: what was handed in.
        seeds: for the name of an answer, those of the inputs that are drawn; None for those of `seeds_of`
            with 0.
        limits: for the student's code.
        tries: that an answer has before it loses its points to a limit, each in a fresh process.

    Returns:
        A mark for each task; what a person reads is "to read", or "to do" where nothing was written (see
        `to_read`).
    """
    limits = limits or Limits()
    seeds = seeds or functools.partial(seeds_of, 0)
    cells = with_set_up(chapter, [cell for cell, _ in repaired(chapter, cells)])
    found = suspicions(chapter, cells)
    given = [for_students(cell) for cell in json.loads(chapter.text)["cells"]]
    forms = {cell.form for cell in cells_of({"cells": given}) if STUB in cell.source}
    stubs = {cell.name for cell in cells if cell.form in forms}
    session = _Session(limits)
    marks: dict[str, Mark] = {}
    remarks: list[str] = []
    waiting = {task.cell_name: task for task in chapter.tasks if task.check}
    try:
        session.define(_gone(chapter, cells), "given cells")
        since = 0
        for place, source in _plan(chapter, cells):
            name = cells[place].name
            if is_check(cells[place]) and name in waiting and source is None:
                region = range(since + 1, place + 2)
                task = waiting.pop(name)
                untouched = task.name in stubs
                marks[name] = _judged(session, task, seeds, tries, region, found, remarks, untouched)
                since = place + 1
            elif source and session.late >= MOST_LATE:
                session.define(source, f"cell {place + 1}")
                if not any(ONLY_DEFINES in remark for remark in remarks):
                    remarks.append(f"cell {place + 1} {ONLY_DEFINES}: {MOST_LATE} above were late")
            elif failed := session.run(source, f"cell {place + 1}") if source else "":
                remarks.append(f"cell {place + 1} {failed}")
                if "stopped with" not in failed or limit_reached(failed):
                    found.append(Suspicion(place + 1, failed))
    finally:
        session.process.close()
    for name, places in to_read(chapter, cells).items():
        task = next(task for task in chapter.tasks if task.name == name)
        elsewhere = [str(place + 1) for place in places if cells[place].name != name]
        message = f"{name}: to read in cell {', '.join(elsewhere)}." if elsewhere else ""
        printed = "\n".join(filter(None, (cells[place].printed for place in places)))
        marks[name] = Mark(task, 0, "to read" if places else "to do", message, printed=printed)
    ordered = [replace(marks[task.cell_name], own=own) for task, own in own_answers(chapter, cells).items()]
    return Marks(ordered, sorted(set(found), key=lambda one: (one.cell, one.what)), remarks, session.held)


def _judged(
    session: _Session,
    task: Task,
    seeds: Callable[[str], tuple[int, ...]],
    tries: int,
    region: Sequence[int],
    found: list[Suspicion],
    remarks: list[str],
    untouched: bool,
) -> Mark:
    """Judge one answer; then the book's stands in its place unless it is right.

    What an `untouched` stub inherits earns nothing.
    """
    severe = [one for one in found if one.severe and one.cell in region]
    failure = session.judge(task, seeds(task.name), tries)
    message, points = str(failure or ""), 0.0
    if what := limit_reached(message):
        found.append(Suspicion(max(region, default=0), f"{task.name} {what}"))
    state: State = "not right"
    told = ""
    if failure and not severe:
        points, told = points_for(failure.parts, task.points)
    if UNWRITTEN in message and (untouched or not points):
        state, message, points = "to do", f"{task.name}: still to be written.", 0.0
    elif failure and not severe:
        message += told
        own = [remark for remark in remarks if int(remark.split()[1]) in region]
        if own and MISSING in message:
            message = f"{task.name}: {MISSING}, because {own[-1]}."
    elif severe:
        message = f"{task.name}: no points, because {severe[0]}. If that is a mistake, please say so."
    else:
        return Mark(task, task.points, "right")
    if task.variant is None:  # the book has no other
        session.run(task.answer, f"the book's {task.name}")
    return Mark(task, points, state, message)


def _gone(chapter: Chapter, cells: list[Cell]) -> str:
    """Return what given cells that are gone import and define, as far as it is needed: it ran before."""
    there = {cell.form for cell in cells}
    gone = [brought_in(source) for source in chapter.given if form_of(source) not in there]
    kept = [definitions_in(plain_python(source)) for source in gone]
    own = [plain_python(cell.source) for cell in cells if cell.kind == "code"]
    return needed(["\n".join(kept)], own)[0]


def _plan(chapter: Chapter, cells: list[Cell]) -> list[tuple[int, str | None]]:
    """Say what runs of each cell: all of a student's own, and of what is given the part that these need.

    Of a cell that checks an answer, that is what somebody wrote above the call, None, when it is judged,
    and what stands below.
    """
    known = {cell.form for cell in chapter.cells if is_check(cell)}  # where one is doubled
    known |= set(map(form_of, chapter.given))
    code = {place: cell for place, cell in enumerate(cells) if cell.kind == "code"}
    given = [place for place, cell in code.items() if cell.form in known]
    both = {place: own_code(cell) for place, cell in code.items() if place not in given}
    own = {place: plain_python("\n".join(filter(None, parts))) for place, parts in both.items()}
    answers = [task.answer for task in chapter.tasks if task.check]
    parts = needed([brought_in(cells[place].source) for place in given], [*own.values(), *answers])
    sources = own | dict(zip(given, parts, strict=True))
    plan: list[tuple[int, str | None]] = []
    for place, cell in code.items():
        above, below = both.get(place, ("", "")) if is_check(cell) else (sources[place], "")
        plan += [(place, above), *([(place, None), (place, below)] if is_check(cell) else [])]
    return plan
