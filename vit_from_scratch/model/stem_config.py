"""How an image becomes embeddings: the options of a stem, and of ResNets."""

import dataclasses
from typing import Literal

from vit_from_scratch.errors import InputError
from vit_from_scratch.settings import check_fields, from_table, require


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResNetConfig:
    """The stages of a ResNet with GroupNorm and standardised filters: a hybrid's stem or a model of its own.

    Args:
        width: channels after the root; each stage after the first doubles the width of its units.
        layers: residual units in each stage.
        root_stride: 4 for the usual root, 1 for small images.
        norm_eps: added to the variance in every GroupNorm; timm has 1e-5.
        conv_eps: added in weight standardisation; timm's hybrids have 1e-8.
        eps_on_variance: whether that is added to the variance, as timm does, not to the standard deviation.

    Raises:
        InputError: a value is not allowed, or two values contradict each other.
    """

    width: int = 64
    layers: tuple[int, ...] = (3, 4, 9)
    root_stride: Literal[1, 4] = 4
    norm_eps: float = 1e-6
    conv_eps: float = 1e-5
    eps_on_variance: bool = False

    def __post_init__(self) -> None:
        """Raise an `InputError` for what cannot be built."""
        check_fields(self, "model.stem")
        units, stages = self.layers, "1 to 1,000 units a stage, and at most 11 stages"
        fits = 1 <= len(units) <= 11 and min(units) >= 1 and max(units) <= 1000
        require(fits, "model.stem.layers", units, stages)
        require(1 <= self.width <= 2**16, "model.stem.width", self.width, "at least 1, at most 65,536")
        for name in ("norm_eps", "conv_eps"):
            require(getattr(self, name) > 0, f"model.stem.{name}", getattr(self, name), "a number above 0")
        self._check_groups()

    @property
    def stride(self) -> int:
        """Pixels between two places of the last feature map; every stage after the first doubles them."""
        return self.root_stride * 2 ** (len(self.layers) - 1)

    @property
    def channels(self) -> int:
        """Channels of the last feature map."""
        return 4 * self.width * 2 ** (len(self.layers) - 1)

    def _check_groups(self) -> None:
        """Refuse channels that GroupNorm cannot share out over its 32 groups."""
        for channels in (self.width * 2**doubled for doubled in range(len(self.layers) + 2)):
            if channels > 32 and channels % 32:
                raise InputError(
                    f"model.stem.width = {self.width} gives a layer of {channels} channels: expected at most "
                    "32 or a multiple of 32, the groups of GroupNorm; take 8, 16, 32 or 64."
                )


@dataclasses.dataclass(frozen=True)
class StemConfig(ResNetConfig):
    """What stands between the image and the encoder.

    Args:
        kind: ``"patch"``, one linear layer (eq. 1); ``"resnet"``: the hybrid of section 3.1 (chapter 7), with
            the options of a :class:`ResNetConfig`, whose stride is the patch size; ``"conv"``: a few 3 x 3
            convolutions, not the paper's (Xiao et al., 2021; chapter 9), of which ``width`` is the number of
            channels after the first, and each further one doubles it.
    """

    kind: Literal["patch", "conv", "resnet"] = "patch"

    def __post_init__(self) -> None:
        """Refuse what cannot be built, and options that the kind would ignore."""
        super().__post_init__()
        read = {"patch": ("kind",), "conv": ("kind", "width")}.get(self.kind)
        for field in dataclasses.fields(self):
            if read and field.name not in read and getattr(self, field.name) != field.default:
                kinds = "'conv' or 'resnet'" if field.name == "width" else "'resnet'"
                raise InputError(
                    f"model.stem.{field.name} = {getattr(self, field.name)} with stem.kind = {self.kind!r}, "
                    f"which has no such option: expected stem.kind = {kinds}, or {field.name} left out."
                )

    @classmethod
    def named(cls, kind: str) -> "StemConfig":
        """Return a stem of a kind, or raise an `InputError`; the rest has the usual values."""
        return from_table(cls, {"kind": kind}, "model.stem")

    def check_patch_size(self, patch_size: int) -> None:
        """Raise an `InputError` for a patch size that this stem cannot make."""
        if self.kind == "resnet" and patch_size != self.stride:
            raise InputError(
                f"stem='resnet' with patch_size {patch_size}: expected {self.stride}, the stride of a root "
                f"of {self.root_stride} and {len(self.layers)} stages; change patch_size or stem.layers."
            )
        if self.kind == "conv" and patch_size & (patch_size - 1):
            raise InputError(
                f"stem='conv' with patch_size {patch_size}: expected a power of two, because every further "
                "convolution halves the image; change patch_size or take stem='patch'."
            )

    def _check_groups(self) -> None:
        if self.kind == "resnet":
            super()._check_groups()
