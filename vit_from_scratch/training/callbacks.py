"""What else may happen while a model trains, apart from the loop: a bar and a log of steps."""

import sys
import time
from typing import NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from vit_from_scratch.progress import progress_refused, progress_shown
from vit_from_scratch.training.state import Callback, TrainingState

LINE_SECONDS = 60
"""Where there is no bar, how long until the next line."""


class ProgressBar(Callback):
    """A text bar over the run's steps, with the last epoch's losses and accuracies.

    It shows itself in a terminal. Elsewhere, such as in a log file, a line says the same after an epoch, once
    a minute at most. The environment variable VIT_PROGRESS says 1 (a bar, always) or 0 (neither).

    Args:
        title: what the bar is called, for instance by the run's seed.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.spoke = (0.0, 0)  # when the last line was written: seconds of the clock, step

    def on_start(self, state: TrainingState) -> None:
        """Show the bar, beginning at the step where a resumed run begins."""
        self.spoke = (time.monotonic(), state.step)
        self.bar = tqdm(
            total=state.total_steps,
            initial=state.step,
            desc=self.title or None,
            unit="step",
            disable=not progress_shown(),
            dynamic_ncols=True,
        )

    def on_step(self, state: TrainingState) -> None:
        """Move on by one."""
        self.bar.update()

    def on_epoch(self, state: TrainingState) -> None:
        """Show the epoch's numbers."""
        last = state.history[-1]
        numbers = {"epoch": f"{last.epoch}/{state.epochs}", "loss": f"{last.train_loss:.3f}"}
        if last.validation_accuracy is not None:
            numbers["validation"] = f"{last.validation_accuracy:.1%}"
        elif last.validation_loss is not None:
            numbers["validation"] = f"{last.validation_loss:.3f}"
        if not self.bar.disable:
            self.bar.set_postfix(numbers)
        elif time.monotonic() - self.spoke[0] >= LINE_SECONDS and not progress_refused():
            now, (then, step) = time.monotonic(), self.spoke
            left = (state.total_steps - state.step) * (now - then) / max(1, state.step - step)
            self.spoke = (now, state.step)
            words = ", ".join(f"{name} {number}" for name, number in numbers.items())
            start = f"{self.title}: " if self.title else ""
            print(f"{start}{words}, about {left / 60:.0f} minutes left", file=sys.stderr, flush=True)

    def on_end(self, state: TrainingState) -> None:
        """Close the bar."""
        self.bar.close()


class StepMetrics(NamedTuple):
    """One step, counted from 1: its rate, the batch's loss, the gradient's global norm before clipping."""

    step: int
    learning_rate: float
    loss: float
    gradient_norm: float


class StepLog(Callback):
    """Keep each step's loss, learning rate and gradient norm in `steps`: a closer look than epochs give.

    Numbers are read when an epoch has ended or `steps` is asked for: reading makes a GPU wait.
    """

    def __init__(self) -> None:
        self._steps: list[StepMetrics] = []
        self._unread: list[tuple[int, float, Tensor, Tensor]] = []

    @property
    def steps(self) -> list[StepMetrics]:
        """The steps so far, in order."""
        if self._unread:
            steps, rates, losses, norms = zip(*self._unread, strict=True)
            numbers = torch.stack(losses).tolist(), torch.stack(norms).tolist()
            self._steps += map(StepMetrics, steps, rates, *numbers)
            self._unread.clear()
        return self._steps

    def on_step(self, state: TrainingState) -> None:
        """Add the step."""
        self._unread.append((state.step, state.learning_rate, state.loss, state.gradient_norm))

    def on_epoch(self, state: TrainingState) -> None:
        """Read the epoch's numbers, so that few tensors wait."""
        _ = self.steps
