"""`vit` in several processes, as torchrun starts them: one run, one voice, one end."""

import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest
from complaints import done, failed
from several import commands
from stopping import FILES

from vit_from_scratch.errors import InputError
from vit_lab.cli import main
from vit_lab.cli.launch import shared_device
from vit_lab.runs.run_folder import RunFolder

SMALL = ["--device", "cpu", "--epochs", "2", "--set", "model.depth=1", "model.dim=16", "train.threads=1"]
TRAIN = ["train", "--data", "digits", *SMALL, "--out", "x"]


def said(folder: Path, stream: str) -> list[str]:
    return [(folder / f"{stream}-{rank}").read_text() for rank in range(2)]


def complaints(folder: Path) -> list[str]:
    lines = "".join(said(folder, "err")).splitlines()
    return [line for line in lines if line.startswith("vit: ")]


def test_two_processes_leave_the_files_of_one_run(tmp_path, capsys):
    assert commands(2, tmp_path, [TRAIN]) == [0, 0]
    first, second = said(tmp_path, "out")
    assert "x: test accuracy" in first
    assert second == ""
    assert sorted(os.listdir("x")) == FILES
    result = json.loads(Path("x/result.json").read_text())
    assert result["hardware"]["processes"] == 2
    assert "the same accuracy" in done(capsys, "evaluate", "x")


def signal_in_an_epoch(number: int, ranks: tuple[int, ...], rank: int) -> None:
    """Let some of the processes get a signal in the middle of their second epoch."""
    from vit_from_scratch.training import loop

    step = loop.train_step

    def interrupted(state, images, targets):
        if state.step == 30:
            os.kill(os.getpid(), number)
        return step(state, images, targets)

    if rank in ranks:
        loop.train_step = interrupted


KILLED = partial(signal_in_an_epoch, signal.SIGKILL, (1,))
TERMINATED = partial(signal_in_an_epoch, signal.SIGTERM, (1,))
CTRL_C = partial(signal_in_an_epoch, signal.SIGINT, (0, 1))


def interrupt_the_first_as_it_saves(rank: int) -> None:
    saved = RunFolder.on_epoch

    def on_epoch(self, state):
        saved(self, state)
        os.kill(os.getpid(), signal.SIGINT)

    RunFolder.on_epoch = on_epoch


def goes_on(folder: Path) -> None:
    """The same command, now in one process, finishes the run."""
    assert main(TRAIN) == 0
    assert sorted(os.listdir(folder / "x")) == FILES
    assert len((folder / "x/metrics.jsonl").read_text().splitlines()) == 2


def test_a_killed_process_ends_the_run_with_one_sentence_and_it_goes_on(tmp_path):
    assert commands(2, tmp_path, [TRAIN], KILLED) == [1, -signal.SIGKILL]
    (sentence,) = complaints(tmp_path)
    assert "another process of this run has ended" in sentence
    assert "the same command goes on" in sentence
    assert "Traceback" not in "".join(said(tmp_path, "err"))
    goes_on(tmp_path)


@pytest.mark.parametrize("before", [TERMINATED, CTRL_C, interrupt_the_first_as_it_saves])
def test_a_stopped_run_says_so_once_and_goes_on(tmp_path, before):
    codes = commands(2, tmp_path, [TRAIN], before)
    assert 130 in codes
    assert 0 not in codes
    assert len(complaints(tmp_path)) == 1
    assert "Traceback" not in "".join(said(tmp_path, "err"))
    goes_on(tmp_path)


def test_a_folder_with_another_run_is_said_once(tmp_path):
    Path("x").mkdir()
    Path("x/thesis.txt").write_text("years of work")
    assert commands(2, tmp_path, [TRAIN]) == [2, 1]
    (sentence,) = complaints(tmp_path)
    assert "holds something else" in sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([[*TRAIN, "--batch-size", "15"]], "train.batch_size = 15 on 2 processes: expected a multiple of 2"),
        ([TRAIN, [*TRAIN, "--lr", "0.5"]], "process 1 of this run has other settings than process 0"),
        ([["evaluate", "x"]], "expected one. Start it without torchrun"),
        ([["recipes"]], "expected one. Start it without torchrun"),
        ([["train", "--data", "digitz"]], "unknown data set"),
    ],
)
def test_what_cannot_be_shared_is_refused_once(tmp_path, arguments, sentence):
    assert commands(2, tmp_path, arguments) == [2, 2]
    (said,) = complaints(tmp_path)
    assert sentence in said
    assert not Path("x").exists()


def set_variables(monkeypatch, **others: str) -> None:
    """Set what torchrun sets for the first process, which is the only one unless told otherwise."""
    numbers = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    for name, text in (numbers | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"} | others).items():
        monkeypatch.setenv(name, text)


def test_variables_that_are_half_set_are_refused(capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    message = failed(capsys, *TRAIN)
    assert "RANK = '1', WORLD_SIZE = '2': expected RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE" in message
    assert main(["recipes"]) == 0, "which other commands do not ask"


@pytest.mark.parametrize(
    ("name", "text"),
    [("WORLD_SIZE", "x"), ("RANK", "abc"), ("RANK", ""), ("RANK", "2"), ("MASTER_PORT", "x")],
)
def test_numbers_that_make_no_sense_are_refused(capsys, monkeypatch, name, text):
    set_variables(monkeypatch, **{"WORLD_SIZE": "2", name: text})
    assert f"{name} = {text!r}" in failed(capsys, *TRAIN)


def test_one_process_of_torchrun_is_like_any_other(monkeypatch):
    set_variables(monkeypatch)
    assert main(TRAIN) == 0
    assert sorted(os.listdir("x")) == FILES


def test_each_process_needs_a_gpu_of_its_own(monkeypatch):
    import torch

    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    with pytest.raises(InputError, match=r"4 processes on this machine and 2 GPUs: .*nproc-per-node=2"):
        shared_device(None, 3, 4)
    with pytest.raises(InputError, match=r"--device cuda:1 with several processes: expected cpu or cuda"):
        shared_device("cuda:1", 0, 2)
    assert shared_device(None, 1, 2) == "cpu:gloo,cuda:nccl"
    assert chosen == [1]
    assert shared_device("cpu", 3, 4) == "cpu:gloo"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="--device cuda: no GPU here"):
        shared_device("cuda", 0, 2)
    assert shared_device(None, 0, 2) == "cpu:gloo"
