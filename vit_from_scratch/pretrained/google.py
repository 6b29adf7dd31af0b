"""Google's published weights (.npz) in our model: as vision_transformer and as big_vision lay them out."""

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from einops import EinopsError, rearrange
from torch import Tensor

from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.model.checkpoints import tensor_mismatches
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.tokens import resize_positions
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained.conversion import residual_parts

Archive = Mapping[str, tuple[np.ndarray, str]]  # by vision_transformer's names, each with the file's own

BLOCK, OURS = "Transformer/encoderblock_{}/", "encoder.blocks.{}."
DENSE, CONV, FLAT = "i o -> o i", "kh kw i o -> o i kh kw", "... -> (...)"
PARTS = (
    ("embedding", "patch_embedding.projection", "p1 p2 c d -> d (p1 p2 c)"),
    (BLOCK + "LayerNorm_0", OURS + "attention_norm", FLAT),
    (BLOCK + "MultiHeadDotProductAttention_1/query", OURS + "attention.qkv", "d h dh -> (h dh) d"),
    (BLOCK + "MultiHeadDotProductAttention_1/out", OURS + "attention.projection", "h dh d -> d (h dh)"),
    (BLOCK + "LayerNorm_2", OURS + "mlp_norm", FLAT),
    (BLOCK + "MlpBlock_3/Dense_0", OURS + "mlp.hidden", DENSE),
    (BLOCK + "MlpBlock_3/Dense_1", OURS + "mlp.output", DENSE),
    ("Transformer/encoder_norm", "encoder.norm", FLAT),
    ("pre_logits", "representation.0", DENSE),
    ("head", "head", DENSE),
)
"""vision_transformer's name of a part, ours, and the change of layout of its kernel, or `FLAT` for a norm's
scale, as for every bias. With a query come the key and the value."""

POSITION = "Transformer/posembed_input/pos_embedding"

BIG_VISION = {
    "MultiHeadDotProductAttention_0/": "MultiHeadDotProductAttention_1/",
    "LayerNorm_1/": "LayerNorm_2/",
    "MlpBlock_0/": "MlpBlock_3/",
}
"""From big_vision's names of the parts of a block to vision_transformer's."""


def load_google_npz(model: VisionTransformer, path: str | os.PathLike[str]) -> None:
    """Fill a model with weights as Google publishes them; either all are taken or none.

    It reads the layouts of vision_transformer (also under `opt/target/`, with or without `pre_logits`) and of
    big_vision (under `params/`, blocks one by one or stacked along a first axis). Positions are interpolated
    if the model's grid is another. Those weights were trained with the tanh form of GELU and images scaled to
    [-1, 1]: build the model so, with the file's sizes, as `build_model("B/16", num_classes=21843,
    gelu="tanh")`; the loader never changes them, nor the model's mode.

    Raises:
        InputError: no such file, no such layout, or arrays that are missing, left over or of another shape,
            by name; the model is then as it was. Pickled arrays are refused, not opened. So is a model with
            fixed positions, which no file holds: big_vision's have columns first, ours rows.
    """
    if model.config.position == "sincos_2d":
        raise InputError(
            "position='sincos_2d' in a model for Google's weights: expected learned positions or none. "
            "Theirs are laid out otherwise (columns first), so the same weights would compute something else."
        )
    archive, own = _read(Path(path)), model.state_dict()
    tensors: dict[str, Tensor] = {}
    theirs: dict[str, str] = {}
    left_over = set(archive)
    for names, ours, pattern in _places(model.config):
        missing = [name for name in names if name not in archive]
        theirs[ours] = ", ".join(missing or [archive[name][1] for name in names])
        if not missing and ours in own:
            parts = [_arranged(archive[name][0], pattern, model.config.heads) for name in names]
            fit = len({part.shape for part in parts}) == 1 and parts[0].ndim
            tensors[ours] = torch.cat(parts) if fit else parts[0]
            left_over.difference_update(names)
    if "tokens.position" in tensors:
        tensors["tokens.position"] = _positions(tensors["tokens.position"], model.config)
    tensors |= {archive[name][1]: torch.empty(0) for name in sorted(left_over)}
    if problems := tensor_mismatches(tensors, own, theirs):
        raise InputError(
            f"{path} does not fit the model ({problems}): expected weights of its sizes. "
            "Build the model that the file is of; nothing was loaded."
        )
    # On the meta device, where `load_pretrained` builds it, a model has no memory to copy to.
    weights = {name: tensors[name].to(own[name].dtype) for name in own}
    model.load_state_dict(weights, assign=model.head.weight.is_meta)


def _read(path: Path) -> Archive:
    """Read the weights of an archive of either layout."""
    if not os.path.isfile(path):
        raise InputError(f"no weights at {path}: expected an .npz file; check the path.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
    except Exception as error:  # a damaged or encrypted archive, or no archive at all, fails in many ways
        raise InputError(
            f"{path} cannot be read ({reason(error)}): expected an archive of plain arrays, "
            "as Google publishes them. Delete it and fetch it again."
        ) from None
    prefixes = [name.partition("embedding/")[0] for name in arrays if "embedding/" in name]
    prefix = next((known for known in ("opt/target/", "params/", "") if known in prefixes), None)
    if prefix is None:
        raise InputError(
            f"{path} holds no ViT (it begins with {', '.join(list(arrays)[:3])}): expected "
            "'embedding/kernel', alone or under 'opt/target/' or 'params/'. Take a file of "
            "vision_transformer or big_vision."
        )
    weights = {name: array for name, array in arrays.items() if name.startswith(prefix)}
    for name, array in weights.items():
        if array.dtype.kind not in "fiub":
            raise InputError(
                f"{path} has {name} of the type {array.dtype}: expected numbers, such as float32."
            )
    return _renamed(weights, prefix)


def _renamed(arrays: Mapping[str, np.ndarray], prefix: str) -> Archive:
    """Give every array vision_transformer's name, and every layer of a stacked one its own."""
    big_vision = any(re.search(r"/encoderblock(_\d+)?/(MlpBlock|MultiHead\w+)_0/", name) for name in arrays)
    renamed = {}
    for name, array in arrays.items():
        plain = name.removeprefix(prefix)
        plain = POSITION if plain == "pos_embedding" else plain
        for theirs, own in BIG_VISION.items() if big_vision else ():
            plain = re.sub(rf"^(Transformer/encoderblock(_\d+)?/){theirs}", rf"\1{own}", plain)
        if plain.startswith("Transformer/encoderblock/") and array.ndim:
            for layer, part in enumerate(array):
                renamed[plain.replace("block/", f"block_{layer}/", 1)] = part, name
        else:
            renamed[plain] = array, name
    return renamed


def _places(config: ViTConfig) -> Iterator[tuple[list[str], str, str]]:
    """Yield the arrays that are joined in a weight of ours, our name, and the change of layout."""
    yield ["cls"], "tokens.class_token", ""
    yield [POSITION], "tokens.position", ""
    parts = [*PARTS]
    if config.stem.kind == "resnet":
        parts += [("conv_root", "patch_embedding.root", CONV), ("gn_root", "patch_embedding.root_norm", FLAT)]
        for stage, unit, kind, place, ours in residual_parts(config.stem.layers):
            theirs = f"block{stage + 1}/unit{unit + 1}/{'conv' if kind == 'conv' else 'gn'}{place or '_proj'}"
            parts.append((theirs, ours, CONV if kind == "conv" else FLAT))
    for theirs, ours, pattern in parts:
        for layer in range(config.depth if "{}" in theirs else 1):
            arrays = [theirs.format(layer)]
            if arrays[0].endswith("/query"):
                arrays += [arrays[0].replace("/query", other) for other in ("/key", "/value")]
            kernel = "scale" if pattern == FLAT else "kernel"
            yield [f"{array}/{kernel}" for array in arrays], f"{ours.format(layer)}.weight", pattern
            yield [f"{array}/bias" for array in arrays], f"{ours.format(layer)}.bias", FLAT


def _arranged(array: np.ndarray, pattern: str, heads: int) -> Tensor:
    """Turn an array into a tensor of our layout; what does not fit it, or has other heads, stays as it is."""
    tensor = torch.from_numpy(np.asarray(array, dtype=np.float32))
    sizes = {"h": heads} if "h dh" in pattern else {}
    try:
        return rearrange(tensor, pattern, **sizes) if pattern else tensor
    except EinopsError:
        return tensor


def _positions(position: Tensor, config: ViTConfig) -> Tensor:
    """Bring positions (1, T', D) to the model's grid; a class token that big_vision gives none gets 0."""
    count = position.shape[1] if position.ndim == 3 and len(position) == 1 else 0
    side = math.isqrt(count)
    extra = count - side * side
    if not side or extra > 1:
        return position
    position = resize_positions(position, (side, side), config.grid)
    if config.class_token and not extra:
        position = torch.cat([torch.zeros_like(position[:, :1]), position], dim=1)
    return position
