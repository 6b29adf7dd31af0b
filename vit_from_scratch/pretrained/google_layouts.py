"""How Google's archives name and lay out the weights: those of vision_transformer and of big_vision."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.tokens import resize_positions
from vit_from_scratch.model.vit import VisionTransformer

PREFIXES = ("opt/target/", "params/", "")
"""Where an archive may keep the weights: a training state's target, big_vision's parameters, or the top."""

NORMS = {"LayerNorm_0": "attention_norm", "LayerNorm_2": "mlp_norm"}
DENSE = {"MlpBlock_3/Dense_0": "mlp.hidden", "MlpBlock_3/Dense_1": "mlp.output"}
"""Names inside a block of vision_transformer. big_vision numbers the same parts otherwise."""

BIG_VISION = {
    "MultiHeadDotProductAttention_1": "MultiHeadDotProductAttention_0",
    "LayerNorm_2": "LayerNorm_1",
    "MlpBlock_3": "MlpBlock_0",
}
"""From vision_transformer's names of the parts of a block to big_vision's."""

FLAT = "... -> (...)"
"""The change of layout for a norm's scale and bias: published ones may still carry the axes of an image."""

POSITION = "Transformer/posembed_input/pos_embedding"


@dataclass(frozen=True)
class Layout:
    """How an archive differs from vision_transformer's names.

    Attributes:
        prefix: what stands before every name.
        position: its name of the positions.
        big_vision: whether the parts of a block have big_vision's names.
        stacked: whether one array holds a weight of all layers, along its first axis.
    """

    prefix: str
    position: str
    big_vision: bool
    stacked: bool

    @classmethod
    def of(cls, names: Collection[str]) -> "Layout | None":
        """Tell the layout by the names in an archive; None if they are not a ViT's."""
        for prefix in PREFIXES:
            inside = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
            if any(name.startswith("embedding/") for name in inside):
                part = re.compile(r"Transformer/encoderblock(_\d+)?/(MlpBlock_0|MultiHeadDot\w*_0)/")
                big_vision = any(part.match(name) for name in inside)
                short = "pos_embedding" in inside or (big_vision and POSITION not in inside)
                stacked = any(name.startswith("Transformer/encoderblock/") for name in inside)
                return cls(prefix, "pos_embedding" if short else POSITION, big_vision, stacked)
        return None

    def name(self, plain: str) -> str:
        """Return what the archive calls an array that vision_transformer calls `plain`."""
        if plain == POSITION:
            return self.prefix + self.position
        if self.big_vision:
            for theirs, own in BIG_VISION.items():
                plain = re.sub(rf"^(Transformer/encoderblock_\d+/){theirs}(?=/)", rf"\1{own}", plain)
        if self.stacked:
            plain = re.sub(r"^(Transformer/encoderblock)_\d+/", r"\1/", plain)
        return self.prefix + plain


def converted(
    arrays: Mapping[str, np.ndarray], layout: Layout, model: VisionTransformer
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Arrange an archive's arrays as our model holds them.

    Args:
        arrays: by the archive's names, prefix included; all of them numbers.
        layout: the archive's.
        model: whose weights are wanted.

    Returns:
        Tensors by our names; what does not fit its place keeps its shape, and what has no place in the model
        stands, empty, under the archive's name. Then the archive's names for ours, of the missing arrays if
        some are.
    """
    own = model.state_dict()
    done: dict[str, Tensor] = {}
    theirs: dict[str, str] = {}
    used: set[str] = set()
    for ours, plain, pattern in _places(model.config):
        if ours not in own:
            continue
        names = [layout.name(one) for one in plain]
        missing = [name for name in names if name not in arrays]
        together = names[0].replace("/query/", "/{query,key,value}/") if len(names) > 1 else names[0]
        theirs[ours] = ", ".join(missing) if 0 < len(missing) < len(names) else together
        if missing:
            continue
        used.update(names)
        layer = re.match(r"Transformer/encoderblock_(\d+)/", plain[0]) if layout.stacked else None
        parts = [_arranged(arrays[name], pattern, model.config, layer and int(layer[1])) for name in names]
        joins = len(parts) > 1 and len({part.shape for part in parts}) == 1 and parts[0].ndim
        done[ours] = torch.cat(parts) if joins else parts[0]
    if "tokens.position" in done:
        done["tokens.position"] = _positions(done["tokens.position"], model.config)
    left = {name: torch.empty(0) for name in arrays if name not in used}
    return done | left, theirs


def _arranged(array: np.ndarray, pattern: str, config: ViTConfig, layer: int | None) -> Tensor:
    """Turn one array into a tensor of our layout; what does not fit its pattern, or has other heads, stays.

    Args:
        array: the archive's.
        pattern: of `rearrange`; "" to leave it as it is.
        config: the model's.
        layer: which layer to take of an array that holds all of them; None for any other array.
    """
    one_a_layer = layer is None or (array.ndim and len(array) == config.depth)
    array = array[layer] if layer is not None and one_a_layer else array
    tensor = torch.from_numpy(np.asarray(array, dtype=np.float32))
    if not pattern or not one_a_layer:
        return tensor
    axes = pattern.split("->")[0].split()
    heads = [size for axis, size in zip(axes, tensor.shape, strict=False) if axis == "h"]
    fits = axes == ["..."] or (tensor.ndim == len(axes) and heads in ([], [config.heads]))
    return rearrange(tensor, pattern) if fits else tensor


def _positions(position: Tensor, config: ViTConfig) -> Tensor:
    """Bring positions (1, T', D) to the model's grid; a class token that big_vision gives none gets 0."""
    if position.ndim != 3 or position.shape[0] != 1:
        return position
    count = position.shape[1]
    side = round((count - (count**0.5 % 1 != 0)) ** 0.5)
    extra = count - side * side
    if extra not in (0, 1) or not side:
        return position
    position = resize_positions(position, (side, side), config.grid)
    if config.class_token and not extra:
        position = torch.cat([torch.zeros_like(position[:, :1]), position], dim=1)
    return position


def _places(config: ViTConfig) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield each of our names, the arrays of vision_transformer joined in it, and the change of layout."""
    yield "patch_embedding.projection.weight", ("embedding/kernel",), "p1 p2 c d -> d (p1 p2 c)"
    yield "patch_embedding.projection.bias", ("embedding/bias",), ""
    yield "tokens.class_token", ("cls",), ""
    yield "tokens.position", (POSITION,), ""
    if config.stem.kind == "resnet":
        yield from _resnet_places(config)
    norms = {"Transformer/encoder_norm": "encoder.norm"}
    dense = {"pre_logits": "representation.0", "head": "head"}
    for layer in range(config.depth):
        start, ours = f"Transformer/encoderblock_{layer}/", f"encoder.blocks.{layer}."
        norms |= {start + name: ours + own for name, own in NORMS.items()}
        dense |= {start + name: ours + own for name, own in DENSE.items()}
        attention, own = f"{start}MultiHeadDotProductAttention_1/", f"{ours}attention."
        for kind, ending, pattern in (
            ("kernel", "weight", "d h dh -> (h dh) d"),
            ("bias", "bias", "h dh -> (h dh)"),
        ):
            parts = tuple(f"{attention}{part}/{kind}" for part in ("query", "key", "value"))
            yield f"{own}qkv.{ending}", parts, pattern
        yield f"{own}projection.weight", (f"{attention}out/kernel",), "h dh d -> d (h dh)"
        yield f"{own}projection.bias", (f"{attention}out/bias",), ""
    for plain, ours in dense.items():
        yield f"{ours}.weight", (f"{plain}/kernel",), "i o -> o i"
        yield f"{ours}.bias", (f"{plain}/bias",), ""
    for plain, ours in norms.items():
        yield f"{ours}.weight", (f"{plain}/scale",), FLAT
        yield f"{ours}.bias", (f"{plain}/bias",), FLAT


def _resnet_places(config: ViTConfig) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The same for a hybrid's ResNet."""
    pairs = [("conv_root", "root"), ("gn_root", "root_norm")]
    for stage, units in enumerate(config.stem.layers):
        for unit in range(units):
            plain, own = f"block{stage + 1}/unit{unit + 1}/", f"stages.{stage}.{unit}."
            for number in (1, 2, 3):
                pairs += [(f"{plain}conv{number}", f"{own}conv{number}")]
                pairs += [(f"{plain}gn{number}", f"{own}norm{number}")]
            pairs += [(f"{plain}conv_proj", f"{own}shortcut"), (f"{plain}gn_proj", f"{own}shortcut_norm")]
    for plain, own in pairs:
        ours = f"patch_embedding.{own}"
        if "conv" in plain.split("/")[-1]:
            yield f"{ours}.weight", (f"{plain}/kernel",), "kh kw i o -> o i kh kw"
        else:
            yield f"{ours}.weight", (f"{plain}/scale",), FLAT
            yield f"{ours}.bias", (f"{plain}/bias",), FLAT
