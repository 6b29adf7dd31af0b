"""Masked patch prediction: the paper's pre-training without labels (appendix B.1.2).

Half of the patch embeddings are corrupted, and the model is asked for the mean colour of each corrupted
patch, quantised to 3 bits a channel: one of 512. BERT masks words likewise.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from torch import Tensor, nn

from vit_from_scratch.data.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_tensor
from vit_from_scratch.model.patches import lecun_normal_, patchify, unpatchify
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.settings import require
from vit_from_scratch.training.self_supervised import (
    GREY,
    Outcome,
    Prediction,
    SelfSupervised,
    choose_patches,
    mean_over,
    uniform,
)

MASKED, REPLACED = 0.8, 0.1
"""Shares of the corrupted patches: the mask token, another patch; the rest stay as they are."""

LEVELS = 8
"""Bins of a colour channel: 3 bits."""

COLOURS = LEVELS**3
"""Colours to choose from, 512."""

BIN = 256 / LEVELS
"""The width of a bin, in the levels of bytes."""


@dataclass(frozen=True, eq=False)
class Corruption:
    """What happens to each patch of a batch.

    Attributes:
        chosen: (B, N), true where a patch is corrupted, which is where its colour is asked for.
        masked: (B, N), true where the mask token is put.
        source: (B, N), the number in the batch, 0 to B N - 1, of the patch that is put there otherwise: its
            own, unless it was replaced.
    """

    chosen: Tensor
    masked: Tensor
    source: Tensor

    def apply(self, patches: Tensor, mask: Tensor) -> Tensor:
        """Corrupt embeddings, or the pixels of patches (B, N, D), with a mask (D,)."""
        standing = patches.flatten(0, 1)[self.source]  # (B, N, D)
        return torch.where(self.masked[..., None], mask.to(patches.dtype), standing)


def draw_corruption(
    batch: int,
    num_patches: int,
    share: float = 0.5,
    generator: torch.Generator | None = None,
    device: torch.device | str = "cpu",
) -> Corruption:
    """Decide at random what happens to each of N patches of B images (appendix B.1.2).

    In each image exactly `round(share * N)` patches are chosen. Each becomes the mask token with
    probability 0.8, a random other patch of the batch with 0.1, or stays as it is.
    """
    total = batch * num_patches
    require(total >= 2, "patches of the batch", total, "at least 2, so that there is another")
    chosen = choose_patches(batch, num_patches, share, generator, device)
    fate = uniform(batch, num_patches, generator, device)
    own = torch.arange(total, device=device).view(batch, num_patches)
    # 1 to B N - 1 patches further on, wrapping around: any other patch, never its own.
    further = 1 + (uniform(batch, num_patches, generator, device) * (total - 1)).long().clamp(max=total - 2)
    replaced = chosen & (fate >= MASKED) & (fate < MASKED + REPLACED)
    return Corruption(chosen, chosen & (fate < MASKED), torch.where(replaced, (own + further) % total, own))


def mean_colours(images: Tensor, patch_size: int) -> Tensor:
    """Average each channel of images (B, 3, H, W), bytes or floats, over each patch of side P: (B, N, 3).

    Raises:
        InputError: images without three channels, or that P does not divide.
    """
    require_tensor(images, "images", "(B, 3, H, W)")
    if images.ndim == 4 and images.shape[1] != 3:
        raise InputError(
            f"images of shape {tuple(images.shape)}: expected (B, 3, H, W), red, green and blue; "
            "a mean colour needs colours."
        )
    patches = patchify(images.float(), patch_size)  # (B, N, P^2 3)
    return rearrange(patches, "b n (p c) -> b n p c", c=3).mean(dim=2)


def colour_numbers(means: Tensor) -> Tensor:
    """Number mean colours (B, N, 3) from 0 to 255 by eight equal bins a channel, 64 r + 8 g + b: (B, N)."""
    red, green, blue = means.div(BIN).long().clamp(max=LEVELS - 1).unbind(-1)
    return LEVELS**2 * red + LEVELS * green + blue


def colours_of_numbers(targets: Tensor) -> Tensor:
    """Return the colours (..., 3) in the middle of numbered bins (...), 16 to 240: the way back, to draw."""
    bins = torch.stack([targets // LEVELS**2, targets // LEVELS % LEVELS, targets % LEVELS], dim=-1)
    return BIN * (bins + 0.5)


class MaskedPatchPrediction(SelfSupervised):
    """A ViT that names the colours of patches that it does not see, or may not trust (appendix B.1.2).

    Args:
        vit: what is pre-trained, with or without class token, for images with three channels.
        normalise: how images were scaled for it; undone, it gives the colours to ask for.
        share: of an image's patches that are corrupted; the paper takes half.

    Raises:
        InputError: another stem than plain patches, another number of channels, or a share that does not fit.
    """

    objective = "masked-patches"

    def __init__(
        self, vit: VisionTransformer, normalise: Normalisation = NORMALISATIONS["half"], share: float = 0.5
    ) -> None:
        super().__init__(vit, normalise, share)
        if vit.config.channels != 3:
            raise InputError(
                f"masked patches of images with {vit.config.channels} channels: expected 3, red, green and "
                "blue, whose mean colour is asked for; take masked pixels for other images."
            )
        self.mask_token = nn.Parameter(torch.empty(vit.config.dim))
        self.head = nn.Linear(vit.config.dim, COLOURS)
        nn.init.normal_(self.mask_token, std=0.02)  # like the positions; the paper does not say
        lecun_normal_(self.head.weight)  # through zeros no gradient would reach the mask token
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor, generator: torch.Generator | None = None) -> Outcome:
        """Corrupt images (B, 3, H, W), ask for the colours, and say how the answers were, image by image.

        The loss is the cross-entropy of the corrupted patches alone.
        """
        corruption = self.draw(images, generator)
        logits = self.logits(images, corruption)  # (B, N, 512)
        targets = self.targets(images)  # (B, N)
        losses = F.cross_entropy(logits.float().mT, targets, reduction="none")  # (B, N)
        right = (logits.argmax(dim=-1) == targets).float()
        return Outcome(mean_over(losses, corruption.chosen), mean_over(right, corruption.chosen))

    def draw(self, images: Tensor, generator: torch.Generator | None = None) -> Corruption:
        """Decide what happens to the patches of images (B, 3, H, W)."""
        rows, columns = self.grid(images)
        return draw_corruption(len(images), rows * columns, self.share, generator, images.device)

    def logits(self, images: Tensor, corruption: Corruption) -> Tensor:
        """Name the colour of every patch of corrupted images, (B, N, 512)."""
        embeddings = corruption.apply(self.vit.patch_embedding(images), self.mask_token)  # (B, N, D)
        encoded = self.encode(self.vit.tokens(embeddings))  # (B, T, D)
        return self.head(encoded[:, int(self.vit.config.class_token) :])

    def levels(self, images: Tensor) -> Tensor:
        """Map normalised images (B, 3, H, W) back to the levels of bytes: whole numbers, as floats."""
        return (255 * self.normalise.undo(images)).round()

    def targets(self, images: Tensor) -> Tensor:
        """Number the true mean colours of the patches of normalised images, (B, N)."""
        return colour_numbers(mean_colours(self.levels(images), self.patch_size))

    def pictures(self, images: Tensor, generator: torch.Generator) -> Prediction:
        """Corrupt images (B, 3, H, W) and draw the likeliest colour of each patch.

        A replaced patch is seen with the pixels of what replaced it.
        """
        corruption, size, grid = self.draw(images, generator), self.patch_size, self.grid(images)
        answers = self.logits(images, corruption).argmax(dim=-1)  # (B, N)
        patches = patchify(self.levels(images) / 255, size)  # (B, N, P^2 3)
        seen = corruption.apply(patches, patches.new_full(patches.shape[-1:], GREY))
        answer = repeat(colours_of_numbers(answers) / 255, "b n c -> b n (p c)", p=size**2)
        drawn = (unpatchify(some, size, grid) for some in (seen, answer))
        return Prediction(corruption.chosen, *drawn, right=answers == self.targets(images))
