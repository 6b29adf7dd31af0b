"""A run's folder that was damaged, tampered with, or lies on a disk that cannot be written to."""

import contextlib
import errno
import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from stopping import Never, Stop, content

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.errors import DivergedError
from vit_from_scratch.model.checkpoints import read_safetensors, save_checkpoint
from vit_from_scratch.training import Callback, TrainConfig
from vit_lab.runs import locks, train
from vit_lab.runs.fingerprints import checksum
from vit_lab.runs.locks import locked
from vit_lab.runs.metrics import read_metrics
from vit_lab.runs.run_folder import RunFolder

CONFIG = TrainConfig(epochs=3, batch_size=32, warmup_steps=0, average_decay=0.5)


def tiny(**fields) -> VisionTransformer:
    torch.manual_seed(0)
    sizes = {"channels": 1, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16, "num_classes": 10}
    return VisionTransformer(ViTConfig(8, 4, **(sizes | fields)))


@pytest.fixture(scope="module")
def some(digits):
    return replace(
        digits,
        train_images=digits.train_images[:64],
        train_labels=digits.train_labels[:64],
        validation_images=digits.validation_images[:20],
        validation_labels=digits.validation_labels[:20],
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory, some):
    """A folder with a finished run and a stopped one; tests work on copies."""
    folder = tmp_path_factory.mktemp("runs")
    train(tiny(), some, CONFIG, folder / "finished")
    with contextlib.suppress(KeyboardInterrupt):
        train(tiny(), some, CONFIG, folder / "stopped", [Stop(2)])
    return folder


@pytest.fixture
def finished(runs, tmp_path) -> Path:
    return Path(shutil.copytree(runs / "finished", tmp_path / "finished"))


@pytest.fixture
def stopped(runs, tmp_path) -> Path:
    return Path(shutil.copytree(runs / "stopped", tmp_path / "stopped"))


@pytest.fixture
def refused(some):
    """A function that trains in a folder: it must fail with a message, and change nothing."""

    def check(folder: Path, message: str, data=some) -> None:
        before = content(folder)
        with pytest.raises(InputError, match=message):
            train(tiny(), data, CONFIG, folder, [Never()])
        assert content(folder) == before

    return check


@pytest.mark.parametrize("keep", [1, 2])
def test_a_finished_run_whose_metrics_were_cut_is_never_trained_on(finished, refused, keep):
    path = finished / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:keep]))
    refused(finished, rf"metrics\.jsonl ends after epoch {keep} of 3.*Nothing was changed")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("metrics.jsonl", '"epoch": 2', '"epoch": "2"', r"epoch 2\.epoch = '2': expected a whole number"),
        ("metrics.jsonl", '"epoch": 2', '"epoch": 3', r"epoch = 3: expected 2"),
        ("metrics.jsonl", '"train_loss"', '"train_lose"', r"unknown option of \[epoch 1\] 'train_lose'"),
        ("metrics.jsonl", '{"epoch": 1', '[1]\n{"epoch": 1', r"epoch 1 = \[1\]: expected a table"),
        ("metrics.jsonl", '{"epoch": 3', '{"epoch', "cannot be read"),
        ("metrics.jsonl", None, "", r"is empty: expected a line of JSON for each epoch"),
        ("config.toml", "[images]", "[pictures]", r"tables \[data\], \[model\], \[train\] and \[images\]"),
        ("config.toml", "classes = [", "classes = 5\nothers = [", r"list of names images\.classes"),
    ],
)
def test_damaged_metrics_and_settings_are_one_clear_error(finished, refused, name, old, new, message):
    text = (finished / name).read_text()
    (finished / name).write_text(text.replace(old or text, new))
    refused(finished, message)


@pytest.mark.parametrize("left", ["metrics.jsonl", "result.json"])
def test_a_finished_run_whose_model_was_moved_away_is_not_trained_again(finished, refused, left):
    (finished / "result.json").write_text("{}")
    for name in {"model.safetensors", "metrics.jsonl", "result.json"} - {left}:
        (finished / name).unlink()
    refused(finished, r"finished run without its model: expected model\.safetensors in it")


def test_another_runs_model_is_refused(finished, refused):
    save_checkpoint(finished / "model.safetensors", tiny(num_classes=7, dim=24))
    message = r"is another run's: model\.dim \(24 there, 16 now\); model\.num_classes \(7 there, 10 now\)"
    refused(finished, message)


def flipped(whole: bytes) -> bytes:
    return whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda whole: b"", "cannot be read"),
        (lambda whole: b"not safetensors", "cannot be read"),
        (lambda whole: whole[:-100], "cannot be read"),
        (flipped, r"is damaged.*start again in another folder"),
    ],
)
def test_a_damaged_checkpoint_is_refused_and_kept(stopped, refused, damage, message):
    path = stopped / "checkpoint.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    refused(stopped, rf"checkpoint\.safetensors {message}")


def test_a_foreign_checkpoint_is_refused(stopped, refused):
    save_file({"weight": torch.ones(2)}, stopped / "checkpoint.safetensors")
    refused(stopped, r"is not the state of a run")


def rename(tensors, name, new):
    tensors[new] = tensors.pop(name)


DAMAGES = {
    "another epoch": lambda tensors, progress: progress.update(epoch=9),
    "no epoch": lambda tensors, progress: progress.pop("epoch"),
    "no history": lambda tensors, progress: progress.update(history=[]),
    "history of numbers": lambda tensors, progress: progress.update(history=[1, 2]),
    "an epoch as text": lambda tensors, progress: progress["history"][0].update(epoch="1"),
    "optimiser": lambda tensors, _: rename(tensors, "optimiser.3.exp_avg", "optimiser.x.exp_avg"),
    "no number": lambda tensors, _: rename(tensors, "optimiser.3.exp_avg", "optimiser.exp_avg"),
    "a parameter too many": lambda tensors, _: rename(
        tensors, "optimiser.3.exp_avg", "optimiser.999.exp_avg"
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_progress_with_a_checksum_that_fits_is_one_clear_error(stopped, refused, damage):
    path = stopped / "checkpoint.safetensors"
    tensors, metadata = read_safetensors(path, "")
    progress = json.loads(metadata["progress"])
    damage(tensors, progress)
    metadata["progress"] = json.dumps(progress)
    save_file(tensors, path, metadata | {"checksum": checksum(metadata["progress"], tensors)})
    refused(stopped, r"checkpoint\.safetensors is damaged")


def test_a_run_does_not_go_on_with_other_images(stopped, some, refused):
    relabelled = replace(some, train_labels=some.train_labels.flip(0))
    refused(stopped, r"holds a run on other images than there are in digits now", relabelled)


def test_the_number_of_workers_may_change_on_the_way(stopped, some):
    assert len(train(tiny(), some, replace(CONFIG, workers=0), stopped)) == 3


def test_a_killed_process_leaves_nothing_for_good(stopped, some):
    for name in (".lock", ".model.safetensors.k_3xw0a1", ".curves.png.abcdefgh", ".result.json.12345678"):
        (stopped / name).write_bytes(b"half")
    train(tiny(), some, CONFIG, stopped)
    assert [name for name in os.listdir(stopped) if name.startswith(".")] == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_odd_lock_is_neither_waited_for_nor_followed(tmp_path):
    os.mkfifo(tmp_path / ".lock")
    with locked(tmp_path):
        (tmp_path / ".lock").unlink()
        (tmp_path / ".lock").symlink_to("nowhere/x")
    with locked(tmp_path):
        assert sorted(tmp_path.iterdir()) == [tmp_path / ".lock"]


def test_windows_locks_a_folder_and_lets_go_of_it_before_it_removes_the_lock(tmp_path, monkeypatch):
    fds, held = [], set()

    def locking(fd, mode, count):
        fds.append(fd)
        if os.fstat(fd).st_ino in held:
            raise PermissionError(errno.EACCES, "Permission denied")
        held.add(os.fstat(fd).st_ino)

    def unlink(path):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fds[0])
        removed.append(path)

    removed = []
    monkeypatch.setattr(locks, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(locks, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2), raising=False)
    monkeypatch.setattr(locks.Path, "unlink", unlink)
    with locked(tmp_path):
        with pytest.raises(InputError, match="is in use by another process"), locked(tmp_path):
            pass
        assert removed == []
    assert removed == [tmp_path / ".lock"]


@pytest.fixture
def read_only(monkeypatch):
    """A disk that takes no change, as every call that would make one is told."""

    def refuse(*arguments, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    def only_reading(file, mode="r", *arguments, **options):
        return refuse() if set(mode) & set("wax+") else opened(file, mode, *arguments, **options)

    def no_new(file, flags, *arguments, **options):
        return refuse() if flags & os.O_CREAT else numbered(file, flags, *arguments, **options)

    opened, numbered = io.open, os.open
    monkeypatch.setattr(io, "open", only_reading)
    monkeypatch.setattr(os, "open", no_new)
    for name in ("unlink", "mkdir", "rmdir", "replace"):
        monkeypatch.setattr(os, name, refuse)


def test_a_finished_run_on_a_read_only_disk_is_loaded(finished, some, read_only):
    assert train(tiny(), some, CONFIG, finished, [Never()]) == read_metrics(finished)


def test_an_unfinished_run_on_a_read_only_disk_is_one_clear_error(stopped, refused, request):
    (stopped / "checkpoint.safetensors").unlink()
    request.getfixturevalue("read_only")
    refused(stopped, r"cannot write .*metrics\.jsonl: Read-only file system")


def test_a_folder_is_free_again_after_an_error(stopped, tmp_path, some):
    class Poison(Callback):
        def on_step(self, state):
            assert (tmp_path / "x" / ".lock").exists(), "held while it trains"
            state.model.head.bias.data[0] = torch.nan

    assert not (stopped / ".lock").exists(), "Ctrl-C ends in order"
    with pytest.raises(DivergedError):
        train(tiny(), some, CONFIG, tmp_path / "x", [Poison()])
    assert not (tmp_path / "x" / ".lock").exists()
    with RunFolder(tmp_path / "y") as folder:
        train(tiny(), some, CONFIG, callbacks=[folder])
        assert (tmp_path / "y" / ".lock").exists(), "held until the result is written"
    assert not (tmp_path / "y" / ".lock").exists()
