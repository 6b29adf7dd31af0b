"""The run that chapter 8's page shows: of the chapter's own settings, and refused when those have changed."""

import json

import export_run
import pytest


def test_the_file_is_of_the_chapter():
    assert export_run.main(["--check"]) == 0


def test_a_file_of_other_settings_is_stale(tmp_path, monkeypatch, capsys):
    told = json.loads(export_run.FILE.read_text("utf-8"))
    other = tmp_path / "digits-run.json"
    other.write_text(json.dumps(told | {"cells": told["cells"].replace("depth=4", "depth=3")}), "utf-8")
    monkeypatch.setattr(export_run, "FILE", other)
    assert export_run.main(["--check"]) == 1
    assert "digits-run.json is not of this chapter" in capsys.readouterr().err


@pytest.mark.slow
def test_a_short_run_is_told_epoch_by_epoch(tmp_path, monkeypatch):
    short = export_run.source().replace("quick=15", "quick=2").replace("depth=4", "depth=1")
    monkeypatch.setattr(export_run, "FILE", tmp_path / "digits-run.json")
    monkeypatch.setattr(export_run, "source", lambda: short)
    assert export_run.main([]) == 0
    told = json.loads(export_run.FILE.read_text("utf-8"))
    assert len(told["epochs"]) == 3, "before training, and after each epoch"
    assert told["epochs"][0]["train_loss"] == pytest.approx(2.3026, abs=1e-3)
    assert told["epochs"][2]["train_loss"] < told["epochs"][0]["train_loss"]
    assert [digit["place"] for digit in told["digits"]][:6] == [0, 1, 2, 3, 4, 5]
    for epoch in told["epochs"]:
        assert [len(shares) for shares in epoch["shares"]] == [10] * 12
        assert all(sum(shares) == pytest.approx(1, abs=1e-3) for shares in epoch["shares"])
