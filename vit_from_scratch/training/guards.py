"""What stops a run: settings that do not fit the model or the data, and numbers that are not finite."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from vit_from_scratch.errors import DivergedError, InputError
from vit_from_scratch.settings import require
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.evaluation import Evaluation
from vit_from_scratch.training.self_supervised import HeldOut, SelfSupervised
from vit_from_scratch.training.state import TrainingState, as_vit, vit_of

if TYPE_CHECKING:
    from vit_from_scratch.data.dataset import DataSet
    from vit_from_scratch.model.config import ViTConfig

HUGE = 1000
"""An epoch's mean loss at this many times a uniform guess's means that the model is not learning."""


def check_fit(model: nn.Module, data: "DataSet", config: TrainConfig) -> None:
    """Refuse settings that this model or these data cannot be trained with, before anything is written."""
    if not hasattr(data, "training_size"):
        raise InputError(
            f"data of type {type(data).__name__}: expected a DataSet; put tensors into an ImageData."
        )
    batch = min(config.batch_size, data.training_size)
    if (vit := vit_of(model)) is not None:
        if (found := data_mismatch(vit.config, data)) is not None:
            raise InputError(f"{found}. Build the model for the data; a recipe leaves this out.")
        side = min([side for _, side in config.curriculum] or [max(data.image_shape[1:])])
        single = side <= vit.config.patch_size and batch // config.accumulation == 1
        if vit.config.stem.kind == "conv" and single:  # batch norm needs two values
            raise InputError(
                f"train.batch_size = {config.batch_size} with stem='conv' and a single patch leaves batch "
                "norm one value: expected pieces of 2 images or more. Take a larger batch or smaller patches."
            )
    if isinstance(model, SelfSupervised):
        check_unlabelled(model, data, config)
    if len(data.normalise.mean) not in (1, data.image_shape[0]):
        raise InputError(
            f"data.normalisation = {data.config.normalisation!r} has {len(data.normalise.mean)} colours and "
            f"{data.config.name} {data.image_shape[0]}: expected 'half'."
        )
    smallest = min(data.augmented_sides)
    expected = f"fewer pixels than the images' side, {smallest}"
    for name in ("shift", "jitter"):
        pixels = getattr(config.augmentation, name)
        require(pixels < smallest, f"train.augmentation.{name}", pixels, expected)
    if config.curriculum:
        check_curriculum(model, data, config)
    data.check_augmentation(config.augmentation)
    watched = not config.patience or data.size_of("validation") > 0
    expected = "held-out images to watch, and there are none; set data.validation_size, or patience = 0"
    require(watched, "train.patience", config.patience, expected)
    expected = f"at most the batch of {batch}"
    require(config.accumulation <= batch, "train.accumulation", config.accumulation, expected)


def check_curriculum(model: nn.Module, data: "DataSet", config: TrainConfig) -> None:
    """Refuse sides that the model's patches do not fit; the model stays as it is."""
    vit = as_vit(model, f"train.curriculum = {config.curriculum}")
    try:
        for _, side in config.curriculum:
            vit.resize_input(side)
            if isinstance(model, SelfSupervised):
                model.check_grid((side // vit.config.patch_size) ** 2)
    finally:
        vit.resize_input(data.image_shape[1:])


def check_unlabelled(model: SelfSupervised, data: "DataSet", config: TrainConfig) -> None:
    """Refuse what changes labels where none is read, and images that are scaled differently."""
    changes = config.augmentation
    amounts = {"label_smoothing": config.label_smoothing}
    amounts |= {"augmentation.mixup": changes.mixup, "augmentation.cutmix": changes.cutmix}
    for name, amount in amounts.items():
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


def data_mismatch(model: "ViTConfig", data: "DataSet") -> str | None:
    """Say which of a ViT's shapes is not that of the data; None if all are."""
    channels, *side = data.image_shape
    given = {"channels": model.channels, "image_size": model.image_shape, "num_classes": model.num_classes}
    for (name, own), there in zip(given.items(), (channels, tuple(side), data.num_classes), strict=True):
        if own != there:
            return f"model.{name} = {own}: expected {there} for {data.config.name}"
    return None


def reading_interval(device: torch.device) -> int:
    """Return after how many steps losses are read: rarely on a GPU, since reading makes it wait."""
    return 1 if device.type == "cpu" else 50


def check_finite(state: TrainingState, losses: list[Tensor]) -> None:
    """Stop the run if one of the last steps' losses is not a finite number; say which."""
    if not losses or (finite := torch.stack(losses).isfinite()).all():
        return
    first = int((~finite).nonzero()[0])
    step = state.step - len(losses) + first + 1
    raise diverged(state, f"the loss is {losses[first].item()} at step {step} (epoch {state.epoch + 1})")


def check_outcome(state: TrainingState, train_loss: float, held_out: Evaluation | HeldOut | None) -> None:
    """Stop the run if the epoch that just ended left a weight or loss that is not finite, or a huge loss."""
    names, weights = zip(*state.measured.named_parameters(), strict=True)
    finite = torch.stack([state.engine.local(weight).isfinite().all() for weight in weights]).tolist()
    here = None if all(finite) else names[finite.index(False)]
    if (name := next(filter(None, state.engine.gathered(here)), None)) is not None:
        raise diverged(state, f"{name} is not finite after step {state.step} (epoch {state.epoch})")
    most = HUGE * max(1.0, math.log(state.data.num_classes))
    for part, loss in (("training", train_loss), ("validation", held_out.loss if held_out else 0.0)):
        if not math.isfinite(loss):
            raise diverged(state, f"the {part} loss is {loss} after epoch {state.epoch}")
        if loss > most:
            guess = f"over {HUGE:,} times that of a guess"
            raise diverged(state, f"the {part} loss is {loss:.3g}, {guess}, after epoch {state.epoch}")


def diverged(state: TrainingState, what: str) -> DivergedError:
    """Return the error that says what is wrong, what is kept, and what to try."""
    return DivergedError(
        f"{what}: training has stopped. Last good checkpoint: {state.last_checkpoint or 'none was kept'}. "
        "Try a lower learning_rate, more warmup_steps, or clip_norm = 1, in another folder."
    )
