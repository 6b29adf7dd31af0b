"""Grading inside of `nbgrader autograde`: answers are judged from outside of the process that they run in.

nbgrader's own way runs tests in the kernel of the student's notebook, where the student's code has had the
first word. A cell that ends the kernel, or changes what the tests call, then decides about its own marks.
"""

import functools
import re
from dataclasses import replace
from logging import Logger
from typing import Any

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float, Integer

from vit_classroom.assignments.alignment import repaired, to_read
from vit_classroom.assignments.grading import Mark, grade
from vit_classroom.assignments.limits import NOT_APART, Limits, can_be_set_apart
from vit_classroom.assignments.notebooks import cells_of, chapter_names
from vit_classroom.assignments.variations import assigned, variant_of

HIDDEN = re.compile(r"\n?### BEGIN HIDDEN TESTS\n(.*?)\n### END HIDDEN TESTS", re.DOTALL)
SEEDS = re.compile(r"seeds=\(([\d, ]+)\)")


@functools.cache
def warn_once(log: Logger) -> None:
    """Say where the system does not set the students' code apart."""
    if not can_be_set_apart():
        log.warning(NOT_APART)


class RepairCells(NbGraderPreprocessor):
    """Give a notebook back the cells that nbgrader looks for, before it looks.

    It stops at a notebook in which one of them is gone, stands there twice or has lost its metadata.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Repair one notebook, unless it belongs to no chapter."""
        place = resources["nbgrader"]
        if place["notebook"] not in chapter_names():
            return nb, resources
        with Gradebook(place["db_url"]) as book:
            given = book.find_notebook(place["notebook"], place["assignment"]).source_cells
            names, variant = {cell.name for cell in given}, variant_of(place["notebook"], given)
        cells: list[NotebookNode] = []
        for cell, number in repaired(assigned(place["notebook"], variant), cells_of(nb), names):
            metadata = {"nbgrader": cell.about} if cell.about else {}
            metadata |= {"assignment": cell.assignment} if cell.assignment else {}
            if number is not None:
                entry = nb.cells[number]
                for name in ("nbgrader", "assignment"):
                    entry.metadata.pop(name, None)
                entry.metadata.update(from_dict(metadata))
                for output in entry.get("outputs", []):
                    if "metadata" in output:
                        output.metadata = from_dict({})  # pages write the sizes of figures in it as they are
            else:
                entry = {"cell_type": cell.kind, "metadata": metadata, "source": cell.source}
                entry |= {"outputs": [], "execution_count": None} if cell.kind == "code" else {}
                entry |= {"id": f"again-{len(cells)}"} if (nb.nbformat, nb.nbformat_minor) >= (4, 5) else {}
            cells.append(from_dict(entry))
        nb.cells = cells
        return nb, resources


class JudgeAnswers(NbGraderPreprocessor):
    """Judge the answers of a notebook, and write the verdicts where nbgrader looks for them.

    A cell that checks an answer gets a line when all is right, what is wrong and the points when a part is,
    and an error otherwise. Other cells keep the outputs that they had. What a person should look at is
    logged, and written to look_at.txt beside the graded notebook.
    """

    seconds = Float(30.0, help="Seconds for a cell of the student's.").tag(config=True)
    megabytes = Integer(4000, help="Memory for the student's code.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Judge one notebook."""
        warn_once(self.log)
        place = resources["nbgrader"]
        checks = {cell.metadata.nbgrader.get("grade_id", ""): cell for cell in nb.cells if _is_check(cell)}
        try:
            seeds = {name: _seeds(cell.source) for name, cell in checks.items()}
            cells = [replace(cell, source=HIDDEN.sub("", cell.source)) for cell in cells_of(nb)]
            chapter = assigned(place["notebook"], variant_of(place["notebook"], cells))
            limits = Limits(self.megabytes, self.seconds)
            marks = grade(chapter, cells, lambda name: seeds.get(f"check-{name}", (0,)), limits)
        except Exception as error:
            self.log.exception("%s of %s was not graded", place["notebook"], place["student"])
            for cell in checks.values():
                cell.outputs = [_failed(f"not graded: {type(error).__name__}: {error}")]
            return nb, resources
        by_name = {mark.task.cell_name: mark for mark in marks.marks}
        for name, cell in checks.items():
            cell.outputs = _outputs(by_name[name]) if name in by_name else [_failed("nothing of this name")]
        for name, places in to_read(chapter, cells).items():
            for cell in nb.cells:
                if places and cell.metadata.get("nbgrader", {}).get("grade_id") == name:
                    cell.metadata.nbgrader.pop("checksum", None)  # or what stands elsewhere would be a 0
        if marks.suspicions:
            lines = "\n".join(map(str, marks.suspicions))
            self.log.warning("%s of %s, please look:\n%s", place["notebook"], place["student"], lines)
            resources.setdefault("outputs", {})["look_at.txt"] = f"{lines}\n".encode()
        return nb, resources


def _is_check(cell: NotebookNode) -> bool:
    about = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and about.get("grade", False) and not about.get("solution", False)


def _seeds(source: str) -> tuple[int, ...]:
    found = SEEDS.search(source)
    return tuple(int(number) for number in found[1].split(",") if number.strip()) if found else (0,)


def _outputs(mark: Mark) -> list[NotebookNode]:
    """Return what nbgrader takes for these points: an error for none, and a result for a part of them."""
    if not mark.points:
        return [_failed(mark.message)]
    said = mark.message or f"✓ {mark.task.name}"
    outputs = [new_output("stream", name="stdout", text=f"{said}\n")]
    if mark.state != "right":
        outputs.append(new_output("execute_result", {"text/plain": f"{mark.points:g}"}))
    return outputs


def _failed(message: str) -> NotebookNode:
    return new_output("error", ename="CheckFailed", evalue=message.splitlines()[0], traceback=[message])
