"""Notebooks of chapter 3 as students hand them in."""

import copy
import json
import os
import tempfile
from pathlib import Path

import pytest
from hand_ins import nbgrader, put_into
from project_facts import ROOT

from vit_classroom.assignments.collecting import collect
from vit_classroom.assignments.notebooks import Chapter, cells_of, read_chapter
from vit_lab.cli import main

NAME = "03_attention"
SECOND_CHECK = "check-MultiHeadSelfAttention"


@pytest.fixture(scope="session")
def chapter():
    return read_chapter(NAME)


@pytest.fixture(scope="session")
def two_answers(chapter):
    """The chapter down to its second check, which is graded in a fraction of the time."""
    notebook = json.loads(chapter.text)
    names = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in notebook["cells"]]
    del notebook["cells"][names.index(SECOND_CHECK) + 1 :]
    return Chapter(chapter.name, json.dumps(notebook))


@pytest.fixture(scope="session")
def answers(chapter):
    """The book's answers, of code and in words."""
    return {task.name: task.answer for task in chapter.tasks}


@pytest.fixture(scope="session")
def stub():
    return json.loads((ROOT / f"exercises/{NAME}.ipynb").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A course of chapter 3 in nbgrader with all kinds of submissions, graded and exported."""
    pytest.importorskip("nbgrader", reason="comes with the extra `instructor`")
    folder = tmp_path_factory.mktemp("course")
    assert main(["assignment", "build", "3", "--out", str(folder), "--seed", "2027"]) == 0
    config = folder / "nbgrader_config.py"
    config.write_text(config.read_text().replace("seconds = 30", "seconds = 10"))
    nbgrader(folder, "generate_assignment", NAME)
    release = json.loads((folder / "release" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
    roster = put_into(folder / "handed_in", release)
    collect(folder / "handed_in", folder / "submitted", roster)
    (folder / "autograde.log").write_text(nbgrader(folder, "autograde", NAME))
    nbgrader(folder, "generate_feedback", NAME)
    nbgrader(folder, "export")
    return folder


@pytest.fixture
def handed_in(stub):
    """A function that fills in a notebook for students; `add` puts a cell in front of the first answer."""

    def fill(add="", **written):
        notebook = copy.deepcopy(stub)
        for cell in notebook["cells"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id")
            if name in written:
                cell["source"] = written[name]
        if add:
            notebook["cells"].insert(10, {"cell_type": "code", "metadata": {}, "source": add, "outputs": []})
        return notebook

    return fill


@pytest.fixture
def cells(handed_in):
    """The cells of what a student hands in, down to the second answer."""

    def read(add="", **written):
        whole = cells_of(handed_in(add, **written))
        return whole[: [cell.name for cell in whole].index(SECOND_CHECK) + 1]

    return read


@pytest.fixture
def in_sight(pytestconfig):
    """A folder that a student's process sees, as it sees no temporary ones."""
    with tempfile.TemporaryDirectory(dir=pytestconfig.cache.mkdir("in_sight")) as folder:
        yield Path(folder)


@pytest.fixture
def queue(in_sight):
    """A function that puts bytes into a queue, and returns code that takes one out, in whichever process."""
    held = []

    def make(content):
        path = in_sight / f"queue{len(held)}"
        os.mkfifo(path)
        held.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        os.write(held[-1], content)
        return f"__import__('os').read(__import__('os').open({str(path)!r}, {os.O_NONBLOCK}), 1)"

    yield make
    for number in held:
        os.close(number)


@pytest.fixture
def ends_once(queue):
    """A function that makes an answer end its process in the first call that there ever is."""

    def make(answer):
        head, body = answer.split("\n", 1)
        return f"import os\n\n{head}\n    if {queue(b'y' + b'n' * 999)} == b'y':\n        os._exit(1)\n{body}"

    return make
