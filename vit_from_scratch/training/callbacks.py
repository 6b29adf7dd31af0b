"""What else may happen while a model trains, apart from the loop: a progress bar, a log of every step."""

import os
import sys
from dataclasses import dataclass

from tqdm import tqdm

from vit_from_scratch.training.state import TrainingState


class Callback:
    """Override what you need; the loop calls each at its moment, with the state as it is then."""

    def on_start(self, state: TrainingState) -> None:
        """Before the first epoch of this process; a resumed run has `state.epoch` above 0."""

    def on_step(self, state: TrainingState) -> None:
        """After a step of the optimiser."""

    def on_epoch(self, state: TrainingState) -> None:
        """After an epoch, its metrics already in `state.history`."""

    def on_end(self, state: TrainingState) -> None:
        """After the last epoch."""


class ProgressBar(Callback):
    """A text bar over the run's steps, with the last epoch's losses and accuracies.

    It shows itself in a terminal and keeps quiet elsewhere (a log file, a notebook, the book), unless the
    environment variable VIT_PROGRESS says 1 (always) or 0 (never).
    """

    def __init__(self, title: str = "") -> None:
        """Name the bar, for instance by the run's seed."""
        self.title = title
        self.bar: tqdm | None = None

    def on_start(self, state: TrainingState) -> None:
        """Show the bar, beginning at the step where a resumed run begins."""
        wish = os.environ.get("VIT_PROGRESS")
        shown = sys.stdout.isatty() and sys.stderr.isatty() if wish is None else wish != "0"
        self.bar = tqdm(
            total=state.total_steps,
            initial=state.step,
            desc=self.title or None,
            unit="step",
            disable=not shown,
            dynamic_ncols=True,
        )

    def on_step(self, state: TrainingState) -> None:
        """Move on by one."""
        if self.bar is not None:
            self.bar.update()

    def on_epoch(self, state: TrainingState) -> None:
        """Show the epoch's numbers."""
        last = state.history[-1]
        if self.bar is not None:
            numbers = {"epoch": f"{last.epoch}/{state.epochs}", "loss": f"{last.train_loss:.3f}"}
            if last.validation_accuracy is not None:
                numbers["validation"] = f"{last.validation_accuracy:.1%}"
            self.bar.set_postfix(numbers)

    def on_end(self, state: TrainingState) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()


@dataclass(frozen=True)
class StepMetrics:
    """One step in numbers.

    Attributes:
        step: counted from 1.
        learning_rate: the rate of this step.
        loss: the batch's loss.
        gradient_norm: the gradient's global norm before clipping.
    """

    step: int
    learning_rate: float
    loss: float
    gradient_norm: float


class StepLog(Callback):
    """Keep each step's loss, learning rate and gradient norm in `steps`: a closer look than epochs give."""

    def __init__(self) -> None:
        """Begin with an empty log."""
        self.steps: list[StepMetrics] = []

    def on_step(self, state: TrainingState) -> None:
        """Add the step."""
        self.steps.append(
            StepMetrics(state.step, state.learning_rate, state.loss.item(), state.gradient_norm.item())
        )
