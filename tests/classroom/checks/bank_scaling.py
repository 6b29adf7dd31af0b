"""Right and wrong answers to the pieces of chapter 12."""

import math
from fractions import Fraction

import torch
from variations import then, variant

from vit_classroom import checks
from vit_from_scratch import model
from vit_from_scratch.model import cost


# Where the operations go
def flops_by_formula(tokens, dim, mlp_dim):
    projections = 2 * tokens * 4 * dim * dim
    return torch.stack([projections, 2 * 2 * tokens**2 * dim, 2 * tokens * 2 * dim * mlp_dim])


def flops_in_loops(tokens, dim, mlp_dim):
    rows = [
        [8.0 * length * dim**2 for length in tokens.tolist()],
        [4.0 * length**2 * dim for length in tokens.tolist()],
        [4.0 * length * dim * mlp_dim for length in tokens.tolist()],
    ]
    return torch.tensor(rows)


def flops_of_shapes(tokens, dim, mlp_dim):
    """Each product as (rows, inner, columns)."""
    found = []
    for length in tokens.tolist():
        dense = [(length, dim, 3 * dim), (length, dim, dim)]
        pairs = [(length, dim, length), (length, length, dim)]
        mlp = [(length, dim, mlp_dim), (length, mlp_dim, dim)]
        found.append([sum(2 * a * b * c for a, b, c in part) for part in (dense, pairs, mlp)])
    return torch.tensor(found).T


def flops_by_outer_product(tokens, dim, mlp_dim):
    length = tokens.float()
    dense = torch.tensor([8 * dim**2, 0, 4 * dim * mlp_dim])[:, None] * length
    return dense + torch.tensor([0, 4 * dim, 0])[:, None] * length**2


def flops_with(change):
    """Return an answer whose three rows are open to mistakes."""

    def function(tokens, dim, mlp_dim):
        return torch.stack(change(*flops_by_formula(tokens, dim, mlp_dim).double(), tokens, dim, mlp_dim))

    return function


# What attention keeps
def weights_by_product(tokens, heads, depth, batch, value_bytes):
    return value_bytes * batch * depth * heads * tokens**2


def weights_of_a_tensor(tokens, heads, depth, batch, value_bytes):
    dtype = {2: torch.bfloat16, 4: torch.float32, 8: torch.float64}[value_bytes]
    weights = torch.empty(depth, batch, heads, tokens, tokens, dtype=dtype, device="meta")
    return weights.nbytes


def weights_row_by_row(tokens, heads, depth, batch, value_bytes):
    row = tokens * value_bytes
    return float(sum(row * tokens for _ in range(depth) for _ in range(heads)) * batch)


def weights_with(change):
    """Return an answer that makes this of the right one and its arguments."""

    def function(tokens, heads, depth, batch, value_bytes):
        right = weights_by_product(tokens, heads, depth, batch, value_bytes)
        return change(right, tokens, heads, depth, batch, value_bytes)

    return function


# Does the clock follow?
def roof_by_minimum(operations, moved, peak, bandwidth):
    return torch.minimum(bandwidth * operations / moved, torch.tensor(peak, dtype=operations.dtype))


def roof_by_seconds(operations, moved, peak, bandwidth):
    return operations / torch.maximum(operations / peak, moved / bandwidth)


def roof_in_loops(operations, moved, peak, bandwidth):
    pairs = zip(operations.tolist(), moved.tolist(), strict=True)
    return torch.tensor([min(peak, bandwidth * work / size) for work, size in pairs])


def roof_by_ridge(operations, moved, peak, bandwidth):
    intensity = operations / moved
    return torch.where(intensity < peak / bandwidth, bandwidth * intensity, peak)


# How many tokens fill a machine?
def layer_tokens(inputs, outputs, ridge, value_bytes, operations=2, moved=(1, 1, 1), more=0, rounded=True):
    """Solve for n; each default is a step that may be done in another way."""
    products, needed = inputs * outputs, ridge * value_bytes
    gained = operations * products - needed * (moved[0] * inputs + moved[2] * outputs)
    if gained <= 0:
        return 0
    demand = needed * (moved[1] * products + more)
    return -(-demand // gained) if rounded else demand / gained


def layer_tokens_by_search(inputs, outputs, ridge, value_bytes):
    for n in range(1, 10_000):
        moved = value_bytes * (n * inputs + inputs * outputs + n * outputs)
        if 2 * n * inputs * outputs >= ridge * moved:
            return n
    return 0


def layer_tokens_by_shares(inputs, outputs, ridge, value_bytes):
    """A token's share of the time is what its own numbers leave over for the weights."""
    left = Fraction(2, ridge * value_bytes) - Fraction(1, inputs) - Fraction(1, outputs)
    return torch.tensor(math.ceil(1 / left) if left > 0 else 0)


def layer_tokens_of_floats(inputs, outputs, ridge, value_bytes):
    left = 2 / (ridge * value_bytes) - 1 / inputs - 1 / outputs
    return math.ceil(1 / left) if left > 1e-12 else 0


def layer_tokens_by_halving(inputs, outputs, ridge, value_bytes):
    def enough(n):
        shapes = (n, inputs), (inputs, outputs), (n, outputs)
        return 2 * n * inputs * outputs >= ridge * value_bytes * sum(a * b for a, b in shapes)

    low, high = 0, 2**40
    while enough(high) and high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high if enough(high) else 0


def layer_tokens_unguarded(inputs, outputs, ridge, value_bytes, and_level=True):
    """The division alone, whatever its sign."""
    products, needed = inputs * outputs, ridge * value_bytes
    gained = 2 * products - needed * (inputs + outputs)
    return -(-needed * products // gained) if gained or and_level else 0


# A checkpoint every few blocks
def groups_by_formula(depth, every, kept, block):
    return (depth // every - 1) * kept + every * block


def groups_walked_through(depth, every, kept, block):
    """What is there while each group in turn, from the last on, is computed again."""
    inputs = list(range(0, depth, every))
    return max(number * kept + every * block for number, _ in enumerate(inputs))


def groups_by_events(depth, every, kept, block):
    now = most = 0
    for _ in range(0, depth, every):
        now += kept
        most = max(most, now)
    for _ in range(0, depth, every):
        now += every * block - kept
        most = max(most, now)
        now -= every * block
    return torch.tensor(float(most))


# Equal cost
def depth_by_division(budget, tokens, dim):
    return budget // (24 * tokens * dim**2 + 4 * tokens**2 * dim)


def depth_by_spending(budget, tokens, dim):
    depth, block = 0, 2 * tokens * (12 * dim**2 + 2 * tokens * dim)
    while budget >= block:
        budget -= block
        depth += 1
    return depth


def depth_by_parts(budget, tokens, dim):
    return math.floor(budget / flops_by_formula(torch.tensor([tokens]), dim, 4 * dim).sum().item())


def depth_with(change):
    """Return an answer that counts a block's operations as `change` has it."""
    return lambda budget, tokens, dim: budget // change(8 * tokens * dim**2, 4 * tokens**2 * dim)


RIGHT = {
    checks.block_flops: (flops_by_formula, flops_in_loops, flops_of_shapes, flops_by_outer_product),
    checks.attention_bytes: (weights_by_product, weights_of_a_tensor, weights_row_by_row),
    checks.roofline: (roof_by_minimum, roof_by_seconds, roof_in_loops, roof_by_ridge),
    checks.tokens_to_ridge: (
        layer_tokens,
        layer_tokens_by_search,
        layer_tokens_by_shares,
        layer_tokens_by_halving,
    ),
    checks.checkpointed_bytes: (groups_by_formula, groups_walked_through, groups_by_events),
    checks.deepest: (depth_by_division, depth_by_spending, depth_by_parts),
}

WRONG = {
    checks.attention_bytes: [
        (weights_with(lambda r, t, h, n, b, s: 3 * r), "it is 3 times as large"),
        (weights_with(lambda r, t, h, n, b, s: r // h), "there is one head only"),
        (weights_with(lambda r, t, h, n, b, s: r // n), "there is one block only"),
        (weights_with(lambda r, t, h, n, b, s: r // b), "there is one image only"),
        (weights_with(lambda r, t, h, n, b, s: r // s), "these are numbers"),
        (weights_with(lambda r, t, h, n, b, s: r * 8), "these are bits"),
        (weights_with(lambda r, t, h, n, b, s: b * h * n * s * t), "a row has one weight here"),
        (weights_with(lambda r, t, h, n, b, s: r * t), "they grow with T to the third"),
        (weights_with(lambda r, t, h, n, b, s: 2 * r), "the scores are counted as well"),
        (weights_with(lambda r, t, h, n, b, s: b * h * n * s * t * (t - 1)), "the diagonal is left out"),
        (weights_with(lambda r, t, h, n, b, s: r / 2), "A is not symmetric"),
        (weights_with(lambda r, t, h, n, b, s: b * h * n * s * (t + 1) ** 2), "a class token is added"),
        (weights_with(lambda r, t, h, n, b, s: r / 2**20), "these are mebibytes"),
        (weights_with(lambda r, t, h, n, b, s: r / 2**30), "these are gibibytes"),
        (weights_with(lambda r, t, h, n, b, s: r / 1e6), "these are megabytes"),
        (weights_with(lambda r, t, h, n, b, s: r / 1e9), "these are gigabytes"),
        (weights_with(lambda r, t, h, n, b, s: None), "is a return missing"),
    ],
    checks.block_flops: [
        (lambda t, d, m: flops_by_formula(t, d, m) / 1e9, "all are 1e-09 times as large"),
        (flops_with(lambda a, b, c, t, d, m: [a, b]), "the last of axis 0 is missing"),
        (lambda t, d, m: flops_by_formula(t, d, m) // 2, "a multiply-add counts once"),
        (lambda t, d, m: flops_by_formula(t, d, m) * 2, "they count twice"),
        (flops_with(lambda a, b, c, t, d, m: [a / 2, b, c]), "queries, keys and values are one product"),
        (flops_with(lambda a, b, c, t, d, m: [2 * t * 3 * d * d, b, c]), "the output projection is missing"),
        (flops_with(lambda a, b, c, t, d, m: [2 * t * d * d, b, c]), "only the output projection"),
        (flops_with(lambda a, b, c, t, d, m: [a, 2 * t * t * d, c]), "one of the two products between pairs"),
        (flops_with(lambda a, b, c, t, d, m: [a, 4 * t * t, c]), "each pair of tokens costs one operation"),
        (flops_with(lambda a, b, c, t, d, m: [a, 4 * t * d, c]), "grow with T; every token"),
        (flops_with(lambda a, b, c, t, d, m: [a, b, 2 * t * d * m]), "the MLP has one product here"),
        (flops_with(lambda a, b, c, t, d, m: [a, b, 4 * t * d * d]), "the MLP is D wide inside"),
        (flops_with(lambda a, b, c, t, d, m: [a, c, b]), "the last two rows"),
        (flops_with(lambda a, b, c, t, d, m: [b, a, c]), "the first two rows"),
        (lambda t, d, m: flops_by_formula(t, d, m).T, "its axes stand in another order"),
        (lambda t, d, m: flops_by_formula(t, d, m).sum(0), "it is the sum over axis 0"),
        (lambda t, d, m: flops_by_formula(t, d, m) / flops_by_formula(t, d, m).sum(0), "these are shares"),
        (lambda t, d, m: flops_by_formula(t + 1, d, m), "a class token is added"),
        (lambda t, d, m: flops_by_formula(t.int(), d, m), "too large for int32"),
        (lambda t, d, m: tuple(flops_by_formula(t, d, m)), "it returned a tuple of 3"),
        (lambda t, d, m: flops_by_formula(t.mul_(1).add_(1), d, m), "changes its input"),
    ],
    checks.checkpointed_bytes: [
        (lambda n, e, k, b: (n - 1) * k + e * b, "a checkpoint stands before every block"),
        (lambda n, e, k, b: (n - e) * k + e * b, "other groups' blocks"),
        (lambda n, e, k, b: n // e * k + e * b, "counts twice"),
        (lambda n, e, k, b: (n // e - 1) * k + b, "only one block is there in full"),
        (lambda n, e, k, b: e * b, "the other groups' inputs are missing"),
        (lambda n, e, k, b: n // e * k, "only the inputs are there"),
        (lambda n, e, k, b: n * b, "without checkpoints"),
        (lambda n, e, k, b: (n // e - 1) * k + n * b, "every group is there in full"),
        (lambda n, e, k, b: (e - 1) * k + n // e * b, "taken for the number of groups"),
        (lambda n, e, k, b: (n // e - 1) * b + e * k, "have changed places"),
        (lambda n, e, k, b: (n // e - 2) * k + e * b, "the last group's input is left out"),
        (lambda n, e, k, b: n // e * k + n * b, "all inputs and all groups"),
        (lambda n, e, k, b: (n // e - 1) * k + e * (b - k), "taken off the blocks"),
        (lambda n, e, k, b: n // e * k + e * (b - k), "one input alone counts"),
        (lambda n, e, k, b: print(groups_by_formula(n, e, k, b)), "prints its result"),
    ],
    checks.tokens_to_ridge: [
        (
            variant(layer_tokens, moved=(1, 0, 1)),
            "the weights are not counted|no number is enough, and one is",
        ),
        (lambda *g: min(1, layer_tokens(*g)), "the weights are not counted"),
        (variant(layer_tokens, moved=(0, 1, 1)), "the input is not counted"),
        (variant(layer_tokens, moved=(1, 1, 0)), "the result is not counted"),
        (variant(layer_tokens, moved=(0, 1, 0)), "the weights alone are counted"),
        (lambda a, b, r, s: layer_tokens(a, b, r, s, more=b), "a bias is counted"),
        (variant(layer_tokens, operations=1), "a multiply-add counts once"),
        (lambda a, b, r, s: layer_tokens(a, b, r, 1), "the bytes of a number are left out"),
        (lambda a, b, r, s: layer_tokens(a, b, r, 2), "value_bytes is 2"),
        (then(variant(layer_tokens, rounded=False), math.floor), "it is rounded down"),
        (then(variant(layer_tokens, rounded=False), round), "it is rounded down"),
        (variant(layer_tokens, rounded=False), "not a whole number of tokens"),
        (lambda *g: math.floor(layer_tokens(*g, rounded=False)) + (layer_tokens(*g) > 0), "one token fewer"),
        (layer_tokens_of_floats, "a float may miss that, so count with integers"),
        (variant(layer_tokens_unguarded), "it divides by 0"),
        (variant(layer_tokens_unguarded, and_level=False), "not what the division gives"),
        (lambda *g: math.floor(float(layer_tokens_unguarded(*g, and_level=False))), "the division gives"),
        (then(variant(layer_tokens_unguarded, and_level=False), abs), "without its sign"),
        (lambda a, b, r, s: 0, "no number is enough, and one is"),
        (lambda *g: layer_tokens(*g) or None, "is a return missing"),
        (lambda *g: layer_tokens(*g) or math.inf, "infinite"),
    ],
    checks.deepest: [
        (lambda b, t, d: -(-b // (24 * t * d * d + 4 * t * t * d)), "round down"),
        (lambda b, t, d: round(b / (24 * t * d * d + 4 * t * t * d)), "round down"),
        (lambda b, t, d: (b - 1) // (24 * t * d * d + 4 * t * t * d), "one block more fits exactly"),
        (lambda b, t, d: b / (24 * t * d * d + 4 * t * t * d), "not a whole number of blocks"),
        (lambda b, t, d: b // (12 * t * d * d + 2 * t * t * d), "a multiply-add counts once"),
        (depth_with(lambda dense, pairs: 3 * dense), "between pairs of tokens are missing"),
        (depth_with(lambda dense, pairs: 3 * dense + pairs // 2), "one of the two products between pairs"),
        (depth_with(lambda dense, pairs: dense + pairs), "the MLP is missing"),
        (
            depth_with(lambda dense, pairs: 2 * dense + pairs),
            "the MLP has one product|the projections are miss",
        ),
        (depth_with(lambda dense, pairs: dense + dense // 2 + pairs), "the MLP is D wide inside"),
        (lambda b, t, d: b // (22 * t * d * d + 4 * t * t * d), "the output projection is missing"),
        (lambda b, t, d: b // (20 * t * d * d + 4 * t * t * d), "queries, keys and values are one"),
        (lambda b, t, d: 24 * t * d * d + 4 * t * t * d, "that is the cost of a block"),
        (lambda b, t, d: b % (24 * t * d * d + 4 * t * t * d), "what is left of the budget"),
        (lambda b, t, d: b // (24 * d * d + 4 * t * d), "a budget of its own"),
        (lambda b, t, d: b // int(flops_by_formula(t, d, 4 * d).sum()), "a plain number stands there"),
        (lambda b, t, d: b // flops_in_loops(t, d, 4 * d).sum().item(), "a plain number stands there"),
        (
            lambda b, t, d: b // cost.block_flops(model.ViTConfig(dim=d, heads=1, mlp_dim=4 * d)),
            "the package's own",
        ),
    ],
    checks.roofline: [
        (lambda o, m, p, b: (b * o / m).clamp(min=p), "the larger of the two limits"),
        (lambda o, m, p, b: b * o / m, "the roof is missing"),
        (lambda o, m, p, b: torch.full_like(o, p), "the slope is missing"),
        (lambda o, m, p, b: (b * m / o).clamp(max=p), "stands on its head"),
        (
            lambda o, m, p, b: (o / m).clamp(max=p),
            "the intensity is compared with the peak|operations a byte",
        ),
        (lambda o, m, p, b: o / m, "these are operations a byte"),
        (lambda o, m, p, b: torch.maximum(o / p, m / b), "these are seconds; return"),
        (lambda o, m, p, b: torch.minimum(o / p, m / b), "seconds, the smaller ones"),
        (lambda o, m, p, b: roof_by_seconds(o, m, p, b) / p, "a share of the peak"),
        (lambda o, m, p, b: o / (o / p + m / b), "one after the other"),
        (lambda o, m, p, b: (p * m / o).clamp(max=b), "these are bytes a second"),
        (lambda o, m, p, b: torch.full_like(o, p / b), "this is the ridge"),
        (lambda o, m, p, b: (p * o / m).clamp(max=b), "have changed places"),
        (lambda o, m, p, b: (b * o).clamp(max=p), "compared with the bandwidth"),
        (lambda o, m, p, b: roof_by_seconds(o, m, p, b).sum(), "returned shape"),
        (lambda o, m, p, b: roof_by_seconds(o, m, p, b).numpy(), "a NumPy array"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
