"""The training loop: epochs, steps, and hooks for everything else (chapter 8)."""

import contextlib
import math
import os
import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.data.random_changes import blend
from vit_from_scratch.training.callbacks import Callback
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.guards import (
    check_finite,
    check_fit,
    check_outcome,
    reading_interval,
)
from vit_from_scratch.training.optimisers import set_learning_rate
from vit_from_scratch.training.outcomes import Outcome, batch_loss, joined, share_right
from vit_from_scratch.training.schedules import schedule_factor
from vit_from_scratch.training.state import EpochMetrics, TrainingState, as_vit
from vit_lab.runs.allocator import keeping_freed_memory
from vit_lab.runs.distributed import FirstProcess, measured_together, starting_state
from vit_lab.runs.processes import gradients_shared, whole
from vit_lab.runs.run_folder import RunFolder


def train(
    model: nn.Module,
    data: DataSet,
    config: TrainConfig,
    out_dir: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
) -> list[EpochMetrics]:
    """Train a model, in place, on the device that it lies on.

    The randomness of an epoch comes from the seed and the epoch's number alone, so a run that was stopped
    after any epoch and resumed ends with the same weights, to the bit, as one that was not.

    With several processes (see `vit_lab.runs.distributed`) all call this at once.

    Args:
        model: (B, C, H, W) floats to (B, K) logits, or a self-supervised model.
        data: images and labels; the test part is never measured.
        config: the settings.
        out_dir: the run's folder, for checkpoints, metrics and curves; a run that was stopped there goes
            on, a finished one is loaded. The model has to be a ViT, or a self-supervised one that holds it.
            None keeps everything in memory.
        callbacks: called at the start, after each step and epoch, and at the end, in this order.

    Returns:
        The metrics of each epoch.

    Raises:
        DivergedError: the loss or a weight became infinite or not a number; that epoch is not kept.
        InputError: the model does not fit the data or the settings; the folder holds something else, a run
            with other settings or a damaged one, or another process is at work in it.
    """
    check_fit(model, data, config)
    state = starting_state(model, data, config)
    device = state.device
    own_randomness = torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
    with RunFolder(out_dir) if out_dir is not None else contextlib.nullcontext() as folder:
        hooks: list[Callback] = [*([folder] if folder is not None else []), *callbacks]
        if not state.processes.alone:
            hooks = [FirstProcess(model, state, hooks)]
        on_cpu = keeping_freed_memory(device.type == "cpu")
        with own_randomness, cpu_threads(config.threads), state.data.keeping_workers(), on_cpu:
            for hook in hooks:
                hook.on_start(state)
            while not state.finished:
                state.history.append(train_epoch(state, hooks))
                state.remember_best()
                for hook in hooks:
                    hook.on_epoch(state)
        state.settle()
        for hook in hooks:
            hook.on_end(state)
    return state.history


@contextlib.contextmanager
def cpu_threads(count: int) -> Iterator[None]:
    """Compute on so many CPU threads for a while; 0 changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train_epoch(state: TrainingState, hooks: Sequence[Callback] = ()) -> EpochMetrics:
    """Show the model the training images, in whole batches, then measure it on the validation part.

    Their order is random, and each is shown once at most: those that fill no batch are not.
    """
    start = time.perf_counter()
    config, data = state.config, state.data
    seed = int(np.random.SeedSequence((config.seed, state.epoch)).generate_state(1, np.uint64)[0])
    # for dropout, mixup, cutmix and what a self-supervised model hides
    torch.manual_seed(state.processes.own_seed(seed))
    losses, hits, read = [], [], 0

    state.model.train()
    batches = data.training_batches(config.batch_size, config.augmentation, seed, config.workers)
    for images, labels in batches:  # (B, C, H, W), (B,)
        images, targets = (
            blend(images, labels, config.augmentation, data.num_classes)
            if state.progress < config.mix_until
            else (images, labels)
        )
        images = data.normalise(shrink(state, images))
        output = train_step(state, images, targets)  # (B, K)
        losses.append(state.loss)
        if (right := share_right(output, labels)) is not None:
            hits.append(right)
        if len(losses) - read >= reading_interval(state.device):
            check_finite(state, losses[read:])
            read = len(losses)
        for hook in hooks:
            hook.on_step(state)
        if state.step == state.total_steps:
            break
    check_finite(state, losses[read:])

    state.epoch += 1
    if config.curriculum:
        as_vit(state.model, "a curriculum").resize_input(data.image_shape[1:])
    with precision(state):
        held_out = (
            measured_together(state.measured, data, "validation", config.workers)
            if data.size_of("validation")
            else None
        )
    check_outcome(state, held_out)
    seen = state.processes.mean(torch.stack(hits).mean(), state.own_images_per_step) if hits else None
    return EpochMetrics(
        epoch=state.epoch,
        step=state.step,
        learning_rate=state.learning_rate,
        train_loss=torch.stack(losses).mean().item(),
        train_accuracy=seen.item() if seen is not None else None,
        validation_loss=held_out.loss if held_out else None,
        validation_accuracy=held_out.accuracy if held_out else None,
        seconds=time.perf_counter() - start,
    )


def shrink(state: TrainingState, images: Tensor) -> Tensor:
    """Bring images (B, C, H, W) to the side that the curriculum has at this step, and the model with them."""
    side = state.side
    if side is None:
        return images
    as_vit(state.model, "a curriculum").resize_input(side)
    if images.shape[-2:] == (side, side):
        return images
    return F.interpolate(images, (side, side), mode="bilinear", antialias=True)


def train_step(state: TrainingState, images: Tensor, targets: Tensor) -> Tensor | Outcome:
    """Take one step of the optimiser on a batch and return what the model made of it: its logits (B, K).

    Of several processes each brings its part of the batch; the gradient is that of the whole.

    Args:
        state: `loss`, `gradient_norm` and `step` are updated.
        images: (B, C, H, W) floats, normalised.
        targets: (B,) class numbers, or (B, K) shares of the classes; a self-supervised model reads none.
    """
    config = state.config
    factor = schedule_factor(state.step, state.total_steps, config.warmup_steps, config.schedule)
    set_learning_rate(state.optimiser, factor)
    state.optimiser.zero_grad()
    mean, outputs = torch.zeros((), device=state.device), []
    pieces = cut(images, targets, state)
    for part, target in pieces:
        with gradients_shared(state.model, state.network, wanted=len(outputs) + 1 == len(pieces)):
            with precision(state):
                output = state.network(part)  # (B / accumulation, K)
            loss = batch_loss(output, target, config.label_smoothing) * (len(part) / len(images))
            (loss * state.processes.weight(len(images), state.images_per_step)).backward()
        mean += loss.detach()
        outputs.append(output.detach())
    state.loss = state.processes.mean(mean, len(images))
    largest = config.clip_norm or math.inf
    state.gradient_norm = whole(nn.utils.clip_grad_norm_(state.model.parameters(), largest))
    state.optimiser.step()
    if state.average is not None:
        state.average.update_parameters(state.model)
    state.step += 1
    return joined(outputs)


def cut(images: Tensor, targets: Tensor, state: TrainingState) -> list[tuple[Tensor, Tensor]]:
    """Cut a batch into the pieces that go through the model one after another."""
    count = state.config.accumulation
    if state.processes.alone:
        return list(zip(images.chunk(count), targets.chunk(count), strict=True))
    # as many in every process, since sharded models compute in step
    return list(zip(images.tensor_split(count), targets.tensor_split(count), strict=True))


def precision(state: TrainingState) -> torch.autocast:
    """Return the context in which the model computes in the type that the settings name."""
    lower = state.config.precision == "bfloat16"
    return torch.autocast(state.device.type, torch.bfloat16, enabled=lower)
