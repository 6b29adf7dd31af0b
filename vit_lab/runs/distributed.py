"""Training in several processes, one for each device, all on one model (DistributedDataParallel and FSDP2).

The batch of the settings is that of all processes together, and each takes an equal part of it. Order and
augmentation are drawn for the whole batch: the parts together are the batch that one process would see, and
losses and weights are those of one process within rounding. Three things are drawn by each process for its
own part, and differ: what dropout drops, the shares and partners of mixup and cutmix, and what a
self-supervised model hides of a training image. Batch norm (in a convolutional stem) sees each part for
itself.

Each held-out image is measured once; for a self-supervised model every process measures all of them, because
what is hidden of an image depends on those before it. Callbacks and the run's folder are the first process's
alone, and it hands what it finds there to the others. So a run may go on with another number of processes,
and the others need not see its disk.
"""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.data.sharing import WHOLE
from vit_from_scratch.training.callbacks import Callback
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.evaluation import Evaluation, measure
from vit_from_scratch.training.guards import check_processes
from vit_from_scratch.training.optimisers import build_optimiser
from vit_from_scratch.training.outcomes import HeldOut
from vit_from_scratch.training.self_supervised import SelfSupervised
from vit_from_scratch.training.state import TrainingState
from vit_lab.runs.processes import Processes, is_sharded, local
from vit_lab.runs.saved_state import packed, unpack_optimiser, unpack_weights


def starting_state(model: nn.Module, data: DataSet, config: TrainConfig) -> TrainingState:
    """Return the state in which training starts, of one process or of this one among several.

    Raises:
        InputError: the settings do not fit the number of processes, or those of another process differ.
    """
    processes = Processes.current()
    data = data.to(next(model.parameters()).device)
    if processes.alone:
        return TrainingState(model, data, config, build_optimiser(model, config))
    check_processes(processes, model, data, config)
    data = data.shared(processes.share)
    if config.sharding == "none":
        return TrainingState(model, data, config, build_optimiser(model, config), processes=processes)
    average = None
    device = next(model.parameters()).device
    model.cpu()  # until the end: the shards take its place
    if config.average_decay:
        average = AveragedModel(model, multi_avg_fn=local_average(config.average_decay), use_buffers=True)
        shard(average.module, device, processes.size)
    sharded = copy.deepcopy(model)
    shard(sharded, device, processes.size)
    return TrainingState(
        sharded, data, config, build_optimiser(sharded, config), average=average, processes=processes
    )


def shard(model: nn.Module, device: torch.device, count: int) -> None:
    """Spread a model over so many devices, block by block (FSDP2, `fully_shard`).

    Each device holds an equal part of every weight. The whole weights of a block are there only while it
    computes.
    """
    from torch.distributed.device_mesh import init_device_mesh  # imported here: one process needs none of it
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (count,))
    for parameter in model.parameters():  # kernels may lie channels last, which cannot be cut
        parameter.data = parameter.data.contiguous()
    for blocks in [module for module in model.modules() if isinstance(module, nn.ModuleList)]:
        for block in blocks:
            fully_shard(block, mesh=mesh, reshard_after_forward=True)
    fully_shard(model, mesh=mesh, reshard_after_forward=True)


def local_average(decay: float):
    """Return the moving average's step for weights of which each process holds a shard."""
    step = get_ema_multi_avg_fn(decay)
    return lambda averaged, new, count: step([*map(local, averaged)], [*map(local, new)], count)


class FirstProcess(Callback):
    """Callbacks that see the whole run and are called in the first process; what they restore reaches all."""

    def __init__(self, model: nn.Module, state: TrainingState, hooks: Sequence[Callback]) -> None:
        """Say whose callbacks they are.

        Args:
            model: the caller's, which has the final weights in the end.
            state: this process's.
            hooks: the callbacks.
        """
        self.hooks, self.processes = hooks, state.processes
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
        tensors, scalars = packed(state, keep)
        self.whole.epoch, self.whole.step = state.epoch, state.step
        if keep:
            unpack_weights(self.whole, tensors)
            unpack_optimiser(self.whole, tensors, scalars)

    def _spread(self, state: TrainingState) -> None:
        """Bring all processes to the state that the first one has."""
        whole = self.whole
        tensors, scalars = packed(whole, keep=self.processes.rank == 0)
        numbers, shapes, scalars, averaged = self.processes.from_first(
            lambda: (
                (whole.epoch, whole.step, list(whole.history), whole.last_checkpoint),
                {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()},
                scalars,
                whole.average is not None,
            )
        )
        for name, (shape, dtype) in shapes.items():
            tensor = tensors.setdefault(name, torch.empty(shape, dtype=dtype))
            self.processes.copy_from_first(tensor)
        for own in {id(one): one for one in (whole, state)}.values():
            own.epoch, own.step, own.history[:], own.last_checkpoint = numbers
            own.average = own.average if averaged else None
            unpack_weights(own, tensors)
            unpack_optimiser(own, tensors, scalars)


def measured_together(model: nn.Module, data: DataSet, part: Part, workers: int) -> Evaluation | HeldOut:
    """Measure a model on a part of the data, each image once, however many processes share the work.

    Args:
        model: the same in all processes, or sharded.
        data: on the model's device.
        part: which images.
        workers: processes that read photos, for each process that trains.
    """
    processes = Processes.current()
    if processes.alone:
        return measure(model, data.batches(part, workers=workers))
    for buffer in model.buffers():  # running statistics of batch norm
        processes.copy_from_first(buffer)
    alike = isinstance(model, SelfSupervised) or data.size_of(part) < processes.size
    share = WHOLE if alike else processes.share
    found = processes.gathered(measure(model, data.shared(share).batches(part, workers=workers)))
    return found[0] if alike else pooled([one for one in found if isinstance(one, Evaluation)])


def pooled(parts: Sequence[Evaluation]) -> Evaluation:
    """Join the measurements of several parts of a data set: each image counts the same."""
    images = sum(part.images for part in parts)

    def share(shares: Sequence[float | None]) -> float | None:
        if None in shares:
            return None
        hits = sum(
            round(one * part.images) for one, part in zip(shares, parts, strict=True) if one is not None
        )
        return float(np.float32(hits) / np.float32(images))  # as torch's mean has it

    loss = sum(part.loss * part.images for part in parts) / images
    accuracy = share([part.accuracy for part in parts])
    assert accuracy is not None
    return Evaluation(accuracy, loss, images, share([part.top5_accuracy for part in parts]))
