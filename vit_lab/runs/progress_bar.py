"""How far a run is: a bar in a terminal, elsewhere a line now and then."""

import os
import sys
import time

from tqdm import tqdm

from vit_from_scratch.progress import progress_shown
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
        elif time.monotonic() - self.spoke[0] >= LINE_SECONDS and os.environ.get("VIT_PROGRESS") != "0":
            now, (then, step) = time.monotonic(), self.spoke
            left = (state.total_steps - state.step) * (now - then) / max(1, state.step - step)
            self.spoke = (now, state.step)
            words = ", ".join(f"{name} {number}" for name, number in numbers.items())
            start = f"{self.title}: " if self.title else ""
            print(f"{start}{words}, about {left / 60:.0f} minutes left", file=sys.stderr, flush=True)

    def on_end(self, state: TrainingState) -> None:
        """Close the bar."""
        self.bar.close()
