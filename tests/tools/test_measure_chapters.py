"""Measured times are recorded, and a chapter that takes too long is named."""

import json

import measure_chapters
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from project_facts import chapters

FIRST, SECOND = (path.stem for path in chapters()[:2])


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Measure the first two chapters, in pretended seconds, into a file of their own."""
    monkeypatch.setattr(measure_chapters, "environment", lambda: ENVIRONMENT)
    monkeypatch.setenv("VIT_BUDGET", "quick")
    monkeypatch.setenv("TQDM_DISABLE", "1")

    def run(**seconds):
        monkeypatch.setattr(measure_chapters, "run_notebook", lambda path: (seconds[path.stem], 7))
        code = measure_chapters.main([*seconds, "--results", str(tmp_path / "minutes.json")])
        recorded = json.loads((tmp_path / "minutes.json").read_text(encoding="utf-8"))["chapters"]
        return code, {
            name: found["seconds"] for name, record in recorded.items() for found in record.values()
        }

    return run


ENVIRONMENT = {
    "date": "2026-11-21T10:00:00",
    "hardware": {"processor": "x", "cores": 2, "gpu": None},
    "versions": {"python": "3", "torch": "2", "vit-from-scratch": "0"},
}


def test_lines_are_counted_where_a_reader_meets_them():
    def cell(source, text):
        return new_code_cell(source, outputs=[new_output("stream", text=text)])

    cells = [
        cell("print(1)", "1\n\n2\n"),
        cell("# @title Show the code of this table\nprint(3)", "3"),
        cell("# @title For the careful reader: more\nprint(4)", "4"),
        new_markdown_cell("Text.\n\n## Exercises"),
        cell("print(5)", "5"),
    ]
    assert measure_chapters.printed_lines(new_notebook(cells=cells)) == 3


def test_a_chapter_over_a_minute_is_named_and_recorded_all_the_same(measure, capsys):
    assert measure(**{FIRST: 60.0, SECOND: 60.5}) == (1, {FIRST: 60.0, SECOND: 60.5})
    said = capsys.readouterr().err
    assert f"{SECOND} took longer than 60 s" in said
    assert FIRST not in said


def test_the_full_budget_may_take_its_time_and_has_a_record_of_its_own(measure, monkeypatch, tmp_path):
    quick = {FIRST: {"cpu": {"seconds": 12.0, "budget": "quick"}}}
    (tmp_path / "minutes.json").write_text(json.dumps({"chapters": quick}), encoding="utf-8")
    monkeypatch.setenv("VIT_BUDGET", "full")
    assert measure(**{FIRST: 600.0})[0] == 0
    record = json.loads((tmp_path / "minutes.json").read_text(encoding="utf-8"))["chapters"][FIRST]
    assert record["cpu"] == quick[FIRST]["cpu"]
    assert (record["cpu-full"]["seconds"], record["cpu-full"]["budget"]) == (600.0, "full")
