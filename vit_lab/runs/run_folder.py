"""A run's folder: settings, metrics, checkpoint, weights and curves, and how a stopped run goes on.

What is in it::

    config.toml              [data], [model], [train]; [images]: checksum, classes; [start]: a checkpoint
    metrics.jsonl            a line an epoch
    checkpoint.safetensors   the state after the last epoch; gone once the run is finished
    model.safetensors        the finished model, weights and configuration
    pretraining.safetensors  without labels (config.toml: objective): the ViT and what its task needs
    curves.png               loss and accuracy against the epoch
    epochs/                  models on the way, if they were asked for: epoch-0000.safetensors, and so on
    origins.json             where it was trained, from which epoch on
    result.json              the test accuracy and where it came from, once it is measured
"""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import remove_leftovers, writing
from vit_from_scratch.model.checkpoints import load_checkpoint, save_checkpoint
from vit_from_scratch.training.pretraining import PRETRAINING, load_pretraining, save_pretraining
from vit_from_scratch.training.self_supervised import SelfSupervised
from vit_from_scratch.training.state import Callback, EpochMetrics, TrainingState, as_vit
from vit_lab.runs.fingerprints import fingerprint
from vit_lab.runs.locks import locked
from vit_lab.runs.metrics import METRICS, read_metrics, save_curves, write_metrics
from vit_lab.runs.origins import note_origin
from vit_lab.runs.run_settings import (
    CONFIG,
    check_same_run,
    differences,
    read_settings,
    run_settings,
    write_settings,
)
from vit_lab.runs.saved_state import restore_state, save_state

MODEL = "model.safetensors"


class RunFolder(Callback):
    """Keep a run in a folder: open it at the start, save after each epoch, finish at the end.

    Use it in a `with`: from the run's start to the end of the block no other process can work in the folder.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        also: Mapping[str, Any] | None = None,
        keep: Sequence[int] = (),
        here: Mapping[str, Any] | None = None,
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """Name the folder; nothing is read or written before the run starts.

        Args:
            path: the folder.
            also: tables of config.toml beside [data], [model] and [train], such as [start].
            keep: numbers of finished epochs after which the model is kept in `epochs`, as validation measures
                it (averaged weights, if there is an average); 0 for the model before training.
            here: what `environment` says of this process, for origins.json.
            say: called with a sentence where a run is in the folder already.
        """
        self.path, self.also, self.kept = Path(path), dict(also or {}), frozenset(keep)
        self.here, self.say = here, say
        self.checkpoint = self.path / "checkpoint.safetensors"
        self.model = self.path / MODEL
        self.pretraining = self.path / PRETRAINING
        self.metrics = self.path / METRICS
        self.curves = self.path / "curves.png"
        self.result = self.path / "result.json"
        self._kept_files = (self.checkpoint, self.model, self.pretraining, self.metrics, self.result)
        self.was_finished = False
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Begin; the folder is locked when the run starts."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let other processes work in the folder."""
        self._held.close()

    def on_start(self, state: TrainingState) -> None:
        """Create the folder, or go on with the run in it, or load what is finished.

        Raises:
            InputError: the folder holds something else, a run with other settings or images or a damaged one;
                another process is at work in it; or the run has fewer epochs than are to be kept, or is past
                one that is not in the folder.
        """
        if late := sorted(epoch for epoch in self.kept if not 0 <= epoch <= state.epochs):
            raise InputError(
                f"epochs to keep: {late[0]}, and the run has {state.epochs}: expected 0 to {state.epochs}."
            )
        settings = run_settings(state) | self.also
        self._is_new()  # what is not a run's folder is left alone, without a lock even
        self._held.enter_context(locked(self.path))
        if not self._is_new():
            read_settings(self.path)
        # of a run that never came to the end of an epoch, and kept no model, there is nothing to lose
        if not any(path.exists() for path in (*self._kept_files, self.path / "epochs")):
            write_settings(self.path, settings)
        else:
            check_same_run(self.path, settings)
        files = (*self._kept_files, self.curves)
        remove_leftovers(self.path, [CONFIG, *(file.name for file in files)])
        if self.model.exists():
            self._load(state)
        elif self.checkpoint.exists() and not self.result.exists():
            restore_state(self.checkpoint, state)
            self._note(state)
            write_metrics(self.path, state.history)  # the process may have died before it wrote the last line
        elif self.metrics.exists() or self.result.exists():
            self._begin_again(state)
        self._refuse_past_epochs(state)
        if self.here is not None and not state.finished:
            note_origin(self.path, self.here, state.epoch)
        if not self.was_finished:  # what is kept at the end may be an earlier epoch
            self.keep_epoch(state)
        if state.finished:
            self.say(f"{self.path} is finished.")
        elif state.epoch:
            self.say(f"{self.path} was stopped after epoch {state.epoch} of {state.epochs}; it goes on.")

    def on_epoch(self, state: TrainingState) -> None:
        """Save the state, add a line of metrics, and keep the model if its epoch is among those."""
        save_state(self.checkpoint, state)
        self._note(state)
        write_metrics(self.path, state.history)
        self.keep_epoch(state)

    def keep_epoch(self, state: TrainingState) -> None:
        """Keep the model as it is now, if its epoch is among those that are to be kept."""
        if state.epoch in self.kept:
            save_checkpoint(self._kept_epoch(state.epoch), as_vit(state.measured, "keeping epochs"))

    def on_end(self, state: TrainingState) -> None:
        """Write curves and the finished model, then drop the checkpoint."""
        if not self.was_finished:
            save_curves(self.curves, state.history)
            if isinstance(state.model, SelfSupervised):
                save_pretraining(self.pretraining, state.model)
            save_checkpoint(self.model, as_vit(state.model, "a run folder"))
        with contextlib.suppress(OSError):  # a disk may be read-only; beside a model it is never read
            self.checkpoint.unlink(missing_ok=True)

    def _kept_epoch(self, epoch: int) -> Path:
        return self.path / "epochs" / f"epoch-{epoch:04}.safetensors"

    def _refuse_past_epochs(self, state: TrainingState) -> None:
        """Refuse to keep an epoch that a run is past; a finished one's model may be of an earlier epoch."""
        missed = [epoch for epoch in self.kept if epoch < state.epoch + self.was_finished]
        missed = [epoch for epoch in sorted(missed) if not self._kept_epoch(epoch).exists()]
        if missed:
            expected = "those that it kept" if self.was_finished else f"{state.epoch} or later"
            raise InputError(
                f"epochs to keep: {missed[0]}, and the run in {self.path} is past it: expected {expected}. "
                "Choose another folder to train again."
            )

    def _load(self, state: TrainingState) -> None:
        """Take over the model and the history of a finished run; refuse what is not the run's end."""
        whole = model = load_checkpoint(self.model)
        own = as_vit(state.model, "a run folder").config
        if changed := differences({"model": model.config.to_dict()}, {"model": own.to_dict()}):
            raise InputError(
                f"{self.model} is another run's: {'; '.join(changed)}. "
                "Put this run's back, or choose another folder for a new run."
            )
        _take_over(state, read_metrics(self.path))
        if not state.finished:
            raise InputError(
                f"{self.metrics} ends after epoch {state.epoch} of {state.epochs}, though {self.model.name} "
                "says that the run is finished: expected a line for each epoch. Nothing was changed; restore "
                "the metrics, or choose another folder for a new run."
            )
        if isinstance(state.model, SelfSupervised):
            whole = load_pretraining(self.pretraining)
            if _described(whole, whole.vit.state_dict()) != _described(state.model, model.state_dict()):
                raise InputError(
                    f"{self.pretraining} is not of the run of {self.model.name}: expected the same ViT with "
                    f"objective = {state.model.objective!r}. Put this run's back, or choose another folder."
                )
        state.model.load_state_dict(whole.state_dict())
        state.average = state.best = None  # what was kept is in the model
        self.was_finished = True

    def _begin_again(self, state: TrainingState) -> None:
        """Drop the lines of a run that lost its checkpoint; refuse a finished one that lost its model."""
        if not self.result.exists():
            _take_over(state, read_metrics(self.path))
        if self.result.exists() or state.finished:
            raise InputError(
                f"{self.path} holds a finished run without its model: expected {self.model.name} in it. "
                "Nothing was changed; put the file back, or choose another folder to train again."
            )
        _take_over(state, [])
        with writing(self.metrics):
            self.metrics.unlink()

    def _note(self, state: TrainingState) -> None:
        state.last_checkpoint = f"{self.checkpoint}, after epoch {state.epoch}"

    def _is_new(self) -> bool:
        """Say whether there is nothing here yet; refuse a place that is not a run's folder."""
        with writing(self.path):
            if self.path.exists() and not self.path.is_dir():
                raise InputError(
                    f"{self.path} is a file: expected a folder for the run. Choose another name."
                )
            found = sorted(entry.name for entry in self.path.iterdir()) if self.path.exists() else []
        # A process that was killed while writing leaves hidden files.
        seen = [name for name in found if not name.startswith(".")]
        if seen and CONFIG not in seen:
            some = ", ".join(seen[:3]) + (", ..." if len(seen) > 3 else "")
            raise InputError(
                f"{self.path} holds something else ({some}): "
                "expected an empty or new folder, or a run's. Nothing was written; choose another folder."
            )
        return not seen


def _described(model: SelfSupervised, vit: Mapping[str, Any]) -> str:
    """Say what a self-supervised model is, and which weights its ViT has."""
    return fingerprint(repr((model.objective, model.settings, model.normalise)), vit)


def _take_over(state: TrainingState, history: Sequence[EpochMetrics]) -> None:
    state.history[:] = history
    state.epoch, state.step = (history[-1].epoch, history[-1].step) if history else (0, 0)
