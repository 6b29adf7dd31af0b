"""Training in several processes, one for each device, all on one model (DistributedDataParallel and FSDP2).

The batch of the settings is that of all processes together, and each takes an equal part of it. Order and
augmentation are drawn for the whole batch, so losses and weights are those of one process within rounding;
dropout, mixup, cutmix and what is hidden of an image are drawn by each for its part, and the batch norm of a
convolutional stem sees that part alone. Each held-out image is measured once, or in every process where what
is hidden of it depends on those before it. Callbacks and the run's folder are the first process's alone, so a
run may go on with another number of processes.
"""

import contextlib
import copy
import os
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.data.sharing import WHOLE
from vit_from_scratch.errors import InputError
from vit_from_scratch.precisions import has_bfloat16_units
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.evaluation import Evaluation, measure
from vit_from_scratch.training.optimisers import build_optimiser
from vit_from_scratch.training.self_supervised import HeldOut, SelfSupervised
from vit_from_scratch.training.state import Callback, Engine, MovingAverage, TrainingState
from vit_lab.runs.processes import Processes, check_processes
from vit_lab.runs.saved_state import packed, unpack_optimiser, unpack_weights
from vit_lab.runs.sharding import is_sharded, local, local_average, shard, whole

T = TypeVar("T")


def current_engine() -> Engine:
    """Return how training works here: in one process, or in all of torch's default process group.

    Raises:
        InputError: torchrun started several processes, and none has joined the others.
    """
    processes = Processes.current()
    several = "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"
    if processes.alone and several:
        raise InputError(
            f"{os.environ.get('WORLD_SIZE')} processes of torchrun without a process group: expected one, or "
            "each trains a model of its own. Call torch.distributed.init_process_group() first."
        )
    return Engine() if processes.alone else SeveralProcesses(processes)


class SeveralProcesses(Engine):
    """Processes that train one model together, as one of them sees them."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self.replicated: DistributedDataParallel | None = None

    def start(self, model: nn.Module, data: DataSet, config: TrainConfig) -> TrainingState:
        """Return the state in which training starts: this process's part of the data, and of the weights.

        Raises:
            InputError: the settings do not fit the number of processes, or those of another process differ.
        """
        check_processes(self.processes, model, data, config)
        device = next(model.parameters()).device
        data = data.to(device).shared(self.processes.share)
        muon = None
        if config.optimiser == "muon":  # copies of a model must take the same steps
            fast = all(self.processes.gathered(has_bfloat16_units(str(device))))
            muon = torch.bfloat16 if fast else torch.float32
        if config.sharding == "none":
            return TrainingState(model, data, config, build_optimiser(model, config, muon), engine=self)
        average = None
        model.cpu()  # until the end: the shards take its place
        if config.average_decay:
            average = MovingAverage(model, config.average_decay, local_average)
            shard(average.module, device, self.processes.size, config.precision)
        sharded = copy.deepcopy(model)
        shard(sharded, device, self.processes.size, config.precision)
        optimiser = build_optimiser(sharded, config)
        return TrainingState(sharded, data, config, optimiser, average=average, engine=self)

    def hooks(self, model: nn.Module, state: TrainingState, callbacks: Sequence[Callback]) -> list[Callback]:
        """Return one hook, which calls the others in the first process."""
        return [FirstProcess(model, state, callbacks, self.processes)]

    def seed(self, seed: int) -> int:
        """Return a seed of this process's own: no two draw the same, and the first draws as if alone."""
        if self.processes.rank == 0:
            return seed
        return int(np.random.SeedSequence((seed, self.processes.rank)).generate_state(1, np.uint64)[0])

    def replica(self, model: nn.Module) -> nn.Module:
        """Return the model in DistributedDataParallel; a sharded one as it is."""
        if is_sharded(model):
            return model
        device = next(model.parameters()).device
        self.replicated = DistributedDataParallel(
            model,
            device_ids=None if device.type == "cpu" else [device],
            find_unused_parameters=isinstance(model, SelfSupervised),  # the ViT's head, for one
            gradient_as_bucket_view=True,  # no second copy of them
        )
        return self.replicated

    def gradients(self, model: nn.Module, last: bool) -> contextlib.AbstractContextManager[None]:
        """Average gradients over all processes with the last piece of a batch; before, add them up here."""
        if is_sharded(model):
            model.set_requires_gradient_sync(last)  # type: ignore[operator]
        elif self.replicated is not None and not last:
            return self.replicated.no_sync()
        return contextlib.nullcontext()

    def weight(self, images: int, of_all: int) -> float:
        """Return the factor that makes the mean over processes one over images."""
        return self.processes.size * images / of_all

    def mean(self, value: Tensor, images: int) -> Tensor:
        """Return the mean over the images of all processes."""
        count = torch.full((), images, dtype=torch.double, device=value.device)  # no copy to wait for
        sums = torch.stack([value.detach().double() * images, count])
        dist.all_reduce(sums)
        return (sums[0] / sums[1]).to(value.dtype)

    def gathered(self, value: T) -> list[T]:
        """Return what each process has, in their order."""
        return self.processes.gathered(value)

    def local(self, weight: Tensor) -> Tensor:
        """Return this process's shard."""
        return local(weight)

    def whole(self, tensor: Tensor) -> Tensor:
        """Return the shards of all processes put together."""
        return whole(tensor)

    def measure(self, model: nn.Module, data: DataSet, part: Part, workers: int) -> Evaluation | HeldOut:
        """Measure each image in one of the processes; where that cannot be, each of them in all."""
        for buffer in model.buffers():  # running statistics of batch norm
            dist.broadcast(buffer, src=0)
        alike = isinstance(model, SelfSupervised) or data.size_of(part) < self.processes.size
        own = data.shared(WHOLE if alike else self.processes.share)
        found = self.gathered(measure(model, own.batches(part, workers=workers)))
        return found[0] if alike else pooled([one for one in found if isinstance(one, Evaluation)])


class FirstProcess(Callback):
    """Callbacks that see the whole run and are called in the first process; what they restore reaches all."""

    def __init__(
        self, model: nn.Module, state: TrainingState, hooks: Sequence[Callback], processes: Processes
    ) -> None:
        """Name the caller's model, which has the final weights in the end, this state and its callbacks."""
        self.hooks, self.processes = hooks, processes
        self.whole, self.device = state, state.device
        if is_sharded(state.model):
            config = state.config
            self.whole = TrainingState(model, state.data, config, build_optimiser(model, config))
            self.whole.history = state.history

    def on_start(self, state: TrainingState) -> None:
        """Call them, and bring all processes to where the first one is then."""
        self._call("on_start")
        self._spread(state)

    def on_step(self, state: TrainingState) -> None:
        """Call them with what this process has."""
        if self.processes.rank == 0:
            for hook in self.hooks:
                hook.on_step(state)

    def on_epoch(self, state: TrainingState) -> None:
        """Call them with the whole state."""
        self._gather(state, keep=self.processes.rank == 0)
        state.last_checkpoint = self._call("on_epoch")

    def on_end(self, state: TrainingState) -> None:
        """Call them with the whole state, and leave the weights in the caller's model."""
        self._gather(state, keep=True)
        self._call("on_end")
        self.whole.model.to(self.device)

    def _call(self, moment: str) -> str | None:
        def call() -> str | None:
            for hook in self.hooks:
                getattr(hook, moment)(self.whole)
            return self.whole.last_checkpoint

        return self.processes.from_first(call)

    def _gather(self, state: TrainingState, keep: bool) -> None:
        """Make the whole state from the shards of all processes."""
        if self.whole is state:
            return
        tensors = packed(state, keep)
        self.whole.epoch, self.whole.step = state.epoch, state.step
        if keep:
            unpack_weights(self.whole, tensors)
            unpack_optimiser(self.whole, tensors)

    def _spread(self, state: TrainingState) -> None:
        """Bring all processes to the state that the first one has."""
        whole = self.whole
        tensors = packed(whole, keep=self.processes.rank == 0)
        numbers, shapes, averaged = self.processes.from_first(
            lambda: (
                (whole.epoch, whole.step, list(whole.history), whole.last_checkpoint),
                {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()},
                whole.average is not None,
            )
        )
        for name, (shape, dtype) in shapes.items():
            tensor = tensors.setdefault(name, torch.empty(shape, dtype=dtype))
            dist.broadcast(tensor, src=0)
        for own in {id(one): one for one in (whole, state)}.values():
            own.epoch, own.step, own.history[:], own.last_checkpoint = numbers
            own.average = own.average if averaged else None
            unpack_weights(own, tensors)
            unpack_optimiser(own, tensors)


def pooled(parts: Sequence[Evaluation]) -> Evaluation:
    """Join the measurements of several parts of a data set: each image counts the same."""
    images = sum(part.images for part in parts)

    def share(shares: Sequence[float | None]) -> float | None:
        hits = [round(one * part.images) for one, part in zip(shares, parts, strict=True) if one is not None]
        # as torch's mean has it
        return float(np.float32(sum(hits)) / np.float32(images)) if len(hits) == len(parts) else None

    accuracy = share([part.accuracy for part in parts])
    assert accuracy is not None
    loss = sum(part.loss * part.images for part in parts) / images
    return Evaluation(accuracy, loss, images, share([part.top5_accuracy for part in parts]))
