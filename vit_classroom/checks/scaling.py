"""Checks of chapter 12: operations, bytes, and what a machine can give."""

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
    [(5, 20, 300), (2, 20, 300), (4, 20, 300), (4, 4608, 9000)],
    answers=[cost.block_flops],
    gradients=False,
)
def block_flops(count: int, least: int, most: int) -> Case:
    """Check a function ``(tokens, dim, mlp_dim)`` that counts a block's operations in three parts, (3, n).

    Tokens (n,) are lengths T, the class token among them. The rows are: the projections to and from the
    heads, the two products between pairs of tokens, the MLP. A multiply-add is 2 operations.
    """
    dim, hidden = 8 * draw(4, 12), 8 * draw(13, 40)
    tokens = torch.randint(least, most, (count,))
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
        "the numbers are too large for int32; count with the int64 of `tokens`": right.long().int().double(),
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


def _tokens(
    inputs: int,
    outputs: int,
    needed: int,
    operations: int = 2,
    moved: tuple[int, int] = (1, 1),
    more: int = 0,
) -> int:
    """Return the fewest tokens, or 0; `needed` are the operations asked for with each number moved.

    `moved` says whether input and result are, as the weights are, and `more` counts what else is.
    """
    products = inputs * outputs
    gained = operations * products - needed * (moved[0] * inputs + moved[1] * outputs)  # by each token
    return -(-needed * (products + more) // gained) if gained > 0 else 0


def _layer(kind: str) -> tuple[int, int, int, int]:
    """Draw a layer of this kind: inputs, outputs, a ridge and the bytes of a number."""
    size, scale = {"few": 2, "many": 4}.get(kind) or 2 * draw(1, 2), 2 * draw(20, 60)
    if kind == "missed":  # "exact", and a sum of fractions in float64 comes out too small
        return 160, 320, 50, 4
    if kind == "exact":  # 6 scale tokens do just as much as the ridge asks for
        return 4 * scale, 12 * scale, 4 * scale // size, size
    if kind == "level":  # each token does just as much as its own bytes ask for, and weights come on top
        return 3 * scale, 6 * scale, 4 * scale // size, size
    while True:
        share = {"few": draw(30, 45), "many": draw(60, 85), "never": draw(130, 170)}[kind]
        inputs, outputs = 8 * draw(20, 40), 8 * draw(50, 90)
        products, each = inputs * outputs, inputs + outputs
        ridge = share * 2 * products // (100 * size * each)
        gained = 2 * products - ridge * size * each
        over = ridge * size * products % gained
        if kind == "never" or 0 < over < gained // 2:  # what is rounded to the nearest is rounded down
            return inputs, outputs, ridge, size


@function_check(
    "or a plain number",
    'chapter 12, exercise "How many tokens fill a machine?"',
    lambda inputs, outputs, ridge, value_bytes: number(_tokens(inputs, outputs, ridge * value_bytes)),
    ["few", "many", "exact", "never", "level", "missed"],
    number=True,
)
def tokens_to_ridge(kind: str) -> Case:
    """Check a function ``(inputs, outputs, ridge, value_bytes)``: how many tokens a dense layer needs.

    It is the smallest number of tokens with which the layer does at least ``ridge`` operations for each byte
    of its input, its weights and its result, and 0 where no number is enough. A multiply-add is 2 operations,
    a number takes ``value_bytes``, and there is no bias.
    """
    inputs, outputs, ridge, size = _layer(kind)
    needed, products = ridge * size, inputs * outputs
    asked, gained = needed * products, 2 * products - needed * (inputs + outputs)

    def counting(of_input: int, of_result: int) -> int:
        return _tokens(inputs, outputs, needed, moved=(of_input, of_result))

    right = _tokens(inputs, outputs, needed)
    mistakes: dict[str, float] = {
        "the weights are not counted as moved; each is, once for all tokens": min(1, max(0, gained)),
        "the input is not counted as moved": counting(0, 1),
        "the result is not counted as moved": counting(1, 0),
        "the weights alone are counted as moved; input and result are as well": counting(0, 0),
        "a bias is counted; leave it out": _tokens(inputs, outputs, needed, more=outputs),
        "a multiply-add counts once; here it counts as 2 operations": _tokens(inputs, outputs, needed, 1),
        "the bytes of a number are left out: each takes `value_bytes`": _tokens(inputs, outputs, ridge),
    }
    if gained > 0:
        mistakes |= {
            "it is rounded down; with so few it does less than the ridge asks for": asked // gained,
            "that is not a whole number of tokens: round up": asked / gained,
            "it says that no number is enough, and one is; weights are moved once for all tokens": 0,
        }
    elif gained < 0:
        never = "no number of tokens is enough there, so it is 0, and not what the division gives"
        mistakes |= {
            never: -(-asked // gained),
            f"{never}, rounded down": asked // gained,
            f"{never}, without its sign": asked // -gained,
        }
    if kind in ("exact", "missed"):
        mistakes[
            "with one token fewer it does exactly `ridge` operations a byte, which is enough; a float may "
            "miss that, so count with integers"
        ] = right + 1
    mistakes = {sentence: value for sentence, value in mistakes.items() if value != right}
    return Case((inputs, outputs, ridge, size), number(right), numbers(mistakes))


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
        "the inputs are taken off the blocks that are computed again; they are there, and `block` has them": (
            (groups - 1) * kept + every * (block - kept)
        ),
        "of the group computed again one input alone counts; each of its blocks has its own": groups * kept
        + every * (block - kept),
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
