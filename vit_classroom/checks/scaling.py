"""Checks of chapter 12: operations, bytes, and what a machine can give."""

import math
from typing import Any

import torch
from torch import Tensor

from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case, draw, number, numbers
from vit_from_scratch.model import cost, memory


def _block_flops(tokens: Tensor, dim: int, mlp_dim: int) -> Tensor:
    length = tokens.double()
    parts = 4 * length * dim**2, 2 * length**2 * dim, 2 * length * dim * mlp_dim
    return 2 * torch.stack(parts)


@function_check(
    "(3, n): a row for projections, pairs and MLP",
    'chapter 12, "Where the operations go"',
    _block_flops,
    [5, 2, 4],
    answers=[cost.block_flops],
    gradients=False,
)
def block_flops(count: int) -> Case:
    """Check a function ``(tokens, dim, mlp_dim)`` that counts a block's operations in three parts, (3, n).

    Tokens (n,) are lengths T, the class token among them. The rows are: the projections to and from the
    heads, the two products between pairs of tokens, the MLP. A multiply-add is 2 operations.
    """
    dim, hidden = 8 * draw(4, 12), 8 * draw(13, 40)
    tokens = torch.randint(20, 300, (count,))
    right = _block_flops(tokens, dim, hidden)
    factors: dict[str, tuple[Any, Any, Any]] = {
        "queries, keys and values are one product with D x D; they are three": (1 / 2, 1, 1),
        "the output projection is missing: D x D, after the heads are joined": (3 / 4, 1, 1),
        "only the output projection is there; queries, keys and values are three more": (1 / 4, 1, 1),
        "one of the two products between pairs is missing: q k^T, and A v": (1, 1 / 2, 1),
        "each pair of tokens costs one operation here; it costs D values' worth": (1, 1 / dim, 1),
        "the products between pairs grow with T; every token meets every token": (1, 1 / tokens, 1),
        "the MLP has one product here; it has two": (1, 1, 1 / 2),
        "the MLP is D wide inside; it is M wide": (1, 1, dim / hidden),
    }
    rows = {said: zip(right, times, strict=True) for said, times in factors.items()}
    mistakes = {said: torch.stack([row * by for row, by in pairs]) for said, pairs in rows.items()} | {
        "a multiply-add counts once; here it counts as 2 operations": right / 2,
        "a multiply-add counts as 2 operations, and here they count twice": 2 * right,
        "the last two rows have changed places: projections, pairs, MLP": right[[0, 2, 1]],
        "the first two rows have changed places: projections, pairs, MLP": right[[1, 0, 2]],
        "these are shares; return the operations": right / right.sum(0),
        "a class token is added; `tokens` counts it already": _block_flops(tokens + 1, dim, hidden),
    }
    return Case((tokens, dim, hidden), right, mistakes)


@function_check(
    "or a plain number",
    'chapter 12, "What attention keeps"',
    lambda tokens, heads, depth, batch, value_bytes: number(batch * depth * heads * tokens**2 * value_bytes),
    [()] * 4,
    number=True,
)
def attention_bytes() -> Case:
    """Check a function that counts the bytes of all attention weights which explicit attention keeps.

    It is called with ``(tokens, heads, depth, batch, value_bytes)``.
    """
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
    return Case((tokens, heads, depth, batch, size), number(right), numbers(mistakes))


def _roofline(operations: Tensor, moved: Tensor, peak: float, bandwidth: float) -> Tensor:
    return (bandwidth * operations / moved).clamp(max=peak)


@function_check(
    "(n,), operations a second", 'chapter 12, "Does the clock follow?"', _roofline, [6, 5, 7], gradients=False
)
def roofline(count: int) -> Case:
    """Check a function ``(operations, moved, peak, bandwidth)``: operations a second that a machine allows.

    Operations (n,) and the bytes moved for them (n,); the machine works out ``peak`` operations and moves
    ``bandwidth`` bytes a second.
    """
    peak, bandwidth = float(draw(60, 200)), float(draw(10, 30))
    ridge = peak / bandwidth
    intensity = ridge * 2 ** torch.linspace(-3, 3, count, dtype=torch.float64)[torch.randperm(count)]
    moved = 1 + 9 * torch.rand(count, dtype=torch.float64)
    operations = intensity * moved
    right = _roofline(operations, moved, peak, bandwidth)
    slope, working, moving = bandwidth * intensity, operations / peak, moved / bandwidth
    unheld = bandwidth * operations
    mistakes = {
        "it takes the larger of the two limits; the smaller one binds": slope.clamp(min=peak),
        "the roof is missing: no more than `peak`": slope,
        "the slope is missing: bytes have to come first": torch.full_like(right, peak),
        "the intensity stands on its head: it is operations a byte": (bandwidth / intensity).clamp(max=peak),
        "the intensity is compared with the peak; multiply by the bandwidth first": intensity.clamp(max=peak),
        "these are operations a byte; multiply by the bandwidth, and cap": intensity,
        "these are seconds; return operations a second": torch.maximum(working, moving),
        "these are seconds, the smaller ones; return operations a second": torch.minimum(working, moving),
        "this is a share of the peak; return operations a second": right / peak,
        "moving and working are done one after the other; here they overlap": operations / (working + moving),
        "these are bytes a second; return operations a second": right / intensity,
        "this is the ridge, where the slope meets the roof": torch.full_like(right, ridge),
        "peak and bandwidth have changed places": (peak * intensity).clamp(max=bandwidth),
        "the operations are compared with the bandwidth; divide by bytes": unheld.clamp(max=peak),
    }
    return Case((operations, moved, peak, bandwidth), right, mistakes)


@function_check(
    "or a plain number",
    'chapter 12, exercise "The crossover in pixels"',
    lambda dim, mlp_dim, patch_size: number(patch_size * math.ceil(math.sqrt(2 * dim + mlp_dim))),
    [0, None, None, 1],
    number=True,
)
def crossover_side(more: int | None) -> Case:
    """Check a function ``(dim, mlp_dim, patch_size)``: from which image side on the pairs take over.

    It is the smallest side in pixels, a multiple of the patch size, at which the two products between pairs
    of tokens take more operations than everything else in a block. There is a class token.
    """
    patch, root = draw(4, 16), draw(20, 60)
    dim = draw(root**2 // 8, root**2 // 5)
    level = root**2 + (draw(5, root) if more is None else more)  # T > level
    hidden = level - 2 * dim

    def side(level: float) -> int:
        """Give the smallest multiple of the patch with that many patches, or more."""
        return patch * math.ceil(math.sqrt(level))

    right, down = side(level), "the side is rounded down; there the pairs still take less"
    mistakes = {
        "the class token is missing: T = N + 1": patch * (math.isqrt(level) + 1),
        down: patch * math.isqrt(level - 1),
        "it is compared with the MLP alone; the projections belong to the rest as well": side(hidden),
        "it is compared with the projections alone; the MLP belongs to the rest as well": side(2 * dim),
        "all of attention is compared with the MLP; compare the pairs with all else": side(hidden - 2 * dim),
        "one of the two products between pairs is missing": side(2 * level),
        "the output projection is missing: the projections are four": side(hidden + 1.5 * dim),
        "queries, keys and values are one product with D x D; they are three": side(hidden + dim),
        "the MLP has one product here; it has two": side(hidden / 2 + 2 * dim),
        "these are patches along a side; multiply by the patch size": side(level) // patch,
        "that is the number of patches; return the image's side in pixels": level,
        "that is the number of tokens; return the image's side in pixels": level + 1,
        "that is not a multiple of the patch size: round up patches": math.ceil(patch * math.sqrt(level)),
        "the side is not rounded: images have whole patches": patch * math.sqrt(level),
        "the root is missing: N patches are sqrt(N) along a side": patch * level,
    }
    if more == 1:  # with one patch a side fewer the pairs take exactly as much; so it is rounded down, too
        del mistakes[down]
        mistakes["there the pairs take as much as all else; equal is not more"] = side(level - 1)
    mistakes = {sentence: value for sentence, value in mistakes.items() if value != right}
    return Case((dim, hidden, patch), number(right), numbers(mistakes))


@function_check(
    "or a plain number",
    'chapter 12, exercise "A checkpoint every few blocks"',
    lambda depth, every, kept, block: number((depth // every - 1) * kept + every * block),
    [()] * 4,
    answers=[memory.activation_memory],
    number=True,
)
def checkpointed_bytes() -> Case:
    """Check a function ``(depth, every, kept, block)``: bytes at most, with a checkpoint every few blocks.

    Of each group of ``every`` blocks the input alone is kept, ``kept`` bytes; a group that is computed again
    has ``block`` bytes for each of its blocks, its input among them. ``every`` divides the depth.
    """
    every, groups, kept = draw(2, 6), draw(7, 11), draw(100, 900)
    depth, block = every * groups, draw(6, 12) * kept + draw(1, 99)
    right = (groups - 1) * kept + every * block
    mistakes = {
        "a checkpoint stands before every block here; each group has one": (depth - 1) * kept + every * block,
        "other groups' blocks keep their inputs; each group keeps one": (depth - every) * kept
        + every * block,
        "the input of the group computed again counts twice; its blocks have it": groups * kept
        + every * block,
        "only one block is there in full; the whole group is computed again": (groups - 1) * kept + block,
        "the other groups' inputs are missing": every * block,
        "only the inputs are there; one group at a time is computed again": groups * kept,
        "that is what is kept without checkpoints": depth * block,
        "every group is there in full; one at a time is": (groups - 1) * kept + depth * block,
        "`every` is taken for the number of groups": (every - 1) * kept + groups * block,
        "a group's input and a block in full have changed places": (groups - 1) * block + every * kept,
        "the last group's input is left out: all groups but the one computed again keep theirs": (groups - 2)
        * kept
        + every * block,
        "all inputs and all groups in full are counted": groups * kept + depth * block,
    }
    return Case((depth, every, kept, block), number(right), numbers(mistakes))


@function_check(
    "or a plain number",
    'chapter 12, exercise "Equal cost"',
    lambda budget, tokens, dim: number(budget // (24 * tokens * dim**2 + 4 * tokens**2 * dim)),
    [(25, 45), (0, 0), (55, 75), (55, 75)],
    answers=[cost.block_flops],
    number=True,
)
def deepest(least: int, most: int) -> Case:
    """Check a function ``(budget, tokens, dim)``: the most blocks, of M = 4 D, that a budget pays for.

    The budget is in operations for one image, a multiply-add as 2; blocks alone count.
    """
    tokens, dim, depth = draw(60, 300), 8 * draw(8, 30), draw(30, 90)
    dense, pairs = 24 * tokens * dim**2, 4 * tokens**2 * dim
    block = dense + pairs
    budget = depth * block + draw(least, most) * block // 100
    mistakes = {
        "the budget is used up to the last operation here, and more: round down": -(-budget // block),
        "one block more fits exactly: a budget may be spent in full": (budget - 1) // block,
        "that is not a whole number of blocks: round down": budget / block,
        "a multiply-add counts once; here it counts as 2 operations": 2 * budget // block,
        "the products between pairs of tokens are missing": budget // dense,
        "one of the two products between pairs is missing": budget // (dense + pairs // 2),
        "the MLP is missing": budget // (8 * tokens * dim**2 + pairs),
        "the MLP has one product here; it has two": budget // (16 * tokens * dim**2 + pairs),
        "the MLP is D wide inside; it is 4 D wide": budget // (12 * tokens * dim**2 + pairs),
        "the projections are missing: four of D x D": budget // (16 * tokens * dim**2 + pairs),
        "the output projection is missing": budget // (22 * tokens * dim**2 + pairs),
        "queries, keys and values are one product here; they are three": budget
        // (20 * tokens * dim**2 + pairs),
        "that is the cost of a block; divide the budget by it": block,
        "that is what is left of the budget; return the number of blocks": budget % block,
        "each token costs a budget of its own here: every block has T of them": budget // (block // tokens),
    }
    mistakes = {sentence: value for sentence, value in mistakes.items() if value != depth}
    return Case((budget, tokens, dim), number(depth), numbers(mistakes))
