"""The curves to draw are those of the results, and a result that changes is noticed."""

import copy

import export_guesses
import pytest


def test_the_pages_are_those_of_the_results():
    assert export_guesses.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("study", "name"), [("data_hunger", "guess-photos"), ("patch_size", "guess-patches")]
)
def test_another_result_is_noticed_and_written(study, name, monkeypatch, tmp_path, capsys):
    result = copy.deepcopy(export_guesses.load_result(study))
    row = next(row for row in result["rows"] if row["name"] in ("ViT", "8 pixels, as many operations"))
    row["runs"][0]["validation_accuracy"] += 0.01
    load = export_guesses.load_result
    monkeypatch.setattr(export_guesses, "load_result", lambda one: result if one == study else load(one))
    assert export_guesses.main(["--check"]) == 1
    assert f"{name}.html is not of its result" in capsys.readouterr().err
    for page in export_guesses.PAGES:
        (tmp_path / f"{page}.html").write_bytes((export_guesses.FOLDER / f"{page}.html").read_bytes())
    monkeypatch.setattr(export_guesses, "FOLDER", tmp_path)
    monkeypatch.setattr(export_guesses, "ROOT", tmp_path)
    assert export_guesses.main([]) == 0
    assert capsys.readouterr().out == f"wrote: {name}.html\n"
    assert export_guesses.main(["--check"]) == 0
