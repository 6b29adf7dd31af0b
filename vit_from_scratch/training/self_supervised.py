"""Models that set their own task: part of each image is hidden, and they are asked for it. No label is read.

A classifier returns logits, such a model an `Outcome`, and the loop trains either. The tasks differ:
`masked_patches` is the paper's, `masked_autoencoding` is not.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_from_scratch.data.normalisation import Normalisation
from vit_from_scratch.errors import InputError
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.settings import require

if TYPE_CHECKING:
    from vit_from_scratch.model.vit import VisionTransformer

GREY = 0.5
"""What a hidden patch looks like in a picture."""

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

    @classmethod
    def of_all(cls, outcomes: "list[Outcome]") -> "Outcome":
        """Put the outcomes of several batches together."""
        right = [outcome.right for outcome in outcomes if outcome.right is not None]
        return cls(torch.cat([outcome.loss for outcome in outcomes]), torch.cat(right) if right else None)


@dataclass(frozen=True)
class HeldOut:
    """Mean loss on held-out images, and accuracy, 0 to 1; None where nothing is right or wrong."""

    loss: float
    accuracy: float | None
    images: int


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a self-supervised model answered, for drawing.

    Attributes:
        chosen: (B, N), true where a patch was asked for.
        seen: (B, C, H, W) in [0, 1], the images as the model saw them, hidden patches grey.
        answer: (B, C, H, W) in [0, 1], what it answered.
        right: (B, N), true where the answer is correct; None where nothing is right or wrong.
    """

    chosen: Tensor
    seen: Tensor
    answer: Tensor
    right: Tensor | None = None


class SelfSupervised(nn.Module, ABC):
    """A ViT, and what its own task needs besides it.

    Args:
        vit: what is pre-trained, with or without class token.
        normalise: how images were scaled for it.
        share: of an image's patches that are hidden, between 0 and 1; each task has its own default.

    Attributes:
        objective: the task's name in recipes and files.
        settings: what `pretraining.load_pretraining` builds the model with, besides the ViT.

    Raises:
        InputError: another stem than plain patches, or a share that does not fit.
    """

    objective: ClassVar[str]

    def __init__(self, vit: "VisionTransformer", normalise: Normalisation, share: float) -> None:
        # Imported here: the loop, which knows the class, needs no model of ours.
        from vit_from_scratch.model.vit import VisionTransformer

        super().__init__()
        plain = isinstance(vit, VisionTransformer)
        if not plain or vit.config.stem.kind != "patch":
            given = f"stem {vit.config.stem.kind!r}" if plain else type(vit).__name__
            raise InputError(
                f"{self.objective} for a model with {given}: expected a VisionTransformer with "
                "stem = 'patch', where a token is one patch and nothing else; choose that stem."
            )
        self.vit = vit
        self.patch_size = vit.config.patch_size
        self.normalise = normalise
        self.share = share
        self.settings: dict[str, Any] = {"share": share}
        self.check_grid(vit.config.num_patches)

    @abstractmethod
    def forward(self, images: Tensor, generator: torch.Generator | None = None) -> Outcome:
        """Hide part of images (B, C, H, W), normalised, ask for it, and say how the answers were.

        The generator decides what is hidden; torch's global random numbers if there is none.
        """

    @abstractmethod
    def pictures(self, images: Tensor, generator: torch.Generator) -> Prediction:
        """Hide part of images (B, C, H, W), ask for it, and draw the answers."""

    @torch.no_grad()
    def predict(self, images: Tensor, generator: torch.Generator | None = None) -> Prediction:
        """Hide part of images (B, C, H, W), ask for it in evaluation mode, and return pictures.

        Without a generator the same patches are hidden each time.
        """
        with evaluating(self):
            return self.pictures(images, generator or torch.Generator().manual_seed(MEASURING_SEED))

    def check_grid(self, num_patches: int) -> None:
        """Raise an `InputError` unless something is hidden of so many patches, and something left."""
        hidden = hidden_count(self.share, num_patches)
        if not 0 < hidden < num_patches:
            raise InputError(
                f"share = {self.share} hides {hidden} of {num_patches} patches: expected some to be hidden "
                "and some to be left; choose another share or smaller patches."
            )

    def encode(self, tokens: Tensor) -> Tensor:
        """Map tokens z_0 (B, T, D) to z_L (B, T, D), through the LayerNorm that the head would read."""
        return self.vit.pooled_norm(self.vit.encoder(tokens))

    def grid(self, images: Tensor) -> tuple[int, int]:
        """Return the rows and columns (gh, gw) of the patches of images, which must fit the model."""
        self.vit.check_images(images)
        return self.vit.grid


def hidden_count(share: float, num_patches: int) -> int:
    """Return how many of an image's N patches are hidden, `round(share * N)`."""
    require(0 < share < 1, "share", share, "a share between 0 and 1, such as 0.5")
    return round(share * num_patches)


def uniform(
    batch: int, num_patches: int, generator: torch.Generator | None, device: torch.device | str
) -> Tensor:
    """Draw (B, N) numbers from 0 to 1 by the generator's own device, and return them on another."""
    where = generator.device if generator else device
    return torch.rand(batch, num_patches, generator=generator, device=where).to(device)


def choose_patches(
    batch: int, num_patches: int, share: float, generator: torch.Generator | None, device: torch.device | str
) -> Tensor:
    """Choose exactly `hidden_count` patches of each image at random, (B, N), true where one is chosen."""
    rank = uniform(batch, num_patches, generator, device).argsort(dim=1).argsort(dim=1)
    return rank < hidden_count(share, num_patches)


def mean_over(values: Tensor, chosen: Tensor) -> Tensor:
    """Average values (B, N) over the patches of each image that are chosen, (B,)."""
    return torch.where(chosen, values, 0).sum(dim=1) / chosen.sum(dim=1)


def batch_loss(output: Tensor | Outcome, targets: Tensor, label_smoothing: float) -> Tensor:
    """Return the loss of a batch: an outcome's own, or the cross-entropy of logits (B, K).

    The targets are (B,) class numbers, or (B, K) shares of the classes.
    """
    if isinstance(output, Outcome):
        return output.loss.mean()
    return F.cross_entropy(output.float(), targets, label_smoothing=label_smoothing)


def share_right(output: Tensor | Outcome, labels: Tensor) -> Tensor | None:
    """Return the share of right answers, a scalar; None where nothing is right or wrong.

    The labels are (B,) class numbers, or (B, K) shares of the classes, whose largest is the right one.
    """
    if isinstance(output, Outcome):
        return None if output.right is None else output.right.mean()
    known = labels.argmax(dim=1) if labels.ndim == 2 else labels
    return (output.argmax(dim=1) == known).float().mean()


def joined(outputs: list[Tensor] | list[Outcome]) -> Tensor | Outcome:
    """Put the outputs for the pieces of a batch together again."""
    outcomes = [output for output in outputs if isinstance(output, Outcome)]
    if outcomes:
        return Outcome.of_all(outcomes)
    return torch.cat([output for output in outputs if isinstance(output, Tensor)])
