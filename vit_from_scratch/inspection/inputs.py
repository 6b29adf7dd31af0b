"""What several of the inspections begin with: attention that is attention, in float64."""

from collections.abc import Iterable, Sequence

from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inputs import require_tensor


def check_attentions(attentions: Tensor | Sequence[Tensor], same_heads: bool = False) -> list[Tensor]:
    """Return the attention of each layer, after checking that shapes agree in images and tokens.

    Args:
        attentions: L tensors (B, h, T, T), or one (L, B, h, T, T).
        same_heads: whether h has to be the same in all layers, too.

    Raises:
        InputError: no layers, what is not a tensor (B, h, T, T), or layers of different shapes.
    """
    layers = list(attentions) if isinstance(attentions, Iterable) else []
    if not layers:
        raise InputError(
            "no layers: expected at least one tensor (B, h, T, T), as layer_attention returns them."
        )
    shapes = set()
    for weights in layers:
        require_tensor(weights, "attention", "(B, h, T, T)")
        if weights.ndim != 4 or weights.shape[-1] != weights.shape[-2]:
            raise InputError(
                f"attention of shape {tuple(weights.shape)}: expected (B, h, T, T); keep batch and heads."
            )
        batch, heads, tokens, _ = weights.shape
        shapes.add((batch, heads if same_heads else 1, tokens))
    if len(shapes) > 1:
        raise InputError(
            f"layers of shapes {', '.join(str(tuple(one.shape)) for one in layers[:3])}: expected the same "
            "images and tokens in every layer; take all layers from one call."
        )
    return layers


def in_float64(values: Tensor) -> Tensor:
    """Return values as float64: on their device, or on the CPU if that has none, as Apple's has not."""
    return (values.cpu() if values.device.type == "mps" else values).double()
