"""Patch embeddings that are masked, replaced or left: half of an image's, in the paper (appendix B.1.2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_tensor
from vit_from_scratch.settings import require
from vit_from_scratch.training.self_supervised import choose_patches, uniform

MASKED, REPLACED = 0.8, 0.1
"""Shares of the corrupted patches: the mask token, another patch; the rest stay as they are."""


@dataclass(frozen=True, eq=False)
class Corruption:
    """What happens to each patch of a batch.

    Attributes:
        which: (B, N), true where a patch is corrupted, which is where its colour is asked for.
        masked: (B, N), true where the mask token is put.
        source: (B, N), the number in the batch, 0 to B N - 1, of the patch that is put there otherwise: its
            own, unless it was replaced.
    """

    which: Tensor
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
    """Decide at random what happens to each patch.

    Args:
        batch: images, B.
        num_patches: patches of an image, N.
        share: of an image's patches that are corrupted, exactly `round(share * N)`.
        generator: the source of randomness; torch's global one if None.
        device: where the result is wanted.

    Raises:
        InputError: a share out of its range, or a single patch in the whole batch, beside which there is no
            other.
    """
    total = batch * num_patches
    require(total >= 2, "patches of the batch", total, "at least 2, so that there is another")
    which = choose_patches(batch, num_patches, share, generator, device)
    fate = uniform(batch, num_patches, generator, device)
    own = torch.arange(total, device=device).view(batch, num_patches)
    # 1 to B N - 1 patches further, round and round: any other patch, and never its own.
    further = 1 + (uniform(batch, num_patches, generator, device) * (total - 1)).long().clamp(max=total - 2)
    replaced = which & (fate >= MASKED) & (fate < MASKED + REPLACED)
    source = torch.where(replaced, (own + further) % total, own)
    return Corruption(which, which & (fate < MASKED), source)


def corrupt(
    embeddings: Tensor, mask_token: Tensor, generator: torch.Generator | None = None, share: float = 0.5
) -> tuple[Tensor, Tensor]:
    """Corrupt patch embeddings as appendix B.1.2 does.

    In each image exactly `round(share * N)` patches are chosen. Each of them becomes the mask token with
    80 %, the embedding of a random other patch of the batch with 10 %, or stays as it is.

    Args:
        embeddings: (B, N, D).
        mask_token: (D,).
        generator: the source of randomness; torch's global one if None.
        share: how many patches are chosen, between 0 and 1.

    Returns:
        The corrupted embeddings (B, N, D), and which were chosen, (B, N).

    Raises:
        InputError: embeddings or a mask token of another shape, a share out of its range, or a single patch
            in the whole batch.
    """
    require_tensor(embeddings, "embeddings", "(B, N, D)")
    require_tensor(mask_token, "mask_token", "(D,)")
    if embeddings.ndim != 3 or mask_token.shape != embeddings.shape[-1:]:
        raise InputError(
            f"embeddings of shape {tuple(embeddings.shape)} and a mask token of shape "
            f"{tuple(mask_token.shape)}: expected (B, N, D) and (D,); give both the same width."
        )
    batch, count, _ = embeddings.shape
    corruption = draw_corruption(batch, count, share, generator, embeddings.device)
    return corruption.apply(embeddings, mask_token), corruption.which
