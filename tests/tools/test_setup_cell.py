"""The first cell of a notebook installs the package in Colab and nowhere else; a failure is one sentence."""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import types

import pytest
import torch
from chapter_export.setup_cell import colab_requirements, oldest_torch, setup_source
from IPython.core.interactiveshell import InteractiveShell
from project_facts import ROOT, read_repository, read_version

from vit_classroom.assignments.notebooks import SET_UP, bound_by, statements_of

REPOSITORY = read_repository()
RELEASE = f"v{read_version()}"


@pytest.fixture
def cell():
    return setup_source(ROOT, REPOSITORY, "steps = by_budget(quick=1, full=2) on cuda")


@pytest.fixture
def calls(monkeypatch):
    """What the cell would have asked pip to do. git is asked in earnest."""
    made, real = [], subprocess.run

    def run(command, **options):
        if command[0] == "git":
            return real(command, **options)
        made.append(list(command[command.index("install") + 1 :]))
        return subprocess.CompletedProcess(command, made.code, "", made.said)

    made = Calls()
    monkeypatch.setattr(subprocess, "run", run)
    return made


class Calls(list):
    code, said = 0, ""


@pytest.fixture
def missing(monkeypatch):
    """Modules that the cell is to believe absent."""
    names = set()
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in names else real(name))
    return names


@pytest.fixture
def colab(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    monkeypatch.setenv("VIT_BUDGET", "quick")


@pytest.fixture
def hosted(tmp_path, monkeypatch):
    """A function that puts a repository of the machine's own, with these tags, at the project's address."""

    def serve(*tags):
        remote = tmp_path / "remote"
        if tags:
            git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-C", str(remote)]
            subprocess.run(["git", "init", "--quiet", str(remote)], check=True)
            subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "x"], check=True)
            for tag in tags:
                subprocess.run([*git, "tag", tag], check=True)
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{remote.as_uri()}.insteadOf")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", REPOSITORY.url)

    return serve


@pytest.fixture
def refused(cell):
    """A function that runs the cell, expects it to give up, and returns what it says."""

    def run():
        with pytest.raises(ImportError) as failure:
            exec(cell, {})
        (sentence,) = failure.value._render_traceback_()
        assert len(sentence.splitlines()) == 1
        return sentence

    return run


@pytest.mark.parametrize("budget", [None, "full"])
def test_elsewhere_it_installs_nothing_and_a_full_budget_holds_wherever_it_was_asked_for(
    cell, calls, monkeypatch, budget
):
    monkeypatch.setenv("VIT_BUDGET", "any")  # so that what the cell sets is undone
    monkeypatch.setenv("VIT_BUDGET", budget) if budget else monkeypatch.delenv("VIT_BUDGET")
    exec(cell, {})
    assert os.environ.get("VIT_BUDGET") == budget
    exec(cell.replace('BUDGET = "quick"', 'BUDGET = "full"'), {})
    assert os.environ.get("VIT_BUDGET") == "full"
    assert calls == []


def test_elsewhere_a_missing_package_is_one_sentence_that_says_what_to_do(refused, calls, missing):
    missing.add("vit_from_scratch")
    assert f"pip install git+{REPOSITORY.url}@{RELEASE} " in refused()
    assert calls == []


@pytest.mark.parametrize("version", ["2.9.0+cu126", "2.10.0", "3.0.0a0"])
def test_in_colab_it_installs_its_own_release_once_and_leaves_torch_alone(
    cell, calls, colab, missing, hosted, capsys, monkeypatch, version
):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    hosted(RELEASE, "v0.0.1")
    missing.add("vit_from_scratch")
    exec(cell.replace('BUDGET = "quick"', 'BUDGET = "full"'), {})
    assert os.environ["VIT_BUDGET"] == "full"
    requirements, package = calls
    assert requirements[1:] == colab_requirements(ROOT), "an older one that is there is too old"
    assert not [word for word in requirements if word.startswith("torch")]
    assert package[-2:] == ["--no-deps", f"git+{REPOSITORY.url}@{RELEASE}"]
    installed, device, *wanting = capsys.readouterr().out.splitlines()
    assert installed == f"Installed {RELEASE}."
    assert device.startswith(f"torch {torch.__version__} on ")
    assert any("A full BUDGET needs a GPU" in line for line in wanting) != torch.cuda.is_available()
    missing.clear()
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("asked again"))
    exec(cell, {})


def test_before_there_is_a_release_it_takes_main_and_says_so(cell, calls, colab, missing, hosted, capsys):
    hosted("v0.0.1", f"{RELEASE}.1")
    missing.add("vit_from_scratch")
    exec(cell, {})
    assert calls[1:] == [["--quiet", "--no-deps", f"git+{REPOSITORY.url}@main"]]
    assert f"Installed main, for there is no release {RELEASE} yet.\n" in capsys.readouterr().out


@pytest.mark.parametrize("version", ["2.8.0+cu126", "2.1.0", "1.13.1"])
def test_an_older_torch_is_one_sentence_and_stays(version, refused, calls, colab, missing, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    missing.add("vit_from_scratch")
    said = refused()
    assert f"has torch {version}, and {oldest_torch(ROOT)} or newer is needed: choose" in said
    assert calls == []


def test_without_a_connection_it_is_one_sentence_and_pip_is_not_asked(refused, calls, colab, missing, hosted):
    hosted()
    missing.add("vit_from_scratch")
    assert f"{REPOSITORY.url} cannot be reached: check the connection" in refused()
    assert calls == []


def test_what_pip_cannot_do_is_one_sentence(refused, calls, colab, missing, hosted):
    hosted(RELEASE)
    missing.add("vit_from_scratch")
    calls.code = 1
    calls.said = "WARNING: Retrying\nTraceback\nERROR: first\nERROR: No matching distribution found\nnote: x"
    said = refused()
    assert "could not install what is needed (ERROR: No matching distribution found)" in said
    calls.said = ""
    assert "(no reason given)" in refused()


def test_a_notebook_shows_the_sentence_and_no_traceback(cell, missing, capsys):
    missing.add("vit_from_scratch")
    shell = InteractiveShell()
    result = shell.run_cell(cell)
    assert isinstance(result.error_in_exec, ImportError)
    shown = re.sub(r"\x1b\[[\d;]*m", "", "".join(capsys.readouterr())).strip()
    assert shown.startswith("Set-up: this notebook needs its package: pip install")
    assert len(shown.splitlines()) == 1


def test_what_a_chapter_alone_imports_is_installed_for_that_chapter_only():
    assert "timm>=1.0" in colab_requirements(ROOT, "text\n\nimport timm\n")
    assert not [
        one for one in colab_requirements(ROOT, "import torch\n") if one.startswith(("timm", "jupytext"))
    ]


def test_it_gives_no_name_that_a_chapter_uses(cell):
    """Grading runs of given cells what an answer needs, and would run this one for it."""
    bound = set().union(*(bound_by(statement) for statement in statements_of(cell)))
    assert bound.isdisjoint({"torch", "device", "np", "plt", "nn", "F"})


def test_it_can_be_read_on_one_screen_and_a_grader_knows_its_beginning(cell):
    assert SET_UP.match(cell)
    assert len(cell.splitlines()) <= 72
    assert max(map(len, cell.splitlines())) <= 110


def test_a_chapter_without_a_budget_has_a_cell_that_says_nothing_of_it():
    source = setup_source(ROOT, REPOSITORY, "")
    compile(source, "cell", "exec")
    assert "BUDGET" not in source


def test_a_chapter_that_fetches_weights_alone_asks_for_no_gpu():
    source = setup_source(ROOT, REPOSITORY, "by_budget(quick=None, full='B/16')")
    compile(source, "cell", "exec")
    assert 'BUDGET = "quick"' in source
    assert "needs a GPU" not in source
