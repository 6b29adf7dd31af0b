"""A run that was stopped goes on to the same bits, and a folder holds one run: what it refuses."""

import json
import os
from dataclasses import replace

import pytest
import torch
from stopping import AtStep, Never, Stop, content, weights, without_time

from vit_from_scratch import InputError
from vit_from_scratch.errors import DivergedError
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.training import Callback
from vit_lab.runs import train
from vit_lab.runs.metrics import read_metrics, save_curves


def interrupt(state):
    raise KeyboardInterrupt


@pytest.fixture
def job(make_model, few_digits, short):
    """A function that trains a model, by default a new one, by short settings."""

    def trained(folder=None, callbacks=(), config=short, model=None, data=few_digits):
        return train(make_model() if model is None else model, data, config, folder, callbacks)

    return trained


@pytest.fixture
def stopped(job, tmp_path):
    """A folder with a run that was stopped after two of its four epochs."""
    with pytest.raises(KeyboardInterrupt):
        job(tmp_path, [Stop(2)])
    return tmp_path


@pytest.fixture
def goes_on(job, make_model):
    """A function that lets the run in a folder go on, and holds it against one that was never stopped."""

    def check(folder, **options):
        whole, resumed = make_model(), make_model(seed=9)  # its own initial weights must not matter
        history = job(model=whole, **options)
        again = job(folder, model=resumed, **options)
        assert torch.equal(weights(resumed), weights(whole))
        assert without_time(again) == without_time(history)

    return check


@pytest.mark.parametrize("optimiser", ["adamw", "adam", "sgd"])
@pytest.mark.parametrize("stop", [Stop(1), Stop(2), Stop(3), AtStep(8, interrupt)])
def test_a_stopped_run_ends_with_the_weights_of_one_never_stopped(
    job, goes_on, short, tmp_path, optimiser, stop
):
    config = replace(short, optimiser=optimiser)
    with pytest.raises(KeyboardInterrupt):
        job(tmp_path, [stop], config)
    goes_on(tmp_path, config=config)


def test_a_killed_process_goes_on(stopped, goes_on):
    """kill -9 between the checkpoint and the line of metrics, with a temporary file half written."""
    metrics = stopped / "metrics.jsonl"
    lines = metrics.read_text().splitlines()
    metrics.write_text(lines[0] + "\n" + lines[1][:20])
    (stopped / ".checkpoint.safetensors.k_3xw0a1").write_bytes(b"half")
    goes_on(stopped)
    assert not list(stopped.glob(".*"))
    assert [json.loads(line)["epoch"] for line in metrics.read_text().splitlines()] == [1, 2, 3, 4]


def test_no_part_of_a_stopped_run_s_file_stays_in_use(job, short, tmp_path):
    """Windows would not replace it then."""

    class Overwrites(Callback):
        def on_start(self, state):
            before = {name: weight.clone() for name, weight in state.best.items()}
            with open(tmp_path / "checkpoint.safetensors", "r+b") as file:
                file.write(bytes(os.fstat(file.fileno()).st_size))
            assert all(torch.equal(state.best[name], weight) for name, weight in before.items())
            raise KeyboardInterrupt

    for act in (Stop(2), Overwrites()):
        with pytest.raises(KeyboardInterrupt):
            job(tmp_path, [act], replace(short, patience=9))


def test_a_finished_folder_holds_the_run(job, make_model, tmp_path, monkeypatch):
    monkeypatch.setattr("vit_lab.runs.run_folder.save_curves", save_curves)  # drawn, this once
    folder = tmp_path / "runs" / "x"
    job(folder, model=(model := make_model()))
    assert sorted(os.listdir(folder)) == ["config.toml", "curves.png", "metrics.jsonl", "model.safetensors"]
    assert torch.equal(weights(load_checkpoint(folder / "model.safetensors")), weights(model))
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_finished_run_is_loaded_and_not_trained_again(job, make_model, tmp_path):
    model, again = make_model(), make_model(seed=5)
    history = job(tmp_path, model=model)
    before = content(tmp_path)
    assert job(tmp_path, [Never()], model=again) == history
    assert torch.equal(weights(again), weights(model))
    assert content(tmp_path) == before


def test_other_settings_are_refused_by_name(job, make_model, short, tmp_path):
    job(tmp_path)
    message = (
        r"other settings: train\.epochs \(4 there, 9 now\); train\.learning_rate \(0\.001 there, 0\.5 now\)"
    )
    with pytest.raises(InputError, match=message):
        job(tmp_path, config=replace(short, learning_rate=0.5, epochs=9))
    with pytest.raises(InputError, match=r"model\.dropout \(0\.1 there, 0\.2 now\)"):
        job(tmp_path, model=make_model(dropout=0.2))


def test_a_run_that_ended_within_its_first_epoch_binds_nobody(job, few_digits, short, tmp_path):
    def breaks(state):
        raise RuntimeError("a photo that cannot be read")

    with pytest.raises(RuntimeError, match="a photo"):
        job(tmp_path, [AtStep(1, breaks)])
    assert os.listdir(tmp_path) == ["config.toml"]
    mirrored = replace(few_digits, train_images=few_digits.train_images.flip(-1))
    history = job(tmp_path, config=replace(short, learning_rate=0.5), data=mirrored)
    assert len(history) == short.epochs
    with pytest.raises(InputError, match=r"train\.learning_rate \(0\.5 there, 0\.001 now\)"):
        job(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("thesis.txt", "years of work", r"holds something else \(thesis\.txt\).*Nothing was written"),
        (
            "config.toml",
            "[server]\nport = 80\n",
            r"is not a run's: expected the tables \[data\], \[model\], \[train\] and \[images\]",
        ),
        ("config.toml", "port: 80", r"config\.toml cannot be read"),
    ],
)
def test_a_folder_that_holds_something_else_is_left_alone(job, tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        job(tmp_path)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_text() == text


def test_a_file_in_place_of_the_folder_is_refused(job, tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(InputError, match=r"is a file: expected a folder"):
        job(tmp_path / "x")


def test_a_full_disk_is_one_clear_error_and_the_last_epoch_is_kept(job, goes_on, stopped, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    def fill_the_disk(state):  # what comes next is the checkpoint of epoch 3
        monkeypatch.setattr("vit_from_scratch.model.checkpoints.os.fsync", full)

    kept = (stopped / "checkpoint.safetensors").read_bytes()
    message = r"cannot write .*checkpoint\.safetensors: No space left.*then run the same again"
    with pytest.raises(InputError, match=message):
        job(stopped, [AtStep(7, fill_the_disk)])
    assert (stopped / "checkpoint.safetensors").read_bytes() == kept
    monkeypatch.undo()
    goes_on(stopped)


def test_a_run_whose_checkpoint_was_lost_begins_again(job, stopped):
    (stopped / "checkpoint.safetensors").unlink()
    history = job(stopped)
    assert [metrics.epoch for metrics in read_metrics(stopped)] == [1, 2, 3, 4]
    assert read_metrics(stopped) == history


def test_divergence_names_the_last_good_checkpoint(job, tmp_path):
    def poison(state):
        state.model.head.bias.data[0] = torch.inf

    with pytest.raises(DivergedError, match=r"step 8 \(epoch 3\).*checkpoint\.safetensors, after epoch 2"):
        job(tmp_path, [AtStep(7, poison)])
