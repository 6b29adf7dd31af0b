"""The training loop, in the order in which things happen (chapter 8).

`train` prepares a run and goes through its epochs, `train_epoch` through the batches of one, `train_step`
takes a step of the optimiser. Callbacks are called on the way. What several processes do otherwise (make the
state, share gradients, measure held-out images together) are the methods of `Engine`.
"""

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_from_scratch.data.random_changes import blend
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.guards import check_finite, check_fit, check_outcome, reading_interval
from vit_from_scratch.training.schedules import schedule_factor
from vit_from_scratch.training.self_supervised import Outcome, batch_loss, joined, share_right
from vit_from_scratch.training.state import Callback, Engine, EpochMetrics, TrainingState

if TYPE_CHECKING:
    from vit_from_scratch.data.dataset import DataSet


def train(
    model: nn.Module,
    data: "DataSet",
    config: TrainConfig,
    callbacks: Sequence[Callback] = (),
    engine: Engine | None = None,
) -> list[EpochMetrics]:
    """Train a model, in place, on the device that it is on.

    The randomness of an epoch comes from the seed and the epoch's number alone, so a run that was stopped
    after any epoch and resumed ends with the same weights as one that was not: to the bit on a CPU, and on a
    GPU but for the order in which some of its kernels add.
    (`vit_lab.runs.train` keeps a run in a folder, resumes it, or trains in several processes.)

    Args:
        model: (B, C, H, W) floats to (B, K) logits, or a self-supervised model.
        data: a `DataSet`, as `open_dataset` returns it, or an `ImageData`; the test part is never measured.
        config: the settings.
        callbacks: called at the start, after each step and epoch, and at the end, in this order.
        engine: how one process or several work; None for one.

    Returns:
        The metrics of each epoch.

    Raises:
        DivergedError: the loss became huge, or the loss or a weight is not a finite number; that epoch is not
            kept.
        InputError: the model does not fit the data or the settings.
    """
    check_fit(model, data, config)
    engine = engine or Engine()
    state = engine.start(model, data, config)
    hooks = engine.hooks(model, state, callbacks)
    with at_full_size(state), numerics(state), state.data.keeping_workers():
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


def train_epoch(state: TrainingState, hooks: Sequence[Callback] = ()) -> EpochMetrics:
    """Show the model the training images, in whole batches, then measure it on the validation part.

    Their order is random, and each is shown once at most: those that fill no batch are not.
    """
    start = time.perf_counter()
    config, data, engine = state.config, state.data, state.engine
    seed = int(np.random.SeedSequence((config.seed, state.epoch)).generate_state(1, np.uint64)[0])
    # for dropout, mixup, cutmix and what a self-supervised model hides
    torch.manual_seed(engine.seed(seed))
    losses, hits, shown, every = [], [], 0, reading_interval(state.device)

    state.model.train()
    augmentation = config.augmentation
    if state.progress >= config.augment_until:
        augmentation = replace(augmentation, crop=(1.0, 1.0), erase=0.0)
    batches = data.training_batches(config.batch_size, augmentation, seed, config.workers)
    for images, labels in batches:  # (B, C, H, W), (B,)
        targets, shown = labels, len(images)
        if state.progress < config.mix_until:
            images, targets = blend(images, labels, config.augmentation, data.num_classes)
        images = data.normalise.scaled(shrink(state, images))
        output = train_step(state, images, targets)  # (B, K)
        losses.append(state.loss)
        if (right := share_right(output, targets)) is not None:
            hits.append(right)
        if len(losses) % every == 0:
            check_finite(state, losses[-every:])
        for hook in hooks:
            hook.on_step(state)
        if state.step == state.total_steps:
            break
    check_finite(state, losses[-every:])

    state.epoch += 1
    state.resize()
    held_out = None
    if data.size_of("validation"):
        with precision(state):
            held_out = engine.measure(state.measured, data, "validation", config.workers)
    train_loss = torch.stack(losses).mean().item()
    check_outcome(state, train_loss, held_out)
    return EpochMetrics(
        epoch=state.epoch,
        step=state.step,
        learning_rate=state.learning_rate,
        train_loss=train_loss,
        train_accuracy=engine.mean(torch.stack(hits).mean(), shown).item() if hits else None,
        validation_loss=held_out.loss if held_out else None,
        validation_accuracy=held_out.accuracy if held_out else None,
        seconds=time.perf_counter() - start,
    )


def train_step(state: TrainingState, images: Tensor, targets: Tensor) -> Tensor | Outcome:
    """Take one step of the optimiser on a batch and return what the model made of it: its logits (B, K).

    Of several processes each brings its part of the batch; the gradient is that of the whole.

    Args:
        state: `loss`, `gradient_norm` and `step` are updated.
        images: (B, C, H, W) floats, normalised.
        targets: (B,) class numbers, or (B, K) shares of the classes; a self-supervised model reads none.
    """
    config, engine = state.config, state.engine
    factor = schedule_factor(state.step, state.total_steps, config.warmup_steps, config.schedule)
    for group in state.optimiser.param_groups:
        group["lr"] = group["base_lr"] * factor
    state.optimiser.zero_grad()
    mean, outputs, count = torch.zeros((), device=state.device), [], config.accumulation
    pieces = zip(images.tensor_split(count), targets.tensor_split(count), strict=True)
    for number, (part, target) in enumerate(pieces, start=1):
        with engine.gradients(state.model, last=number == count):
            with precision(state):
                output = state.network(part)  # (B / accumulation, K)
            loss = batch_loss(output, target, config.label_smoothing) * (len(part) / len(images))
            (loss * engine.weight(len(images), state.images_per_step)).backward()
        mean += loss.detach()
        outputs.append(output.detach())
    state.loss = engine.mean(mean, len(images))
    norm = nn.utils.clip_grad_norm_(state.model.parameters(), config.clip_norm or math.inf)
    state.gradient_norm = engine.whole(norm)
    state.optimiser.step()
    if state.average is not None:
        state.average.update_parameters(state.model)
    state.step += 1
    return joined(outputs)


def shrink(state: TrainingState, images: Tensor) -> Tensor:
    """Bring images (B, C, H, W) to the side that the curriculum has at this step, and the model with them."""
    side = state.side
    if side is None:
        return images
    state.resize(side)
    if images.shape[-2:] == (side, side):
        return images
    return F.interpolate(images, (side, side), mode="bilinear", antialias=True)


def precision(state: TrainingState) -> torch.autocast:
    """Return the context in which the model computes in the type that the settings name."""
    lower = state.config.precision == "bfloat16"
    return torch.autocast(state.device.type, torch.bfloat16, enabled=lower)


@contextlib.contextmanager
def at_full_size(state: TrainingState) -> Iterator[None]:
    """Leave the model, however training ends, for images of the size that it was built for."""
    try:
        yield
    finally:
        state.resize()


@contextlib.contextmanager
def numerics(state: TrainingState) -> Iterator[None]:
    """Compute for a while with the run's threads, TF32 on a GPU, and random numbers of its own."""
    on_gpu = state.device.type == "cuda"
    threads, products = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(state.config.threads or threads)
    if on_gpu:
        torch.set_float32_matmul_precision("high")
    try:
        with torch.random.fork_rng(devices=[state.device] if on_gpu else []):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(products)
