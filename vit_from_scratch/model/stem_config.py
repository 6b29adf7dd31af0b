"""How an image becomes embeddings: the options of a stem, which a plain ViT never needs."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from vit_from_scratch.errors import InputError
from vit_from_scratch.settings import check_fields, from_table, require


@dataclasses.dataclass(frozen=True)
class StemConfig:
    """What stands between the image and the encoder.

    Args:
        kind: ``"patch"``, one linear layer (eq. 1); ``"resnet"``: the hybrid of section 3.1 (chapter 7);
            ``"conv"``: a few 3 x 3 convolutions, not the paper's (Xiao et al., 2021; chapter 9).
        width: channels after the first convolution; each further one, or stage, doubles them.
        layers: residual units in each stage of a ``"resnet"``.
        root_stride: 4 for the ResNet's usual root, 1 for small images; with a factor of 2 for each stage but
            the first it makes the patch size.
        norm_eps: added to the variance in every GroupNorm of a ``"resnet"``; timm has 1e-5.
        conv_eps: added in weight standardisation; timm has 1e-8.
        eps_on_variance: whether that is added to the variance, as timm does, not to the deviation.

    Raises:
        InputError: for values that do not fit together, or that no option has.
    """

    kind: Literal["patch", "conv", "resnet"] = "patch"
    width: int = 64
    layers: tuple[int, ...] = (3, 4, 9)
    root_stride: Literal[1, 4] = 4
    norm_eps: float = 1e-6
    conv_eps: float = 1e-5
    eps_on_variance: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be built, in one sentence each."""
        check_fields(self, "model.stem")
        require(1 <= self.width <= 2**16, "model.stem.width", self.width, "at least 1, at most 65,536")
        units = self.layers
        require(
            1 <= len(units) <= 11 and min(units) >= 1 and max(units) <= 1000,
            "model.stem.layers",
            units,
            "1 to 1,000 units a stage, and at most 11 stages",
        )
        for name in ("norm_eps", "conv_eps"):
            require(getattr(self, name) > 0, f"model.stem.{name}", getattr(self, name), "a number above 0")
        if self.kind == "resnet":
            self._check_groups()

    @classmethod
    def named(cls, kind: str) -> "StemConfig":
        """Return a stem of a kind with the usual values for the rest.

        Raises:
            InputError: an unknown kind.
        """
        return from_table(cls, {"kind": kind}, "model.stem")

    def check_patch_size(self, patch_size: int) -> None:
        """Raise an `InputError` for a patch size that this stem cannot make."""
        stride = self.root_stride * 2 ** (len(self.layers) - 1)
        if self.kind == "resnet" and patch_size != stride:
            raise InputError(
                f"stem='resnet' with patch_size {patch_size}: expected {stride}, the stride of a root"
                f" of {self.root_stride} and {len(self.layers)} stages, as its places are "
                "the patches; change patch_size or stem.layers."
            )
        if self.kind == "conv" and patch_size & (patch_size - 1):
            raise InputError(
                f"stem='conv' with patch_size {patch_size}: expected a power of two, because every "
                "further convolution halves the image; change patch_size or take stem='patch'."
            )

    def _check_groups(self) -> None:
        """Refuse a ResNet whose channels GroupNorm cannot share out over its 32 groups."""
        for stage in range(len(self.layers)):
            for channels in (self.width * 2**stage, 4 * self.width * 2**stage):
                if channels > 32 and channels % 32:
                    raise InputError(
                        f"model.stem.width = {self.width} gives a layer of {channels} channels: expected at "
                        "most 32 or a multiple of 32, the groups of GroupNorm; take 8, 16, 32 or 64."
                    )


def with_stem_table(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return a [model] table whose stem has a table of its own.

    Files of the first version have `stem = "conv"` beside `stem_width = 32`, and so on. A table that is
    written as today comes back as it is.
    """
    old = {field.name: f"stem_{field.name}" for field in dataclasses.fields(StemConfig)}
    flat = {name: model[key] for name, key in old.items() if key in model}
    if not flat or isinstance(model.get("stem"), Mapping):
        return dict(model)
    rest = {key: value for key, value in model.items() if key not in old.values() and key != "stem"}
    return rest | {"stem": {"kind": model.get("stem", "patch"), **flat}}
