"""Compare a reader's result with the expected one, and put the difference into words."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

#: A reader's float32 result may differ from ours by rounding only.
TOLERANCE = 1e-5


class CheckFailed(AssertionError):
    """A reader's piece differs from the package; the message says how."""


def compare(name: str, got: object, expected: Tensor, mistakes: Mapping[str, Tensor] | None = None) -> None:
    """Hold one result against the expected one.

    Args:
        name: what is checked, as the reader calls it.
        got: the reader's result.
        expected: ours.
        mistakes: what well-known mistakes would have given, by a sentence that names each.

    Raises:
        CheckFailed: with the first thing that differs: kind, shape, type, a known mistake, or the values.
    """
    if not isinstance(got, Tensor):
        raise CheckFailed(f"{name} returned {type(got).__name__}: expected a tensor; is a return missing?")
    if got.shape != expected.shape:
        raise CheckFailed(f"{name} returned shape {tuple(got.shape)}: expected {tuple(expected.shape)}.")
    if got.dtype != expected.dtype:
        raise CheckFailed(f"{name} returned {got.dtype}: expected {expected.dtype}, the type of its input.")
    if torch.allclose(got, expected, atol=TOLERANCE, rtol=TOLERANCE):
        return
    for sentence, wrong in (mistakes or {}).items():
        if wrong.shape == got.shape and torch.allclose(got, wrong, atol=TOLERANCE, rtol=TOLERANCE):
            raise CheckFailed(f"{name}: {sentence}")
    difference = (got - expected).abs().max().item()
    raise CheckFailed(
        f"{name}: the shape is right, the values are not (largest difference {difference:.3g}); "
        "compare the two step by step on a small input."
    )


def call(name: str, function: Callable[..., object], *arguments: object) -> object:
    """Call a reader's function; an error in it becomes a failed check that quotes the error."""
    try:
        return function(*arguments)
    except CheckFailed:
        raise
    except Exception as error:
        raise CheckFailed(f"{name} stopped with {type(error).__name__}: {error}") from error


def passed(name: str, what: str) -> None:
    """Print the one line of a passed check."""
    print(f"✓ {name}: {what}")


def randomise(module: nn.Module, seed: int = 0) -> nn.Module:
    """Give every parameter of a module random values, so that no zero hides a mistake."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return module.eval()


def with_weights_of(name: str, theirs: object, reference: nn.Module) -> nn.Module:
    """Load the reference's weights into a reader's module.

    Raises:
        CheckFailed: if the reader's parameters have other names or shapes; it lists both.
    """
    if not isinstance(theirs, nn.Module):
        raise CheckFailed(f"{name} is a {type(theirs).__name__}: expected a subclass of nn.Module.")
    got = {key: tuple(value.shape) for key, value in theirs.state_dict().items()}
    expected = {key: tuple(value.shape) for key, value in reference.state_dict().items()}
    if got != expected:
        lines = [f"  missing    {key} {expected[key]}" for key in expected if key not in got]
        lines += [f"  unexpected {key} {got[key]}" for key in got if key not in expected]
        lines += [
            f"  {key} has shape {got[key]}, expected {expected[key]}"
            for key in expected
            if key in got and got[key] != expected[key]
        ]
        raise CheckFailed("\n".join([f"{name} has other parameters than the package's:", *lines]))
    theirs.load_state_dict(reference.state_dict())
    return theirs.eval()
