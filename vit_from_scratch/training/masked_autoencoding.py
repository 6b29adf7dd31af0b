"""Masked autoencoding of pixels: not the paper's, but what came after it (MAE, He et al., 2022).

Three quarters of the patches are hidden. The encoder sees only the others, which makes a step cheap, and a
small decoder paints what is hidden. It asks for pixels where `masked_patches` asks for one colour a patch.
"""

import torch
from torch import Tensor, nn

from vit_from_scratch.data.normalisation import NORMALISATIONS, Normalisation
from vit_from_scratch.errors import InputError
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.encoder import Encoder
from vit_from_scratch.model.patches import lecun_normal_, patchify, unpatchify
from vit_from_scratch.model.tokens import sincos_2d
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.settings import require
from vit_from_scratch.training.self_supervised import (
    GREY,
    Outcome,
    Prediction,
    SelfSupervised,
    choose_patches,
    hidden_count,
    mean_over,
)

SMALLEST_VARIANCE = 1e-6
"""Added to a patch's variance, so that a patch of one colour does not divide by zero."""


def standardised_patches(images: Tensor, patch_size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Bring the pixels of each patch to mean 0 and variance 1, all channels of (B, C, H, W) together.

    Returns:
        The patches (B, N, P^2 C), and their means and standard deviations, (B, N, 1) each.
    """
    patches = patchify(images, patch_size)  # (B, N, P^2 C)
    mean = patches.mean(dim=-1, keepdim=True)
    std = (patches.var(dim=-1, keepdim=True, correction=0) + SMALLEST_VARIANCE).sqrt()
    return (patches - mean) / std, mean, std


class MaskedAutoencoder(SelfSupervised):
    """A ViT that sees a quarter of an image, and a small decoder that paints the rest (He et al., 2022).

    The decoder is a stack of plain blocks on all places of the grid: what the encoder made of the visible
    patches, one shared mask token elsewhere, and fixed positions. It is not needed after pre-training.

    Args:
        vit: what is pre-trained, with or without class token.
        normalise: how images were scaled for it; only figures undo it.
        share: of an image's patches that are hidden.
        decoder_dim: the decoder's width, a multiple of 4 and of its heads.
        decoder_depth: its blocks.
        decoder_heads: attention heads of each.

    Raises:
        InputError: another stem than plain patches, an MLP with locality, which needs the whole grid,
            positions that are relative or not at the stem alone, sizes that do not fit together, or a share
            that does not fit.
    """

    objective = "masked-pixels"

    def __init__(
        self,
        vit: VisionTransformer,
        normalise: Normalisation = NORMALISATIONS["half"],
        share: float = 0.75,
        decoder_dim: int = 96,
        decoder_depth: int = 2,
        decoder_heads: int = 3,
    ) -> None:
        super().__init__(vit, normalise, share)
        config = vit.config
        if config.position == "relative" or config.position_at != "stem":
            raise InputError(
                f"masked pixels with position = {config.position!r}, position_at = {config.position_at!r}: "
                "expected positions at the stem alone, since a layer sees only some of the patches."
            )
        if config.mlp != "dense":
            raise InputError(
                f"masked pixels with mlp = {config.mlp!r}: expected 'dense', since neighbours are missing "
                "where patches are hidden; choose that, or masked patches."
            )
        fits = decoder_heads >= 1 and decoder_dim >= 1 and decoder_dim % 4 == decoder_dim % decoder_heads == 0
        expected = f"a multiple of 4 and of decoder_heads = {decoder_heads}"
        require(fits, "decoder_dim", decoder_dim, expected)
        require(decoder_depth >= 1, "decoder_depth", decoder_depth, "at least 1")
        sizes = {"dim": decoder_dim, "depth": decoder_depth, "heads": decoder_heads}
        self.settings |= {f"decoder_{name}": size for name, size in sizes.items()}
        places = {"image_size": config.image_size, "patch_size": config.patch_size, "position": "sincos_2d"}
        decoder = ViTConfig.from_dict({"mlp_dim": 4 * decoder_dim} | places | sizes)
        self.to_decoder = nn.Linear(config.dim, decoder_dim)
        self.mask_token = nn.Parameter(torch.empty(decoder_dim))
        self.decoder = Encoder(decoder)
        self.to_pixels = nn.Linear(decoder_dim, config.patch_values)
        nn.init.normal_(self.mask_token, std=0.02)
        for layer in (self.to_decoder, self.to_pixels):
            lecun_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, images: Tensor, generator: torch.Generator | None = None) -> Outcome:
        """Hide patches of images (B, C, H, W), paint them, and say how far off they are, image by image.

        The loss is the mean squared error of the hidden patches alone, each against its own pixels at mean 0
        and variance 1: one flat tone, its own mean, gives a loss of nearly 1.
        """
        hidden = self.draw(images, generator)
        painted = self.decode(self.see(images, hidden), hidden, self.grid(images))  # (B, N, P^2 C)
        wanted, _, _ = standardised_patches(images, self.patch_size)
        errors = (painted.float() - wanted).square().mean(dim=-1)  # (B, N)
        return Outcome(mean_over(errors, hidden), None)

    def draw(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Decide which patches of images (B, C, H, W) are hidden, (B, N)."""
        rows, columns = self.grid(images)
        return choose_patches(len(images), rows * columns, self.share, generator, images.device)

    def see(self, images: Tensor, hidden: Tensor) -> Tensor:
        """Encode the class token, if any, and the visible patches alone, at their places, (B, T, D)."""
        tokens = self.vit.tokens(self.vit.patch_embedding(images))  # (B, 1 + N, D)
        first, patches = self._split(tokens)
        places = self._visible(hidden)[..., None].expand(-1, -1, patches.shape[-1])
        return self.encode(torch.cat([first, patches.gather(1, places)], dim=1))

    def decode(self, encoded: Tensor, hidden: Tensor, grid: tuple[int, int]) -> Tensor:
        """Paint every patch of a grid (gh, gw), (B, N, P^2 C), from the encoded visible ones."""
        first, visible = self._split(self.to_decoder(encoded))
        batch, _, width = visible.shape
        masks = self.mask_token.to(visible.dtype).expand(batch, grid[0] * grid[1], width)
        places = self._visible(hidden)[..., None].expand(-1, -1, width)
        position = sincos_2d(grid, width, device=visible.device).to(visible.dtype)  # (N, width)
        patches = masks.scatter(1, places, visible) + position
        return self.to_pixels(self._split(self.decoder(torch.cat([first, patches], dim=1)))[1])

    def _split(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Split the class token, (B, 1, D) or (B, 0, D), from the patches."""
        start = int(self.vit.config.class_token)
        return tokens[:, :start], tokens[:, start:]

    def _visible(self, hidden: Tensor) -> Tensor:
        """Return the places of the visible patches in their order, (B, visible); every image has as many."""
        visible = hidden.shape[1] - hidden_count(self.share, hidden.shape[1])
        return hidden.int().argsort(dim=1, stable=True)[:, :visible]

    def pictures(self, images: Tensor, generator: torch.Generator) -> Prediction:
        """Hide patches of images (B, C, H, W), paint them, and draw the others as they are.

        The decoder paints at mean 0 and variance 1. For the picture a painted patch gets the mean and
        standard deviation of the true one, which the model does not know: its brightness is given, its
        pattern is the model's.
        """
        size, grid, hidden = self.patch_size, self.grid(images), self.draw(images, generator)
        painted = self.decode(self.see(images, hidden), hidden, grid).float()
        _, mean, std = standardised_patches(images, size)
        answer = torch.where(hidden[..., None], painted * std + mean, patchify(images, size))
        seen = patchify(self.normalise.undo(images), size).masked_fill(hidden[..., None], GREY)
        picture = self.normalise.undo(unpatchify(answer, size, grid))
        return Prediction(hidden, unpatchify(seen, size, grid), picture)
