"""What all converters share: names to names, nothing left over, and a proof at the end."""

import contextlib
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.checkpoints import built_around
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.model.vit import VisionTransformer

Names = Mapping[str, str]
"""From a name of the source's state dict to one of ours."""


def refuse(library: str, difference: str) -> InputError:
    """Return the error for a model that ours cannot express."""
    return InputError(
        f"this {library} model has {difference}: expected a plain ViT as in the paper, which fits "
        "a ViTConfig. Convert a model without it."
    )


def lacking(thing: object, paths: tuple[str, ...]) -> list[str]:
    """Return those of the dotted names, such as "blocks.0.norm1.eps", that lead nowhere from an object."""
    missing = []
    for path in paths:
        try:
            attrgetter(path)(thing)
        except AttributeError:
            missing.append(path)
    return missing


def built(config: ViTConfig, tensors: Mapping[str, Tensor]) -> VisionTransformer:
    """Build a model of weights, in the type and on the device that they have.

    Raises:
        InputError: a weight is missing, left over or of another shape.
    """
    try:
        return built_around(config, tensors)
    except InputError as problems:
        raise InputError(
            f"the weights do not fit the model that they describe ({problems}): expected those of a plain "
            "ViT as in the paper. Check where they come from."
        ) from None


def renamed(state: Mapping[str, Tensor], names: Names, library: str) -> dict[str, Tensor]:
    """Take every weight of the source under our name.

    Raises:
        InputError: the source has weights that have no place in our model.
    """
    left_over = [name for name in state if name not in names]
    if left_over:
        some = ", ".join(left_over[:3]) + (", ..." if len(left_over) > 3 else "")
        raise refuse(library, f"weights that ours has no place for ({some})")
    return {names[name]: tensor.detach() for name, tensor in state.items()}


def block_names(theirs: str, ours: Names, depth: int) -> dict[str, str]:
    """Spell out the names of L blocks.

    Args:
        theirs: the prefix of a block, with `{}` for its number.
        ours: for each name inside their block, the one inside ours, both without ".weight" and ".bias".
        depth: the number of blocks L.
    """
    return {
        f"{theirs.format(layer)}{name}.{kind}": f"encoder.blocks.{layer}.{own}.{kind}"
        for layer in range(depth)
        for name, own in ours.items()
        for kind in ("weight", "bias")
    }


def both(names: Names) -> dict[str, str]:
    """Spell out ".weight" and ".bias" for each pair of names."""
    return {f"{a}.{kind}": f"{b}.{kind}" for a, b in names.items() for kind in ("weight", "bias")}


def gelu_of(activation: nn.Module | str, library: str) -> Literal["erf", "tanh"]:
    """Say which GELU an activation is, "erf" or "tanh".

    Raises:
        InputError: it is another function.
    """
    if isinstance(activation, nn.GELU):
        return "tanh" if activation.approximate == "tanh" else "erf"
    probe = torch.linspace(-4, 4, 101, dtype=torch.float64, device="cpu")
    if callable(activation):
        with contextlib.suppress(Exception):  # one that has weights, elsewhere or in float32, is not a GELU
            found = activation(probe)
            if torch.allclose(found, nn.functional.gelu(probe), atol=1e-12):
                return "erf"
            if torch.allclose(found, nn.functional.gelu(probe, approximate="tanh"), atol=1e-12):
                return "tanh"
    raise refuse(library, f"the activation {activation}")


@torch.no_grad()
def proved(ours: VisionTransformer, theirs: nn.Module, library: str) -> VisionTransformer:
    """Return our model if it gives the same logits as theirs on a random image.

    Raises:
        InputError: it does not: something in their model works otherwise than its parts say.
    """
    weight = next(ours.parameters())
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(1, ours.config.channels, *ours.config.image_shape, generator=generator)
    image = image.to(weight.device, weight.dtype)
    with evaluating(theirs):
        answer: Any = theirs(image)
    expected = getattr(answer, "logits", answer)
    found = ours(image)
    tolerance = 1e-3 if weight.dtype == torch.float32 else 1e-9 if weight.dtype == torch.float64 else 0.1
    scale = max(1.0, expected.abs().max().item())
    difference = (found - expected).abs().max().item() / scale
    if not difference <= tolerance:
        raise refuse(library, f"parts that look alike and work otherwise (logits differ by {difference:.1e})")
    return ours
