"""Save a model and get it back: safetensors with the configuration inside, never pickle."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor

from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.files import write_atomically
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.modes import shapes_only
from vit_from_scratch.model.vit import VisionTransformer

OURS = "a file that save_checkpoint wrote; copy or train it again"  # what messages expect


def save_checkpoint(path: str | os.PathLike[str], model: VisionTransformer) -> None:
    """Write weights and configuration to one file; an older file stays whole until the new one is.

    Args:
        path: where to write; by custom it ends in ``.safetensors``.
        model: its weights keep their type.

    Raises:
        InputError: nothing can be written there, or the model no longer is what its configuration says.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    with shapes_only():
        own = VisionTransformer(model.config).state_dict()
    if problems := tensor_mismatches(tensors, own):
        raise InputError(
            f"the model is not what its configuration says ({problems}): expected the layers that "
            "VisionTransformer builds, since load_checkpoint builds them again. Build a model for what you "
            "changed (another head: num_classes) and fill it, or save the state_dict alone."
        )
    content = serialise(tensors, metadata={"vit_config": json.dumps(model.config.to_dict())})
    write_atomically(Path(path), content)


def load_checkpoint(path: str | os.PathLike[str]) -> VisionTransformer:
    """Read a file of :func:`save_checkpoint` and return the model on the CPU, in evaluation mode.

    Raises:
        InputError: if there is no such file, or it is not a whole checkpoint of this package. A file that
            claims a model larger than itself is refused before any memory of that size is taken.
    """
    path = Path(path)
    if not os.path.isfile(path):  # unlike the path's own is_file, no error where it may not look
        raise InputError(f"no checkpoint at {path}: expected a .safetensors file; check the path.")
    tensors, metadata = read_safetensors(path, OURS)
    if "vit_config" not in metadata:
        raise InputError(
            f"{path} holds tensors but no ViT configuration: expected a file that save_checkpoint wrote; "
            "build the model yourself to load weights from elsewhere."
        )
    config = config_of_checkpoint(path, metadata["vit_config"])
    try:
        return model_from_tensors(config, tensors)
    except InputError as error:
        raise InputError(f"{path} does not fit its own configuration ({error}): expected {OURS}.") from None


@torch.no_grad()
def model_from_tensors(config: ViTConfig, tensors: Mapping[str, Tensor]) -> VisionTransformer:
    """Build a model with these weights, in their types and on their device; none is drawn at random first.

    Args:
        config: what to build, in evaluation mode.
        tensors: every weight by its name, as in a state dict; the model holds copies.

    Raises:
        InputError: a weight is missing, left over or of another shape; the message says which.
    """
    with shapes_only():
        model = VisionTransformer(config)
    own = model.state_dict()
    if problems := tensor_mismatches(tensors, own):
        raise InputError(problems)
    copies = {}
    for name, tensor in tensors.items():  # a file's own may be misaligned, and a stem has another layout
        shape, strides = own[name].shape, own[name].stride()  # `empty_like` would load torch's compiler
        empty = torch.empty_strided(shape, strides, dtype=tensor.dtype, device=tensor.device)
        copies[name] = empty.copy_(tensor)
    model.load_state_dict(copies, assign=True)
    return model.eval()


def config_of_checkpoint(path: Path, text: str) -> ViTConfig:
    """Read the configuration of a checkpoint, or raise an `InputError`: it may be malicious.

    A model larger than its file is found out later, on the meta device, where its size costs nothing.
    """
    try:
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("it is not a table")
        return ViTConfig.from_dict(fields)
    except (ValueError, RecursionError) as error:  # an InputError is a ValueError
        raise InputError(f"{path} has a wrong ViT configuration: {str(error)[:300]}") from None


def tensor_mismatches(
    given: Mapping[str, Tensor], own: Mapping[str, Tensor], theirs: Mapping[str, str] | None = None
) -> str:
    """Say which tensors do not fit a model: three of each kind and how many more; "" if all fit.

    Args:
        given: tensors by the model's names for them.
        own: the model's state dict; on the meta device is enough.
        theirs: the tensors' original names, by the model's names for them.
    """
    called = {name: f" (from {theirs[name]})" if theirs and name in theirs else "" for name in own}
    both = [(name, given[name], own[name]) for name in own if name in given]
    problems = {
        "missing": [name + called[name] for name in own if name not in given],
        "left over": [name for name in given if name not in own],
        "of another shape": [
            f"{name} {tuple(found.shape)} for {tuple(wanted.shape)}{called[name]}"
            for name, found, wanted in both
            if found.shape != wanted.shape
        ],
        "of another type": [
            f"{name} {found.dtype}{called[name]}"
            for name, found, wanted in both
            if wanted.is_floating_point() and not found.is_floating_point()
        ],
    }
    return "; ".join(f"{kind}: {first_three(names)}" for kind, names in problems.items() if names)


def first_three(names: Sequence[str]) -> str:
    """Join names, the first three of them: "a, b, c and 9 more"."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def read_safetensors(path: Path, expected: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read every tensor and the metadata of a safetensors file, or raise an `InputError`."""
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (SafetensorError, OSError, OverflowError, RuntimeError, TypeError) as error:
        raise InputError(
            f"{path} cannot be read as safetensors ({reason(error)}): expected {expected}."
        ) from None
