"""A run's folder: settings, metrics, checkpoint, weights and curves, and how a stopped run goes on.

config.toml              every setting: [data], [model], [train]; [start] if it began from a checkpoint
metrics.jsonl            a line an epoch
checkpoint.safetensors   the state after the last epoch; gone once the run is finished
model.safetensors        the finished model, weights and configuration
curves.png               loss and accuracy against the epoch
result.json              the test accuracy and where it came from (`vit train` writes it)
"""

import contextlib
import dataclasses
import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomli_w

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.checkpoints import load_checkpoint, save_checkpoint, write_atomically
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.settings import as_table, flattened
from vit_from_scratch.training.callbacks import Callback
from vit_from_scratch.training.checkpointing import restore_state, save_state
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.curves import save_curves
from vit_from_scratch.training.state import EpochMetrics, TrainingState, as_vit

HEADER = "# Every setting of this run; `vit evaluate` reads it. To change one, start another run.\n\n"


class RunFolder(Callback):
    """Keep a run in a folder: open it at the start, save after each epoch, finish at the end."""

    def __init__(self, path: str | os.PathLike[str], also: dict[str, Any] | None = None) -> None:
        """Name the folder; nothing is read or written before the run starts.

        Args:
            path: the folder.
            also: tables of config.toml beside [data], [model] and [train], such as [start].
        """
        self.path = Path(path)
        self.also = also or {}
        self.checkpoint = self.path / "checkpoint.safetensors"
        self.model = self.path / "model.safetensors"
        self.metrics = self.path / "metrics.jsonl"
        self.curves = self.path / "curves.png"
        self.was_finished = False

    def on_start(self, state: TrainingState) -> None:
        """Create the folder, or go on with the run in it, or load what is finished.

        Raises:
            InputError: the folder holds something else, or a run with other settings.
        """
        settings = run_settings(state) | self.also
        if not self._is_new():
            _compare(self.path, read_settings(self.path), settings)
        else:
            with writing(self.path):
                write_atomically(self.path / "config.toml", (HEADER + tomli_w.dumps(settings)).encode())
        if self.model.exists():
            self.was_finished = True
            state.model.load_state_dict(load_checkpoint(self.model).state_dict())
            state.history[:] = read_metrics(self.path)
            state.epoch, state.step = state.history[-1].epoch, state.history[-1].step
            state.average = state.best = None  # what was kept is in the model
        elif self.checkpoint.exists():
            restore_state(self.checkpoint, state)
            self._note(state)
            # The process may have died between the checkpoint and its line.
            with writing(self.metrics):
                write_atomically(self.metrics, _lines(state.history))
        else:
            self.metrics.unlink(missing_ok=True)  # lines without a checkpoint: the run begins again

    def on_epoch(self, state: TrainingState) -> None:
        """Save the state and add a line of metrics."""
        with writing(self.checkpoint):
            save_state(self.checkpoint, state)
        self._note(state)
        with writing(self.metrics), self.metrics.open("ab") as file:
            file.write(_lines(state.history[-1:]))

    def on_end(self, state: TrainingState) -> None:
        """Write curves and the finished model, then drop the checkpoint."""
        if not self.was_finished:
            with writing(self.path):
                save_curves(self.curves, state.history)
                save_checkpoint(self.model, as_vit(state.model, "a run folder"))
        self.checkpoint.unlink(missing_ok=True)
        for leftover in self.path.glob(f".{self.checkpoint.name}.*"):  # of a process killed while writing
            leftover.unlink(missing_ok=True)

    def _note(self, state: TrainingState) -> None:
        state.last_checkpoint = f"{self.checkpoint}, after epoch {state.epoch}"

    def _is_new(self) -> bool:
        """Say whether there is nothing here yet; refuse a place that is no run's folder."""
        with writing(self.path):
            if self.path.exists() and not self.path.is_dir():
                raise InputError(
                    f"{self.path} is a file: expected a folder for the run. Choose another name."
                )
            found = sorted(entry.name for entry in self.path.iterdir()) if self.path.exists() else []
        # A process that was killed while writing leaves a hidden temporary file.
        seen = [name for name in found if not name.startswith(".")]
        if seen and "config.toml" not in seen:
            some = ", ".join(seen[:3]) + (", ..." if len(seen) > 3 else "")
            raise InputError(
                f"{self.path} holds something else ({some}): "
                "expected an empty or new folder, or a run's. Nothing was written; choose another folder."
            )
        return not seen


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failure to write, such as a full disk, into one clear error; what lay there is still whole."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}. Expected a folder with room in it that you may "
            "write to. Free some space or choose another folder; the same command then goes on."
        ) from error


def run_settings(state: TrainingState) -> dict[str, Any]:
    """Return every setting that decides a run, as the tables of config.toml."""
    config = as_vit(state.model, "a run folder").config
    table = {key: list(v) if isinstance(v, tuple) else v for key, v in config.to_dict().items()}
    return {"data": as_table(state.data.config), "model": table, "train": as_table(state.config)}


def read_settings(folder: Path) -> dict[str, Any]:
    """Read a run's config.toml.

    Raises:
        InputError: there is none, it cannot be read, or it is not a run's.
    """
    path = folder / "config.toml"
    try:
        settings = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"{path} cannot be read ({error}): expected the settings of a run, as `vit train` writes them. "
            "Name a run's folder."
        ) from error
    if not all(isinstance(settings.get(table), dict) for table in ("data", "model", "train")):
        raise InputError(
            f"{path} is not a run's: expected the tables [data], [model] and [train]. "
            "Nothing was written; choose another folder."
        )
    return settings


def read_metrics(folder: Path) -> list[EpochMetrics]:
    """Read a run's metrics.jsonl.

    Raises:
        InputError: there is none, or a line is damaged.
    """
    path = folder / "metrics.jsonl"
    try:
        metrics = [EpochMetrics(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{path} cannot be read ({error}): expected a line of JSON for each epoch."
        ) from error
    if not metrics:
        raise InputError(f"{path} is empty: expected a line of JSON for each epoch. Restore it.")
    return metrics


def _compare(folder: Path, there: dict[str, Any], now: dict[str, Any]) -> None:
    before, after = flattened(there), flattened(now)
    # A run of an older version lacks the options that came later: it had what is their default now.
    defaults = flattened({"model": ViTConfig().to_dict(), "train": as_table(TrainConfig())})
    before = {key: defaults[key] for key in after.keys() & defaults.keys()} | before
    changed = [
        f"{key} ({before.get(key, 'not set')} there, {after.get(key, 'not set')} now)"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]
    if changed:
        raise InputError(
            f"{folder} holds a run with other settings: {'; '.join(changed)}. "
            "Use the same settings to go on with it, or another folder for a new run."
        )


def _lines(history: list[EpochMetrics]) -> bytes:
    return "".join(json.dumps(dataclasses.asdict(metrics)) + "\n" for metrics in history).encode()
