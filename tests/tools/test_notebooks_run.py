"""A chapter runs from its .ipynb alone, in an empty folder."""

import pytest
from measure_chapters import run_notebook
from project_facts import chapters


@pytest.mark.slow
@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_the_exported_notebook_runs(path, monkeypatch):
    monkeypatch.setenv("VIT_BUDGET", "quick")
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert run_notebook(path.with_suffix(".ipynb")) > 0
