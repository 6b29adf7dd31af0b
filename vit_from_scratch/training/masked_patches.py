"""Masked patch prediction: the paper's pre-training without labels (appendix B.1.2).

Half of the patch embeddings are corrupted (`patch_corruption`), and the model is asked for the mean colour of
each corrupted patch, cut to 3 bits a channel (`patch_colours`): a choice among 512. BERT does so with words.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from einops import repeat
from torch import Tensor, nn

from vit_from_scratch.data.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.errors import InputError
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.model.patches import lecun_normal_, patchify, unpatchify
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.training.outcomes import MEASURING_SEED, Outcome
from vit_from_scratch.training.patch_colours import COLOURS, colour_numbers, mean_colours, target_colours
from vit_from_scratch.training.patch_corruption import Corruption, draw_corruption
from vit_from_scratch.training.self_supervised import SelfSupervised, mean_over

GREY = 0.5
"""What the mask token looks like in a picture."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model answered, for drawing.

    Attributes:
        logits: (B, N, 512), also for patches that were not asked for.
        which: (B, N), true where a patch was corrupted.
        targets: (B, N), the true colours by their numbers.
        seen: (B, 3, H, W) in [0, 1], the images as the model saw them: masked patches grey, replaced ones
            with the pixels of what replaced them.
        answer: (B, 3, H, W) in [0, 1], the likeliest colour of each patch.
    """

    logits: Tensor
    which: Tensor
    targets: Tensor
    seen: Tensor
    answer: Tensor


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

    @property
    def settings(self) -> dict[str, Any]:
        """What the module was built with."""
        return {"share": self.share}

    def forward(self, images: Tensor, generator: torch.Generator | None = None) -> Outcome:
        """Corrupt images (B, 3, H, W), ask for the colours, and say how the answers were, image by image.

        The loss is the cross-entropy of the corrupted patches alone.
        """
        corruption = self.draw(images, generator)
        logits = self.logits(images, corruption)  # (B, N, 512)
        targets = self.targets(images)  # (B, N)
        losses = F.cross_entropy(logits.float().mT, targets, reduction="none")  # (B, N)
        right = (logits.argmax(dim=-1) == targets).float()
        return Outcome(mean_over(losses, corruption.which), mean_over(right, corruption.which))

    def draw(self, images: Tensor, generator: torch.Generator | None = None) -> Corruption:
        """Decide what happens to the patches of images (B, 3, H, W)."""
        rows, columns = self.grid(images)
        return draw_corruption(len(images), rows * columns, self.share, generator, images.device)

    def logits(self, images: Tensor, corruption: Corruption) -> Tensor:
        """Name the colour of every patch of corrupted images, (B, N, 512)."""
        embeddings = corruption.apply(self.vit.patch_embedding(images), self.mask_token)  # (B, N, D)
        encoded = self.encode(self.vit.tokens(embeddings))  # (B, T, D)
        return self.head(encoded[:, int(self.vit.config.class_token) :])

    def targets(self, images: Tensor) -> Tensor:
        """Number the true colours of the patches, (B, N)."""
        return colour_numbers(mean_colours(self.levels(images), self.vit.config.patch_size))

    @torch.no_grad()
    def predict(self, images: Tensor, generator: torch.Generator | None = None) -> Prediction:
        """Corrupt images (B, 3, H, W), answer in evaluation mode, and say all that a figure shows.

        Without a generator the same patches are corrupted each time.
        """
        generator = generator or torch.Generator().manual_seed(MEASURING_SEED)
        with evaluating(self):
            corruption = self.draw(images, generator)
            logits = self.logits(images, corruption).float()
        size = self.vit.config.patch_size
        patches = patchify(self.levels(images) / 255, size)  # (B, N, P^2 3)
        seen = corruption.apply(patches, patches.new_full(patches.shape[-1:], GREY))
        colours = target_colours(logits.argmax(dim=-1)) / 255  # (B, N, 3)
        answer = repeat(colours, "b n c -> b n (p c)", p=size**2)
        pictures = (unpatchify(some, size, self.grid(images)) for some in (seen, answer))
        return Prediction(logits, corruption.which, self.targets(images), *pictures)
