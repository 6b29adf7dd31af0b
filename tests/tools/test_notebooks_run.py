"""A notebook for students runs whole and unsolved, in an empty folder; rehearsals run the chapters' own."""

import pytest
from measure_chapters import run_notebook
from project_facts import ROOT, chapters


@pytest.mark.slow
@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_the_exported_notebook_runs(path, monkeypatch):
    monkeypatch.setenv("VIT_BUDGET", "quick")
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert run_notebook(ROOT / "exercises" / f"{path.stem}.ipynb")[0] > 0
