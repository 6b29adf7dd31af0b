"""Chapters as assignments are read, and of given cells only what an answer needs is run."""

import json
from dataclasses import replace

import nbformat
import pytest
from project_facts import ROOT

from vit_classroom.assignments.notebooks import (
    STUB,
    Cell,
    brought_in,
    cells_of,
    chapter_names,
    chapter_of,
    earlier_answers,
    for_students,
    needed,
    plain_python,
    read_chapter,
    read_submission,
)
from vit_from_scratch.errors import InputError


@pytest.mark.parametrize("name", chapter_names())
def test_every_chapter_has_answers_that_are_checked_and_questions(name):
    tasks = read_chapter(name).tasks
    assert sum(bool(task.check) for task in tasks) >= 2
    assert any(not task.check for task in tasks)
    assert all(task.points > 0 for task in tasks)
    assert len({task.name for task in tasks}) == len(tasks)


@pytest.mark.parametrize("name", chapter_names())
def test_nbgrader_takes_the_answers_out_as_we_do(name):
    """In place of what is hidden above a function, such as an import, it would leave a `raise`."""
    preprocessors = pytest.importorskip("nbgrader.preprocessors", reason="comes with the extra `instructor`")
    notebook = nbformat.reads(read_chapter(name).text, as_version=4)
    ours = [for_students(cell)["source"].strip() for cell in notebook.cells if cell.cell_type == "code"]
    clear = preprocessors.ClearSolutions(code_stub={"python": STUB}, enforce_metadata=False)
    theirs, _ = clear.preprocess(notebook, {})
    assert [cell.source.strip() for cell in theirs.cells if cell.cell_type == "code"] == ours


@pytest.mark.parametrize("given", ["03_attention", "03", "3"])
def test_a_chapter_goes_by_its_name_or_its_number(given):
    assert read_chapter(given).title == "3. Attention"


@pytest.mark.parametrize("name", chapter_names())
def test_a_worksheet_is_known_without_its_first_lines(name):
    notebook = json.loads((ROOT / f"exercises/{name}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in cells_of(notebook) if "Worksheet(" not in cell.source]
    assert chapter_of(cells) == name
    assert chapter_of(replace(cell, about={}) for cell in cells) == name, "in Colab's copy without metadata"
    assert chapter_of(replace(cell, source="pass") for cell in cells) == name


def test_one_cell_of_a_chapter_makes_no_worksheet():
    def named(*names):
        return [Cell("code", "pass", {"grade_id": name}, {}) for name in names]

    assert chapter_of([]) == ""
    assert chapter_of(named("attention")) == ""
    assert chapter_of(named("attention", "check-attention", "Mlp", "Block")) == ""
    assert chapter_of(named("attention", "check-attention", "Mlp")) == "03_attention"


@pytest.mark.parametrize("given", ["99", "attention", "../03_attention", "", "9" * 5000])
def test_an_unknown_chapter_is_one_sentence(given):
    with pytest.raises(InputError, match="unknown chapter"):
        read_chapter(given)


def test_only_what_is_needed_of_the_given_cells_is_kept():
    given = [
        "import math\nimport torch\nprint('slow')",
        "width = 3\nlength = width + 1\ntorch.manual_seed(0)",
        "def helper(x):\n    return math.sqrt(x) * length\n\nother = 5",
        "%matplotlib inline\nunused = helper(4)",
    ]
    assert needed(given, ["def f(x):\n    y = helper(x)\n    return y"]) == [
        "import math",
        "width = 3\nlength = width + 1",
        "def helper(x):\n    return math.sqrt(x) * length",
        "",
    ]


def test_local_names_ask_for_nothing():
    assert needed(["x = 1", "y = 2"], ["def f(x):\n    y = x\n    return y"]) == ["", ""]


def test_code_that_is_no_python_asks_for_nothing():
    assert needed(["x = 1"], ["def f(:"]) == [""]


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("%timeit f(1)\nx = 1\nif x:\n    !ls", "pass\nx = 1\nif x:\n    pass"),
        ("%%bash\nrm -rf /", ""),
        ("%%timeit\nx = 1", ""),
        ("\n%%time\n%time x = 1\ny = 2", "x = 1\ny = 2"),
        ("%%capture\nx = 1", "x = 1"),
        ("attention?\n?F.softmax\nnn.Linear??\nx = 1", "pass\npass\npass\nx = 1"),
        ("files = !ls\nx = 1", "pass\nx = 1"),
        ("%matplotlib inline\nx = 1  # right?\n# why?", "pass\nx = 1  # right?\n# why?"),
        ("x = 7 \\\n% 3\ny = '''\n% done?\n'''", "x = 7 \\\n% 3\ny = '''\n% done?\n'''"),
    ],
)
def test_of_what_only_ipython_knows_python_is_left(source, python):
    assert plain_python(source) == python


def test_earlier_answers_are_code_that_runs():
    space = {}
    exec("import torch\nfrom torch import nn\nfrom einops import rearrange\nimport math", space)
    exec(brought_in("sheet.bring('patchify', 'attention')"), space)
    assert {"patchify", "attention"} <= space.keys()
    assert brought_in("x = 1") == "x = 1"
    with pytest.raises(InputError, match="unknown answer 'nothing'"):
        earlier_answers(["nothing"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not a Jupyter notebook"),
        (b"[]", "is not a Jupyter notebook"),
        (b"{}", "is not a Jupyter notebook"),
        (b'{"cells": 3}', "is not a Jupyter notebook"),
        (b'{"cells": [{}]}', "is not a Jupyter notebook"),
        (b"\xff\xfe", "is not a Jupyter notebook"),
        (None, "is not a file: expected an .ipynb"),
    ],
)
def test_what_is_no_notebook_is_one_sentence(content, message, tmp_path):
    path = tmp_path / "ada.ipynb"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_submission(path)


def test_a_notebook_may_have_its_text_in_lines(tmp_path):
    cell = {"cell_type": "code", "metadata": {"nbgrader": None}, "source": ["x = 1\n", "y = 2"]}
    path = tmp_path / "ada.ipynb"
    path.write_text(json.dumps({"cells": [cell]}))
    (read,) = read_submission(path)
    assert read.source == "x = 1\ny = 2"


@pytest.mark.parametrize(
    ("outputs", "printed"),
    [
        ([{"text": ["40 ms\n", "8 ms\n"]}, {"data": {"text/plain": "tensor(2)"}}], "40 ms\n8 ms\ntensor(2)"),
        ([{"data": {"image/png": "iVBO", "text/plain": "<Figure>"}}], "(a figure)"),
        ([{"text": "x" * 5000}], "x" * 4000),
        ([{"text": ["half a character \ud83d\n"]}], "half a character ?"),
        ([{"ename": "ValueError"}, 3, {"data": None, "text": None}], ""),
        (None, ""),
    ],
)
def test_what_a_cell_has_printed_is_text(outputs, printed):
    cell = {"cell_type": "code", "source": "", "outputs": outputs}
    assert [one.printed for one in cells_of({"cells": [cell]})] == [printed]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_a_notebook_is_read_in_whichever_encoding_an_editor_left_it(encoding, tmp_path):
    path = tmp_path / "zoe.ipynb"
    cell = {"cell_type": "markdown", "metadata": {}, "source": "Zoë"}
    path.write_bytes(json.dumps({"cells": [cell]}, ensure_ascii=False).encode(encoding))
    assert [cell.source for cell in read_submission(path)] == ["Zoë"]
