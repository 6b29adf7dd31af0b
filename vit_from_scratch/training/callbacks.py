"""A log of steps, kept while a model trains."""

from typing import NamedTuple

import torch
from torch import Tensor

from vit_from_scratch.training.state import Callback, TrainingState


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
