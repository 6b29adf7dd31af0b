"""Measure a model: logits for many images, and the accuracy and loss that follow from them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_from_scratch.data.normalisation import Normalisation
from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_labels, require_tensor
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.training.self_supervised import MEASURING_SEED, HeldOut, Outcome, SelfSupervised

NOTHING = "no images to measure on: expected at least one; choose another part of the data."


@dataclass(frozen=True)
class Evaluation:
    """How a model did on labelled images.

    Attributes:
        accuracy: share of images whose largest logit is the label's, 0 to 1.
        loss: mean cross-entropy in nats, without label smoothing.
        images: on how many images.
        top5_accuracy: share of images whose label is among the five largest logits; None for ten classes or
            fewer, where half of them would count.
    """

    accuracy: float
    loss: float
    images: int
    top5_accuracy: float | None = None


@torch.no_grad()
def predict(
    model: nn.Module,
    images: Tensor,
    normalise: Callable[[Tensor], Tensor] | None = None,
    batch_size: int = 500,
) -> Tensor:
    """Return the logits of many images, (N, K), in evaluation mode and without gradients.

    Args:
        model: (B, C, H, W) floats to (B, K) logits; it is left in the mode that it came in.
        images: (N, C, H, W): bytes with `normalise`, else floats as the model takes them.
        normalise: applied to each batch, usually `data.normalise`.
        batch_size: images at a time; it bounds the memory.

    Raises:
        InputError: images that are not a tensor, or floats from 0 to 1 to normalise, or do not fit.
    """
    require_tensor(images, "images", "(N, C, H, W)")
    device = next(model.parameters(), images).device
    logits = []
    with evaluating(model):
        for batch in images.split(batch_size):
            if isinstance(normalise, Normalisation):
                normalise.check(batch)  # before a GPU has it
            batch = batch.to(device)
            logits.append(model(normalise(batch) if normalise else batch).float())  # (B, K)
    return torch.cat(logits)


def evaluate(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    normalise: Callable[[Tensor], Tensor] | None = None,
) -> Evaluation:
    """Measure accuracy and cross-entropy on images (N, C, H, W) with labels (N,); else as `predict`.

    Raises:
        InputError: no images, or labels that are not one class number an image.
    """
    return _scored(predict(model, images, normalise), labels)


@torch.no_grad()
def evaluate_batches(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> Evaluation:
    """Measure accuracy and cross-entropy on images that come batch by batch.

    These are images (B, C, H, W), normalised, with labels (B,): for instance `data.batches("test")`.

    Raises:
        InputError: there is no batch, or labels are not one class number an image.
    """
    found = [(predict(model, images), labels) for images, labels in batches]
    if not found:
        raise InputError(NOTHING)
    logits, labels = map(torch.cat, zip(*found, strict=True))
    return _scored(logits, labels)


@torch.no_grad()
def evaluate_hidden(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> HeldOut:
    """Measure a self-supervised model, in evaluation mode, on images whose labels are not read.

    With the same batches the same patches are hidden each time.

    Raises:
        InputError: there is no batch.
    """
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(MEASURING_SEED)
    with evaluating(model):
        outcomes = [model(images.to(device), generator) for images, _ in batches]
    if not outcomes:
        raise InputError(NOTHING)
    whole = Outcome.of_all(outcomes)
    accuracy = None if whole.right is None else whole.right.mean().item()
    return HeldOut(whole.loss.float().mean().item(), accuracy, len(whole.loss))


def measure(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> Evaluation | HeldOut:
    """Measure a model on what it is trained for: labels, or what a self-supervised model hides."""
    if isinstance(model, SelfSupervised):
        return evaluate_hidden(model, batches)
    return evaluate_batches(model, batches)


def _scored(logits: Tensor, labels: Tensor) -> Evaluation:
    """Compare logits (N, K) with labels (N,)."""
    if not len(logits):
        raise InputError(NOTHING)
    require_labels(labels, len(logits), logits.shape[1])
    labels = labels.to(logits.device, torch.long)
    loss = F.cross_entropy(logits, labels).item()
    hits = logits.argmax(dim=1) == labels  # (N,)
    top5 = None
    if logits.shape[1] > 10:
        among = logits.topk(5, dim=1).indices == labels[:, None]  # (N, 5)
        top5 = among.any(dim=1).float().mean().item()
    return Evaluation(hits.float().mean().item(), loss, len(labels), top5)
