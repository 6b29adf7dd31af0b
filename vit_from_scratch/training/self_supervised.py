"""Models that set their own task: part of each image is hidden, and they are asked for it. No label is read.

The training loop trains such a model like any other. The tasks differ: `masked_patches` is the paper's,
`masked_autoencoding` is not.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vit_from_scratch.data.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.errors import InputError
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.settings import require
from vit_from_scratch.training.outcomes import Outcome

GREY = 0.5
"""What a hidden patch looks like in a picture."""


class SelfSupervised(nn.Module, ABC):
    """A ViT with what a task of its own needs beside it.

    Args:
        vit: what is pre-trained; its head is not used and stays as it is.
        normalise: how images were scaled for it, usually `data.normalise`.
        share: how much of each image is hidden, between 0 and 1.

    Attributes:
        settings: what it was built with beside the ViT and the normalisation, by the arguments' names.

    Raises:
        InputError: not a plain ViT, or a share that hides nothing or leaves nothing.
    """

    objective: ClassVar[str]

    def __init__(
        self, vit: VisionTransformer, normalise: Normalisation = NORMALISATIONS["half"], share: float = 0.5
    ) -> None:
        super().__init__()
        plain = isinstance(vit, VisionTransformer)
        if not plain or vit.config.stem.kind != "patch":
            given = f"stem {vit.config.stem.kind!r}" if plain else type(vit).__name__
            raise InputError(
                f"{self.objective} for a model with {given}: expected a VisionTransformer with "
                "stem = 'patch', where a token is one patch and nothing else; choose that stem."
            )
        self.vit = vit
        self.normalise = normalise
        self.share = share
        self.settings: dict[str, Any] = {"share": share}
        self.check_grid(vit.config.num_patches)

    @abstractmethod
    def forward(self, images: Tensor, generator: torch.Generator | None = None) -> Outcome:
        """Hide part of the images, ask for it, and say how the answers were.

        Args:
            images: (B, C, H, W) floats, normalised.
            generator: what decides what is hidden; torch's global random numbers if None.
        """

    def check_grid(self, num_patches: int) -> None:
        """Raise an `InputError` unless something is hidden of so many patches, and something left."""
        hidden = hidden_count(self.share, num_patches)
        if not 0 < hidden < num_patches:
            raise InputError(
                f"share = {self.share} hides {hidden} of {num_patches} patches: expected some to be hidden "
                "and some to be left; change the share or take smaller patches."
            )

    def encode(self, tokens: Tensor) -> Tensor:
        """Map tokens z_0 (B, T, D) to z_L (B, T, D), through the LayerNorm that the head would read."""
        return self.vit.pooled_norm(self.vit.encoder(tokens))

    def levels(self, images: Tensor) -> Tensor:
        """Map normalised images (B, C, H, W) back to the levels of bytes: whole numbers, as floats."""
        return (255 * self.normalise.undo(images)).round()

    def grid(self, images: Tensor) -> tuple[int, int]:
        """Return the rows and columns (gh, gw) of the patches of images, which must fit the model."""
        self.vit.check_images(images)
        size = self.vit.config.patch_size
        return images.shape[2] // size, images.shape[3] // size


def hidden_count(share: float, num_patches: int) -> int:
    """Return how many of an image's patches are hidden: the share of them, rounded."""
    require(0 < share < 1, "share", share, "a share between 0 and 1")
    return round(share * num_patches)


def uniform(
    batch: int, num_patches: int, generator: torch.Generator | None, device: torch.device | str
) -> Tensor:
    """Draw a number in [0, 1) for each patch, (B, N), where the generator is, and bring them to a device."""
    where = device if generator is None else generator.device
    return torch.rand(batch, num_patches, generator=generator, device=where).to(device)


def choose_patches(
    batch: int, num_patches: int, share: float, generator: torch.Generator | None, device: torch.device | str
) -> Tensor:
    """Choose patches at random, exactly `round(share * N)` in each image: true in (B, N)."""
    order = uniform(batch, num_patches, generator, device).argsort(dim=1, stable=True)  # 0 to N - 1
    return order < hidden_count(share, num_patches)


def mean_over(values: Tensor, which: Tensor) -> Tensor:
    """Average values (B, N) over the patches of each image that are chosen, (B,)."""
    return torch.where(which, values, 0).sum(dim=1) / which.sum(dim=1)
