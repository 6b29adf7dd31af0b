"""A process may die before any of its file operations: the same command then ends in the same bits."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from vit_from_scratch.files import write_atomically
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_lab.runs import train
from vit_lab.runs.metrics import read_metrics


class Killed(BaseException):
    """Raised in place of a file operation, and of each after it: the dead tidy nothing up."""


class Death:
    """Let a number of file operations happen, and none after them."""

    def __init__(self, monkeypatch):
        self.left = -1
        for module, name in ((os, "replace"), (os, "unlink"), (os, "fsync"), (os, "mkdir"), (os, "fdopen")):
            monkeypatch.setattr(module, name, self.mortal(getattr(module, name)))

    def mortal(self, operation):
        def call(*arguments, **options):
            if self.left == 0:
                raise Killed
            self.left -= 1
            return operation(*arguments, **options)

        return call

    def comes_after(self, operations: int) -> None:
        self.left = operations


@pytest.fixture
def death(monkeypatch):
    """Curves take most of the time of a run as short as these, and only their file matters here."""
    monkeypatch.setattr(
        "vit_lab.runs.run_folder.save_curves", lambda path, history: write_atomically(path, b"png")
    )
    return Death(monkeypatch)


def weights(model) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def assert_whole(folder: Path, model, history) -> None:
    assert sorted(os.listdir(folder)) == ["config.toml", "curves.png", "metrics.jsonl", "model.safetensors"]
    assert torch.equal(weights(load_checkpoint(folder / "model.safetensors")), weights(model))
    assert [replace(m, seconds=0.0) for m in read_metrics(folder)] == [
        replace(m, seconds=0.0) for m in history
    ]


def test_a_run_that_dies_before_any_file_operation_ends_in_the_same_bits(
    make_model, few_digits, short, tmp_path, death
):
    config = replace(short, epochs=2, batch_size=50)
    whole = make_model()
    history = train(whole, few_digits, config)
    deaths = 0
    while True:
        folder = tmp_path / str(deaths)
        death.comes_after(deaths)
        try:
            train(make_model(), few_digits, config, folder)
            break
        except Killed:
            death.comes_after(-1)
            train(make_model(), few_digits, config, folder)
            assert_whole(folder, whole, history)
            deaths += 1
    assert deaths > 15


def test_a_run_that_dies_again_and_again_ends_in_the_same_bits(
    make_model, few_digits, short, tmp_path, death
):
    config = replace(short, epochs=3, batch_size=50)
    whole = make_model()
    history = train(whole, few_digits, config)
    deaths = 0
    while True:
        death.comes_after(deaths)  # a little later each time
        try:
            train(make_model(), few_digits, config, tmp_path / "x")
            break
        except Killed:
            deaths += 1
    assert deaths > 5
    assert_whole(tmp_path / "x", whole, history)
