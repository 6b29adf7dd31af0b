"""The rehearsal finds what would go wrong in Colab, and takes the notebooks that changed."""

import json
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import rehearse
from changed import changed_files, previous_commit
from nbformat.v4 import new_code_cell, new_notebook, new_output
from project_facts import ROOT, minutes_file, read_repository, read_version
from rehearse import up_to_first_check, with_answers

from vit_from_scratch.errors import InputError

NAME = "03_attention"


@pytest.fixture
def exercises():
    return nbformat.read(ROOT / f"exercises/{NAME}.ipynb", as_version=4)


def printed(text, stream="stderr"):
    return new_notebook(cells=[new_code_cell("x", outputs=[new_output("stream", name=stream, text=text)])])


@pytest.mark.parametrize(
    "path",
    [
        "/x/site-packages/vit_from_scratch/model/vit.py",
        "/tmp/ipykernel_77/3214.py",
        "<ipython-input-3-5d1c>",
    ],
)
def test_a_warning_of_ours_is_a_fault(path):
    text = f"\x1b[33mloading\x1b[0m\n{path}:12: DeprecationWarning: old\n  line()\n"
    assert list(rehearse.faults(printed(text))) == [f"cell 1: DeprecationWarning: old ({path})"]


def test_other_peoples_warnings_and_what_is_printed_are_not():
    text = "/x/site-packages/torch/nn/functional.py:1: UserWarning: vit_from_scratch\nUserWarning: words\n"
    assert list(rehearse.faults(printed(text))) == []
    assert list(rehearse.faults(printed("/vit_from_scratch/a.py:1: UserWarning: x", "stdout"))) == []


def test_every_answer_that_a_check_asks_for_is_filled_in(exercises):
    filled = with_answers(exercises, NAME)
    before, after = (
        [cell.source for cell in notebook.cells if "NotImplementedError" in cell.source]
        for notebook in (exercises, filled)
    )
    assert len(before) >= 3
    assert after == []
    assert [cell.id for cell in filled.cells] == [cell.id for cell in exercises.cells]


def test_unsolved_it_ends_with_its_first_check(exercises):
    sources = [cell.source for cell in up_to_first_check(exercises).cells if cell.cell_type == "code"]
    assert sources[-1] == 'sheet.check("attention")'
    assert not [source for source in sources[:-1] if "sheet.check" in source]


VERDICTS = {
    'sheet.check("attention")': "attention: yours is still to be written.\n",
    'sheet.check("MultiHeadSelfAttention")': "",
}


@pytest.mark.parametrize(
    ("said", "faults"),
    [
        ([VERDICTS, {}], []),
        (
            [{'sheet.check("attention")': "Traceback: x\n"}, {}],
            ["unsolved, the first check says 'Traceback: x\\n'"],
        ),
        (
            [VERDICTS, {'sheet.check("attention")': "attention: values differ\n"}],
            ["solved, sheet.check(\"attention\") says 'attention: values differ\\n'"],
        ),
    ],
)
def test_exercises_are_run_unsolved_and_solved(said, faults, exercises, monkeypatch):
    runs = iter(said)

    def run(notebook, python, settings):
        verdicts = next(runs)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                text = verdicts.get(cell.source, "")
                cell.outputs = [new_output("stream", name="stderr", text=text)] if text else []
        notebook.cells[1].outputs = [new_output("stream", text="Installed main.\n")]
        return []

    monkeypatch.setattr(rehearse, "run_as_in_colab", run)
    assert rehearse.rehearse_exercises(exercises, NAME, Path("python"), {}) == faults


def test_a_notebook_runs_in_an_empty_folder_of_an_environment_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    python = rehearse.fresh_environment(Path(sys.executable), tmp_path / "environment")
    lines = [
        "import os, sys, warnings",
        "assert 'google.colab' in sys.modules and 'COLAB_RELEASE_TAG' in os.environ",
        "assert os.listdir() == [] and 'PYTHONPATH' not in os.environ",
        f"assert sys.prefix == {str(tmp_path / 'environment')!r}",
        "import numpy",
    ]
    cells = [new_code_cell("\n".join(lines)), new_code_cell("warnings.warn('mine')"), new_code_cell("1 / 0")]
    notebook = new_notebook(cells=[*cells, new_code_cell("print('after')")])
    found = rehearse.run_as_in_colab(notebook, python, rehearse.colab_settings(tmp_path / "environment"))
    assert [line.partition(" (")[0] for line in found] == [
        "cell 2: UserWarning: mine",
        "cell 3: ZeroDivisionError: division by zero",
    ]
    assert not notebook.cells[3].outputs


@pytest.mark.parametrize("release", [True, False])
def test_the_working_tree_stands_at_the_projects_address(release, copied_project, tmp_path_factory):
    folder = tmp_path_factory.mktemp("remote") / "served.git"
    for text in ("first", "second"):
        (copied_project / "new.txt").write_text(text)
        settings = rehearse.serve_working_tree(folder, release, copied_project)
    url, tag = read_repository().url, f"v{read_version()}"

    def git(*words):
        return subprocess.run(["git", *words], env={**settings}, capture_output=True, text=True)

    assert git("ls-remote", "--exit-code", url, f"refs/tags/{tag}").returncode == (0 if release else 2)
    clone = folder.parent / "clone"
    assert git("clone", "--quiet", url, str(clone)).returncode == 0
    assert (clone / "new.txt").read_text() == "second"


@pytest.fixture
def history(tmp_path):
    """Two chapters of 5 and 500 seconds in a git repository, and functions that change and commit."""
    seconds = {"01_short": 5.0, "02_long": 500.0}
    minutes_file(tmp_path).parent.mkdir(parents=True)
    records = {name: {"cpu": {"seconds": value}} for name, value in seconds.items()}
    minutes_file(tmp_path).write_text(json.dumps({"chapters": records}))
    (tmp_path / "_config.yml").write_bytes((ROOT / "_config.yml").read_bytes())
    for folder in ("notebooks", "exercises"):
        (tmp_path / folder).mkdir()

    def write(place, setup="1", own="2", prose="button"):
        cells = [nbformat.v4.new_markdown_cell(prose), new_code_cell(setup), new_code_cell(own)]
        (tmp_path / f"{place}.ipynb").write_text(nbformat.writes(new_notebook(cells=cells)))

    def commit():
        who = ["-c", "user.name=x", "-c", "user.email=x@y"]
        for words in (["add", "--all"], ["commit", "--quiet", "--message", "x"]):
            subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=tmp_path, check=True)
    for name in seconds:
        (tmp_path / f"notebooks/{name}.md").touch()
        write(f"notebooks/{name}")
        write(f"exercises/{name}")
    commit()
    return tmp_path, write, commit


def names(paths):
    return [f"{path.parent.name}/{path.stem}" for path in paths]


SHORTEST = ["notebooks/01_short", "exercises/01_short"]


def test_what_changed_is_rehearsed_if_there_is_time_and_for_set_up_and_prose_the_shortest_speaks(
    history, monkeypatch
):
    root, write, commit = history
    write("exercises/02_long", own="3")
    commit()
    changed = rehearse.changed_notebooks(root, previous_commit(root))
    taken, left = rehearse.there_is_time_for(changed, root)
    assert (names(taken), names(left)) == (SHORTEST, ["exercises/02_long"])
    monkeypatch.setattr(rehearse, "SECONDS", 600)
    taken, left = rehearse.there_is_time_for(changed, root)
    assert (names(taken), left) == ([*SHORTEST, "exercises/02_long"], [])
    write("notebooks/01_short", setup="changed")
    write("notebooks/02_long", setup="changed", prose="changed")
    commit()
    assert rehearse.changed_notebooks(root, previous_commit(root)) == []
    assert names(rehearse.there_is_time_for([], root)[0]) == SHORTEST


def test_a_branch_is_compared_with_where_it_left_main(history):
    root, write, commit = history
    subprocess.run(["git", "switch", "--quiet", "--create", "work"], cwd=root, check=True)
    for own in ("3", "4"):
        write("notebooks/02_long", own=own)
        commit()
    write("exercises/01_short", own="5")
    commit()
    base = previous_commit(root)
    assert names(rehearse.changed_notebooks(root, base)) == ["exercises/01_short", "notebooks/02_long"]


def test_after_a_push_of_several_commits_all_are_looked_at(history, monkeypatch):
    root, write, commit = history
    before = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=root, text=True)
    write("exercises/02_long", own="3")
    commit()
    write("notebooks/02_long", own="3")
    commit()
    both = ["exercises", "notebooks"]
    assert changed_files(both, root) == ["notebooks/02_long.ipynb"]
    monkeypatch.setenv("CHANGED_SINCE", before.strip())
    assert changed_files(both, root) == ["exercises/02_long.ipynb", "notebooks/02_long.ipynb"]
    monkeypatch.setenv("CHANGED_SINCE", "0" * 40)
    assert changed_files(both, root) == ["notebooks/02_long.ipynb"]


def test_on_main_the_work_of_half_a_day_is_looked_at_as_a_whole(history, monkeypatch):
    root, write, commit = history
    start = int(time.time())
    for hours, name in ((18, "exercises/02_long"), (30, "notebooks/02_long"), (31, "notebooks/01_short")):
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"{start + 3600 * hours} +0000")
        write(name, own=str(hours))
        commit()
    both = ["exercises", "notebooks"]
    assert changed_files(both, root) == ["notebooks/01_short.ipynb", "notebooks/02_long.ipynb"]


def test_without_a_commit_before_everything_is_new(history):
    root, _, _ = history
    assert len(changed_files(["exercises"], root)) == 2
    assert previous_commit(root) is None
    assert len(rehearse.changed_notebooks(root, None)) == 4


def test_the_runtimes():
    found = rehearse.runtimes()
    latest, *others, lock, lowest = found.values()
    assert latest.python == "3.13"
    for runtime in (latest, *others):
        names = {pin.partition("==")[0] for pin in runtime.packages}
        assert names >= {"torch", "torchvision", "numpy", "pip"}
        assert not [name for name in names if name.startswith(("tomli", "vit"))]
    assert "lazy-loader==0.5" in latest.packages, "older than ours, as in Colab"
    assert not [pin for runtime in others for pin in runtime.packages if pin.startswith("einops")]
    assert lock.python == sys.executable
    assert (lowest.python, lowest.options) == ("3.11", ("--resolution", "lowest-direct"))
    assert "torch>=2.9" in lowest.packages


def test_an_interpreter_that_cannot_be_had_and_an_unknown_chapter_are_one_sentence(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    with pytest.raises(InputError, match=r"uv venv .* failed: .*3\.99"):
        rehearse.environment_of(rehearse.Runtime("x", "3.99", ()), tmp_path)
    assert rehearse.main(["99_nothing"]) == 1
    assert "there is no chapter 99_nothing; there are 01_patches" in capsys.readouterr().err
