"""Right and wrong answers to the pieces of chapter 12."""

import math

import torch

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


# The crossover in pixels
def side_by_root(dim, mlp_dim, patch_size):
    return patch_size * math.ceil(math.sqrt(2 * dim + mlp_dim))


def side_by_search(dim, mlp_dim, patch_size):
    side = patch_size
    while (side // patch_size) ** 2 + 1 <= 2 * dim + mlp_dim:
        side += patch_size
    return side


def side_from_where_they_are_equal(dim, mlp_dim, patch_size):
    side = patch_size
    while (side // patch_size) ** 2 + 1 < 2 * dim + mlp_dim:
        side += patch_size
    return side


def side_by_counting(dim, mlp_dim, patch_size):
    for patches in range(1, 1000):
        tokens = patches**2 + 1
        if 2 * tokens**2 * dim > 4 * tokens * dim**2 + 2 * tokens * dim * mlp_dim:
            return torch.tensor(patches * patch_size)
    return None


def side_above(level):
    """Return an answer that asks for as many patches as `level` says, or more."""
    return lambda dim, mlp_dim, patch: patch * math.ceil(math.sqrt(level(dim, mlp_dim)))


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
    checks.crossover_side: (side_by_root, side_by_search, side_by_counting),
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
        (lambda n, e, k, b: print(groups_by_formula(n, e, k, b)), "prints its result"),
    ],
    checks.crossover_side: [
        (lambda d, m, p: p * (math.isqrt(2 * d + m) + 1), "the class token is missing"),
        (lambda d, m, p: p * math.isqrt(2 * d + m), "rounded down"),
        (lambda d, m, p: p * math.ceil(math.sqrt(2 * d + m - 1)), "equal is not more"),
        (side_from_where_they_are_equal, "equal is not more"),
        (side_above(lambda d, m: m), "compared with the MLP alone"),
        (side_above(lambda d, m: 2 * d), "compared with the projections alone"),
        (side_above(lambda d, m: m - 2 * d), "all of attention is compared"),
        (side_above(lambda d, m: 4 * d + 2 * m), "one of the two products between pairs"),
        (side_above(lambda d, m: 1.5 * d + m), "the output projection is missing"),
        (side_above(lambda d, m: d + m), "queries, keys and values are one product"),
        (side_above(lambda d, m: 2 * d + m / 2), "the MLP has one product here"),
        (lambda d, m, p: side_by_root(d, m, p) // p, "these are patches along a side"),
        (lambda d, m, p: 2 * d + m, "that is the number of patches"),
        (lambda d, m, p: 2 * d + m + 1, "that is the number of tokens"),
        (lambda d, m, p: math.ceil(p * math.sqrt(2 * d + m)), "round up patches"),
        (lambda d, m, p: p * math.sqrt(2 * d + m), "images have whole patches"),
        (lambda d, m, p: p * (2 * d + m), "the root is missing"),
        (lambda d, m, p: None, "is a return missing"),
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
