import json
import os
from dataclasses import replace

import pytest
import torch
from stopping import Never, Stop, content, weights, without_time

from vit_from_scratch import InputError
from vit_from_scratch.errors import DivergedError
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.training import Callback
from vit_lab.runs import train
from vit_lab.runs.metrics import read_metrics, save_curves


@pytest.mark.parametrize("optimiser", ["adamw", "adam", "sgd"])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_stopped_run_ends_with_the_weights_of_one_never_stopped(
    make_model, few_digits, short, tmp_path, optimiser, after
):
    config = replace(short, optimiser=optimiser)
    whole = make_model()
    history = train(whole, few_digits, config)
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), few_digits, config, tmp_path, [Stop(after)])
    resumed = make_model(seed=9)  # its own initial weights must not matter
    again = train(resumed, few_digits, config, tmp_path)
    assert torch.equal(weights(resumed), weights(whole))
    assert without_time(again) == without_time(history)


def test_a_run_stopped_in_the_middle_of_an_epoch_repeats_that_epoch(make_model, few_digits, short, tmp_path):
    class StopAtStep(Callback):
        def on_step(self, state):
            if state.step == 8:
                raise KeyboardInterrupt

    whole, resumed = make_model(), make_model()
    train(whole, few_digits, short)
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), few_digits, short, tmp_path, [StopAtStep()])
    train(resumed, few_digits, short, tmp_path)
    assert torch.equal(weights(resumed), weights(whole))


def test_a_killed_process_goes_on(make_model, few_digits, short, tmp_path):
    """kill -9 between the checkpoint and the line of metrics, with a temporary file half written."""
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), few_digits, short, tmp_path, [Stop(2)])
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    (tmp_path / "metrics.jsonl").write_text(lines[0] + "\n" + lines[1][:20])
    (tmp_path / ".checkpoint.safetensors.k_3xw0a1").write_bytes(b"half")
    whole, resumed = make_model(), make_model()
    train(whole, few_digits, short)
    train(resumed, few_digits, short, tmp_path)
    assert torch.equal(weights(resumed), weights(whole))
    assert not list(tmp_path.glob(".*"))
    assert [json.loads(line)["epoch"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()] == [
        1,
        2,
        3,
        4,
    ]


def test_a_finished_folder_holds_the_run(make_model, few_digits, short, tmp_path, monkeypatch):
    monkeypatch.setattr("vit_lab.runs.run_folder.save_curves", save_curves)  # drawn, this once
    model = make_model()
    train(model, few_digits, short, tmp_path / "runs" / "x")
    names = sorted(os.listdir(tmp_path / "runs" / "x"))
    assert names == ["config.toml", "curves.png", "metrics.jsonl", "model.safetensors"]
    assert torch.equal(
        weights(load_checkpoint(tmp_path / "runs" / "x" / "model.safetensors")), weights(model)
    )
    assert (tmp_path / "runs" / "x" / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_finished_run_is_loaded_and_not_trained_again(make_model, few_digits, short, tmp_path):
    model, again = make_model(), make_model(seed=5)
    history = train(model, few_digits, short, tmp_path)
    before = content(tmp_path)
    assert train(again, few_digits, short, tmp_path, [Never()]) == history
    assert torch.equal(weights(again), weights(model))
    assert content(tmp_path) == before


def test_other_settings_are_refused_by_name(make_model, few_digits, short, tmp_path):
    train(make_model(), few_digits, short, tmp_path)
    other = replace(short, learning_rate=0.5, epochs=9)
    message = (
        r"other settings: train\.epochs \(4 there, 9 now\); train\.learning_rate \(0\.001 there, 0\.5 now\)"
    )
    with pytest.raises(InputError, match=message):
        train(make_model(), few_digits, other, tmp_path)
    with pytest.raises(InputError, match=r"model\.dropout \(0\.1 there, 0\.2 now\)"):
        train(make_model(dropout=0.2), few_digits, short, tmp_path)


def test_a_run_that_ended_within_its_first_epoch_binds_nobody(make_model, few_digits, short, tmp_path):
    class Breaks(Callback):
        def on_step(self, state):
            raise RuntimeError("a photo that cannot be read")

    other = replace(short, learning_rate=0.5)
    with pytest.raises(RuntimeError, match="a photo"):
        train(make_model(), few_digits, short, tmp_path, [Breaks()])
    assert os.listdir(tmp_path) == ["config.toml"]
    images = few_digits.train_images.flip(-1)
    history = train(make_model(), replace(few_digits, train_images=images), other, tmp_path)
    assert len(history) == short.epochs
    with pytest.raises(InputError, match=r"train\.learning_rate \(0\.5 there, 0\.001 now\)"):
        train(make_model(), few_digits, short, tmp_path)


def test_a_folder_that_holds_something_else_is_left_alone(make_model, few_digits, short, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"holds something else \(thesis\.txt\).*Nothing was written"):
        train(make_model(), few_digits, short, tmp_path)
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_somebody_elses_config_is_left_alone(make_model, few_digits, short, tmp_path):
    (tmp_path / "config.toml").write_text("[server]\nport = 80\n")
    with pytest.raises(
        InputError, match=r"is not a run's: expected the tables \[data\], \[model\], \[train\] and \[images\]"
    ):
        train(make_model(), few_digits, short, tmp_path)
    (tmp_path / "config.toml").write_text("port: 80")
    with pytest.raises(InputError, match=r"config\.toml cannot be read"):
        train(make_model(), few_digits, short, tmp_path)
    assert (tmp_path / "config.toml").read_text() == "port: 80"


def test_a_file_in_place_of_the_folder_is_refused(make_model, few_digits, short, tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(InputError, match=r"is a file: expected a folder"):
        train(make_model(), few_digits, short, tmp_path / "x")


@pytest.mark.parametrize("content", [b"", b"not safetensors", None])
def test_a_damaged_checkpoint_is_refused_and_kept(make_model, few_digits, short, tmp_path, content):
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), few_digits, short, tmp_path, [Stop(2)])
    path = tmp_path / "checkpoint.safetensors"
    content = path.read_bytes()[:-100] if content is None else content
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"checkpoint\.safetensors cannot be read"):
        train(make_model(), few_digits, short, tmp_path)
    assert path.read_bytes() == content


def test_a_foreign_checkpoint_is_refused(make_model, few_digits, short, tmp_path):
    from safetensors.torch import save_file

    with pytest.raises(KeyboardInterrupt):
        train(make_model(), few_digits, short, tmp_path, [Stop(2)])
    save_file({"weight": torch.ones(2)}, tmp_path / "checkpoint.safetensors")
    with pytest.raises(InputError, match=r"is not the state of a run"):
        train(make_model(), few_digits, short, tmp_path)


def test_a_full_disk_is_one_clear_error_and_the_last_epoch_is_kept(
    make_model, few_digits, short, tmp_path, monkeypatch
):
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), few_digits, short, tmp_path, [Stop(2)])
    kept = (tmp_path / "checkpoint.safetensors").read_bytes()

    class FillTheDisk(Callback):
        def on_step(self, state):  # what comes next is the checkpoint of epoch 3
            monkeypatch.setattr("vit_from_scratch.model.checkpoints.os.fsync", full)

    def full(handle):
        raise OSError(28, "No space left on device")

    with pytest.raises(
        InputError,
        match=r"cannot write .*checkpoint\.safetensors: No space left.*the same command then goes on",
    ):
        train(make_model(), few_digits, short, tmp_path, [FillTheDisk()])
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == kept
    monkeypatch.undo()
    whole, resumed = make_model(), make_model()
    train(whole, few_digits, short)
    train(resumed, few_digits, short, tmp_path)
    assert torch.equal(weights(resumed), weights(whole))


def test_a_run_whose_checkpoint_was_lost_begins_again(make_model, few_digits, short, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), few_digits, short, tmp_path, [Stop(2)])
    (tmp_path / "checkpoint.safetensors").unlink()
    history = train(make_model(), few_digits, short, tmp_path)
    assert [metrics.epoch for metrics in read_metrics(tmp_path)] == [1, 2, 3, 4]
    assert read_metrics(tmp_path) == history


def test_a_finished_run_without_metrics_is_refused(make_model, few_digits, short, tmp_path):
    train(make_model(), few_digits, short, tmp_path)
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(InputError, match=r"metrics\.jsonl is empty: expected a line of JSON for each epoch"):
        train(make_model(), few_digits, short, tmp_path)


def test_divergence_names_the_last_good_checkpoint(make_model, few_digits, short, tmp_path):
    class Poison(Callback):
        def on_step(self, state):
            if state.step == 7:
                state.model.head.bias.data[0] = torch.inf

    with pytest.raises(DivergedError, match=r"step 8 \(epoch 3\).*checkpoint\.safetensors, after epoch 2"):
        train(make_model(), few_digits, short, tmp_path, callbacks=[Poison()])
