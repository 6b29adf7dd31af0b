"""A chapter runs from its .ipynb alone, in an empty folder; so does the one for students, unsolved."""

import pytest
from measure_chapters import run_notebook
from project_facts import ROOT, chapters


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["notebooks", "exercises"])
@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_the_exported_notebook_runs(path, folder, monkeypatch):
    monkeypatch.setenv("VIT_BUDGET", "quick")
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert run_notebook(ROOT / folder / f"{path.stem}.ipynb")[0] > 0
