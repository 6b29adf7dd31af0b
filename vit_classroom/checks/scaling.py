"""Checks of chapter 12: operations, bytes, and what a machine can give."""

from collections.abc import Callable

import torch
from torch import Tensor

from vit_classroom.checks.judging import check, judge_function
from vit_classroom.checks.report import Case, Piece
from vit_from_scratch.model import cost

BLOCK = Piece(
    "block_flops",
    "block_flops(tokens, dim, mlp_dim)",
    "(3, n): a row for projections, pairs and MLP",
    'chapter 12, "Where the operations go"',
    gradients=False,
)
ATTENTION = Piece(
    "attention_bytes",
    "attention_bytes(tokens, heads, depth, batch, value_bytes)",
    "or a plain number",
    'chapter 12, "What attention keeps"',
    exact=True,
    number=True,
    gradients=False,
)
ROOFLINE = Piece(
    "roofline",
    "roofline(operations, moved, peak, bandwidth)",
    "(n,), operations a second",
    'chapter 12, "Does the clock follow?"',
    gradients=False,
)


def number(value: float) -> Tensor:
    """Return a number as judged: results that are plain numbers are held against this."""
    return torch.tensor(float(value), dtype=torch.float64)


def nothing(*_: object) -> Tensor:
    """Stand where a function of ours would, whose gradients nobody asks for."""
    return torch.empty(0)


def draw(low: int, high: int) -> int:
    """Draw a whole number, both ends included."""
    return int(torch.randint(low, high + 1, ()))


@check(BLOCK)
def block_flops(function: Callable[[Tensor, int, int], Tensor]) -> None:
    """Check a function ``(tokens, dim, mlp_dim)`` that counts a block's operations in three parts, (3, n).

    Tokens (n,) are lengths T, the class token among them. The rows are: the projections to and from the
    heads, the two products between pairs of tokens, the MLP. A multiply-add is 2 operations.

    Raises:
        CheckFailed: if it differs; the message names what was forgotten.
    """

    def ours(tokens: Tensor, dim: int, hidden: int) -> Tensor:
        length = tokens.double()
        parts = 4 * length * dim**2, 2 * length**2 * dim, 2 * length * dim * hidden
        return 2 * torch.stack(parts)

    cases = []
    for count in (5, 2, 4):
        dim, hidden = 8 * draw(4, 12), 8 * draw(13, 40)
        tokens = torch.randint(20, 300, (count,))
        right = ours(tokens, dim, hidden)
        projections, pairs, mlp = right
        mistakes = {
            "a multiply-add counts once; here it counts as 2 operations": right / 2,
            "a multiply-add counts as 2 operations, and here they count twice": 2 * right,
            "queries, keys and values are one product with D x D; they are three": torch.stack(
                [projections / 2, pairs, mlp]
            ),
            "the output projection is missing: D x D, after the heads are joined": torch.stack(
                [0.75 * projections, pairs, mlp]
            ),
            "only the output projection is there; queries, keys and values are three more": torch.stack(
                [projections / 4, pairs, mlp]
            ),
            "one of the two products between pairs is missing: q k^T, and A v": torch.stack(
                [projections, pairs / 2, mlp]
            ),
            "each pair of tokens costs one operation here; it costs D values' worth": torch.stack(
                [projections, pairs / dim, mlp]
            ),
            "the products between pairs grow with T; every token meets every token": torch.stack(
                [projections, pairs / tokens, mlp]
            ),
            "the MLP has one product here; it has two": torch.stack([projections, pairs, mlp / 2]),
            "the MLP is D wide inside; it is M wide": torch.stack([projections, pairs, mlp * dim / hidden]),
            "the last two rows have changed places: projections, pairs, MLP": right[[0, 2, 1]],
            "the first two rows have changed places: projections, pairs, MLP": right[[1, 0, 2]],
            "it is transposed: (3, n)": right.T,
            "these are the sums; each part has a row of its own": right.sum(0),
            "these are shares; return the operations": right / right.sum(0),
            "a class token is added; `tokens` counts it already": ours(tokens + 1, dim, hidden),
        }
        label = f"tokens {tokens.tolist()}, dim {dim}, mlp_dim {hidden}"
        cases.append(Case((tokens, dim, hidden), right, mistakes, label))
    judge_function(BLOCK, function, ours, cases, [cost.block_flops])


@check(ATTENTION)
def attention_bytes(function: Callable[[int, int, int, int, int], int]) -> None:
    """Check a function that counts the bytes of all attention weights which explicit attention keeps.

    It is called with ``(tokens, heads, depth, batch, value_bytes)``.

    Raises:
        CheckFailed: if it differs; the message names the factor that is missing.
    """
    cases = []
    for _ in range(4):
        tokens, heads, depth = draw(40, 400), draw(3, 16), draw(5, 30)
        batch, size = draw(6, 64), int(torch.tensor([2, 4, 8])[draw(0, 2)])
        right = batch * depth * heads * tokens**2 * size
        mistakes = {
            "there is one head only; each of the h heads has its own weights": right // heads,
            "there is one block only; each of the L blocks keeps its own": right // depth,
            "there is one image only; multiply by the batch": right // batch,
            "these are numbers; multiply by the bytes of each": right // size,
            "these are bits; a byte has eight": 8 * right,
            "a row has one weight here; it has T, one for each token": right // tokens,
            "they grow with T to the third; each head has T x T weights": right * tokens,
            "the scores are counted as well; what softmax needs for its gradient is its result": 2 * right,
            "the diagonal is left out; a token looks at itself, too": right // tokens * (tokens - 1),
            "only one of each two tokens' weights is counted; A is not symmetric": right / 2,
            "a class token is added; `tokens` counts it already": right // tokens**2 * (tokens + 1) ** 2,
            "these are mebibytes; return bytes": right / 2**20,
            "these are gibibytes; return bytes": right / 2**30,
            "these are megabytes; return bytes": right / 1e6,
            "these are gigabytes; return bytes": right / 1e9,
        }
        arguments = (tokens, heads, depth, batch, size)
        label = f"tokens {tokens}, heads {heads}, depth {depth}, batch {batch}, value_bytes {size}"
        wrong = {sentence: number(value) for sentence, value in mistakes.items()}
        cases.append(Case(arguments, number(right), wrong, label))
    judge_function(ATTENTION, function, nothing, cases, [])


@check(ROOFLINE)
def roofline(function: Callable[[Tensor, Tensor, float, float], Tensor]) -> None:
    """Check a function ``(operations, moved, peak, bandwidth)``: operations a second that a machine allows.

    Operations (n,) and the bytes moved for them (n,); the machine works out ``peak`` operations and moves
    ``bandwidth`` bytes a second.

    Raises:
        CheckFailed: if it differs; the message names the larger limit, or times in place of rates.
    """

    def ours(operations: Tensor, moved: Tensor, peak: float, bandwidth: float) -> Tensor:
        return (bandwidth * operations / moved).clamp(max=peak)

    cases = []
    for count in (6, 5, 7):
        peak, bandwidth = float(draw(60, 200)), float(draw(10, 30))
        ridge = peak / bandwidth
        intensity = ridge * 2 ** torch.linspace(-3, 3, count, dtype=torch.float64)[torch.randperm(count)]
        moved = 1 + 9 * torch.rand(count, dtype=torch.float64)
        operations = intensity * moved
        right = ours(operations, moved, peak, bandwidth)
        slope, working, moving = bandwidth * intensity, operations / peak, moved / bandwidth
        mistakes = {
            "it takes the larger of the two limits; the smaller one binds": slope.clamp(min=peak),
            "the roof is missing: no more than `peak`": slope,
            "the slope is missing: bytes have to come first": torch.full_like(right, peak),
            "the intensity stands on its head: operations a byte, not bytes an operation": (
                bandwidth / intensity
            ).clamp(max=peak),
            "the intensity is compared with the peak; multiply it by the bandwidth first": intensity.clamp(
                max=peak
            ),
            "these are operations a byte; multiply by the bandwidth, and cap": intensity,
            "these are seconds; return operations a second": torch.maximum(working, moving),
            "these are seconds, and of the smaller kind; return operations a second": torch.minimum(
                working, moving
            ),
            "this is a share of the peak; return operations a second": right / peak,
            "moving and working are done one after the other; here they overlap": operations
            / (working + moving),
            "these are bytes a second; return operations a second": right / intensity,
            "this is the ridge, where the slope meets the roof": torch.full_like(right, ridge),
            "peak and bandwidth have changed places": (peak * intensity).clamp(max=bandwidth),
            "the operations are compared with the bandwidth; divide them by the bytes moved": (
                bandwidth * operations
            ).clamp(max=peak),
        }
        label = f"{count} pieces of work, peak {peak:g}, bandwidth {bandwidth:g}"
        cases.append(Case((operations, moved, peak, bandwidth), right, mistakes, label))
    judge_function(ROOFLINE, function, ours, cases, [])
