"""What the training loop holds while it runs, and what it reports after each epoch."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.data import ImageData


@dataclass(frozen=True)
class EpochMetrics:
    """One epoch in numbers; one line of metrics.jsonl.

    Attributes:
        epoch: epochs finished, counted from 1.
        step: optimiser steps taken since the start of the run.
        learning_rate: the rate of the epoch's last step.
        train_loss: mean loss of the epoch's batches as they were trained on: augmented, with dropout and
            label smoothing.
        train_accuracy: share of those images classified rightly.
        validation_loss: mean cross-entropy on the validation images; None when none are held out.
        validation_accuracy: share of them classified rightly; None likewise.
        seconds: wall time of the epoch, validation included.
    """

    epoch: int
    step: int
    learning_rate: float
    train_loss: float
    train_accuracy: float
    validation_loss: float | None
    validation_accuracy: float | None
    seconds: float


@dataclass(eq=False)
class TrainingState:
    """Everything that a step changes; callbacks read it, and a checkpoint holds it.

    Attributes:
        model: being trained.
        data: on the model's device.
        config: the settings.
        optimiser: over the model's parameters.
        epoch: epochs finished.
        step: steps taken.
        history: one entry for each finished epoch.
        loss: of the last step, a scalar.
        gradient_norm: global norm of the last step's gradient before clipping, a scalar.
        last_checkpoint: where the last finished epoch lies, in words; None if it is kept nowhere.
    """

    model: nn.Module
    data: ImageData
    config: TrainConfig
    optimiser: torch.optim.Optimizer
    epoch: int = 0
    step: int = 0
    history: list[EpochMetrics] = field(default_factory=list)
    loss: Tensor = field(default_factory=lambda: torch.tensor(torch.nan))
    gradient_norm: Tensor = field(default_factory=lambda: torch.tensor(torch.nan))
    last_checkpoint: str | None = None

    @property
    def device(self) -> torch.device:
        """Where the model lies."""
        return next(self.model.parameters()).device

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in an epoch; at least one, if smaller."""
        return max(1, len(self.data.train_labels) // self.config.batch_size)

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        return self.config.epochs * self.steps_per_epoch

    @property
    def learning_rate(self) -> float:
        """The rate of the last step."""
        return self.optimiser.param_groups[0]["lr"]
