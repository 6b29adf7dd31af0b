"""Save a model and get it back: safetensors with the configuration inside, never pickle."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically, writing
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.cost import parameters_of
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.settings import flattened

OURS = "a file that save_checkpoint wrote; copy or train it again"
"""What the messages about a checkpoint expect."""

ALWAYS_BUILT = 1024
"""What a number may be in a configuration without any tensor that it shows in: it may be of no use there."""

MOST_PIXELS, MOST_FIXED_VALUES = 2**20, 2**28
"""How large a side, and a table of fixed positions, may be that nothing in a checkpoint vouches for."""


def save_checkpoint(path: str | os.PathLike[str], model: VisionTransformer) -> None:
    """Write weights and configuration to one file; an older file stays whole until the new one is.

    Args:
        path: where to write; by custom it ends in ``.safetensors``.
        model: the model; its weights keep their type.

    Raises:
        InputError: nothing can be written there.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    content = serialise(tensors, metadata={"vit_config": json.dumps(model.config.to_dict())})
    with writing(Path(path)):
        write_atomically(Path(path), content)


def load_checkpoint(path: str | os.PathLike[str]) -> VisionTransformer:
    """Read a file of :func:`save_checkpoint` and return the model on the CPU, in evaluation mode.

    Raises:
        InputError: if there is no such file, or it is not a whole checkpoint of this package. A file that
            claims a model larger than itself is refused before anything of that size is made.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"no checkpoint at {path}: expected a .safetensors file; check the path.")
    tensors, metadata = read_safetensors(path, OURS)
    if "vit_config" not in metadata:
        raise InputError(
            f"{path} holds tensors but no ViT configuration: expected a file that save_checkpoint wrote; "
            "build the model yourself to load weights from elsewhere."
        )
    config = config_of_checkpoint(path, metadata["vit_config"], tensors)
    try:
        return built_around(config, tensors)
    except InputError as error:
        raise InputError(f"{path} does not fit its own configuration ({error}): expected {OURS}.") from None


@torch.no_grad()
def built_around(config: ViTConfig, tensors: Mapping[str, Tensor]) -> VisionTransformer:
    """Build a model with these weights, in their types and on their device; none is drawn at random first.

    Args:
        config: what to build.
        tensors: every weight by its name, as in a state dict; the model holds copies.

    Returns:
        The model in evaluation mode.

    Raises:
        InputError: a weight is missing, left over or of another shape; the message says which, as `misfits`.
    """
    with torch.device("meta"):
        model = VisionTransformer(config)
    own = model.state_dict()
    if problems := misfits(tensors, own):
        raise InputError(problems)
    copies = {}  # a file's own may be misaligned, and a stem has another layout
    for (
        name,
        tensor,
    ) in tensors.items():
        layout = own[name].stride()
        copies[name] = torch.empty_strided(tensor.shape, layout, dtype=tensor.dtype, device=tensor.device)
        copies[name].copy_(tensor)
    model.load_state_dict(copies, assign=True)
    model.tokens.to(model.head.weight.device, model.head.weight.dtype)  # fixed positions are in no file
    return model.eval()


def config_of_checkpoint(path: Path, text: str, tensors: Mapping[str, Tensor]) -> ViTConfig:
    """Read the configuration of a checkpoint, and refuse one that describes far more than stands beside it.

    A file that is damaged, or made to harm, may claim sizes that no memory holds, or that would take hours to
    build. They are compared before anything is made of them.
    """
    try:
        fields = json.loads(text)
        flat = flattened(fields)
    except (ValueError, RecursionError, AttributeError):
        raise InputError(
            f"{path} has a ViT configuration that is not a JSON table: expected {OURS}."
        ) from None
    values = sum(tensor.numel() for tensor in tensors.values())
    most = {"image_size": MOST_PIXELS}  # no weight need have a size that grows with the image
    most |= dict.fromkeys(("depth", "stem.layers"), max(len(tensors), ALWAYS_BUILT))
    held = f"and holds {len(tensors)} tensors of {values:,} values in all: expected {OURS}."
    for name, value in flat.items():
        numbers = value if isinstance(value, list) else [value]
        largest = max([len(numbers), *(number for number in numbers if isinstance(number, int))])
        if largest > most.get(name, max(values, ALWAYS_BUILT)):
            raise InputError(f"{path} claims {name} = {str(value)[:50]} {held}")
    try:
        config = ViTConfig.from_dict(fields)
    except (InputError, RecursionError) as error:
        raise InputError(f"{path} has a wrong ViT configuration: {str(error)[:300]}") from None
    if parameters_of(config) > 2 * values:  # if a few are missing, they are named later
        raise InputError(f"{path} claims {parameters_of(config):,} parameters {held}")
    if config.position == "sincos_2d" and config.num_patches * config.dim > MOST_FIXED_VALUES:
        raise InputError(f"{path} claims fixed positions of {config.num_patches:,} patches {held}")
    return config


def misfits(
    given: Mapping[str, Tensor], own: Mapping[str, Tensor], theirs: Mapping[str, str] | None = None
) -> str:
    """Say which tensors do not fit a model: the first three of a kind and how many more; "" if all fit.

    Args:
        given: tensors by the model's names for them.
        own: the model's state dict; on the meta device is enough.
        theirs: what the model's names are called in the file that the tensors come from, if otherwise.
    """
    known = theirs or {}
    also = {name: f" (the file's {known[name]})" if name in known else "" for name in own}
    both = [name for name in own if name in given]
    problems = {
        "missing": [name + also[name] for name in own if name not in given],
        "left over": [name for name in given if name not in own],
        "misshapen": [
            f"{name} {tuple(given[name].shape)} for {tuple(own[name].shape)}{also[name]}"
            for name in both
            if given[name].shape != own[name].shape
        ],
        "of another type": [
            f"{name} {given[name].dtype}{also[name]}"
            for name in both
            if own[name].is_floating_point() and not given[name].is_floating_point()
        ],
    }
    return "; ".join(f"{kind}: {_first_three(names)}" for kind, names in problems.items() if names)


def _first_three(names: Sequence[str]) -> str:
    """Join names, the first three of them: "a, b, c and 9 more"."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def read_safetensors(path: Path, expected: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read every tensor and the metadata of a safetensors file; no code in it can run.

    Raises:
        InputError: it cannot be read; the message says what was ``expected``.
    """
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} cannot be read as safetensors ({error}): expected {expected}.") from None
