"""What a step of training asks a model for: a loss and how much was right, with labels and without.

A classifier returns logits. A self-supervised model sets its own task, so it returns an `Outcome`.
"""

import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from vit_from_scratch.data.normalisation import Normalisation
    from vit_from_scratch.model.vit import VisionTransformer

MEASURING_SEED = 0
"""Of what is hidden in held-out images: the same patches in equal batches, every epoch and on any device."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a self-supervised model did on a batch, image by image.

    Attributes:
        loss: (B,), the mean over what is asked of an image.
        right: (B,), the share of it that was answered correctly; None where nothing is right or wrong.
    """

    loss: Tensor
    right: Tensor | None

    def detach(self) -> "Outcome":
        """Return the same numbers without their graph."""
        return Outcome(self.loss.detach(), None if self.right is None else self.right.detach())


@dataclass(frozen=True)
class HeldOut:
    """How a self-supervised model did on held-out images.

    Attributes:
        loss: mean over the images.
        accuracy: the share of what was asked that was answered correctly, 0 to 1; None where nothing is.
        images: on how many images.
    """

    loss: float
    accuracy: float | None
    images: int


@runtime_checkable
class SetsOwnTask(Protocol):
    """What the loop knows of a model that returns an `Outcome` (`training.self_supervised` has two)."""

    objective: typing.ClassVar[str]
    vit: "VisionTransformer"
    normalise: "Normalisation"

    def check_grid(self, num_patches: int) -> None:
        """Raise an `InputError` unless the task can be set on so many patches."""


def batch_loss(output: Tensor | Outcome, targets: Tensor, label_smoothing: float) -> Tensor:
    """Return the loss of a batch: a self-supervised model's own, or the cross-entropy of logits (B, K).

    Args:
        output: what the model returned.
        targets: (B,) class numbers, or (B, K) shares of the classes.
        label_smoothing: share of the target that is spread over all classes.
    """
    if isinstance(output, Outcome):
        return output.loss.mean()
    return F.cross_entropy(output.float(), targets, label_smoothing=label_smoothing)


def share_right(output: Tensor | Outcome, labels: Tensor) -> Tensor | None:
    """Return the share of right answers to labels (B,), a scalar; None where nothing is right or wrong."""
    if isinstance(output, Outcome):
        return None if output.right is None else output.right.mean()
    return (output.argmax(dim=1) == labels).float().mean()


def joined(outputs: list[Tensor] | list[Outcome]) -> Tensor | Outcome:
    """Put the outputs for the pieces of a batch together again."""
    if isinstance(outputs[0], Tensor):
        return torch.cat(typing.cast(list[Tensor], outputs))
    pieces = typing.cast(list[Outcome], outputs)
    right = [piece.right for piece in pieces if piece.right is not None]
    return Outcome(torch.cat([piece.loss for piece in pieces]), torch.cat(right) if right else None)
