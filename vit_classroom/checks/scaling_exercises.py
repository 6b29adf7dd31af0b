"""Checks of chapter 12's exercises: where the square wins, and what a budget of bytes or operations buys."""

import math
from collections.abc import Callable

from vit_classroom.checks.judging import check, judge_function
from vit_classroom.checks.report import Case, Piece
from vit_classroom.checks.scaling import draw, nothing, number
from vit_from_scratch.model import cost, memory

CROSSOVER = Piece(
    "crossover_side",
    "crossover_side(dim, mlp_dim, patch_size)",
    "or a plain number",
    'chapter 12, exercise "The crossover in pixels"',
    exact=True,
    number=True,
    gradients=False,
)
CHECKPOINTED = Piece(
    "checkpointed_bytes",
    "checkpointed_bytes(depth, every, kept, block)",
    "or a plain number",
    'chapter 12, exercise "A checkpoint every few blocks"',
    exact=True,
    number=True,
    gradients=False,
)
DEEPEST = Piece(
    "deepest",
    "deepest(budget, tokens, dim)",
    "or a plain number",
    'chapter 12, exercise "Equal cost"',
    exact=True,
    number=True,
    gradients=False,
)


@check(CROSSOVER)
def crossover_side(function: Callable[[int, int, int], int]) -> None:
    """Check a function ``(dim, mlp_dim, patch_size)``: from which image side on the pairs take over.

    It is the smallest side in pixels, a multiple of the patch size, at which the two products between pairs
    of tokens take more operations than everything else in a block. There is a class token.

    Raises:
        CheckFailed: if it differs; the message names a part of the block that was left out.
    """
    cases = []
    for exact in (True, False, True, False):
        patch, root = draw(4, 16), draw(20, 60)
        dim = draw(root**2 // 8, root**2 // 5)
        level = root**2 if exact else root**2 + draw(5, root)  # T > level
        hidden = level - 2 * dim

        def side(level: float, patch: int = patch) -> int:
            """Give the smallest multiple of the patch with that many patches, or more."""
            return patch * math.ceil(math.sqrt(level))

        right = side(level)
        mistakes = {
            "the class token is missing: T = N + 1": patch * (math.isqrt(level) + 1),
            "the side is rounded down; there the pairs still take less": patch * math.isqrt(level - 1),
            "it is compared with the MLP alone; the projections belong to the rest as well": side(hidden),
            "it is compared with the projections alone; the MLP belongs to the rest as well": side(2 * dim),
            "all of attention is compared with the MLP; compare the pairs with everything else": side(
                hidden - 2 * dim
            ),
            "one of the two products between pairs is missing": side(2 * level),
            "the output projection is missing: the projections are four": side(hidden + 1.5 * dim),
            "queries, keys and values are one product with D x D; they are three": side(hidden + dim),
            "the MLP has one product here; it has two": side(hidden / 2 + 2 * dim),
            "these are patches along a side; multiply by the patch size": side(level) // patch,
            "that is the number of patches; return the image's side in pixels": level,
            "that is the number of tokens; return the image's side in pixels": level + 1,
            "that is no multiple of the patch size: round up the patches, not the pixels": math.ceil(
                patch * math.sqrt(level)
            ),
            "the side is not rounded: images have whole patches": patch * math.sqrt(level),
            "the root is missing: N patches are sqrt(N) along a side": patch * level,
        }
        if exact:  # nothing was to be rounded
            mistakes = {sentence: value for sentence, value in mistakes.items() if value != right}
        label = f"dim {dim}, mlp_dim {hidden}, patch_size {patch}"
        wrong = {sentence: number(value) for sentence, value in mistakes.items()}
        cases.append(Case((dim, hidden, patch), number(right), wrong, label))
    judge_function(CROSSOVER, function, nothing, cases, [])


@check(CHECKPOINTED)
def checkpointed_bytes(function: Callable[[int, int, int, int], int]) -> None:
    """Check a function ``(depth, every, kept, block)``: bytes at most, with a checkpoint every few blocks.

    Of each group of ``every`` blocks the input alone is kept, ``kept`` bytes; a group that is computed again
    has ``block`` bytes for each of its blocks, its input among them. ``every`` divides the depth.

    Raises:
        CheckFailed: if it differs; the message names what is counted twice, or not at all.
    """
    cases = []
    for _ in range(4):
        every, groups, kept = draw(2, 6), draw(7, 11), draw(100, 900)
        depth, block = every * groups, draw(6, 12) * kept + draw(1, 99)
        right = (groups - 1) * kept + every * block
        mistakes = {
            "a checkpoint stands before every block here; each group has one": (depth - 1) * kept
            + every * block,
            "the blocks of other groups keep their inputs, too; each group keeps one": (depth - every) * kept
            + every * block,
            "the input of the group that is computed again counts twice; its blocks have it": groups * kept
            + every * block,
            "only one block is there in full; the whole group is computed again": (groups - 1) * kept + block,
            "the other groups' inputs are missing": every * block,
            "only the inputs are there; one group at a time is computed again": groups * kept,
            "that is what is kept without checkpoints": depth * block,
            "every group is there in full; one at a time is": (groups - 1) * kept + depth * block,
            "`every` is taken for the number of groups": (every - 1) * kept + groups * block,
            "a group's input and a block in full have changed places": (groups - 1) * block + every * kept,
            "the last group's input is left out: all groups but the one computed again keep theirs": (
                groups - 2
            )
            * kept
            + every * block,
            "all inputs and all groups in full are counted": groups * kept + depth * block,
        }
        label = f"depth {depth}, every {every}, kept {kept}, block {block}"
        wrong = {sentence: number(value) for sentence, value in mistakes.items()}
        cases.append(Case((depth, every, kept, block), number(right), wrong, label))
    judge_function(CHECKPOINTED, function, nothing, cases, [memory.activation_memory])


@check(DEEPEST)
def deepest(function: Callable[[int, int, int], int]) -> None:
    """Check a function ``(budget, tokens, dim)``: the most blocks, of M = 4 D, that a budget pays for.

    The budget is in operations for one image, a multiply-add as 2; blocks alone count.

    Raises:
        CheckFailed: if it differs; the message names a part of the block that was left out.
    """
    cases = []
    for whole in (False, True, False, False):
        tokens, dim, depth = draw(60, 300), 8 * draw(8, 30), draw(30, 90)
        dense, pairs = 24 * tokens * dim**2, 4 * tokens**2 * dim
        block = dense + pairs
        budget = depth * block + (0 if whole else draw(block // 4, 3 * block // 4))
        mistakes = {
            "the budget is used up to the last operation here, and more: round down": -(-budget // block),
            "one block more fits exactly: a budget may be spent in full": (budget - 1) // block,
            "that is no whole number of blocks: round down": budget / block,
            "a multiply-add counts once; here it counts as 2 operations": 2 * budget // block,
            "the products between pairs of tokens are missing": budget // dense,
            "one of the two products between pairs is missing": budget // (dense + pairs // 2),
            "the MLP is missing": budget // (8 * tokens * dim**2 + pairs),
            "the MLP has one product here; it has two": budget // (16 * tokens * dim**2 + pairs),
            "the MLP is D wide inside; it is 4 D wide": budget // (12 * tokens * dim**2 + pairs),
            "the projections are missing: four of D x D": budget // (16 * tokens * dim**2 + pairs),
            "the output projection is missing": budget // (22 * tokens * dim**2 + pairs),
            "queries, keys and values are one product with D x D; they are three": budget
            // (20 * tokens * dim**2 + pairs),
            "that is the cost of a block; divide the budget by it": block,
            "that is what is left of the budget; return the number of blocks": budget % block,
            "each token costs a budget of its own here: every block has T of them": budget
            // (block // tokens),
        }
        mistakes = {sentence: value for sentence, value in mistakes.items() if value != depth}
        label = f"budget {budget}, tokens {tokens}, dim {dim}"
        wrong = {sentence: number(value) for sentence, value in mistakes.items()}
        cases.append(Case((budget, tokens, dim), number(depth), wrong, label))
    judge_function(DEEPEST, function, nothing, cases, [cost.block_flops])
