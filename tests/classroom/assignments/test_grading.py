"""Marks come from outside of the process in which a student's code runs."""

import ast
import dataclasses
import errno
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import banks
import pytest
import torch
from attacks import ATTACKS, RIGHT_ALL_THE_SAME
from banks import RIGHT, WRONG
from project_facts import ROOT

from vit_classroom import checks
from vit_classroom.assignments import grading, nursery, wire
from vit_classroom.assignments.alignment import repaired
from vit_classroom.assignments.grading import _plan, grade
from vit_classroom.assignments.limits import Limits, can_be_set_apart
from vit_classroom.assignments.notebooks import (
    Cell,
    Chapter,
    brought_in,
    chapter_names,
    for_students,
    form_of,
    read_chapter,
)
from vit_classroom.assignments.proxies import ProcessEnded, StudentProcess, remote_piece
from vit_classroom.assignments.suspicion import suspicions
from vit_classroom.assignments.variations import seeds_of
from vit_classroom.checks import sandbox

CHECKED = {"attention": 5, "MultiHeadSelfAttention": 15}


def points(marks):
    return {mark.task.name: mark.points for mark in marks.marks if mark.task.check}


def of(marks, name):
    return next(mark for mark in marks.marks if mark.task.name == name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name[:2] in ("01", "03", "12") else pytest.mark.slow)
        for name in chapter_names()
    ],
)
def test_the_books_own_answers_get_full_marks(name):
    """In every chapter, with what they need of the given cells and nothing to look at."""
    chapter = read_chapter(name)
    marks = grade(chapter, chapter.cells)
    assert {mark.task.name: mark.message for mark in marks.marks if mark.task.check and not mark.points} == {}
    assert marks.points == sum(task.points for task in chapter.tasks if task.check)
    assert marks.suspicions == []
    assert marks.remarks == []


def test_an_untouched_notebook_gets_nothing_and_is_graded_to_the_end(two_answers, cells):
    marks = grade(two_answers, cells())
    assert points(marks) == dict.fromkeys(CHECKED, 0)
    assert {mark.state for mark in marks.marks} == {"to do"}
    assert of(marks, "attention").message == "attention: still to be written."
    assert marks.suspicions == []


def test_what_an_untouched_stub_inherits_earns_nothing():
    """Its base class makes all parameters."""
    notebook = json.loads(read_chapter("07_hybrid").text)
    names = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in notebook["cells"]]
    end = names.index("check-StandardisedConv") + 1
    chapter = Chapter("07_hybrid", json.dumps(notebook | {"cells": notebook["cells"][:end]}))
    stub = "".join(for_students(notebook["cells"][names.index("StandardisedConv")])["source"])
    cells = [
        dataclasses.replace(cell, source=stub) if cell.name == "StandardisedConv" else cell
        for cell in chapter.cells
    ]
    mark = of(grade(chapter, cells), "StandardisedConv")
    assert (mark.points, mark.state) == (0, "to do")


def test_the_set_up_may_hold_another_budget_or_be_of_another_release(two_answers, cells, answers):
    """It is a form that students fill in: nothing to look at, and nothing of theirs in it runs."""
    whole = cells(**answers)
    for source in (
        '#@title Set-up: run this cell first\nBUDGET = "full"\nimport subprocess\n1 / 0',
        whole[1].source.replace('BUDGET = "quick"', 'BUDGET = "full"'),
    ):
        whole[1] = dataclasses.replace(whole[1], source=source)
        marks = grade(two_answers, whole)
        assert points(marks) == CHECKED
        assert (marks.suspicions, marks.remarks) == ([], [])


def test_a_mistake_costs_its_points_once(two_answers, cells, answers):
    """The answers below it that call it go on with the book's."""
    answers = answers | {"attention": answers["attention"].replace("math.sqrt(q.shape[-1])", "q.shape[-1]")}
    marks = grade(two_answers, cells(**answers))
    assert points(marks) == CHECKED | {"attention": 1}  # for its shape
    assert "divided by Dh" in of(marks, "attention").message
    numbers = r"\n  At \([\d, ]+\) it has -?[\d.e-]+ where -?[\d.e-]+ is expected\.\n  Tried with "
    assert re.search(numbers, of(marks, "attention").message)
    assert "seed" not in of(marks, "attention").message


@pytest.mark.parametrize(
    ("parts", "whole", "earned"),
    [
        ({"shape": 1, "values": 0.5, "gradients": 0}, 5, 2.5),
        ({"shape": 1, "values": 0.3, "gradients": 0}, 5, 1.5),  # 0.9 of three is a half, not one
        ({"shape": sum([1 / 7] * 7), "values": 0}, 5, 1),
        ({"values": 1 - 1e-9}, 5, 4.5),  # what is not right is never all
    ],
)
def test_parts_earn_half_points_rounded_down(parts, whole, earned):
    assert grading.points_for(parts, whole)[0] == earned


def test_who_ends_the_process_or_patches_the_sheet_earns_no_part_either(two_answers, cells, answers):
    ends = answers[CLASS].replace("return ", "return __import__('os')._exit(0)  # ")
    assert points(grade(two_answers, cells(**answers | {CLASS: ends}), tries=1)) == CHECKED | {CLASS: 0}
    patches = "sheet.check = print\ndef attention(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v"
    found = points(grade(two_answers, cells(**answers | {"attention": patches})))
    assert found == CHECKED | {"attention": 0}


CLASS = "MultiHeadSelfAttention"
PARTS = {
    "a bias is missing": ("3 * dim", "3 * dim, bias=False", 12, "parameters 0 of 3, shape 3 of 3, values 6"),
    "another name": ("projection", "proj", 12, "parameters 0 of 3, shape 3 of 3, values 6 of 6, gradients 3"),
    "no gradient": (
        "attention(q, k, v)",
        "attention(q, k, v).detach()",
        12,
        "values 6 of 6, gradients 0 of 3",
    ),
    "not divided": (
        "attention(q, k, v)",
        "attention(9 * q, k, v)",
        6,
        "parameters 3 of 3, shape 3 of 3, values 0",
    ),
    "another shape": ("self.projection(", "torch.sum(", 3, "parameters 3 of 3, shape 0 of 3, values 0 of 6"),
    "an input as it was": ("return ", "return tokens  # ", 3, "parameters 3 of 3, shape 0 of 3"),
    "all is 0": ("return self", "return 0 * self", 3, "parameters 3 of 3, shape 0 of 3"),
    "it stops": ("return ", "return nothing  # ", 3, "parameters 3 of 3, shape 0 of 3"),
    "the rest is a stub": (
        "return ",
        'raise NotImplementedError("your turn")  # ',
        3,
        "parameters 3 of 3, shape 0 of 3",
    ),
}
"""What is changed in the right answer, what that earns of 15 points, and what is said of them."""


@pytest.mark.parametrize("name", PARTS)
def test_what_is_right_in_part_earns_a_part(name, two_answers, cells, answers):
    old, new, earned, said = PARTS[name]
    assert old in answers[CLASS]
    mark = of(grade(two_answers, cells(**answers | {CLASS: answers[CLASS].replace(old, new)})), CLASS)
    assert (mark.points, mark.state) == (earned, "not right")
    assert f"Points: {said}" in mark.message or f", {said}" in mark.message


def test_a_helper_and_an_import_of_ones_own_are_there(two_answers, cells, answers):
    helper = (
        "import numpy as np\nimport math as m\n\ndef scaled(q, k):\n    return q @ k.mT / m.sqrt(q.shape[-1])"
    )
    own = "def attention(q, k, v):\n    return scaled(q, k).softmax(-1) @ v"
    assert points(grade(two_answers, cells(add=helper, attention=own)))["attention"] == 5


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            "def attention(q, k, v)\n    return q",
            r"there is none in the notebook, because cell 1\d stopped.*Syn",
        ),
        ("1 / 0", r"there is none in the notebook, because cell 1\d stopped with ZeroDivisionError"),
        ("", "there is none in the notebook"),
        ("attention = None", "it got None"),
        ("attention = torch.zeros(3)", "it got a tensor"),
        ("def attention(q, k):\n    return q", "cannot be called as attention"),
        ("def attention(q, k, v):\n    print(v)", "prints its result and returns None"),
        ("def attention(q, k, v):\n    return v.numpy()", "NumPy"),
        ("def attention(q, k, v):\n    return q, k, v", "a tuple of 3"),
        ("def attention(q, k, v):\n    return v.to('meta')", "on meta"),
        ("def attention(q, k, v):\n    return softmax(q)", r"NameError.*softmax\(q\)|NameError"),
        ("def attention(q, k, v):\n    q += 1\n    return v", "changes its input"),
    ],
)
def test_whatever_comes_in_place_of_an_answer_is_called_by_its_name(own, message, two_answers, cells):
    mark = of(grade(two_answers, cells(attention=own)), "attention")
    assert (mark.points, mark.state) == (0, "not right")
    assert re.search(message, mark.message)


def test_an_object_is_as_good_as_a_function_and_not_as_a_class(two_answers, cells, answers):
    own = (
        "class Attention(nn.Module):\n    def forward(self, q, k, v):\n"
        "        return nn.functional.scaled_dot_product_attention(q, k, v)\n\nattention = Attention()"
    )
    module = answers["MultiHeadSelfAttention"] + "\n\nMultiHeadSelfAttention = MultiHeadSelfAttention(6, 2)"
    marks = grade(two_answers, cells(attention=own, MultiHeadSelfAttention=module))
    assert of(marks, "attention").state == "right"
    assert "hand in the class itself" in of(marks, "MultiHeadSelfAttention").message


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_gains_no_points_and_is_flagged(name, two_answers, cells, answers):
    own, said = ATTACKS[name]
    limits = Limits(seconds=5) if "endless" in name else Limits()  # the right answers need their time, too
    marks = grade(two_answers, cells(**answers | {"attention": own}), limits=limits, tries=1)
    assert points(marks) == CHECKED | {"attention": 5 if name == RIGHT_ALL_THE_SAME else 0}
    assert not said or any(said in str(one) for one in marks.suspicions)


def test_a_cell_that_ends_its_process_the_second_time_stops_nobody(two_answers, cells, answers, queue):
    """After the answer ended the process, the cells above it run again, and this one then does the same."""
    add = f"import os\nif {queue(b'n' + b'y' * 999)} == b'y':\n    os._exit(1)"
    own = answers | {"attention": ATTACKS["exit in the answer"][0]}
    assert points(grade(two_answers, cells(add=add, **own))) == CHECKED | {"attention": 0}


def test_an_answer_that_reaches_a_limit_is_tried_again_in_a_fresh_process(
    two_answers, cells, answers, ends_once
):
    own = answers | {"attention": ends_once(answers["attention"])}
    assert points(grade(two_answers, cells(**own))) == CHECKED
    own = answers | {"attention": ends_once(answers["attention"])}
    assert points(grade(two_answers, cells(**own), tries=1)) == CHECKED | {"attention": 0}


def test_what_one_answer_holds_on_to_costs_no_other_its_points(two_answers, cells, answers):
    """The first fills the memory, which the second needs for a moment."""
    keeps = "kept = []\n\ndef attention(q, k, v):\n    kept.append(bytearray(350_000_000))\n    return v"
    line = "        gathered = attention(q, k, v)"
    needs = answers["MultiHeadSelfAttention"].replace(line, f"        bytearray(300_000_000)\n{line}")
    whole = cells(attention=keeps, MultiHeadSelfAttention=needs)
    marks = grade(two_answers, whole, limits=Limits(megabytes=800))
    assert points(marks) == CHECKED | {"attention": 0}
    assert "memory" in of(marks, "attention").message.lower()


KEEPS = "kept = []\nwhile True:\n    kept.append(bytearray(1_000_000))"


def test_a_cell_that_fills_the_memory_costs_no_answer_its_points(two_answers, cells, answers):
    """It would fill each fresh process again; a cell that lets go of what it took stays, with its answer."""
    for add, own in (
        (KEEPS, answers["attention"]),
        ("", answers["attention"] + "\n\nbytearray(20_000_000_000)"),
    ):
        marks = grade(
            two_answers, cells(add=add, **answers | {"attention": own}), limits=Limits(800), tries=1
        )
        assert points(marks) == CHECKED
        assert any("MemoryError" in str(one) for one in marks.suspicions)


ENDS = {
    "too long": "while True:\n    pass",
    "the process": "import os\nos._exit(0)",
    "too much memory": KEEPS,
}


@pytest.mark.parametrize("name", ENDS)
def test_an_experiment_in_the_cell_of_an_answer_does_not_cost_it_its_points(
    name, two_answers, cells, answers
):
    answer = answers["attention"]
    below = f"{answer}\n\n{ENDS[name]}"
    names = (
        "made = torch.zeros(2)\nsize = made.shape\nroot, NONE = math.sqrt, -1e-6"  # `size` is lost, no more
    )
    above = f"{ENDS[name]}\n{names}\n\n{answer.replace('math.sqrt', 'root')}"
    limits = Limits(800 if name == "too much memory" else 4000, seconds=5)
    for own in (below, above):
        marks = grade(two_answers, cells(**answers | {"attention": own}), limits=limits)
        assert points(marks) == CHECKED
        assert marks.remarks


def test_after_some_cells_that_never_end_the_rest_of_a_notebook_only_defines(
    two_answers, cells, answers, monkeypatch
):
    monkeypatch.setattr(grading, "MOST_LATE", 1)
    slow = "while True:\n    pass"
    own = {name: f"{answer}\n\n{slow}" for name, answer in answers.items()}
    marks = grade(two_answers, cells(add=slow, **own), limits=Limits(seconds=5))
    assert points(marks) == CHECKED
    late, told = marks.remarks
    assert "did not come to an end" in late
    assert "and those below only define: 1 above were late" in told


def test_what_python_cannot_write_again_in_the_cell_of_a_check_stops_no_grading(two_answers, cells, answers):
    odd = {"check-attention": f"q{'.mT' * 450}\nsheet.check('attention')"}
    marks = grade(two_answers, cells(**answers, **odd), limits=Limits(seconds=5))
    assert points(marks) == CHECKED
    assert [one.what for one in marks.suspicions] == ["the cell check-attention was changed"]


@pytest.mark.parametrize("kind", ["a cell of its own", "the cell of a check"])
def test_code_of_megabytes_is_not_read_and_said_to_be_there(kind, two_answers, cells):
    """Python takes 1.7 GB to read these."""
    source = "[]\n" * 1_000_000
    whole = cells(**{"add": source} if kind == "a cell of its own" else {"check-attention": source})
    tracemalloc.start()
    found = suspicions(two_answers, [cell for cell, _ in repaired(two_answers, whole)])
    plan = _plan(two_answers, whole)
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
    assert "more than 200 kB of code" in "".join(map(str, found))
    assert (source in [one for _, one in plan]) == (kind == "a cell of its own")


def test_definitions_that_never_end_hold_up_nobody(two_answers, cells, answers, monkeypatch):
    monkeypatch.setattr(grading, "MOST_LATE", 1)
    hangs = "\n".join(f"class Endless{number}:\n    while True:\n        pass" for number in range(9))
    waited, ask = [], StudentProcess.ask

    def noted(process, message, tensors=(), seconds=None):
        waited.append(seconds)
        return ask(process, message, tensors, seconds)

    monkeypatch.setattr(StudentProcess, "ask", noted)
    grade(two_answers, cells(add=hangs, **answers), limits=Limits(seconds=5))
    assert waited.count(0.5) == 2, "three are late in all: the cell, and two of the classes in it"


def test_a_call_that_is_late_leaves_no_process_behind():
    """What waits in a library's call cannot be stopped; the next answer would wait for it."""
    student = StudentProcess(Limits(seconds=30))
    student.start()
    source = (
        "import time\nfrom vit_classroom.checks import sandbox\nsandbox.LIMIT_SECONDS = 0.1\n"
        "def piece(q, k, v):\n    time.sleep(30)"
    )
    student.ask({"do": "run", "source": source, "place": "cell"})
    with pytest.raises(checks.CheckFailed, match="did not come to an end"):
        checks.attention(remote_piece(student, "piece"), seed=0)
    assert not student.alive


def test_time_is_the_processors_and_the_clock_only_ends_what_waits(monkeypatch):
    clock = dict.fromkeys(("wall", "used"), 0.0)
    monkeypatch.setattr(sandbox.time, "monotonic", lambda: clock["wall"])
    stopwatch = sandbox.Stopwatch(10, lambda: clock["used"])
    for wall, used, up in ((9, 9, False), (50, 9, False), (50, 11, True), (61, 0, True), (9, 30, False)):
        clock.update(wall=wall, used=used)
        assert stopwatch.is_up() == up, (wall, used)


def test_a_students_process_is_timed_by_what_it_has_of_a_processor():
    student = StudentProcess(Limits())
    student.start()
    before = student._processor_time()
    student.ask(
        {"do": "run", "source": "import time\nwhile time.process_time() < 1:\n    pass", "place": "cell"}
    )
    busy = student._processor_time()
    student.ask({"do": "run", "source": "time.sleep(0.5)", "place": "cell"})
    assert busy > before
    if sys.platform == "linux":
        assert student._processor_time() - busy < 0.4
    student.close()


HONEST = {
    "a test of ones own, notes, an import": (
        "import gc, subprocess\ntorch.backends.cudnn.deterministic = True\nprint('✓ my own test')\n"
        "open('notes.txt', 'w').close()",
        5,
    ),
    "where am I": ("import os, sys\ncolab = 'google.colab' in sys.modules\nos.system('nvidia-smi')", 2),
    "magics and help": ("%timeit 1 + 1\nattention?\nget_ipython().run_line_magic('pinfo', 'F')\n!ls", 0),
    "names of ones own": (
        "def nearest(queries, means):\n    checks = sheet = 0\n    return queries\n\n"
        "assignments = torch.cdist(torch.rand(3, 2), torch.rand(4, 2)).argmin(dim=1)",
        0,
    ),
    "the worksheet's names for something else": ("checks = [1, 2]\nsheet = torch.zeros(3)", 2),
    "an experiment that takes too long": ("import time\ntime.sleep(60)", 1),
    "an end of the process": ("import os\nos._exit(0)", 2),
}
"""Cells of honest students, and in how many ways a person should look at them."""


@pytest.mark.parametrize("name", HONEST)
def test_what_has_honest_uses_may_be_shown_and_costs_nothing(name, two_answers, cells, answers):
    own, looks = HONEST[name]
    limits = Limits(seconds=3) if "too long" in name else Limits()
    marks = grade(two_answers, cells(add=own, **answers), limits=limits)
    assert points(marks) == CHECKED
    assert len(marks.suspicions) == looks


FINISHED = {
    "def attention(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)": "uses torch's scaled_dot",
    "from torch.nn.functional import scaled_dot_product_attention as attention": "uses torch's scaled_dot",
    "class MultiHeadSelfAttention(nn.MultiheadAttention):\n    pass": "uses torch's MultiheadAttention",
    "import vit_from_scratch\nvit_from_scratch.model.attention.explicit_attention": "vit_from_scratch.model",
    "attention_einsum = attention": "takes attention for attention_einsum",
    "def attention_einsum(q, k, v):\n    'Mine.'\n    return attention(q, k, v)": "takes attention for",
    "attention_einsum = lambda q, k, v: attention(q, k, v)": "takes attention for attention_einsum",
    "same = torch.allclose(attention(q, k, v), F.scaled_dot_product_attention(q, k, v))": "",
    "class MultiheadAttention:\n    pass": "",
    "def mine(q, k, v):\n    return attention(q, k, v)": "",
    "attention = mine": "",
    "def attention_einsum(q, k, v):\n    return attention(v, k, q)": "",
}
"""What is said of code that takes what somebody else has finished; "" where that is honest."""


@pytest.mark.parametrize("source", FINISHED)
def test_an_answer_that_is_somebody_elses_is_flagged_and_costs_nothing(source, chapter):
    found = suspicions(chapter, [Cell("code", source, {}, {})])
    assert [one.severe for one in found] == [False] * bool(FINISHED[source])
    assert all(FINISHED[source] in one.what for one in found)


FINISHED_FOR = {
    "def layer_norm(x, *a):\n    return F.layer_norm(x, x.shape[-1:], *a)": (4, "layer_norm"),
    "def layer_norm(x, *a):\n    return nn.LayerNorm(8)(x)": (4, "LayerNorm"),
    "from torch.nn.functional import layer_norm": (4, "layer_norm"),
    "def stretch_positions(table, count):\n    return F.interpolate(table.T[None], count)": (
        6,
        "interpolate",
    ),
    "def group_norm(features, groups, eps=1e-6):\n    return F.group_norm(features, groups)": (
        7,
        "group_norm",
    ),
    "group_norm = lambda x, groups: nn.GroupNorm(groups, 8)(x)": (7, "GroupNorm"),
    "def cross_entropy(logits, labels):\n    return F.cross_entropy(logits, labels)": (8, "cross_entropy"),
    "def smoothed_cross_entropy(a, b, c):\n    return F.cross_entropy(a, b, label_smoothing=c)": (
        8,
        "label_smoothing",
    ),
    "def smoothed_cross_entropy(a, b, c):\n    return F.cross_entropy(a, F.one_hot(b) * (1 - c))": (8, ""),
    "def cross_entropy(a, b):\n    return cross_entropy(a[:1], b[:1])": (8, ""),
    "class Mine(nn.Module):\n    def forward(self, x):\n        return F.layer_norm(x, (8,))": (4, ""),
    "def train(a, b):\n    return F.cross_entropy(a, b, label_smoothing=0.1)": (8, ""),
    "F.layer_norm(x, (8,)) - layer_norm(x, one, zero, 1e-5)": (4, ""),
}
"""In which chapter this stands, and what it is said to use of torch; "" where that is honest."""


@pytest.mark.parametrize("source", FINISHED_FOR)
def test_what_torch_has_finished_of_one_answer_is_flagged_in_it_alone_and_costs_nothing(source):
    number, said = FINISHED_FOR[source]
    found = suspicions(read_chapter(str(number)), [Cell("code", source, {}, {})])
    assert [(one.what, one.severe) for one in found] == [(f"uses torch's {said}", False)] * bool(said)


@pytest.mark.parametrize("name", chapter_names())
def test_nothing_in_the_books_own_notebooks_is_flagged(name):
    chapter = read_chapter(name)
    assert suspicions(chapter, [cell for cell, _ in repaired(chapter, chapter.cells)]) == []


@pytest.mark.parametrize("magic", ["%%time\n", "%%capture out\n", "%time pass\n", "%load_ext autoreload\n"])
def test_an_answer_under_a_magic_is_there_as_in_the_notebook(magic, two_answers, cells, answers):
    marks = grade(two_answers, cells(**answers | {"attention": magic + answers["attention"]}))
    assert points(marks) == CHECKED
    assert marks.suspicions == []


def test_of_a_given_cell_only_what_was_added_is_looked_at(two_answers, cells, answers):
    """The cell that makes the worksheet, with an import of one's own and the line ends of Windows."""
    whole = cells(**answers)
    (place,) = [place for place, cell in enumerate(whole) if "sheet = " in cell.source]
    source = f"import torch.nn.functional as F\n{whole[place].source}".replace("\n", "\r\n")
    whole[place] = dataclasses.replace(whole[place], source=source)
    marks = grade(two_answers, whole)
    assert points(marks) == CHECKED
    assert (marks.suspicions, marks.remarks) == ([], [])
    whole[place] = dataclasses.replace(whole[place], source=f"{source}\nsheet.check = print")
    marks = grade(two_answers, whole)
    assert any("changes sheet.check" in str(one) for one in marks.suspicions)


def test_what_is_written_into_the_cell_of_a_check_counts(two_answers, cells, answers):
    whole = cells()
    (place,) = [place for place, cell in enumerate(whole) if cell.name == "check-attention"]
    source = f"{answers['attention']}\n\n\n{whole[place].source}"
    whole[place] = dataclasses.replace(whole[place], source=source)
    marks = grade(two_answers, whole)
    assert points(marks)["attention"] == CHECKED["attention"]
    assert any("check-attention was changed" in str(one) for one in marks.suspicions)
    below = f"{source}  # and then\ndef attention(q, k, v):\n    return undefined\nattention(1, 2, 3)"
    whole[place] = dataclasses.replace(whole[place], source=below)
    later = grade(two_answers, whole)
    assert points(later)["attention"] == CHECKED["attention"], "what stands below the call comes after it"
    assert "NameError" in later.remarks[-1]
    whole[place] = dataclasses.replace(whole[place], source=f"sheet.check = print\n{source}")
    assert points(grade(two_answers, whole))["attention"] == 0, "and is looked at like any other"


def test_an_answer_below_its_stub_is_the_one_that_is_shown(two_answers, cells, answers):
    whole = cells()
    (place,) = [place for place, cell in enumerate(whole) if cell.name == "attention"]
    whole.insert(place + 1, dataclasses.replace(whole[place], source=answers["attention"], about={}))
    (mark,) = [mark for mark in grade(two_answers, whole).marks if mark.task.name == "attention"]
    assert (mark.points, mark.own) == (CHECKED["attention"], answers["attention"])


def test_an_answer_in_the_cell_of_another_is_right_and_both_cells_stay(two_answers, cells, answers):
    names = [task.name for task in two_answers.tasks if task.check][:2]
    whole = cells(**{names[1]: f"{answers[names[0]]}\n\n\n{answers[names[1]]}"})
    marks = [mark for mark in grade(two_answers, whole).marks if mark.task.name == names[1]]
    assert [(mark.state, mark.own.count("def ") > 1) for mark in marks] == [("right", True)]


def test_tests_that_are_gone_are_flagged_and_count_all_the_same(two_answers, cells, answers):
    kept = [cell for cell in cells(attention=answers["attention"]) if not cell.name.startswith("check-")]
    marks = grade(two_answers, kept)
    assert points(marks) == dict.fromkeys(CHECKED, 0) | {"attention": 5}
    assert sum("is gone" in str(one) for one in marks.suspicions) == len(CHECKED)


def test_what_a_given_cell_imports_is_there_when_the_cell_is_gone(two_answers, cells, answers):
    """As in the student's notebook, in which it ran before it was deleted."""
    whole = [cell for cell in cells(**answers) if cell.about]
    assert points(grade(two_answers, whole)) == CHECKED


def test_a_changed_test_is_flagged_and_changes_nothing(two_answers, cells):
    marks = grade(two_answers, cells(**{"check-attention": "print('fine')"}))
    assert points(marks)["attention"] == 0
    assert any("check-attention was changed" in str(one) for one in marks.suspicions)


def test_a_formatter_that_went_over_the_notebook_changes_nothing(two_answers, cells, answers):
    """Other quotes and line breaks, comments gone: what was given is given all the same."""
    whole = cells(**answers)
    formatted = [
        dataclasses.replace(cell, source=ast.unparse(ast.parse(cell.source))) if cell.kind == "code" else cell
        for cell in whole
    ]
    given = {source.strip() for source in two_answers.given}
    assert sum(cell.source.strip() not in given for cell in formatted if not cell.name) > 2
    marks = grade(two_answers, formatted)
    assert points(marks) == CHECKED
    assert (marks.suspicions, marks.remarks) == ([], [])
    parts = [[part for _, part in _plan(two_answers, each)] for each in (whole, formatted)]
    assert [part and form_of(part) for part in parts[0]] == [part and form_of(part) for part in parts[1]]


def test_what_earlier_chapters_bring_comes_whatever_the_layout():
    """The cell `sheet.bring(...)`, as a formatter leaves it."""
    cells = read_chapter("05_vision_transformer").cells
    (given,) = [cell.source for cell in cells if cell.source.startswith("sheet.bring(")]
    names = "".join(f'    "{name}",\n' for name in re.findall(r"'(\w+)'", given))
    source = f"sheet.bring(\n{names})  # of chapters 1 to 4"
    assert brought_in(source) == brought_in(given)
    assert "class Encoder" in brought_in(source)


def test_each_year_and_each_answer_draws_other_inputs():
    assert seeds_of(1, "attention") == seeds_of(1, "attention")
    drawn = [*seeds_of(1, "attention"), *seeds_of(2, "attention"), *seeds_of(1, "Mlp")]
    assert len(set(drawn)) == 6


held = []
"""A student's process with the bank of mistakes in it, which a late answer ends."""


@pytest.fixture(scope="module", autouse=True)
def ended():
    yield
    for student in held:
        student.close()


@pytest.fixture
def process():
    if held and held[-1].alive:
        return held[-1]
    student = StudentProcess(Limits(seconds=60))
    held.append(student)
    student.start()
    source = (
        f"import sys, warnings\nsys.path.append({str(Path(banks.__file__).parent)!r})\n"
        "warnings.simplefilter('ignore')\n"
        "import torch\nfrom banks import RIGHT, WRONG\nfrom vit_classroom.checks import sandbox\n"
        "torch.optim.AdamW([torch.ones(1, requires_grad=True)]).step()\n"  # imports for seconds
        "sandbox.LIMIT_SECONDS = 0.5\n"
        "RIGHT = {check.__name__: pieces for check, pieces in RIGHT.items()}"
    )
    reply, _ = student.ask({"do": "run", "source": source, "place": "bank"})
    assert "error" not in reply
    return student


def theirs(process, source):
    process.ask({"do": "run", "source": f"piece = {source}", "place": "bank"})
    return remote_piece(process, "piece")


def test_a_students_defaults_change_no_mark(process):
    source = "torch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)"
    back = "torch.set_default_dtype(torch.float32)\ntorch.set_grad_enabled(True)"
    process.ask({"do": "run", "source": source, "place": "cell"})
    try:
        for check in (checks.mlp, checks.attention):
            check(theirs(process, f"RIGHT['{check.__name__}'][0]"), seed=0)
    finally:
        process.ask({"do": "run", "source": back, "place": "cell"})


def test_no_graphics_card_changes_a_mark(process):
    process.ask(
        {"do": "run", "source": "import os\nseen = os.environ['CUDA_VISIBLE_DEVICES']", "place": "cell"}
    )
    assert remote_piece(process, "seen") == ""


def test_a_layer_without_a_shape_ends_no_process(process):
    lazy = "class Lazy(torch.nn.Module):\n    def __init__(self, *sizes):\n        super().__init__()\n"
    lazy += "        self.hidden = torch.nn.LazyLinear(3)"
    process.ask({"do": "run", "source": lazy, "place": "cell"})
    with pytest.raises(checks.CheckFailed, match=r"cannot be read|no shape yet"):
        checks.mlp(theirs(process, "Lazy"), seed=0)
    assert process.alive


def test_a_list_comes_as_long_as_it_is():
    assert len(wire.unpack(wire.pack([0] * 16, []), [])) == 16


@pytest.mark.parametrize("check", RIGHT, ids=lambda check: check.__name__)
def test_right_answers_are_right_from_afar(check, process, capsys):
    for number in range(len(RIGHT[check])):
        check(theirs(process, f"RIGHT['{check.__name__}'][{number}]"), seed=0)
    assert capsys.readouterr().out.count("✓") == len(RIGHT[check])


@pytest.mark.parametrize("number", range(0, len(WRONG), 11))
def test_a_mistake_has_the_same_name_from_afar(number, process):
    """Every eleventh of the bank; each goes through the same protocol."""
    check, _, message = WRONG[number]
    with pytest.raises(checks.CheckFailed) as failure:
        check(theirs(process, f"WRONG[{number}][1]"), seed=0)
    assert re.search(message, str(failure.value), re.DOTALL)


def test_limits_hold_and_the_network_is_gone():
    student = StudentProcess(Limits(megabytes=500))
    held = student.start()
    run = {"do": "run", "place": "cell"}
    reply, _ = student.ask({**run, "source": "x = bytearray(600_000_000)"})
    assert ("error" in reply) == held["memory"]
    reply, _ = student.ask({**run, "source": "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)"})
    assert "error" in reply
    if held["network"]:
        assert "unreachable" in reply["error"]
    reply, _ = student.ask({**run, "source": "open('kept.txt', 'w').write('x')"})
    assert "error" not in reply
    reply, _ = student.ask({**run, "source": "open('big', 'wb').truncate(200_000_000)"})
    if held["memory"]:  # files may have a limit elsewhere, too
        assert "File too large" in reply["error"]
    folder = student.folder.name
    student.close()
    assert not Path(folder).exists()


LOOSE = """
import os, time
def start():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(os.open({path!r}, os.O_WRONLY), b"x")
            time.sleep(600)
        os._exit(0)
start()
"""
AGAIN = """
import ctypes
library = ctypes.CDLL(None)
library.syscall(442, -100, b"/", 0, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32)
open({path!r}, "w")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing sets a process apart")
def test_a_students_process_takes_along_what_it_started_and_reaches_no_files_of_others(in_sight):
    student, path = StudentProcess(Limits()), in_sight / "queue"
    held = student.start()
    assert can_be_set_apart() == held["files"]
    if not held["files"]:
        pytest.skip("this system lets nobody set a process apart")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    run = {"do": "run", "place": "cell"}
    assert student.ask({**run, "source": LOOSE.format(path=str(path))})[0].get("error") is None
    record = str(in_sight / "record.json")
    for source in (f"open({record!r}, 'w')", AGAIN.format(path=record)):
        assert "Read-only file system" in student.ask({**run, "source": source})[0]["error"]
    kill = f"import os\nos.kill({os.getpid()}, 0)"
    assert "No such process" in student.ask({**run, "source": kill})[0]["error"]
    student.ask({**run, "source": "shares = os.readlink('/proc/self/ns/ipc')"})
    assert remote_piece(student, "shares") != os.readlink("/proc/self/ns/ipc")
    assert select.select([reader], [], [], 20)[0] == [reader]
    assert os.read(reader, 1) == b"x"
    assert select.select([reader], [], [], 0)[0] == [], "the process that was let loose holds the queue open"
    student.close()
    assert select.select([reader], [], [], 20)[0] == [reader], "it ended with its student's"
    os.close(reader)


LISTENS = """
import os, socket
there = os.path.isdir("/run") and os.listdir("/run")
socket.socket(socket.AF_UNIX).connect({path!r})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing sets a process apart")
def test_a_students_process_reaches_no_program_that_listens_on_a_socket():
    """What listens on one in a file takes words from whoever may open it, read-only or not."""
    student = StudentProcess(Limits())
    if not student.start()["files"]:
        pytest.skip("this system lets nobody set a process apart")
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = f"{folder}/socket"
        server.bind(path)
        server.listen()
        run = {"do": "run", "place": "cell"}
        assert "No such file" in student.ask({**run, "source": LISTENS.format(path=path)})[0]["error"]
    assert not remote_piece(student, "there")
    student.close()


WITH_A_PACKAGE = """
import os, sys
from vit_classroom.assignments.limits import set_apart, write_only_in
held = set_apart() and write_only_in({folder!r})
os.chdir({folder!r})
import beside
open("kept.txt", "w")
print(held, beside.__file__)
"""


@pytest.mark.skipif(not can_be_set_apart(), reason="this system lets nobody set a process apart")
def test_a_package_in_a_temporary_folder_stays_in_sight(tmp_path):
    (tmp_path / "packages").mkdir()
    module = tmp_path / "packages/beside.py"
    module.touch()
    (tmp_path / "own").mkdir()
    paths = os.pathsep.join([str(module.parent), str(ROOT)])
    source = WITH_A_PACKAGE.format(folder=str(tmp_path / "own"))
    done = subprocess.run(
        [sys.executable, "-c", source],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"True {module}\n"


def test_a_students_process_is_given_no_secret(monkeypatch):
    names = ["HF_TOKEN", "MY_CLOUD", "VIT_KEY", "VIT_DATA_DIR", "PATH"]
    for name in names[:-1]:
        monkeypatch.setenv(name, "x")
    monkeypatch.setattr(nursery, "_nurseries", [])
    source = f"import os\nseen = [name for name in {names} if name in os.environ]"
    for maker in (nursery.nursery, lambda: None):
        monkeypatch.setattr(nursery, "nursery", maker)
        student = StudentProcess(Limits())
        student.start()
        student.ask({"do": "run", "source": source, "place": "cell"})
        assert remote_piece(student, "seen") == ["MY_CLOUD"] * (sys.platform == "win32") + names[-2:]
        student.close()
    monkeypatch.setattr(sys, "platform", "win32")
    assert {*names} & {*nursery.environment()} == {"MY_CLOUD", "VIT_DATA_DIR", "PATH"}


def test_a_process_that_is_gone_says_so():
    student = StudentProcess(Limits())
    student.start()
    with pytest.raises(ProcessEnded, match="ended its process"):
        student.ask({"do": "run", "source": "import os; os._exit(3)", "place": "cell"})
    with pytest.raises(ProcessEnded):
        student.ask({"do": "look", "name": "x"})
    assert not student.alive


UNASKED = """
import sys, threading
from vit_classroom.assignments import wire
frame = sys._getframe()
while "outgoing" not in frame.f_locals:
    frame = frame.f_back
outgoing = frame.f_locals["outgoing"]
def talk():
    while True:
        wire.send(outgoing, {"echo": -1, "more": "x" * 100_000}, [])
threading.Timer(0.5, talk).start()
"""


def test_what_a_process_says_fills_no_memory_and_leaves_nobody_waiting(monkeypatch):
    students = [StudentProcess(Limits()) for _ in range(3)]
    for student, source in zip(students, ["long = 'x' * 11_000_000", "x = 1", UNASKED], strict=True):
        student.start()
        assert "error" not in student.ask({"do": "run", "source": source, "place": "cell"})[0]
    long, other, talks = students
    with pytest.raises(ProcessEnded):
        remote_piece(long, "long")
    time.sleep(2)
    assert talks.replies.empty()
    with pytest.raises(ProcessEnded, match="answers what it was not asked"):
        remote_piece(talks, "x")

    def fails(_text):
        raise MemoryError

    monkeypatch.setattr(json, "loads", fails)
    with pytest.raises(ProcessEnded):
        remote_piece(other, "x")
    assert not any(student.alive for student in students)


def test_a_process_that_takes_nothing_in_is_ended():
    student = StudentProcess(Limits(seconds=0.5))
    student.start()
    deaf = "import time\nfrom vit_classroom.assignments import wire\nwire.receive = lambda _: time.sleep(60)"
    student.ask({"do": "run", "source": deaf, "place": "cell"})
    began = time.monotonic()
    with pytest.raises(ProcessEnded):
        student.ask({"do": "look", "name": "x"}, [torch.zeros(1_000_000)])
    assert time.monotonic() - began < 30
    assert not student.alive


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="needs a system that it imitates Windows on")
@pytest.mark.parametrize("gone", [False, True])
def test_without_groups_of_processes_one_has_ended_before_its_folder_is_removed(monkeypatch, gone):
    """As on Windows, which calls the number of a process that is gone an invalid argument."""

    def kill(number, how):
        if gone:
            raise OSError(errno.EINVAL, "Invalid argument")
        send(number, how)

    def cleanup():
        with pytest.raises(ProcessLookupError):
            send(student.number, 0)
        remove()

    monkeypatch.setattr(nursery, "nursery", lambda: None)
    monkeypatch.delattr(os, "killpg")
    student, send = StudentProcess(Limits()), os.kill
    remove = student.folder.cleanup
    if gone:
        send(student.number, signal.SIGKILL)
        os.waitid(os.P_PID, student.number, os.WEXITED | os.WNOWAIT)
    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(student.folder, "cleanup", cleanup)
    student.close()
    assert not Path(student.folder.name).exists()


def test_random_numbers_of_the_judge_are_its_own(process):
    """What a student's code draws or sets is another process's."""
    torch.manual_seed(5)
    before = torch.get_rng_state()
    process.ask({"do": "run", "source": "torch = __import__('torch')\ntorch.manual_seed(9)", "place": "cell"})
    assert torch.equal(before, torch.get_rng_state())
