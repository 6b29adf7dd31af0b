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

    Numbers are read, all of them, when `steps` is asked for: ask once, since reading makes a GPU wait.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[int, float, Tensor, Tensor]] = []

    @property
    def steps(self) -> list[StepMetrics]:
        """The steps so far, in order."""
        if not self._kept:
            return []
        steps, rates, losses, norms = zip(*self._kept, strict=True)
        numbers = torch.stack(losses).tolist(), torch.stack(norms).tolist()
        return [*map(StepMetrics, steps, rates, *numbers)]

    def on_step(self, state: TrainingState) -> None:
        """Add the step."""
        self._kept.append((state.step, state.learning_rate, state.loss, state.gradient_norm))
