"""Short runs, runs that are stopped, and what two runs are compared by."""

import json
import os
from dataclasses import replace
from pathlib import Path

import torch

from vit_from_scratch.training import Callback
from vit_lab import load_recipe
from vit_lab.runs.run_folder import RunFolder

FILES = ["config.toml", "curves.png", "metrics.jsonl", "model.safetensors", "origins.json", "result.json"]
CHANGES = {
    "data": {"validation_size": 1000, "train_size": 64},
    "model": {"dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16},
    "train": {"epochs": 1, "warmup_steps": 0, "batch_size": 32},
}


def recipe(*seeds: int, **train):
    """The digits' recipe, made a run of two steps."""
    return load_recipe("digits", CHANGES | {"seeds": list(seeds), "train": CHANGES["train"] | train})


class Stop(Callback):
    """Stop the run after an epoch as Ctrl-C would."""

    def __init__(self, after: int):
        self.after = after

    def on_epoch(self, state):
        if state.epoch == self.after:
            raise KeyboardInterrupt


class AtStep(Callback):
    """Do something to a run at one of its steps."""

    def __init__(self, step: int, act):
        self.step, self.act = step, act

    def on_step(self, state):
        if state.step == self.step:
            self.act(state)


class Never(Callback):
    """No step may be trained."""

    def on_step(self, state):
        raise AssertionError("trained")


def stop_once_saved(patch) -> None:
    """Let every run in a folder be stopped as soon as its first epoch is saved."""
    saved = RunFolder.on_epoch

    def stop(self, state):
        saved(self, state)
        raise KeyboardInterrupt

    patch.setattr(RunFolder, "on_epoch", stop)


def weights(model) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def without_time(history):
    return [replace(metrics, seconds=0.0) for metrics in history]


def content(folder: Path) -> dict[str, bytes]:
    """What every file under a folder holds."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def result(folder: Path) -> dict:
    return json.loads((folder / "result.json").read_text())


def without_validation(data):
    return replace(data, validation_images=data.validation_images[:0], validation_labels=torch.tensor([]))


class Killed(BaseException):
    """Raised in place of a file operation, and of each after it: the dead tidy nothing up."""


class Death:
    """Let a number of file operations happen, and none after them."""

    def __init__(self, monkeypatch):
        self.left = -1
        for name in ("replace", "unlink", "fsync", "mkdir", "fdopen", "utime"):
            monkeypatch.setattr(os, name, self.mortal(getattr(os, name)))

    def mortal(self, operation):
        def call(*arguments, **options):
            if self.left == 0:
                raise Killed
            self.left -= 1
            return operation(*arguments, **options)

        return call

    def comes_after(self, operations: int) -> None:
        self.left = operations
