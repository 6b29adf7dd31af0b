"""What a Vision Transformer is made of: one frozen, validated description, and the named sizes."""

import dataclasses
import math
import re
from typing import Any, Literal

from vit_from_scratch.errors import InputError, shown
from vit_from_scratch.model.stem_config import StemConfig
from vit_from_scratch.settings import as_table, check_fields, from_table, merged, require

#: Sizes by name. B, L and H are Table 1 of the paper; Ti and S come from DeiT (Touvron et al., 2021).
SIZES: dict[str, dict[str, int]] = {
    "Ti": {"depth": 12, "dim": 192, "mlp_dim": 768, "heads": 3},
    "S": {"depth": 12, "dim": 384, "mlp_dim": 1536, "heads": 6},
    "B": {"depth": 12, "dim": 768, "mlp_dim": 3072, "heads": 12},
    "L": {"depth": 24, "dim": 1024, "mlp_dim": 4096, "heads": 16},
    "H": {"depth": 32, "dim": 1280, "mlp_dim": 5120, "heads": 16},
}

#: How large a size may be: far above any model, and below what overflows the 63 bits of a tensor's size.
LARGEST = {"image_size": 2**16, "patch_size": 2**12, "channels": 2**12, "depth": 1000}
LARGEST |= dict.fromkeys(("dim", "heads", "mlp_dim", "num_classes", "representation_size"), 2**20)

#: Stages of the hybrids' ResNet-50 by stride. At 16 the last stage's units have moved into the one before.
RESNET_50: dict[int, tuple[int, ...]] = {16: (3, 4, 9), 32: (3, 4, 6, 3)}


@dataclasses.dataclass(frozen=True)
class ViTConfig:
    """Everything that decides the shape of a Vision Transformer (section 3.1 of the paper).

    Args:
        image_size: side of the square input in pixels, or (H, W); (s, s) is stored as s.
        patch_size: side P of a patch in pixels; it must divide H and W.
        channels: channels C of the input.
        dim: width D of a token.
        depth: number L of encoder blocks; 0 leaves the stem, its mean over all places and the head.
        heads: attention heads h; they must divide ``dim``.
        mlp_dim: hidden width M of the MLP.
        num_classes: classes K.
        dropout: probability of setting a value to 0: where the positions have been added at the stem, and
            after the attention's projection, the MLP's GELU and its second layer (appendix B.1).
        class_token: whether a learnable class token stands before the patches (eq. 1).
        pool: what the head reads: the class token (``"cls"``, eq. 4) or the mean of the patch tokens
            (``"gap"``, appendix D.3).
        norm: the LayerNorm before the head: on all tokens before pooling (``"final"``, eq. 4), on the
            pooled vector (``"pooled"``), or absent (``"none"``).
        position: ``"learned"`` vectors, one per token (eq. 1); ``"learned_2d"``: one per row plus one
            per column (appendix D.4 joins two of half the width instead); ``"sincos_2d"``: fixed sines and
            cosines, not the paper's; ``"relative"``: none are added, and every score also depends on how
            far apart the two tokens stand in the sequence; ``"none"`` (appendix D.4).
        position_at: where learned positions are added (appendix D.4): to the tokens before the encoder
            (``"stem"``, eq. 1), before every layer, each with its own (``"every_layer"``), or the same
            ones before every layer (``"every_layer_shared"``).
        representation_size: width of the hidden tanh layer before the head, as in pre-training
            (section 3.1); None for a single linear layer, as in fine-tuning.
        qkv_bias: whether queries, keys and values have a bias.
        layer_norm_eps: added to the variance in every LayerNorm.
        gelu: the exact form (``"erf"``) or the approximation that the released JAX weights were
            trained with (``"tanh"``).
        stem: how an image becomes embeddings, a :class:`StemConfig`, or its kind alone: ``"patch"`` (eq. 1),
            ``"resnet"`` (the hybrid of section 3.1) or ``"conv"``.
        mlp: ``"dense"``, or ``"local"``: a depth-wise 3 x 3 convolution over the patch grid between its
            two layers, not the paper's (after Irandoust et al., 2022; chapter 9).
        stochastic_depth: probability of skipping the last block's attention, and its MLP, for an image in
            training; it grows linearly from 0 in the first block (Huang et al., 2016, skip that, too).
        qk_norm: whether queries and keys are brought to a root mean square of 1 before they are compared, not
            the paper's (Henry et al., 2020; without learned factors).
        initialisation: how attention begins: ``"xavier"`` as in the reference code, or ``"mimetic"``, not the
            paper's: products of its weights close to the identity (Trockman and Kolter, 2023; chapter 9).

    Raises:
        InputError: a value is not allowed, or two values contradict each other.
    """

    image_size: int | tuple[int, int] = 224
    patch_size: int = 16
    channels: int = 3
    dim: int = 768
    depth: int = 12
    heads: int = 12
    mlp_dim: int = 3072
    num_classes: int = 1000
    dropout: float = 0.0
    class_token: bool = True
    pool: Literal["cls", "gap"] = "cls"
    norm: Literal["final", "pooled", "none"] = "final"
    position: Literal["learned", "learned_2d", "sincos_2d", "relative", "none"] = "learned"
    position_at: Literal["stem", "every_layer", "every_layer_shared"] = "stem"
    representation_size: int | None = None
    qkv_bias: bool = True
    layer_norm_eps: float = 1e-6
    gelu: Literal["erf", "tanh"] = "erf"
    stem: StemConfig = dataclasses.field(default_factory=StemConfig)
    mlp: Literal["dense", "local"] = "dense"
    stochastic_depth: float = 0.0
    qk_norm: bool = False
    initialisation: Literal["xavier", "mimetic"] = "xavier"

    def __post_init__(self) -> None:
        """Raise an `InputError` for what cannot be built."""
        check_fields(self, "model")
        for name, most in LARGEST.items():
            value = getattr(self, name)
            sizes = value if isinstance(value, tuple) else (value,)
            least = 0 if name == "depth" else 1  # without a block, a ResNet's stem alone classifies
            fits = all(size is None or least <= size <= most for size in sizes)
            require(fits, f"model.{name}", value, f"at least {least}, at most {most:,}")
        for name in ("dropout", "stochastic_depth"):
            value = getattr(self, name)
            require(0 <= value < 1, f"model.{name}", value, "a probability from 0 to below 1")
        eps = self.layer_norm_eps
        require(eps > 0, "model.layer_norm_eps", eps, "a number above 0, say 1e-6")
        height, width = self.image_shape
        if height == width:
            object.__setattr__(self, "image_size", height)  # frozen, and not yet in use
        if height % self.patch_size or width % self.patch_size:
            near = _divisors(math.gcd(height, width), self.patch_size)
            raise InputError(
                f"patch_size {self.patch_size} does not divide the image size {height} x {width}: "
                f"expected one of {near}; change patch_size or resize the images."
            )
        if self.dim % self.heads:
            near = _divisors(self.dim, self.heads)
            raise InputError(
                f"heads={self.heads} does not divide dim={self.dim}: expected one of {near}, because every "
                "head gets dim / heads values; change heads or dim."
            )
        if self.pool == "cls" and not self.class_token:
            raise InputError(
                "pool='cls' reads the class token, but class_token=False leaves none: "
                "set pool='gap' or class_token=True."
            )
        expected = "at least 1 with pool='cls', as the class token sees no patch without a block"
        require(self.depth > 0 or self.pool == "gap", "model.depth", self.depth, expected)
        self.stem.check_patch_size(self.patch_size)
        learned = self.position in ("learned", "learned_2d")
        expected = f"'stem' with position={self.position!r}, since only learned positions are added again"
        require(learned or self.position_at == "stem", "model.position_at", self.position_at, expected)
        if self.position == "sincos_2d" and self.dim % 4:
            raise InputError(
                f"position='sincos_2d' with dim={self.dim}: expected a multiple of 4; change dim or position."
            )

    @property
    def image_shape(self) -> tuple[int, int]:
        """Height and width of the input in pixels, (H, W)."""
        return self.image_size if isinstance(self.image_size, tuple) else (self.image_size, self.image_size)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the patch grid, (gh, gw)."""
        height, width = self.image_shape
        return height // self.patch_size, width // self.patch_size

    @property
    def num_patches(self) -> int:
        """Patches of an image, N = gh gw."""
        rows, columns = self.grid
        return rows * columns

    @property
    def num_tokens(self) -> int:
        """Length of the sequence that the encoder sees: T = N + 1 with a class token, else N."""
        return self.num_patches + int(self.class_token)

    @property
    def patch_values(self) -> int:
        """Numbers in one flattened patch, P^2 C."""
        return self.patch_size**2 * self.channels

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON or TOML; a field that is None is left out."""
        return as_table(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "ViTConfig":
        """Build a configuration from plain values; an `InputError` names a field that is wrong."""
        return from_table(cls, fields, "model")


def _divisors(number: int, near: int) -> str:
    """List the divisors of a number that are nearest to another, a dozen at most."""
    small = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    divisors = {*small, *(number // divisor for divisor in small)}
    nearest = sorted(divisors, key=lambda divisor: abs(divisor - near))[:12]
    return ", ".join(map(str, sorted(nearest)))


def variant_config(name: str, **overrides: Any) -> ViTConfig:
    """Turn a name such as ``"B/16"`` or ``"R50+B/16"`` into a configuration.

    Names, `overrides` and errors are those of `build_model`.
    """
    match = re.fullmatch(r"(R50\+)?([A-Za-z]+)/(\d{1,9})", str(name))
    if match is None or match[2] not in SIZES or (match[1] and int(match[3]) not in RESNET_50):
        raise InputError(
            f"unknown variant {shown(name)}: expected a size ({', '.join(SIZES)}), a slash and a patch size "
            "in pixels, for instance 'B/16'; or a hybrid at stride 16 or 32, for instance 'R50+B/16'."
        )
    stem = {"stem": {"kind": "resnet", "layers": RESNET_50[int(match[3])]}} if match[1] else {}
    named = {"patch_size": int(match[3]), **stem, **SIZES[match[2]]}
    return ViTConfig.from_dict(merged(named, overrides))
