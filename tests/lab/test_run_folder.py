"""A run's folder that was damaged, tampered with, or lies on a disk that cannot be written to."""

import contextlib
import errno
import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from stopping import Never, Stop, content

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.errors import DivergedError
from vit_from_scratch.model.checkpoints import read_safetensors, save_checkpoint
from vit_from_scratch.training import Callback, TrainConfig
from vit_lab.runs import train
from vit_lab.runs.fingerprints import checksum
from vit_lab.runs.metrics import read_metrics

CONFIG = TrainConfig(epochs=3, batch_size=32, warmup_steps=0, average_decay=0.5)


def tiny(**fields) -> VisionTransformer:
    torch.manual_seed(0)
    sizes = {
        "image_size": 8,
        "patch_size": 4,
        "channels": 1,
        "dim": 16,
        "depth": 1,
        "heads": 2,
        "mlp_dim": 16,
    }
    return VisionTransformer(ViTConfig(**(sizes | {"num_classes": 10} | fields)))


def some(digits):
    return replace(
        digits,
        train_images=digits.train_images[:64],
        train_labels=digits.train_labels[:64],
        validation_images=digits.validation_images[:20],
        validation_labels=digits.validation_labels[:20],
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory, digits):
    """A folder with a finished run and a stopped one; tests work on copies."""
    folder = tmp_path_factory.mktemp("runs")
    train(tiny(), some(digits), CONFIG, folder / "finished")
    with contextlib.suppress(KeyboardInterrupt):
        train(tiny(), some(digits), CONFIG, folder / "stopped", [Stop(2)])
    return folder


@pytest.fixture
def finished(runs, tmp_path) -> Path:
    return Path(shutil.copytree(runs / "finished", tmp_path / "finished"))


@pytest.fixture
def stopped(runs, tmp_path) -> Path:
    return Path(shutil.copytree(runs / "stopped", tmp_path / "stopped"))


def refused(folder: Path, data, message: str, config: TrainConfig = CONFIG) -> None:
    """Train in a folder: it must fail with this message, and change nothing."""
    before = content(folder)
    with pytest.raises(InputError, match=message):
        train(tiny(), data, config, folder, [Never()])
    assert content(folder) == before


@pytest.mark.parametrize("keep", [1, 2])
def test_a_finished_run_whose_metrics_were_cut_is_never_trained_on(finished, digits, keep):
    path = finished / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:keep]))
    refused(finished, some(digits), rf"metrics\.jsonl ends after epoch {keep} of 3.*Nothing was changed")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"epoch": 2', '"epoch": "2"', r"epoch 2\.epoch = '2': expected a whole number"),
        ('"epoch": 2', '"epoch": 3', r"epoch = 3: expected 2"),
        ('"train_loss"', '"train_lose"', r"unknown option of \[epoch 1\] 'train_lose'"),
        ('{"epoch": 1', '[1]\n{"epoch": 1', r"epoch 1 = \[1\]: expected a table"),
        ('{"epoch": 3', '{"epoch', "cannot be read"),
    ],
)
def test_damaged_metrics_are_one_clear_error(finished, digits, old, new, message):
    path = finished / "metrics.jsonl"
    path.write_text(path.read_text().replace(old, new))
    refused(finished, some(digits), message)


@pytest.mark.parametrize("left", ["metrics.jsonl", "result.json"])
def test_a_finished_run_whose_model_was_moved_away_is_not_trained_again(finished, digits, left):
    (finished / "result.json").write_text("{}")
    for name in {"model.safetensors", "metrics.jsonl", "result.json"} - {left}:
        (finished / name).unlink()
    refused(finished, some(digits), r"finished run without its model: expected model\.safetensors in it")


def test_another_runs_model_is_refused(finished, digits):
    save_checkpoint(finished / "model.safetensors", tiny(num_classes=7, dim=24))
    message = r"is another run's: model\.dim \(24 there, 16 now\); model\.num_classes \(7 there, 10 now\)"
    refused(finished, some(digits), message)


def test_a_flipped_bit_in_a_tensor_is_noticed(stopped, digits):
    path = stopped / "checkpoint.safetensors"
    whole = bytearray(path.read_bytes())
    whole[-5] ^= 1
    path.write_bytes(whole)
    refused(stopped, some(digits), r"checkpoint\.safetensors is damaged.*start again in another folder")


def rewrite(path: Path, change) -> None:
    """Change the tensors and the progress of a checkpoint, with a checksum that fits."""
    tensors, metadata = read_safetensors(path, "")
    progress = json.loads(metadata["progress"])
    change(tensors, progress)
    metadata["progress"] = json.dumps(progress)
    metadata["checksum"] = checksum(metadata["progress"], tensors)
    save_file(tensors, path, metadata)


def rename(tensors, name, new):
    tensors[new] = tensors.pop(name)


DAMAGES = {
    "another epoch": lambda tensors, progress: progress.update(epoch=9),
    "no epoch": lambda tensors, progress: progress.pop("epoch"),
    "no history": lambda tensors, progress: progress.update(history=[]),
    "history of numbers": lambda tensors, progress: progress.update(history=[1, 2]),
    "an epoch as text": lambda tensors, progress: progress["history"][0].update(epoch="1"),
    "optimiser": lambda tensors, progress: rename(tensors, "optimiser.3.exp_avg", "optimiser.x.exp_avg"),
    "no number": lambda tensors, progress: rename(tensors, "optimiser.3.exp_avg", "optimiser.exp_avg"),
    "a parameter too many": lambda tensors, progress: rename(
        tensors, "optimiser.3.exp_avg", "optimiser.999.exp_avg"
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_progress_is_one_clear_error(stopped, digits, damage):
    rewrite(stopped / "checkpoint.safetensors", DAMAGES[damage])
    refused(stopped, some(digits), r"checkpoint\.safetensors is damaged")


def test_a_run_does_not_go_on_with_other_images(stopped, digits):
    data = some(digits)
    relabelled = replace(data, train_labels=data.train_labels.flip(0))
    refused(stopped, relabelled, r"holds a run on other images than there are in digits now")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[images]", "[pictures]", r"tables \[data\], \[model\], \[train\] and \[images\]"),
        ("classes = [", "classes = 5\nothers = [", r"list of names images\.classes"),
    ],
)
def test_damaged_settings_are_one_clear_error(stopped, digits, old, new, message):
    config = stopped / "config.toml"
    config.write_text(config.read_text().replace(old, new))
    refused(stopped, some(digits), message)


def test_the_number_of_workers_may_change_on_the_way(stopped, digits):
    assert len(train(tiny(), some(digits), replace(CONFIG, workers=0), stopped)) == 3


def test_a_killed_process_leaves_nothing_for_good(stopped, digits):
    for name in (".lock", ".model.safetensors.k_3xw0a1", ".curves.png.abcdefgh", ".result.json.12345678"):
        (stopped / name).write_bytes(b"half")
    train(tiny(), some(digits), CONFIG, stopped)
    assert [name for name in os.listdir(stopped) if name.startswith(".")] == []


@pytest.fixture
def read_only(monkeypatch):
    """A disk that takes no change, as every call that would make one is told."""

    def refuse(*arguments, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    def only_reading(file, mode="r", *arguments, **options):
        return refuse() if set(mode) & set("wax+") else opened(file, mode, *arguments, **options)

    opened = io.open
    monkeypatch.setattr(io, "open", only_reading)
    for name in ("unlink", "mkdir", "rmdir", "replace"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr("tempfile.mkstemp", refuse)


def test_a_finished_run_on_a_read_only_disk_is_loaded(finished, digits, read_only):
    history = train(tiny(), some(digits), CONFIG, finished, [Never()])
    assert history == read_metrics(finished)


def test_an_unfinished_run_on_a_read_only_disk_is_one_clear_error(stopped, digits, request):
    (stopped / "checkpoint.safetensors").unlink()
    request.getfixturevalue("read_only")
    refused(stopped, some(digits), r"cannot write .*metrics\.jsonl: Read-only file system")


def test_a_folder_is_free_again_after_an_error(stopped, tmp_path, digits):
    from vit_lab.runs.run_folder import RunFolder

    class Poison(Callback):
        def on_step(self, state):
            assert (tmp_path / "x" / ".lock").exists(), "held while it trains"
            state.model.head.bias.data[0] = torch.nan

    assert not (stopped / ".lock").exists(), "Ctrl-C ends in order"
    with pytest.raises(DivergedError):
        train(tiny(), some(digits), CONFIG, tmp_path / "x", [Poison()])
    assert not (tmp_path / "x" / ".lock").exists()
    with RunFolder(tmp_path / "y") as folder:
        train(tiny(), some(digits), CONFIG, callbacks=[folder])
        assert (tmp_path / "y" / ".lock").exists(), "held until the result is written"
    assert not (tmp_path / "y" / ".lock").exists()
