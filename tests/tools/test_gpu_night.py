"""The jobs for a GPU run one after the other, go on where they stopped, and are commands that exist."""

import re
import subprocess
import sys
import time

import gpu_night
import pytest
from gpu_night import Job, jobs, run_all
from project_facts import ROOT


def job(name, code, minutes=1.0, trial=()):
    return Job(name, minutes, ["-c", f"import os, sys\n{code}"], trial)


def written(out, word, code=0):
    """A job's code: add a line to a file, and end with an exit code."""
    return f"open({str(out / 'ran')!r}, 'a').write({word!r} + ' '); sys.exit({code})"


def ran(out):
    return (out / "ran").read_text().split()


def test_a_job_that_fails_keeps_no_other_from_running_and_is_run_again(tmp_path, capsys):
    todo = [job("a", written(tmp_path, "a", 3)), job("b", written(tmp_path, "b"))]
    assert run_all(todo, tmp_path, 10) == ["a"]
    assert f"a: failed: see {tmp_path / 'a.log'}" in capsys.readouterr().out
    assert run_all([job("a", written(tmp_path, "a2")), todo[1]], tmp_path, 10) == []
    assert ran(tmp_path) == ["a", "b", "a2"]
    assert "b: done before" in capsys.readouterr().out


def test_what_is_asked_for_in_another_way_is_run_again(tmp_path):
    code = f"open({str(tmp_path / 'ran')!r}, 'a').write(' '.join(sys.argv[1:]) or 'whole'); sys.exit(0)"
    for trial in (True, True, False):
        assert run_all([job("a", code, trial=["small"])], tmp_path, 10, trial) == []
    assert (tmp_path / "ran").read_text() == "smallwhole"


def test_none_begins_whose_minutes_are_not_left(tmp_path, capsys):
    todo = [job("long", written(tmp_path, "long"), 30), job("short", written(tmp_path, "short"), 1)]
    assert run_all(todo, tmp_path, 10) == []
    assert ran(tmp_path) == ["short"]
    assert "long: wants 30 minutes, and 10.0 are left" in capsys.readouterr().out


def test_a_training_stops_in_time_and_goes_on_and_what_takes_far_too_long_has_failed(tmp_path, capsys):
    code = f"import time; open({str(tmp_path / 'ran')!r}, 'a').write('x '); time.sleep(60)"
    words = ["-c", code]
    start = time.monotonic()
    assert run_all([Job("slow", 0.01, words)], tmp_path, 10) == ["slow"]
    for _ in range(2):
        assert run_all([Job("training", 0.01, words, resumes=True)], tmp_path, 0.03) == []
    assert time.monotonic() - start < 30
    assert capsys.readouterr().out.count("training: stopped, goes on") == 2
    assert ran(tmp_path) == ["x"] * 3


def test_it_asks_for_a_gpu(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(gpu_night, "run_all", lambda *_: [])
    monkeypatch.setattr("sys.argv", ["gpu_night.py", "--data-dir", "data", "--out", str(tmp_path / "night")])
    with pytest.raises(SystemExit):
        gpu_night.main()
    assert "sees no GPU here" in capsys.readouterr().err
    assert not (tmp_path / "night").exists()


def test_the_full_budget_is_for_a_gpu_alone(tmp_path):
    code = f"open({str(tmp_path / 'ran')!r}, 'a').write(os.environ['VIT_BUDGET'] + ' ')"
    for trial in (False, True):
        todo = [Job("chapter", 1, ["-c", f"import os\n{code}"], ["small"], full_budget=True)]
        assert run_all(todo, tmp_path, 10, trial) == []
    assert ran(tmp_path) == ["full", "quick"]


def test_a_gpu_measures_every_chapter_and_a_trial_the_first(tmp_path):
    count = len(list((ROOT / "notebooks").glob("[0-9]*.md")))
    for device, expected in (("cuda", count), ("cpu", 1)):
        names = [one.name for one in jobs(tmp_path, "data", device)]
        assert sum(name.startswith("chapter_") for name in names) == expected
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("one", [job for job in jobs(ROOT / "out", "data", "cpu")], ids=lambda one: one.name)
def test_its_commands_and_their_options_exist(one):
    program = one.words[:3] if one.words[0] == "-m" else one.words[:1]
    told = subprocess.run(
        [sys.executable, *program, "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    ).stdout
    options = [word for word in [*one.words, *one.trial] if re.match("--[a-z]", word)]
    assert options
    assert [option for option in options if option not in told] == []
