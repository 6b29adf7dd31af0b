"""Look at the values with which a reader's layers begin: their distribution, not only their size."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from vit_classroom.checks.report import Piece

ENOUGH = 200
"""Fewer values do not tell from which distribution they come."""
DEVIATION = 0.02
"""With which positions begin."""
Start = Callable[[Piece, nn.Module], None]


def starts_at_zero(*names: str, why: str) -> Start:
    """Return what sees that parameters begin with 0."""

    def look(piece: Piece, module: nn.Module) -> None:
        for name in names:
            if module.get_parameter(name).any():
                use = "use nn.init.zeros_ in __init__"
                raise piece.failed(f"{name} does not begin at 0, as it must: {use}, for {why}")

    return look


def starts_normal(*names: str) -> Start:
    """Return what sees that parameters begin as normal numbers around 0, all of them drawn anew."""

    def look(piece: Piece, module: nn.Module) -> None:
        for name in names:
            values = module.get_parameter(name).detach().double().flatten()
            if len(values) < ENOUGH:
                continue
            found = _what_is_not_normal(values)
            if found:
                wanted = f"expected normal numbers around 0 with a standard deviation of {DEVIATION}"
                raise piece.failed(f"{name} begins {found[0]}: {wanted}{found[1]}")

    return look


def _what_is_not_normal(values: Tensor) -> tuple[str, str] | None:
    """Say how values differ from normal numbers, in words, and what to add; None if they do not."""
    found = values.std().item()
    if not values.isfinite().all() or not found:
        return f"as {_constant(values)}", ""
    if abs(found / DEVIATION - 1) > 5 / (2 * len(values)) ** 0.5:
        return f"with a standard deviation of {found:.3g}", ""
    if abs(values.mean().item()) > 5 * DEVIATION / len(values) ** 0.5:
        return f"around {values.mean().item():.3g}", ""
    if len(values.unique()) < 0.9 * len(values):
        return "with values that repeat", ", each drawn for itself"
    fourth = ((values - values.mean()) ** 4).mean().item()
    flatness = fourth / found**4  # 3 for normal, 1.8 for uniform numbers
    if abs(flatness - 3) > 5 * (24 / len(values)) ** 0.5:
        return f"with numbers that are {'uniform' if flatness < 2.2 else 'not normal'}", ""
    return None


def spread_like_linear(*names: str) -> Start:
    """Return what sees that weights begin as random numbers of a size from which learning starts.

    Any of the usual rules is right (PyTorch's own, Xavier's, LeCun's): within five times of 1 / sqrt(inputs).
    """

    def look(piece: Piece, module: nn.Module) -> None:
        for name in names:
            weight = module.get_parameter(name).detach()
            usual, found = weight[0].numel() ** -0.5, weight.double().std().item()
            if not weight.isfinite().all() or not found:
                wanted = "expected random numbers, or all values learn the same"
                raise piece.failed(f"{name} begins as {_constant(weight)}: {wanted}")
            if not usual / 5 < found < 5 * usual:
                raise piece.failed(
                    f"{name} begins with a standard deviation of {found:.3g}: expected about {usual:.2g}, "
                    "1 / sqrt(inputs); nn.Linear does it by itself"
                )

    return look


def _constant(values: Tensor) -> str:
    first = values.flatten()[0].item()
    if not torch.isfinite(values).all():
        return "values that are not finite"
    return "nothing but zeros" if not first else f"nothing but {first:.3g}"
