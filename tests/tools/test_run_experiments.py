"""The studies behind the page of claims: what is there is not run again, and what is left is told."""

from dataclasses import replace

import pytest
import run_experiments

from vit_lab import load_result
from vit_lab.experiments.records import read_rows
from vit_lab.experiments.study import load_study


def test_all_of_it_fits_into_sixteen_hours():
    assert sum(run_experiments.USUAL.values()) <= 16 * 60


def test_a_study_is_done_when_every_row_has_all_seeds_and_rates():
    study, rows = load_study("cifar10_resolution"), read_rows(load_result("cifar10_resolution"))
    assert run_experiments.done(study, rows) == 1
    assert run_experiments.done(study, rows[:1]) == 1 / 2
    assert run_experiments.done(study, [replace(rows[0], runs=rows[0].runs[:2]), rows[1]]) == 1 / 2
    assert run_experiments.done(study, [replace(rows[0], rates=rows[0].rates[:2]), rows[1]]) == 1 / 2
    assert run_experiments.done(study, []) == 0


def test_only_what_is_missing_is_run(monkeypatch, capsys):
    commands = []

    class Ended:
        returncode = 0

    monkeypatch.setattr(run_experiments, "USUAL", {"depth_width": 50, "class_token": 30})
    rows = read_rows(load_result("depth_width"))
    monkeypatch.setattr(run_experiments, "read_summary", lambda path: ("depth_width", rows))
    monkeypatch.setattr(
        run_experiments.subprocess, "run", lambda command, check: commands.append(command) or Ended
    )
    only = ["--only", "class_token", "--only", "depth_width"]  # as make hands names on
    monkeypatch.setattr("sys.argv", ["run_experiments.py", "--data-dir", "somewhere", *only])
    run_experiments.main()
    assert "about 30 minutes left" in capsys.readouterr().out
    ((_, *words),) = commands
    assert words[:6] == ["-m", "vit_lab", "study", "class_token", "--at-once", "2"]
    assert words[6:8] == ["--data-dir", "somewhere"]
    assert words[-1] == "--add-to-results"


def test_a_long_one_is_run_where_it_is_named(monkeypatch, capsys):
    monkeypatch.setattr(run_experiments, "read_summary", lambda path: ("", []))
    monkeypatch.setattr("sys.argv", ["run_experiments.py", "--only", "data_hunger", "--show"])
    run_experiments.main()
    told = capsys.readouterr().out
    assert "data_hunger" in told
    assert f"about {run_experiments.LONGER['data_hunger']} minutes left" in told


def test_a_name_that_is_none_of_them_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["run_experiments.py", "--only", "transfer"])
    with pytest.raises(SystemExit):
        run_experiments.main()
    assert "no experiment transfer: expected some of depth_width_rates" in capsys.readouterr().err
