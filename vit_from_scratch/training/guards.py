"""What stops a run: settings that fit neither the model nor the data, and numbers that are not finite."""

import math

import torch
from torch import Tensor, nn

from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.errors import DivergedError, InputError
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.settings import as_table
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.evaluation import Evaluation
from vit_from_scratch.training.outcomes import HeldOut
from vit_from_scratch.training.self_supervised import SelfSupervised
from vit_from_scratch.training.state import TrainingState, as_vit
from vit_lab.runs.processes import Processes, local
from vit_lab.runs.run_settings import differences


def check_fit(model: nn.Module, data: DataSet, config: TrainConfig) -> None:
    """Refuse settings that this model or these data cannot be trained with, before anything is written."""
    if isinstance(model, VisionTransformer | SelfSupervised):
        shapes = as_vit(model, "training").config
        check_shapes(shapes, data)
        check_batch_norm(shapes, data, config)
    if isinstance(model, SelfSupervised):
        check_unlabelled(model, data, config)
    if len(data.normalise.mean) not in (1, data.image_shape[0]):
        raise InputError(
            f"data.normalisation = {data.config.normalisation!r} has {len(data.normalise.mean)} colours and "
            f"{data.config.name} {data.image_shape[0]}: expected 'half'."
        )
    for name in ("shift", "jitter"):
        if (pixels := getattr(config.augmentation, name)) >= min(data.image_shape[1:]):
            raise InputError(
                f"train.augmentation.{name} = {pixels}: expected fewer pixels than the images' side, "
                f"{min(data.image_shape[1:])}."
            )
    if config.curriculum:
        vit = as_vit(model, f"train.curriculum = {config.curriculum}")
        for side in [*(side for _, side in config.curriculum), data.image_shape[1:]]:
            vit.resize_input(side)
            if isinstance(model, SelfSupervised):
                rows, columns = (pixels // vit.config.patch_size for pixels in vit.image_shape)
                model.check_grid(rows * columns)
    data.check_augmentation(config.augmentation)
    if config.patience and not data.size_of("validation"):
        raise InputError(
            f"train.patience = {config.patience}: expected held-out images to watch, and there are none; "
            "set data.validation_size, or patience = 0."
        )
    if config.accumulation > config.batch_size:
        raise InputError(
            f"train.accumulation = {config.accumulation}: expected at most the batch of {config.batch_size}."
        )


def check_unlabelled(model: SelfSupervised, data: DataSet, config: TrainConfig) -> None:
    """Refuse what makes no sense where no label is read, and images that are scaled otherwise."""
    for name, amount in (
        ("label_smoothing", config.label_smoothing),
        ("augmentation.mixup", config.augmentation.mixup),
        ("augmentation.cutmix", config.augmentation.cutmix),
    ):
        if amount:
            raise InputError(
                f"train.{name} = {amount} with objective = {model.objective!r}: expected 0, since it changes "
                "labels, and none is read. Leave it out."
            )
    if model.normalise != data.normalise:
        raise InputError(
            f"a model for images scaled by {model.normalise}: expected {data.normalise}, which these data "
            "have; build it with data.normalise."
        )


def check_shapes(model: ViTConfig, data: DataSet) -> None:
    """Refuse a ViT that takes other images, or tells apart other classes, than there are in the data."""
    if (found := misfit(model, data)) is not None:
        raise InputError(f"{found}. Leave it out of a recipe; the data decide it.")


def misfit(model: ViTConfig, data: DataSet) -> str | None:
    """Say which of a ViT's shapes is not that of the data; None if all are."""
    channels, height, width = data.image_shape
    for name, given, there in (
        ("channels", model.channels, channels),
        ("image_size", model.image_shape, (height, width)),
        ("num_classes", model.num_classes, data.num_classes),
    ):
        if given != there:
            return f"model.{name} = {given}: expected {there} for {data.config.name}"
    return None


def check_batch_norm(model: ViTConfig, data: DataSet, config: TrainConfig) -> None:
    """Refuse to train a convolutional stem on single images of one patch: batch norm needs two values."""
    batch = min(config.batch_size, data.training_size)
    piece = math.ceil(batch / config.accumulation)
    smallest = batch % piece or piece
    side = min([side for _, side in config.curriculum] or [max(data.image_shape[1:])])
    if model.stem.kind == "conv" and side <= model.patch_size and smallest == 1:
        raise InputError(
            f"train.batch_size = {config.batch_size} with stem='conv' and a single patch leaves batch norm "
            "one value: expected pieces of 2 images or more. Take a larger batch, or smaller patches."
        )


def check_processes(processes: Processes, model: nn.Module, data: DataSet, config: TrainConfig) -> None:
    """Refuse settings that do not fit the number of processes, and processes that do not fit each other."""
    size, batch = processes.size, config.batch_size
    if batch % size:
        raise InputError(
            f"train.batch_size = {batch} on {size} processes: expected a multiple of {size}, since it is the "
            f"batch of all together. Take {max(size, batch // size * size)}, or another number of processes."
        )
    if (images := data.training_size) < size:
        raise InputError(
            f"{images} training images for {size} processes: expected at least one for each. Start fewer."
        )
    smallest = min(batch, images) // size
    if config.accumulation > smallest:
        raise InputError(
            f"train.accumulation = {config.accumulation} on {size} processes: expected at most {smallest}, "
            "the images of a batch that each of them gets."
        )
    if config.sharding == "full" and config.optimiser == "muon":
        raise InputError(
            "train.optimiser = 'muon' with train.sharding = 'full': expected another, since Muon needs whole "
            "matrices and each process holds a part. Take 'adamw', or train.sharding = 'none'."
        )
    tables = processes.gathered(_settings(model, data, config))
    for rank, theirs in enumerate(tables):
        if changed := differences(tables[0], theirs):
            first = "; ".join(changed[:3])
            raise InputError(
                f"process {rank} of this run has other settings than process 0: {first} (there: process 0). "
                "Expected the same; start all of them with the same command and the same data."
            )


def _settings(model: nn.Module, data: DataSet, config: TrainConfig) -> dict[str, dict]:
    """Say what has to be the same in all processes; a folder of photos may lie elsewhere on each machine."""
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    parts: tuple[Part, ...] = ("train", "validation", "test")
    images = {part: data.size_of(part) for part in parts} | {"classes": list(data.class_names)}
    return {
        "train": as_table(config),
        "weights": shapes,
        "images": images | {"shape": list(data.image_shape)},
        "processes": {"sharding": config.sharding},
    }


def reading_interval(device: torch.device) -> int:
    """Return after how many steps losses are read: reading makes a GPU wait, so there it is now and then."""
    return 1 if device.type == "cpu" else 50


def check_finite(state: TrainingState, losses: list[Tensor]) -> None:
    """Stop the run if one of the last steps' losses is not a finite number; say which."""
    if not losses or (finite := torch.stack(losses).isfinite()).all():
        return
    first = int((~finite).nonzero()[0])
    step = state.step - len(losses) + first + 1
    raise diverged(state, f"the loss is {losses[first].item()} at step {step} (epoch {state.epoch + 1})")


def check_outcome(state: TrainingState, held_out: Evaluation | HeldOut | None) -> None:
    """Stop the run if the epoch that just ended left weights or a validation loss that are not finite."""
    weights = state.measured.named_parameters()
    here = next((name for name, weight in weights if not local(weight).isfinite().all()), None)
    if (name := next(filter(None, state.processes.gathered(here)), None)) is not None:
        raise diverged(state, f"{name} is not finite after step {state.step} (epoch {state.epoch})")
    if held_out and not math.isfinite(held_out.loss):
        raise diverged(state, f"the validation loss is {held_out.loss} after epoch {state.epoch}")


def diverged(state: TrainingState, what: str) -> DivergedError:
    """Return the error that says what is wrong, what is kept, and what to try."""
    return DivergedError(
        f"{what}: training has stopped. Last good checkpoint: {state.last_checkpoint or 'none was kept'}. "
        "Try a lower learning_rate, more warmup_steps, or clip_norm = 1, in another folder."
    )
