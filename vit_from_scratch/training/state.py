"""What the training loop holds while it runs, what it reports, and what several processes do differently."""

import contextlib
import math
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.evaluation import Evaluation, measure
from vit_from_scratch.training.optimisers import build_optimiser
from vit_from_scratch.training.self_supervised import HeldOut

if TYPE_CHECKING:
    from vit_from_scratch.data.config import Part
    from vit_from_scratch.data.dataset import DataSet
    from vit_from_scratch.model.vit import VisionTransformer
    from vit_from_scratch.training.optimisers import Optimiser

T = TypeVar("T")

COMPILERS = {"darwin": "clang++", "win32": "cl"}
"""The C++ compiler that torch.compile looks for on a CPU, by system, elsewhere g++; CXX may name another."""


@dataclass(frozen=True)
class EpochMetrics:
    """One epoch in numbers; one line of metrics.jsonl.

    Attributes:
        epoch: epochs finished, counted from 1.
        step: optimiser steps taken since the start of the run.
        learning_rate: the rate of the epoch's last step.
        train_loss: mean loss of its batches as they were trained on: augmented, with dropout and smoothing.
        train_accuracy: share of right answers in them, to labels or to what a self-supervised model was
            asked; None where nothing is right or wrong.
        validation_loss: mean loss on the validation images, without label smoothing; None without any.
        validation_accuracy: share of right answers there; None likewise.
        seconds: wall time of the epoch, validation included.
    """

    epoch: int
    step: int
    learning_rate: float
    train_loss: float
    train_accuracy: float | None
    validation_loss: float | None
    validation_accuracy: float | None
    seconds: float


class MovingAverage(AveragedModel):
    """The exponential moving average of a model's weights and buffers; it makes no GPU wait.

    torch's own sends the count of its updates to the device in every step. `rule(decay)` moves the weights.
    """

    def __init__(self, model: nn.Module, decay: float, rule: Callable = get_ema_multi_avg_fn) -> None:
        self.towards = rule(decay)
        super().__init__(model, multi_avg_fn=self.towards, use_buffers=True)

    def update_parameters(self, model: nn.Module) -> None:
        """Move towards a model; the first time, become equal to it."""
        if not self.n_averaged:  # it stays on the CPU
            super().update_parameters(model)
            return
        own, new = ([*one.parameters(), *one.buffers()] for one in (self.module, model))
        pairs = [(mine.detach(), its.detach()) for mine, its in zip(own, new, strict=True)]
        numbers = [pair for pair in pairs if pair[0].is_floating_point()]
        self.towards([mine for mine, _ in numbers], [its for _, its in numbers], 0)
        for count, its in (pair for pair in pairs if not pair[0].is_floating_point()):
            count.copy_(its)
        self.n_averaged += 1


@dataclass(eq=False)
class TrainingState:
    """Everything that a step changes; callbacks read it, and a checkpoint holds it.

    Attributes:
        model: trained in place.
        data: on the model's device.
        average: the moving average of the model's weights; None without `config.average_decay`.
        best: the measured weights of the epoch with the lowest validation loss; None without
            `config.patience`.
        epoch: epochs finished.
        step: steps taken.
        history: one entry for each finished epoch.
        loss: of the last step, a scalar.
        gradient_norm: global norm of the last step's gradient before clipping, a scalar.
        last_checkpoint: where the last finished epoch is kept, in words; None if nowhere.
        engine: how one process works, or several.
    """

    model: nn.Module
    data: "DataSet"
    config: TrainConfig
    optimiser: "Optimiser"
    average: AveragedModel | None = None
    best: dict[str, Tensor] | None = None
    epoch: int = 0
    step: int = 0
    history: list[EpochMetrics] = field(default_factory=list)
    loss: Tensor = field(default_factory=lambda: torch.tensor(torch.nan))
    gradient_norm: Tensor = field(default_factory=lambda: torch.tensor(torch.nan))
    last_checkpoint: str | None = None
    engine: "Engine" = field(default_factory=lambda: Engine())

    def __post_init__(self) -> None:
        """Begin the moving average."""
        if self.config.average_decay and self.average is None:
            self.average = MovingAverage(self.model, self.config.average_decay)

    @cached_property
    def network(self) -> nn.Module:
        """What a training step calls: the model, compiled if the settings say so; the weights are shared."""
        network = self.engine.replica(self.model)
        return compiled(network, self.device) if self.config.compile else network

    @property
    def measured(self) -> nn.Module:
        """The model that validation measures: with averaged weights if there is an average."""
        return self.average.module if self.average is not None else self.model

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or the validation loss was not lowered for `config.patience` epochs.

        With a curriculum these are epochs of its last stage: before, full-sized images are still to come.
        """
        if self.epoch >= self.epochs:
            return True
        if not self.config.patience or not self.history:
            return False
        last_stage = self.config.curriculum[-1][0] * self.total_steps if self.config.curriculum else 0
        at_full_size = sum(epoch.step > last_stage for epoch in self.history)
        waited = len(self.history) - 1 - best_epoch(self.history)
        return min(waited, at_full_size) >= self.config.patience

    @property
    def side(self) -> int | None:
        """The side that the curriculum shrinks images to at this step; None for the full size."""
        stages = reversed(self.config.curriculum)
        return next((side for share, side in stages if self.progress >= share), None)

    @property
    def progress(self) -> float:
        """Steps taken, as a share of the whole run."""
        return self.step / self.total_steps

    def resize(self, side: int | None = None) -> None:
        """Bring the model to a side that the curriculum has; without one, back to the size of the data."""
        if self.config.curriculum:
            as_vit(self.model, "a curriculum").resize_input(side or self.data.image_shape[1:])

    def remember_best(self) -> None:
        """Keep the measured weights if the epoch that just ended is the best so far."""
        if self.config.patience and best_epoch(self.history) == len(self.history) - 1:
            self.best = {name: value.detach().clone() for name, value in self.measured.state_dict().items()}

    def settle(self) -> None:
        """Leave in the model what the run keeps: the best weights, the averaged ones, or the last."""
        kept = self.best if self.best is not None else self.measured.state_dict()
        self.model.load_state_dict(kept)

    @property
    def device(self) -> torch.device:
        """The model's."""
        return next(self.model.parameters()).device

    @property
    def images_per_step(self) -> int:
        """Images in a step, of all processes together."""
        return min(self.config.batch_size, self.data.training_size)

    @property
    def total_steps(self) -> int:
        """Steps of the whole run; an epoch has one for each whole batch."""
        return self.config.steps or self.config.epochs * (self.data.training_size // self.images_per_step)

    @property
    def epochs(self) -> int:
        """Epochs of the whole run; the last one may end early, if steps are counted."""
        return math.ceil(self.total_steps / (self.data.training_size // self.images_per_step))

    @property
    def learning_rate(self) -> float:
        """The rate of the last step, where the settings give a layer the whole one."""
        group = self.optimiser.param_groups[0]
        return self.config.learning_rate * group["lr"] / group["base_lr"]


class Callback:
    """Override what you need; the loop calls each at its moment, with the state as it is then.

    For an optimiser of your own set `state.optimiser` in `on_start`, with a "base_lr" in each of its groups.
    """

    def __init_subclass__(cls) -> None:
        """Refuse an `on_...` method that the loop does not know and would never call."""
        for name in vars(cls):
            if name.startswith("on_") and name not in vars(Callback):
                raise unknown_name("callback method", name, ("on_start", "on_step", "on_epoch", "on_end"))

    def on_start(self, state: TrainingState) -> None:
        """Before the first epoch of this process; a resumed run has `state.epoch` above 0."""

    def on_step(self, state: TrainingState) -> None:
        """After a step of the optimiser."""

    def on_epoch(self, state: TrainingState) -> None:
        """After an epoch, its metrics already in `state.history`."""

    def on_end(self, state: TrainingState) -> None:
        """After the last epoch."""


class Engine:
    """How one process trains alone; several override these methods (`vit_lab.runs.distributed`)."""

    def start(self, model: nn.Module, data: Any, config: TrainConfig) -> TrainingState:
        """Return the state in which training starts, with the data on the model's device."""
        data = data.to(next(model.parameters()).device)
        return TrainingState(model, data, config, build_optimiser(model, config), engine=self)

    def hooks(
        self, model: nn.Module, state: TrainingState, callbacks: Sequence[Callback]
    ) -> Sequence[Callback]:
        """Return the callbacks of this process."""
        return callbacks

    def seed(self, seed: int) -> int:
        """Return the seed of dropout, mixup and hidden patches, from that of the epoch."""
        return seed

    def replica(self, model: nn.Module) -> nn.Module:
        """Return what a step calls so that gradients become those of the whole batch."""
        return model

    def gradients(self, model: nn.Module, last: bool) -> contextlib.AbstractContextManager[None]:
        """Return a context for a piece of a batch, forward and backward; `last` is its last piece."""
        return contextlib.nullcontext()

    def weight(self, images: int, of_all: int) -> float:
        """Return the factor for the mean loss over this process's `images` out of `of_all`."""
        return 1.0

    def mean(self, value: Tensor, images: int) -> Tensor:
        """Return the mean over all processes of a scalar that is a mean over so many images here."""
        return value

    def gathered(self, value: T) -> list[T]:
        """Return what each process has."""
        return [value]

    def local(self, weight: Tensor) -> Tensor:
        """Return what this process holds of a weight."""
        return weight

    def whole(self, tensor: Tensor) -> Tensor:
        """Return a tensor, of which each process may hold a part, put together."""
        return tensor

    def measure(self, model: nn.Module, data: Any, part: "Part", workers: int) -> Evaluation | HeldOut:
        """Measure a model on each image of a part once."""
        return measure(model, data.batches(part, workers=workers))


def compiled(network: nn.Module, device: torch.device) -> nn.Module:
    """Return a network with its operations fused, or as it is, with a sentence on stderr."""
    compiler = os.environ.get("CXX") or COMPILERS.get(sys.platform, "g++")
    if device.type == "cpu" and not shutil.which(compiler):
        print(
            f"train.compile = true: no C++ compiler ({compiler}) was found, so the model is "
            "trained as it is. Install one to have it compiled.",
            file=sys.stderr,
        )
        return network
    return torch.compile(network, dynamic=False)  # type: ignore[return-value]


def best_epoch(history: Sequence[EpochMetrics]) -> int:
    """Return the place of the epoch with the lowest validation loss, the first of several."""
    losses = [math.inf if epoch.validation_loss is None else epoch.validation_loss for epoch in history]
    return losses.index(min(losses))


def vit_of(model: nn.Module) -> "VisionTransformer | None":
    """Return the ViT that a model is, or that a self-supervised model holds; None for other models."""
    vit: Any = getattr(model, "vit", model)
    return vit if hasattr(vit, "resize_input") else None


def as_vit(model: nn.Module, purpose: str) -> "VisionTransformer":
    """Return the ViT that a model is or holds; raise an `InputError` with the purpose if there is none."""
    if (vit := vit_of(model)) is None:
        raise InputError(
            f"{purpose} was asked of a {type(model).__name__}: expected a VisionTransformer; leave it out "
            "for other models."
        )
    return vit
