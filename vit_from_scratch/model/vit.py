"""Chapter 5: the whole Vision Transformer, from pixels to logits."""

import dataclasses
from typing import Any

from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_image_type, require_tensor
from vit_from_scratch.model.config import ViTConfig, variant_config
from vit_from_scratch.model.patches import lecun_normal_
from vit_from_scratch.model.tokens import TokenSequence
from vit_from_scratch.model.variants import build_encoder, build_stem
from vit_from_scratch.settings import require


class VisionTransformer(nn.Module):
    """The model of section 3.1 and Figure 1: patches, tokens, encoder, head.

    Args:
        config: all sizes and options; `build_model` makes one from a name such as "B/16".
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        require(isinstance(config, ViTConfig), "config", config, "a ViTConfig; build_model('B/16') makes one")
        self.config = config
        self.image_shape = config.image_shape
        self.patch_embedding = build_stem(config)  # a PatchEmbedding, in the plain model
        self.tokens = TokenSequence(config)
        self.encoder = build_encoder(config, self.tokens)  # an Encoder of plain blocks
        pooled = config.norm == "pooled"
        self.pooled_norm = nn.LayerNorm(config.dim, eps=config.layer_norm_eps) if pooled else nn.Identity()
        width = config.representation_size or config.dim
        self.representation: nn.Module = nn.Identity()
        if config.representation_size is not None:
            dense = nn.Linear(config.dim, width)
            lecun_normal_(dense.weight)
            nn.init.zeros_(dense.bias)
            self.representation = nn.Sequential(dense, nn.Tanh())
        self.head = nn.Linear(width, config.num_classes)
        self.reset_head()

    def reset_head(self) -> None:
        """Zero the head (section 3.2): an untrained model gives every class the same logit, 0."""
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns (gh, gw) of the patches of the images that the model takes now."""
        return self.image_shape[0] // self.config.patch_size, self.image_shape[1] // self.config.patch_size

    def resize_input(self, image_size: int | tuple[int, int]) -> None:
        """Take images of another size from now on, as a curriculum on the image size does (chapter 9).

        No weight changes: positions stay those of ``config.image_size`` and are interpolated on the way.

        Args:
            image_size: side in pixels, or (H, W), in whole patches and of the same proportions.

        Raises:
            InputError: for a size that does not fit.
        """
        config = dataclasses.replace(self.config, image_size=image_size)
        (rows, columns), (own_rows, own_columns) = config.grid, self.config.grid
        if rows * own_columns != columns * own_rows:
            raise InputError(
                f"image_size {image_size}: expected the proportions of {self.config.image_shape}, which the "
                "model was built for; crop or resize them, or take a copy, adapted(..., keep_head=True)."
            )
        if self.config.position == "relative" and config.grid != self.config.grid:
            raise InputError(
                f"image_size {image_size} with relative positions: expected {self.config.image_size}, the "
                "size for which they are learned; resize the images."
            )
        self.image_shape = config.image_shape

    def forward(
        self, images: Tensor, return_intermediates: bool = False
    ) -> Tensor | tuple[Tensor, dict[str, Any]]:
        """Classify images.

        Args:
            images: (B, C, H, W) floats of the size, channels and type that the model has.
            return_intermediates: also return what happened on the way, by name (and keep it all in memory).

        Returns:
            Logits (B, K); with ``return_intermediates`` a pair of the logits and a dictionary of
            ``"patches"`` (B, N, D), ``"tokens"`` z_0 (B, T, D), ``"attention"``: L times (B, h, T, T),
            ``"layers"``: L times z_l (B, T, D), ``"encoded"`` (B, T, D) and ``"features"``, which the
            head reads (B, D or the representation's width).

        Raises:
            InputError: for images of another size, channel count, type or device, or for no tensor at all.
        """
        self.check_images(images)
        intermediates: dict[str, Any] | None = {} if return_intermediates else None
        patches = self.patch_embedding(images)  # (B, N, D)
        tokens = self.tokens(patches)  # (B, T, D)
        encoded = self.encoder(tokens, intermediates)  # (B, T, D)
        features = self.representation(self.pooled_norm(self.pool(encoded)))  # (B, D)
        logits = self.head(features)  # (B, K)
        if intermediates is None:
            return logits
        intermediates.update(patches=patches, tokens=tokens, encoded=encoded, features=features)
        return logits, intermediates

    def pool(self, encoded: Tensor) -> Tensor:
        """Reduce the tokens (B, T, D) to the vector that the head reads (B, D)."""
        if self.config.pool == "cls":
            return encoded[:, 0]  # equation 4
        return encoded[:, int(self.config.class_token) :].mean(dim=1)

    def check_images(self, images: Tensor) -> None:
        """Raise an `InputError` unless these are images (B, C, H, W) that the model takes."""
        expected = (self.config.channels, *self.image_shape)
        shape = f"(B, {', '.join(map(str, expected))})"
        require_tensor(images, "images", shape)
        if images.ndim != 4 or tuple(images.shape[1:]) != expected:
            raise InputError(
                f"images of shape {tuple(images.shape)}: expected {shape}, which the model was built for; "
                "resize or convert the images (one alone: image[None]), or build the model for theirs."
            )
        weight = getattr(self.head, "weight", None)
        if not isinstance(weight, Tensor):  # another head was put in its place
            weight = next(self.parameters())
        require_image_type(images, weight)
        if images.device != weight.device and not weight.is_meta:  # offloaded weights are on the meta device
            raise InputError(
                f"images on {images.device}: expected {weight.device}, where the model's weights are; move "
                "one with .to(device)."
            )


def build_model(
    variant: str, image_size: int | tuple[int, int] = 224, num_classes: int = 1000, **overrides: Any
) -> VisionTransformer:
    """Build a model by its name in the paper.

    Args:
        variant: a size of Ti, S, B, L, H and a patch size, for instance ``"B/16"`` (Table 1), or a hybrid
            with a ResNet-50 at stride 16 or 32, for instance ``"R50+B/16"`` (section 3.1).
        image_size: side of the input in pixels, or (H, W).
        num_classes: classes K.
        **overrides: fields of :class:`ViTConfig` that differ from the variant's.

    Raises:
        InputError: for an unknown variant or option, or values that do not fit together.
    """
    return VisionTransformer(
        variant_config(variant, image_size=image_size, num_classes=num_classes, **overrides)
    )
