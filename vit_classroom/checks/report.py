"""Compare a reader's result with the expected one, and put the difference into words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from vit_classroom.checks.sandbox import CheckFailed

Layers = TypeVar("Layers", bound=nn.Module)
TOLERANCE = 1e-5
"""A reader's float32 result may differ from ours by rounding only: this share of the largest value."""


@dataclass(frozen=True)
class Piece:
    """What a reader is asked to write.

    Attributes:
        call: how a check calls it.
        result: the shape of what it returns, in the book's letters.
        where: where to read again.
        title: its name in messages, if not the one in `call`.
        exact: whether it only moves values about, so that not even rounding may differ.
        pair: whether a pair that begins with the result is as good.
        number: whether a plain number is as good as a tensor that holds one.
        gradients: whether they have to flow back. Where not, the piece only measures something, and any type
            of number will do.
    """

    call: str
    result: str
    where: str
    title: str = ""
    exact: bool = False
    pair: bool = False
    number: bool = False
    gradients: bool = True

    @property
    def name(self) -> str:
        """The name of the function or class."""
        return self.title or self.call.partition("(")[0]

    @property
    def arguments(self) -> list[str]:
        """The names of what a function is called with."""
        return self.call.partition("(")[2].rstrip(")").split(", ")

    def failed(self, *sentences: str, label: str = "") -> CheckFailed:
        """Put what was found into one message; of several sentences each fits."""
        different = sorted(set(sentences))
        several = ("it gives what each of these mistakes would give:", *different)
        said = different[0] if len(different) == 1 else "\n  · ".join(several)
        end = "" if "\n" in said or said.endswith((".", "?", "!")) else "."
        tried = f"\n  Tried with {label}." if label else ""
        return CheckFailed(f"{self.name}: {said}{end}{tried}\n  Read again: {self.where}.")


@dataclass
class Case:
    """One input and what must come of it, worked out before any code of the reader's runs.

    Attributes:
        inputs: what the piece is called with.
        expected: ours.
        mistakes: what well-known mistakes would have given, by a sentence that names each.
        note: what its shapes do not say of the input.
    """

    inputs: tuple[object, ...]
    expected: Tensor
    mistakes: Mapping[str, Tensor] = field(default_factory=dict)
    note: str = ""

    def label(self, names: Sequence[str]) -> str:
        """Describe the input in words."""
        parts = [_described(name, value) for name, value in zip(names, self.inputs, strict=False)]
        return ", ".join([*parts, self.note] if self.note else parts)


def _described(name: str, value: object) -> str:
    if not isinstance(value, Tensor):
        return f"{name} {value}"
    short = value.ndim == 1 and len(value) < 9 and not value.is_floating_point()
    return f"{name} {value.tolist()}" if short else f"{name} of shape {tuple(value.shape)}"


@dataclass
class Verdict:
    """What one result looks like: `sentences` of mistakes that fit, or a `plain` description."""

    sentences: set[str] = field(default_factory=set)
    plain: str = ""


def same(got: Tensor, expected: Tensor, exact: bool = False) -> bool:
    """Say whether two tensors agree, up to rounding unless `exact`; a mistake's NaN agrees with NaN."""
    if got.shape != expected.shape:
        return False
    if exact:
        return torch.equal(got, expected)
    finite = expected.nan_to_num(0, 0, 0)
    scale = max(finite.abs().max().item(), 1e-6) if expected.numel() else 1.0
    return torch.allclose(got, expected, rtol=0, atol=TOLERANCE * scale, equal_nan=True)


def first_of(piece: Piece, value: object) -> object:
    """Return the result of a piece that may return a pair which begins with it, or a plain number."""
    if piece.number and isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return torch.tensor(float(value), dtype=torch.float64)
    if piece.number and isinstance(value, Tensor) and value.numel() == 1:
        return value.double().reshape(())
    return value[0] if piece.pair and isinstance(value, tuple) and value else value


def verdict(piece: Piece, got: object, case: Case, printed: str) -> Verdict | None:
    """Hold one result against the expected one; None if they agree."""
    expected = case.expected
    if not isinstance(got, Tensor):
        return Verdict(plain=_other_kind(piece, got, printed))
    if got.device != expected.device:
        where = f"expected {expected.device}, where its input is"
        return Verdict(plain=f"it returned a tensor on {got.device}: {where}.")
    if not piece.gradients:
        got = got.to(expected.dtype)
    if got.dtype != expected.dtype:
        return Verdict(plain=f"it returned {got.dtype}: expected {expected.dtype}, the type of its input.")
    if same(got, expected, piece.exact):
        return None
    fitting = {sentence for sentence, wrong in case.mistakes.items() if same(got, wrong, piece.exact)}
    if fitting:
        return Verdict(fitting)
    if got.shape != expected.shape:
        return Verdict(
            plain=f"it returned shape {tuple(got.shape)}: expected {tuple(expected.shape)}, {piece.result}."
        )
    if not got.isfinite().all():
        count, kind = (~got.isfinite()).sum().item(), "NaN" if got.isnan().any() else "infinite"
        return Verdict(plain=f"{count} of {got.numel()} values are {kind}: expected finite ones.")
    if not expected.ndim:
        return Verdict(plain=f"it returned {got.item():,.10g}: expected {expected.item():,.10g}.")
    difference = (got - expected).abs()
    place = tuple(int(i) for i in np.unravel_index(int(difference.argmax()), tuple(got.shape)))
    right = (difference <= TOLERANCE * expected.abs().max()).float().mean().item()
    return Verdict(
        plain=f"the shape is right, the values are not: {right:.0%} of them agree, and at {place} it has "
        f"{got[place].item():.5g} where {expected[place].item():.5g} is expected. Compare the two "
        "step by step on a small input."
    )


def _other_kind(piece: Piece, got: object, printed: str) -> str:
    if got is None:
        if printed.strip():
            return "it prints its result and returns None: end with `return` in place of `print`."
        return "it returned None: is a return missing?"
    if isinstance(got, np.ndarray):
        why = " Stay in PyTorch, or gradients end here." if piece.gradients else ""
        return f"it returned a NumPy array: expected a tensor.{why}"
    if isinstance(got, tuple | list):
        kinds = ", ".join(type(part).__name__ for part in got[:4])
        kind = f"a {type(got).__name__} of {len(got)} ({kinds})"
        return f"it returned {kind}: expected one tensor, {piece.result}."
    if isinstance(got, nn.Module):
        return f"it returned a layer ({type(got).__name__}): expected a tensor. Call the layer on the input."
    return f"it returned {type(got).__name__}: expected a tensor, {piece.result}."


def randomise(module: Layers, seed: int = 0) -> Layers:
    """Give every parameter of a module random values, so that no zero hides a mistake."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return module.eval()


def normalised(values: Tensor, axes: int | tuple[int, ...], eps: float, correction: int = 0) -> Tensor:
    """Bring values to mean 0 and variance 1 over some axes; eps is added to the variance."""
    variance = values.var(axes, keepdim=True, correction=correction)
    return (values - values.mean(axes, keepdim=True)) / (variance + eps).sqrt()


def number(value: float) -> Tensor:
    """Return a number in the form in which plain numbers are judged."""
    return torch.tensor(float(value), dtype=torch.float64)


def numbers(values: Mapping[str, float]) -> dict[str, Tensor]:
    """Return what mistakes give, in the form in which plain numbers are judged."""
    return {sentence: number(value) for sentence, value in values.items()}


def draw(low: int, high: int) -> int:
    """Draw a whole number, both ends included."""
    return int(torch.randint(low, high + 1, ()))
