"""What a run in a folder does beside the loop: keep models on the way, and say what it finds there."""

from collections.abc import Callable, Sequence
from pathlib import Path

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import writing
from vit_from_scratch.model.checkpoints import save_checkpoint
from vit_from_scratch.training.state import Callback, TrainingState, as_vit


class KeepEpochs(Callback):
    """Keep the model as it is after some epochs, to look at later how it came about.

    What is kept is what validation measures: averaged weights, if there is an average. Files are called
    epoch-0000.safetensors, and so on.
    """

    def __init__(self, folder: Path, epochs: Sequence[int]) -> None:
        """Say where to keep the model, and after which epochs.

        Args:
            folder: created when it is needed.
            epochs: numbers of finished epochs, 0 for the model before training.
        """
        self.folder, self.epochs = folder, frozenset(epochs)

    def on_start(self, state: TrainingState) -> None:
        """Keep the model as the run finds it: untrained, or after the epoch that it goes on from.

        Raises:
            InputError: the run has fewer epochs than are to be kept.
        """
        if late := sorted(epoch for epoch in self.epochs if not 0 <= epoch <= state.epochs):
            raise InputError(
                f"epochs to keep: {late[0]}, and the run has {state.epochs}: expected 0 to {state.epochs}."
            )
        self.on_epoch(state)

    def on_epoch(self, state: TrainingState) -> None:
        """Keep the model, if its epoch is among those."""
        if state.epoch in self.epochs:
            with writing(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                path = self.folder / f"epoch-{state.epoch:04}.safetensors"
                save_checkpoint(path, as_vit(state.measured, "keeping epochs"))


class Announcement(Callback):
    """Say what is in the run's folder: a finished run, or one that was stopped and goes on."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say

    def on_start(self, state: TrainingState) -> None:
        """Say it, once the folder's settings were found to be these."""
        if state.finished:
            self.say(f"{self.folder} is finished.")
        elif state.epoch:
            self.say(f"{self.folder} was stopped after epoch {state.epoch} of {state.epochs}; it goes on.")
