"""Compare a reader's result with the expected one, and put the difference into words."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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
        exact: whether it only moves values about, so that not even rounding may differ.
        number: whether a plain number is as good as a tensor that holds one.
        gradients: whether they have to flow back. Where not, the piece only measures something, and any type
            of number will do, but no floats for whole numbers.
    """

    call: str
    result: str
    where: str
    exact: bool = False
    number: bool = False
    gradients: bool = True

    @property
    def name(self) -> str:
        """The name of the function or class."""
        return self.call.partition("(")[0]

    @property
    def arguments(self) -> list[str]:
        """The names of what a function is called with."""
        return self.call.partition("(")[2].rstrip(")").split(", ")

    def failed(self, *sentences: str, label: str = "", numbers: str = "") -> CheckFailed:
        """Put what was found into one message; of several sentences each fits."""
        different = sorted(set(sentences))
        several = ("it gives what each of these mistakes would give:", *different)
        said = different[0] if len(different) == 1 else "\n  · ".join(several)
        end = "" if "\n" in said or said.endswith((".", "?", "!")) else "."
        tried = f"\n  {numbers}." if numbers else ""
        tried += f"\n  Tried with {label}." if label else ""
        return CheckFailed(f"{self.name}: {said}{end}{tried}\n  Read again: {self.where}.")


@dataclass
class Case:
    """One input and what must come of it, worked out before any code of the reader's runs.

    Attributes:
        inputs: what the piece is called with.
        expected: ours.
        mistakes: what well-known mistakes would have given, by a sentence that names each; or what works that
            out when a result is wrong.
        note: what its shapes do not say of the input.
        others: of the same inputs, where something else is as good.
    """

    inputs: tuple[object, ...]
    expected: Tensor
    mistakes: Mapping[str, Tensor] | Callable[[], Mapping[str, Tensor]] = field(default_factory=dict)
    note: str = ""
    others: Sequence["Case"] = ()

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
    """What one result looks like: `sentences` of mistakes that fit, or a `plain` description.

    Attributes:
        sentences: of the mistakes that give this result.
        numbers: what came out and what was expected, where a mistake is known.
        plain: what is wrong, where no mistake is known.
        hints: how the result is related to the right one, the most telling first.
        lead: what stands before a hint.
        bare: what stands in the place of a hint where there is none.
        end: what follows.
    """

    sentences: set[str] = field(default_factory=set)
    numbers: str = ""
    plain: str = ""
    hints: list[str] = field(default_factory=list)
    lead: str = "; "
    bare: str = ""
    end: str = ""

    def described(self, hints: Sequence[str]) -> str:
        """The plain description, with the first of these hints."""
        return self.plain + (self.lead + hints[0] if hints else self.bare) + self.end


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
    """Return the result of a piece; where it is a number, in whatever shape it came."""
    if piece.number and isinstance(value, int | float | np.number) and not isinstance(value, bool):
        try:
            return number(float(value))
        except OverflowError:  # an integer larger than any float
            return number(math.inf)
    if piece.number and isinstance(value, Tensor) and value.numel() == 1:
        return value.double().reshape(())
    return value


def verdict(piece: Piece, got: object, case: Case, printed: str) -> Verdict | None:
    """Hold one result against the expected one; None if they agree."""
    expected = case.expected
    if not isinstance(got, Tensor):
        return Verdict(plain=_other_kind(piece, got, printed))
    if got.device != expected.device:
        where = f"expected {expected.device}, where its input is"
        return Verdict(plain=f"it returned a tensor on {got.device}: {where}.")
    kind = got.dtype
    longer = kind == torch.float64 and not expected.ndim  # a loss with more digits is as good
    if longer or not piece.gradients:
        got = got.to(expected.dtype)
    if got.dtype != expected.dtype:
        return Verdict(plain=f"it returned {got.dtype}: expected {expected.dtype}, the type of its input.")
    either = (case, *case.others)
    if any(same(got, one.expected, piece.exact) for one in either):
        if kind.is_floating_point and not expected.is_floating_point():
            whole = "whole numbers in an integer type; end with .long()"
            return Verdict(plain=f"it returned {kind}: expected {whole}.")
        return None
    known = [one.mistakes() if callable(one.mistakes) else one.mistakes for one in either]
    fitting = {said for each in known for said, wrong in each.items() if same(got, wrong, piece.exact)}
    if fitting:
        return Verdict(fitting, _numbers(got, expected))
    if got.shape != expected.shape:
        wanted = str(tuple(expected.shape))
        wanted = piece.result if piece.result.startswith(wanted) else f"{wanted}, {piece.result}"
        shapes = f"it returned shape {tuple(got.shape)}: expected {wanted}"
        return Verdict(plain=shapes, hints=list(_of_shape(got, expected)))
    if not got.isfinite().all():
        count, kind = (~got.isfinite()).sum().item(), "NaN" if got.isnan().any() else "infinite"
        why = "it comes of 0 / 0, of inf - inf, or of a root or logarithm of less than 0"
        return Verdict(plain=f"{count} of {got.numel()} values are {kind}: expected finite ones ({why}).")
    difference = (got - expected).abs()
    hints = list(_likeness(got, expected, case.inputs))
    if not expected.ndim:
        numbers = f"it returned {got.item():,.10g}: expected {expected.item():,.10g}"
        return Verdict(plain=numbers, hints=hints)
    right = (difference <= TOLERANCE * expected.abs().max()).float().mean().item()
    return Verdict(
        plain="the shape is right, the values are not: ",
        hints=hints,
        lead="",
        bare=f"{right:.0%} of them agree",
        end=f". {_numbers(got, expected)}. Compare the two step by step on a small input.",
    )


def _numbers(got: Tensor, expected: Tensor) -> str:
    """Say what came out where two results differ most, and what was expected."""
    if got.shape != expected.shape:
        return f"It has shape {tuple(got.shape)} where {tuple(expected.shape)} is expected"
    difference = (got.double() - expected.double()).abs().nan_to_num(torch.inf)
    place = tuple(int(i) for i in np.unravel_index(int(difference.argmax()), tuple(got.shape)))
    at = f"At {place} it" if place else "It"
    return f"{at} has {got[place].item():.5g} where {expected[place].item():.5g} is expected"


def _of_shape(got: Tensor, expected: Tensor) -> Iterator[str]:
    """Say how a result of another shape is related to the right one."""
    if got.ndim == expected.ndim < 6:
        for axes in itertools.permutations(range(got.ndim)):
            if got.permute(axes).shape == expected.shape and same(got.permute(axes), expected):
                yield f"its axes stand in another order: permute{axes} puts them right"
    if got.numel() == expected.numel() and same(got.reshape(expected.shape), expected):
        yield "its values are right: reshape them"
    for axis in range(expected.ndim):
        for how, less in (("the mean", expected.mean), ("the sum", expected.sum)):
            if expected.is_floating_point() and same(got.squeeze(), less(axis).squeeze()):
                yield f"it is {how} over axis {axis}, which has to stay"
        count = expected.shape[axis]
        for which, kept in (("first", slice(1)), ("last", slice(count - 1, count))):
            rest = slice(1, None) if which == "first" else slice(count - 1)
            if same(got.squeeze(), expected.movedim(axis, 0)[kept].movedim(0, axis).squeeze()):
                yield f"it holds the {which} of axis {axis} alone"
            if same(got, expected.movedim(axis, 0)[rest].movedim(0, axis)):
                yield f"the {which} of axis {axis} is missing"


def _likeness(got: Tensor, expected: Tensor, inputs: Sequence[object]) -> Iterator[str]:
    """Say how a wrong result of the right shape is related to the right one, the most telling first."""
    if any(isinstance(given, Tensor) and same(got, given.to(got.dtype)) for given in inputs):
        yield "an input comes back as it was"
    if not got.is_floating_point():
        got, expected = got.double(), expected.double()
    if 2 < got.numel() < 2 * len(got.unique()) and _in_bfloat16(got) and not _in_bfloat16(expected):
        yield "none of them has more digits than bfloat16 holds, so work in float32"
    if got.numel() > 1 and (got - expected).abs().max() < 0.01 * expected.abs().max():
        yield "they are close, and differ by more than rounding (another constant, or less precise numbers)"
    axes = range(got.ndim)
    for axis in axes:
        if same(got.flip(axis), expected):
            yield f"axis {axis} is turned round"
        for step in (1, -1):
            if same(got.roll(step, axis), expected):
                yield f"everything lies one place beside where it belongs, along axis {axis}"
    for one, other in itertools.combinations(axes, 2):
        if got.shape[one] == got.shape[other] and same(got.transpose(one, other), expected):
            yield f"axes {one} and {other} have changed places"
    for axis in axes:
        if same(got.sort(axis).values, expected.sort(axis).values):
            yield f"along axis {axis} they are the right ones in another order; keep the order"
    factor = (got * expected).sum() / expected.square().sum().clamp(min=1e-30)
    shift = (got - expected).mean()
    if not got.any():
        yield "all is 0"
    elif same(got, expected) and not expected.frac().any():  # it would do, were these not whole numbers
        yield "float32 holds about 7 digits only: count with Python's integers"
    elif (expected < 0).any() and same(got, expected.abs()):
        yield "their signs are lost"
    elif same(got, -expected):
        yield "the sign is turned"
    elif got.numel() > 2 and same(got, factor * expected):
        yield f"all are {factor.item():.4g} times as large"
        yield "all are off by one factor, which is another for other inputs"
    elif got.numel() > 2 and same(got, expected + shift):
        yield f"to each the same is added, {shift.item():.4g}"
    elif got.numel() == 1 and expected.any():
        for times, what in ((got / expected, "as large"), (expected / got, "too small")):
            if times.abs().round() > 1 and same(times, times.round()):
                yield f"it is {times.item():.0f} times {what}"
    for axis in axes if got.ndim > 1 else ():
        others = [other for other in axes if other != axis]
        if got.numel() < 3 * got.shape[axis]:
            continue
        factors = (got * expected).sum(others, keepdim=True) / expected.square().sum(others, keepdim=True)
        if same(got, factors * expected):
            yield f"they are off by factors, one for each place along axis {axis}"
        if same(got, expected + (got - expected).mean(others, keepdim=True)):
            yield f"something is added that changes along axis {axis} alone"
    if got.numel() > 2 and same(got.flatten().sort().values, expected.flatten().sort().values):
        yield "every one is there, at another place: the axes come in another order"
    close = (got - expected).abs() <= TOLERANCE * expected.abs().max()
    for axis in axes:
        whole = close.movedim(axis, 0).reshape(got.shape[axis], -1).all(1)
        few = whole if 2 * whole.sum() <= len(whole) else ~whole
        if whole.any() and len(whole) > 1:
            count, first, kind = int(few.sum()), int(few.int().argmax()), "right" if few is whole else "wrong"
            yield f"along axis {axis} only {count} of {len(whole)} are {kind}, first of all number {first}"


def _in_bfloat16(values: Tensor) -> bool:
    return torch.equal(values.bfloat16().to(values.dtype), values)


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


def randomise(module: Layers) -> Layers:
    """Give every parameter of a module random values, so that no zero hides a mistake."""
    generator = torch.Generator().manual_seed(0)
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
