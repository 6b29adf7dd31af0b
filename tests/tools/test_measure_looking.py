"""Moments of several runs, one after the other, are counted from the beginning of the first."""

import json

import measure_looking
import pytest
from measure_looking import moments_before, moments_of

from vit_from_scratch import InputError


@pytest.fixture
def make_run(tmp_path, monkeypatch):
    """A function that makes the folder of a run of so many epochs, which kept some of them."""
    monkeypatch.setattr(
        measure_looking, "read_result", lambda run: json.loads((run / "result.json").read_text("utf-8"))
    )

    def make(name, epochs, kept):
        run = tmp_path / name
        (run / "epochs").mkdir(parents=True)
        for epoch in kept:
            (run / "epochs" / f"epoch-{epoch:04}.safetensors").touch()
        (run / "result.json").write_text(json.dumps({"epochs": epochs}), encoding="utf-8")
        return run

    return make


def test_a_run_goes_on_where_the_one_before_ended(make_run):
    first, second = make_run("a", 16, [0, 1, 8]), make_run("b", 7, [0, 2])
    assert moments_of([first, second], 0) == {
        0: first / "epochs" / "epoch-0000.safetensors",
        1: first / "epochs" / "epoch-0001.safetensors",
        8: first / "epochs" / "epoch-0008.safetensors",
        16: first / "model.safetensors",
        18: second / "epochs" / "epoch-0002.safetensors",
        23: second / "model.safetensors",
    }


def test_runs_go_on_from_those_that_were_measured_before(make_run):
    runs = [make_run("b", 7, [0, 2]), make_run("c", 5, [4])]
    assert list(moments_of(runs, 16)) == [18, 23, 27, 28]


def test_the_first_run_must_have_kept_the_model_before_training(make_run):
    with pytest.raises(InputError, match=r"kept no model before training: expected vit train --keep-epochs"):
        moments_of([make_run("a", 16, [2])], 0)


def test_what_was_measured_before_is_read_from_its_file(tmp_path):
    path = tmp_path / "before.json"
    path.write_text('{"on_the_way": {"0": {}, "16": {}}}', encoding="utf-8")
    assert list(moments_before(path)) == ["0", "16"]
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"before\.json cannot be read .*expected what this tool wrote"):
        moments_before(path)
