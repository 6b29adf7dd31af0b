"""Chapter 6's bugs to find are those of its cells, and a page of others is noticed."""

import copy

import export_bugs
import pytest


@pytest.fixture(scope="module")
def measured():
    return export_bugs.measured()


@pytest.fixture
def once(measured, monkeypatch):
    monkeypatch.setattr(export_bugs, "measured", lambda: measured)


def test_the_page_is_of_the_chapter(once):
    assert export_bugs.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("bug", "part", "value"),
    [(1, "MLP", 0.1), (2, "attention", 0), (3, "attention", 50.0), (3, "attention", 4.5), (7, "block", 4e-3)],
)
def test_other_numbers_are_noticed(once, bug, part, value, tmp_path, monkeypatch, capsys):
    there = copy.deepcopy(export_bugs.held())
    there[bug]["off"][part] = [value]
    monkeypatch.setattr(export_bugs, "PAGE", tmp_path / "hunt.html")
    assert export_bugs.main(["--check"]) == 1
    export_bugs.PAGE.write_text(export_bugs.page(there), encoding="utf-8")
    assert export_bugs.main(["--check"]) == 1
    assert "hunt.html is not of chapter 6" in capsys.readouterr().err
    assert export_bugs.main([]) == 0
    assert export_bugs.main(["--check"]) == 0


def test_another_processors_rounding_and_draws_are_the_same(measured):
    other = copy.deepcopy(measured)
    other[1]["off"]["block"] = [round(1.05 * value, 3) for value in other[1]["off"]["block"]]
    other[3]["off"]["attention"] = other[3]["off"]["attention"][::-1]
    assert export_bugs.same(measured, other)


def test_a_bug_that_the_page_does_not_know_is_named(monkeypatch):
    monkeypatch.delitem(export_bugs.NAMES, "no final norm")
    with pytest.raises(SystemExit, match="chapter 6 has other bugs"):
        export_bugs.measured()
