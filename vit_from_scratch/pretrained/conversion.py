"""What all converters share: names to names, nothing left over, and a proof at the end."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.model.checkpoints import first_three, model_from_tensors
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.model.patches import embedding_weight_from_convolution
from vit_from_scratch.model.vit import VisionTransformer


def unsupported(library: str, difference: str) -> InputError:
    """Return the error for a model that ours cannot express."""
    return InputError(
        f"this {library} model has {difference}: expected a plain ViT as in the paper, which fits "
        "a ViTConfig. Convert such a model."
    )


def described(describe: Callable[[Any], ViTConfig], model: nn.Module, expected: str) -> ViTConfig:
    """Describe another library's model as one of ours, or raise an `InputError` with what was expected."""
    try:
        return describe(model)
    except (AttributeError, IndexError, TypeError) as error:
        cfg = getattr(model, "pretrained_cfg", None)
        name = f" ({cfg['architecture']})" if isinstance(cfg, dict) and cfg.get("architecture") else ""
        raise InputError(
            f"a {type(model).__name__}{name}: expected {expected}, and this one lacks a part of it "
            f"({reason(error)})."
        ) from None


def spelt_out(names: Mapping[str, str], depth: int) -> dict[str, str]:
    """Spell out a table of names, from the source's to ours, for L blocks, for weights and for biases.

    A name is a part's or that of a parameter alone; `{}` in it is a block's number.
    """
    return {
        theirs.format(layer) + ending: ours.format(layer) + ending
        for theirs, ours in names.items()
        for layer in range(depth if "{}" in theirs else 1)
        for ending in ("", ".weight", ".bias")
    }


def residual_parts(layers: tuple[int, ...]) -> Iterator[tuple[int, int, str, str, str]]:
    """Yield the layers of a hybrid's ResNet: stage, unit, "conv" or "norm", "1" to "3" or "", and our name.

    The place "" is the shortcut, which the first unit of a stage has.
    """
    for stage, units in enumerate(layers):
        for unit in range(units):
            ours = f"patch_embedding.stages.{stage}.{unit}."
            for place in "123":
                for kind in ("conv", "norm"):
                    yield stage, unit, kind, place, f"{ours}{kind}{place}"
            if unit == 0:
                yield stage, unit, "conv", "", f"{ours}shortcut"
                yield stage, unit, "norm", "", f"{ours}shortcut_norm"


def converted(
    model: nn.Module, library: str, config: ViTConfig, state: Mapping[str, Tensor], names: Mapping[str, str]
) -> VisionTransformer:
    """Build our model of another one's weights, in their type and on their device, and prove it.

    Args:
        model: theirs, of a `library` that messages name.
        config: what the model is, in our words.
        state: every weight by their name, in our layout but for the patches' kernel.
        names: from their names to ours; some may not be there.

    Raises:
        InputError: a weight is missing, left over or of another shape, or the logits differ.
    """
    if left_over := [name for name in state if name not in names]:
        raise unsupported(library, f"weights that ours has no place for ({first_three(left_over)})")
    tensors = {names[name]: tensor.detach() for name, tensor in state.items()}
    kernel = "patch_embedding.projection.weight"
    tensors[kernel] = embedding_weight_from_convolution(tensors[kernel])
    try:
        ours = model_from_tensors(config, tensors)
    except InputError as problems:
        raise InputError(
            f"the weights do not fit the model that they describe ({problems}): expected those of a plain "
            "ViT as in the paper. Check where they come from."
        ) from None
    return proved(ours, model, library)


def gelu_of(activation: Any, library: str) -> Literal["erf", "tanh"]:
    """Say which GELU a module or function is, or raise an `InputError`."""
    if isinstance(activation, nn.GELU):
        return "tanh" if activation.approximate == "tanh" else "erf"
    probe = torch.linspace(-4, 4, 101, dtype=torch.float64, device="cpu")
    with contextlib.suppress(Exception):  # one that has weights, elsewhere or in float32, is not a GELU
        found = activation(probe)
        if torch.allclose(found, nn.functional.gelu(probe), atol=1e-12):
            return "erf"
        if torch.allclose(found, nn.functional.gelu(probe, approximate="tanh"), atol=1e-12):
            return "tanh"
    raise unsupported(library, f"the activation {activation}")


@torch.no_grad()
def proved(ours: VisionTransformer, theirs: nn.Module, library: str) -> VisionTransformer:
    """Return our model if it gives the same logits as theirs on a random image; an `InputError` if not.

    A head of zeros, as torchvision's is before training, gives zeros whatever stands before it.
    """
    weight = next(ours.parameters())
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(1, ours.config.channels, *ours.config.image_shape, generator=generator)
    image = image.to(weight.device, weight.dtype)
    with evaluating(theirs):
        expected = theirs(image)
    found = ours(image)
    tolerance = {torch.float64: 1e-9, torch.float32: 1e-3}.get(weight.dtype, 0.1)
    scale = max(1.0, expected.abs().max().item())
    difference = (found - expected).abs().max().item() / scale
    if not difference <= tolerance:
        raise unsupported(
            library, f"parts that look alike but work differently (logits differ by {difference:.1e})"
        )
    return ours
