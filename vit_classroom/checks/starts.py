"""Look at the values with which a reader's layers begin: their distribution, not only their size."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vit_classroom.checks.report import Piece


def starts_at_zero(piece: Piece, module: nn.Module, names: Sequence[str], why: str) -> None:
    """See that parameters begin with 0.

    Raises:
        CheckFailed: one does not.
    """
    for name in names:
        if module.get_parameter(name).any():
            raise piece.failed(f"{name} begins at other values than 0: {why}")


def starts_normal(piece: Piece, module: nn.Module, name: str, deviation: float) -> None:
    """See that a parameter begins as normal numbers around 0, all of them drawn anew.

    Raises:
        CheckFailed: the mean, the deviation or the form is another, or values repeat.
    """
    values = module.get_parameter(name).detach().double().flatten()
    wanted = f"expected normal numbers around 0 with a deviation of {deviation}"
    found = values.std().item()
    if not values.isfinite().all() or not found:
        raise piece.failed(f"{name} begins as {_constant(values)}: {wanted}")
    if abs(found / deviation - 1) > 5 / (2 * len(values)) ** 0.5:
        raise piece.failed(f"{name} begins with a deviation of {found:.3g}: {wanted}")
    if abs(values.mean().item()) > 5 * deviation / len(values) ** 0.5:
        raise piece.failed(f"{name} begins around {values.mean().item():.3g}: {wanted}")
    if len(values.unique()) < 0.9 * len(values):
        raise piece.failed(f"{name} begins with values that repeat: {wanted}, each drawn for itself")
    flatness = (
        (values - values.mean()) ** 4
    ).mean().item() / found**4  # 3 for normal, 1.8 for uniform numbers
    if abs(flatness - 3) > 5 * (24 / len(values)) ** 0.5:
        kind = "uniform" if flatness < 2.2 else "not normal"
        raise piece.failed(f"{name} begins with numbers that are {kind}: {wanted}")


def spread_like_linear(piece: Piece, module: nn.Module, names: Sequence[str]) -> None:
    """See that weights begin as random numbers of a size from which learning starts.

    Any of the usual rules is right (PyTorch's own, Xavier's, LeCun's): within five times of 1 / sqrt(inputs).

    Raises:
        CheckFailed: they do not.
    """
    for name in names:
        weight = module.get_parameter(name).detach()
        usual = (weight[0].numel()) ** -0.5
        found = weight.double().std().item()
        if not weight.isfinite().all() or not found:
            raise piece.failed(
                f"{name} begins as {_constant(weight)}: expected random numbers, or all values learn the same"
            )
        if not usual / 5 < found < 5 * usual:
            raise piece.failed(
                f"{name} begins with a deviation of {found:.3g}: expected about {usual:.2g}, 1 / "
                f"sqrt(inputs); "
                "nn.Linear does it by itself"
            )


def _constant(values: Tensor) -> str:
    first = values.flatten()[0].item()
    if not torch.isfinite(values).all():
        return "values that are not finite"
    return "nothing but zeros" if not first else f"nothing but {first:.3g}"
