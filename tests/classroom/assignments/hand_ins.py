"""What students of chapter 3 hand in, with the points that each deserves, and two ways to grade it."""

import csv
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attacks import ATTACKS

from vit_classroom.assignments.notebooks import read_chapter

CHAPTER = "03_attention"
TASKS = read_chapter(CHAPTER).tasks
ANSWERS = {task.name: task.answer for task in TASKS}
POINTS = {task.name: task.points for task in TASKS if task.check}
CHECKED, QUESTIONS = 40, 15
ONE, MANY, EINSUM, MASKED, STREAMED = POINTS
NOTHING = dict.fromkeys(ANSWERS)
RIGHT = ANSWERS[ONE]
BODY = RIGHT.partition("\n")[2]


@dataclass
class HandIn:
    """A notebook, or what comes in its place.

    Attributes:
        written: what stands in place of the book's answers; None for a stub.
        add: a cell above the first answer.
        change: gives other cells.
        points: of the answers that do not earn all; None where there is no worksheet.
        look: said to the instructor; "" where there is nothing.
        file: its name, in the student's folder.
        encoding: of its text.
    """

    written: dict[str, str | None] = field(default_factory=dict)
    add: str = ""
    change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list
    points: dict[str, float] | None = field(default_factory=dict)
    look: str = ""
    file: str = f"{CHAPTER}.ipynb"
    encoding: str = "utf-8"

    @property
    def deserved(self) -> float | None:
        """All points of answers that are checked; None where there is no worksheet."""
        return None if self.points is None else sum((POINTS | self.points).values())


MEASURED = {"output_type": "stream", "name": "stdout", "text": "it took 4.2 s"}
"""What stands below an added cell."""


def about(cell):
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def filled(notebook, change=list, add="", **written):
    """Fill in a notebook for students; `add` becomes a cell above the first answer."""
    cells = []
    for cell in notebook["cells"]:
        if add and about(cell) == ONE:
            cells.append({"cell_type": "code", "metadata": {}, "source": add, "id": "more"})
            cells[-1] |= {"outputs": [MEASURED], "execution_count": None}
        cells.append(cell | ({"source": written[about(cell)]} if written.get(about(cell)) else {}))
    return notebook | {"cells": change(cells)}


def doubled(cells):
    place = [about(cell) for cell in cells].index(f"check-{ONE}")
    return [*cells[: place + 1], cells[place], *cells[place + 1 :]]


def without_checks(cells):
    return [cell for cell in cells if "sheet.check" not in str(cell["source"])]


def by_lines_of_windows(cells):
    (sheet,) = [cell for cell in cells if "sheet = " in str(cell["source"])]
    source = "import torch.nn.functional as F\n" + "".join(sheet["source"])
    return [cell | ({"source": source.replace("\n", "\r\n")} if cell is sheet else {}) for cell in cells]


def elsewhere(cells):
    return [*cells, {"cell_type": "markdown", "metadata": {}, "source": "It may be small.", "id": "words"}]


def with_memory(name, values):
    head, body = ANSWERS[name].split("\n", 1)
    return {name: f"{head}\n    much = torch.empty({values})\n{body}"}


WORDS = (
    "The scores grow with the square of the number of tokens, since every query meets every key. At 64 "
    "that is little beside the projections; at 4608 both cost the same, and beyond it attention is most."
)
LATE = "import time\nwhile time.process_time() < 15:\n    pass"
HAND_INS = {
    "full": HandIn(),
    "own style": HandIn(
        {
            ONE: "import math as m\n\ndef attention(q, k, v):\n    print(q.shape)\n"
            "    return (q @ k.mT / m.sqrt(q.shape[-1])).softmax(-1) @ v"
        },
        add="def helper(x):\n    return x\n\nhelper(torch.zeros(3))",
        file="my solution (final) v2.ipynb",
    ),
    "of Colab": HandIn(file=f"Copy of {CHAPTER}.ipynb"),
    "empty": HandIn(NOTHING, points=dict.fromkeys(POINTS, 0)),
    "half": HandIn(NOTHING | {ONE: RIGHT}, points=dict.fromkeys(POINTS, 0) | {ONE: 5}),
    "wrong": HandIn({ONE: RIGHT.replace("math.sqrt(q.shape[-1])", "q.shape[-1]")}, points={ONE: 1}),
    "bias": HandIn({MANY: ANSWERS[MANY].replace("3 * dim", "3 * dim, bias=False")}, points={MANY: 12}),
    "no Python": HandIn({ONE: "def attention(q, k, v)\n    return q"}, points={ONE: 0}),
    "3 GB": HandIn(with_memory(ONE, 750_000_000)),
    "12 GB": HandIn(with_memory(MASKED, 3_000_000_000), points={MASKED: 0}, look="memory"),
    "heavy products": HandIn(
        {ONE: f"def attention(q, k, v):\n    while True:\n        q @ k.mT\n{BODY}"},
        points={ONE: 0},
        look="not come to an end",
    ),
    "an own experiment": HandIn(add=LATE, look="did not come to an end"),
    "where am I": HandIn(add="import sys\n'google.colab' in sys.modules", look="sys.modules"),
    "nvidia": HandIn(add="import os\nos.system('nvidia-smi')", look="os.system"),
    "magics": HandIn({ONE: f"%%time\n{RIGHT}"}, add="attention?\nget_ipython()\n%timeit 1 + 1\n!ls"),
    "another budget, and lines of Windows": HandIn(change=by_lines_of_windows),
    "torch's": HandIn(
        {ONE: "def attention(q, k, v):\n    return nn.functional.scaled_dot_product_attention(q, k, v)"},
        look="uses torch's scaled_dot_product_attention",
    ),
    "one as another": HandIn({EINSUM: f"{EINSUM} = {ONE}"}, look=f"takes {ONE} for {EINSUM}"),
    "doubled": HandIn(change=doubled),
    "deleted": HandIn(
        change=lambda cells: [cell for cell in cells if MASKED not in about(cell)],
        points={MASKED: 0},
        look=f"check-{MASKED} is gone",
    ),
    "stripped": HandIn(change=lambda cells: [cell | {"metadata": {}} for cell in cells]),
    "elsewhere": HandIn(NOTHING, change=elsewhere, points=dict.fromkeys(POINTS, 0)),
    "without tests": HandIn(
        {ONE: RIGHT.replace("math.sqrt(q.shape[-1])", "q.shape[-1]")},
        change=without_checks,
        points={ONE: 1},
        look=f"check-{ONE}",
    ),
    "utf-16": HandIn(encoding="utf-16"),
    "a mark in front": HandIn(encoding="utf-8-sig"),
    "cp1252": HandIn({"ex-cost": "T² is dear: 4 €."}, encoding="cp1252"),
    "a script": HandIn(points=None, file="solution.py"),
    "a zip": HandIn(file="my work.zip"),
    "a folder and nothing in it": HandIn(points=None, file=""),
    "all wrong": HandIn(
        {name: f"def {name}(q, k, v, *more):\n    return q" for name in POINTS}
        | {MANY: f"class {MANY}(nn.Identity):\n    pass"},
        points=dict.fromkeys(POINTS, 0),
    ),
    "a twin": HandIn({"ex-cost": WORDS}, look="ex-cost"),
    "the other twin": HandIn({"ex-cost": WORDS}, look="ex-cost"),
} | {
    attack: HandIn({ONE: ATTACKS[attack][0]}, points={ONE: 0}, look=ATTACKS[attack][1])
    for attack in ("exit without cleaning up", "patched check", "the package's answer")
}
"""By the student's name."""


def id_of(name):
    """The student's number, so to say."""
    return re.sub(r"\W+", "-", name)


def put_into(inbox, notebook):
    """Write all of them as a platform gives them, and the list of participants beside."""
    for name, one in HAND_INS.items():
        path = inbox / name / one.file
        (inbox / name).mkdir(parents=True)
        whole = filled(notebook, one.change, one.add, **ANSWERS | one.written)
        content = json.dumps(whole, ensure_ascii=False).encode(one.encoding, errors="replace")
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr(f"{CHAPTER}.ipynb", content)
        elif one.file:
            path.write_bytes(content)
    rows = [f'{id_of(name)},"{name}"' for name in HAND_INS]
    roster = inbox.with_name("roster.csv")
    roster.write_text("\n".join(['"id","name"', *rows]), encoding="utf-8")
    return roster


def run(folder, *command):
    """Run a command of this environment, whose own commands nbgrader calls by their names."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | {"PATH": path}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def nbgrader(course, *arguments):
    return run(course, sys.executable, "-m", "nbgrader", *arguments)


def scores_in(course):
    """What nbgrader exports: points, and how many there are, by student."""
    with open(course / "grades.csv", newline="", encoding="utf-8") as file:
        return {
            row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)
        }
