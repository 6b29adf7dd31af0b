"""Google's published weights (.npz): the layouts of vision_transformer and of big_vision."""

import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.tokens import resize_positions
from vit_from_scratch.model.vit import VisionTransformer

PREFIXES = ("opt/target/", "params/", "")
"""Where an archive may keep the weights: a training state's target, big_vision's parameters, or the top."""

BLOCK = {
    "LayerNorm_0": "attention_norm",
    "LayerNorm_2": "mlp_norm",
    "MlpBlock_3/Dense_0": "mlp.hidden",
    "MlpBlock_3/Dense_1": "mlp.output",
}
"""Names inside a block of vision_transformer. big_vision numbers the same parts otherwise."""

BIG_VISION = {
    "MultiHeadDotProductAttention_0": "MultiHeadDotProductAttention_1",
    "LayerNorm_1": "LayerNorm_2",
    "MlpBlock_0": "MlpBlock_3",
}


def load_google_npz(model: VisionTransformer, path: str | os.PathLike[str]) -> None:
    """Fill a model with weights as Google publishes them; either all are taken or none.

    Read are the layouts of vision_transformer (also under `opt/target/`, with or without `pre_logits`) and of
    big_vision (under `params/`, blocks one by one or stacked along a first axis). Positions are interpolated
    if the model's grid is another. Those weights were trained with the tanh form of GELU and images scaled to
    [-1, 1]: build the model with `gelu="tanh"`; the loader never changes it.

    Args:
        model: in place; its sizes must be the file's.
        path: the .npz file.

    Raises:
        InputError: no such file, no such layout, or arrays that are missing, left over or of another shape,
            by name; the model is then as it was. Pickled arrays are refused, not opened.
    """
    arrays = _read(Path(path))
    tensors = _converted(arrays, model)
    own = model.state_dict()
    _compare(tensors, own, path)
    model.load_state_dict({name: tensors[name].to(own[name].dtype) for name in own})


def _read(path: Path) -> dict[str, np.ndarray]:
    """Read every array of the archive under its name without prefix."""
    if not path.is_file():
        raise InputError(f"no weights at {path}: expected an .npz file; check the path.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(
            f"{path} cannot be read ({str(error).splitlines()[0]}): expected an archive of plain arrays, "
            "as Google publishes them. Fetch it again."
        ) from None
    for prefix in PREFIXES:
        inside = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
        if any(name.startswith("embedding/") for name in inside):
            return inside
    some = ", ".join(list(arrays)[:3])
    raise InputError(
        f"{path} holds no ViT (it begins with {some}): expected 'embedding/kernel', alone or under "
        "'opt/target/' or 'params/'. Take a file of vision_transformer or big_vision."
    )


def _converted(arrays: Mapping[str, np.ndarray], model: VisionTransformer) -> dict[str, Tensor]:
    """Return our tensors by our names; what the model has no place for stays under Google's name."""
    arrays = _vision_transformer_layout(dict(arrays))
    left = {name: torch.from_numpy(np.asarray(a, dtype=np.float32)) for name, a in arrays.items()}
    done: dict[str, Tensor] = {}

    def arranged(tensor: Tensor, pattern: str) -> Tensor:
        """What does not fit its pattern, or has another number h of heads, stays: `_compare` names it."""
        axes = pattern.split("->")[0].split()
        heads = [size for axis, size in zip(axes, tensor.shape, strict=False) if axis == "h"]
        fits = tensor.ndim == len(axes) and heads in ([], [model.config.heads])
        return rearrange(tensor, pattern) if fits else tensor

    def take(theirs: str, ours: str, pattern: str = "") -> None:
        if theirs in left:
            tensor = left.pop(theirs)
            if "norm" in ours:
                tensor = tensor.flatten()
            done[ours] = arranged(tensor, pattern) if pattern else tensor

    take("embedding/kernel", "patch_embedding.projection.weight", "p1 p2 c d -> d (p1 p2 c)")
    take("embedding/bias", "patch_embedding.projection.bias")
    take("cls", "tokens.class_token")
    if model.config.stem == "resnet":
        for theirs, own, pattern in _hybrid_names(model.config):
            take(theirs, f"patch_embedding.{own}", pattern)
    take("Transformer/posembed_input/pos_embedding", "tokens.position")
    norms = {"Transformer/encoder_norm": "encoder.norm"}
    for layer in range(model.config.depth):
        start, ours = f"Transformer/encoderblock_{layer}/", f"encoder.blocks.{layer}."
        norms |= {start + name: ours + own for name, own in BLOCK.items() if "Norm" in name}
        for name, own in BLOCK.items():
            if "Norm" not in name:
                take(f"{start}{name}/kernel", f"{ours}{own}.weight", "i o -> o i")
                take(f"{start}{name}/bias", f"{ours}{own}.bias")
        attention = start + "MultiHeadDotProductAttention_1/"
        take(attention + "out/kernel", ours + "attention.projection.weight", "h dh d -> d (h dh)")
        take(attention + "out/bias", ours + "attention.projection.bias")
        for kind, ending, pattern in (
            ("kernel", "weight", "d h dh -> (h dh) d"),
            ("bias", "bias", "h dh -> (h dh)"),
        ):
            names = [f"{attention}{part}/{kind}" for part in ("query", "key", "value")]
            if all(name in left for name in names):
                parts = [arranged(left.pop(name), pattern) for name in names]
                alike = len({part.shape for part in parts}) == 1
                done[f"{ours}attention.qkv.{ending}"] = torch.cat(parts) if alike else parts[0]
    for theirs, ours in norms.items():
        take(f"{theirs}/scale", f"{ours}.weight")
        take(f"{theirs}/bias", f"{ours}.bias")
    for theirs, ours in (("pre_logits", "representation.0"), ("head", "head")):
        take(f"{theirs}/kernel", f"{ours}.weight", "i o -> o i")
        take(f"{theirs}/bias", f"{ours}.bias")
    if "tokens.position" in done:
        done["tokens.position"] = _positions(done["tokens.position"], model)
    return done | left


def _hybrid_names(config: ViTConfig) -> Iterator[tuple[str, str, str]]:
    """Yield Google's name, ours and the change of layout for every array of a hybrid's ResNet."""
    kernel = "kh kw i o -> o i kh kw"
    pairs = [("conv_root", "root"), ("gn_root", "root_norm")]
    for stage, units in enumerate(config.stem_layers):
        for unit in range(units):
            theirs, own = f"block{stage + 1}/unit{unit + 1}/", f"stages.{stage}.{unit}."
            for number in (1, 2, 3):
                pairs += [(f"{theirs}conv{number}", f"{own}conv{number}")]
                pairs += [(f"{theirs}gn{number}", f"{own}norm{number}")]
            pairs += [(f"{theirs}conv_proj", f"{own}shortcut"), (f"{theirs}gn_proj", f"{own}shortcut_norm")]
    for theirs, own in pairs:
        if "conv" in theirs.split("/")[-1]:
            yield f"{theirs}/kernel", f"{own}.weight", kernel
        else:  # published scales and biases may still carry the axes of an image
            yield f"{theirs}/scale", f"{own}.weight", ""
            yield f"{theirs}/bias", f"{own}.bias", ""


def _vision_transformer_layout(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rename big_vision's arrays as vision_transformer would, and split what it stacks along the layers."""
    if "pos_embedding" in arrays:
        arrays["Transformer/posembed_input/pos_embedding"] = arrays.pop("pos_embedding")
    renamed: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        big_vision = re.match(r"Transformer/encoderblock(_\d+)?/(.*)", name)
        if big_vision is None:
            renamed[name] = array
            continue
        inside = big_vision[2]
        if not any(part in inside for part in ("MlpBlock_3", "LayerNorm_2", "DotProductAttention_1")):
            for theirs, ours in BIG_VISION.items():
                inside = re.sub(rf"^{theirs}(?=/)", ours, inside)
        if big_vision[1] is not None:
            renamed[f"Transformer/encoderblock{big_vision[1]}/{inside}"] = array
        else:  # scanned: the first axis counts the layers
            renamed |= {f"Transformer/encoderblock_{i}/{inside}": one for i, one in enumerate(array)}
    return renamed


def _positions(position: Tensor, model: VisionTransformer) -> Tensor:
    """Bring positions (1, T', D) to the model's grid; a class token that big_vision gives none gets 0."""
    config = model.config
    if position.ndim != 3 or position.shape[0] != 1:
        return position
    count = position.shape[1]
    side = round((count - (count**0.5 % 1 != 0)) ** 0.5)
    extra = count - side * side
    if extra not in (0, 1):
        return position
    position = resize_positions(position, (side, side), config.grid)
    if config.class_token and not extra:
        position = torch.cat([torch.zeros_like(position[:, :1]), position], dim=1)
    return position


def _compare(tensors: Mapping[str, Tensor], own: Mapping[str, Tensor], path: object) -> None:
    """Refuse what does not fit, by name."""
    problems = {
        "missing": [name for name in own if name not in tensors],
        "left over": [name for name in tensors if name not in own],
        "misshapen": [
            f"{name} {tuple(tensors[name].shape)} for {tuple(own[name].shape)}"
            for name in own
            if name in tensors and tensors[name].shape != own[name].shape
        ],
    }
    found = [
        f"{kind}: {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}"
        for kind, names in problems.items()
        if names
    ]
    if found:
        raise InputError(
            f"{path} does not fit the model ({'; '.join(found)}): expected weights of its sizes. "
            "Build the model that the file is of; nothing was loaded."
        )
