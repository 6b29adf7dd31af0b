"""The first cell of every notebook installs the package in Colab, and nowhere else."""

import importlib.util
import os
import subprocess
import sys
import types

import pytest
from chapter_export.frame import LEFT_ALONE, colab_requirements, setup_source
from project_facts import ROOT, read_repository, read_version


@pytest.fixture
def cell():
    return setup_source(ROOT, read_repository())


@pytest.fixture
def calls(monkeypatch):
    """What the cell would have asked pip to do."""
    made = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: made.append(command))
    return made


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


def test_elsewhere_it_does_nothing_and_the_users_budget_wins(cell, calls, monkeypatch):
    monkeypatch.setenv("VIT_BUDGET", "full")
    exec(cell, {})
    assert calls == []
    assert os.environ["VIT_BUDGET"] == "full"


def test_elsewhere_it_sets_no_budget(cell, calls, monkeypatch):
    monkeypatch.delenv("VIT_BUDGET", raising=False)
    exec(cell, {})
    assert "VIT_BUDGET" not in os.environ


def test_elsewhere_a_missing_package_is_one_sentence_that_says_what_to_do(cell, calls, missing):
    missing.add("vit_from_scratch")
    with pytest.raises(ModuleNotFoundError, match="pip install 'git\\+https://"):
        exec(cell, {})
    assert calls == []


def test_in_colab_the_form_sets_the_budget(cell, calls, colab):
    exec(cell.replace('BUDGET = "quick"', 'BUDGET = "full"'), {})
    assert os.environ["VIT_BUDGET"] == "full"
    assert calls == []  # the package is installed already


def test_in_colab_it_installs_its_own_release_and_leaves_torch_alone(cell, calls, colab, missing):
    missing.update({"vit_from_scratch", "einops"})
    exec(cell, {})
    requirements, package = calls
    assert [word for word in requirements if "einops" in word]
    assert not [word for word in requirements if word.startswith(("torch", "numpy"))]
    assert package[-2:] == ["--no-deps", f"git+{read_repository().url}@v{read_version()}"]


def test_every_requirement_but_torch_is_looked_for_by_a_module_that_exists():
    wanted = colab_requirements(ROOT)
    assert not set(LEFT_ALONE) & set(wanted)
    for module in wanted:
        assert importlib.util.find_spec(module) is not None, module


def test_what_a_chapter_alone_imports_is_installed_for_that_chapter_only():
    assert "timm" in colab_requirements(ROOT, "text\n\nimport timm\n")
    assert not {"timm", "jupytext"} & set(colab_requirements(ROOT, "import torch\n"))
