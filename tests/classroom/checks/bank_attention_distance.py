"""Right and wrong answers to the pieces of chapter 14."""

import math

import torch
import torch.nn.functional as F
from bank_attention_maps import rollout, rollout_by_einsum
from variations import then

from vit_classroom import checks
from vit_from_scratch.inspection import attention_rollout, mean_attention_distance
from vit_from_scratch.inspection.attention_distance import patch_distances as packaged_distances


def distances_by_norm(grid, size):
    places = torch.tensor([(r, c) for r in range(grid[0]) for c in range(grid[1])]).float()
    return size * (places[:, None] - places[None]).norm(dim=-1)


def distances_in_loops(grid, size):
    _, columns = grid
    count = math.prod(grid)
    return torch.tensor(
        [
            [math.hypot(i // columns - j // columns, i % columns - j % columns) * size for j in range(count)]
            for i in range(count)
        ]
    )


def distances_by_meshgrid(grid, size):
    rows, columns = torch.meshgrid(*(size * torch.arange(n) for n in grid), indexing="ij")
    rows, columns = rows.flatten(), columns.flatten()
    return ((rows[:, None] - rows) ** 2 + (columns[:, None] - columns) ** 2).sqrt()


def distances_by_cdist(grid, size):
    middles = [size * (torch.arange(n, dtype=torch.float64) + 0.5) for n in grid]
    places = torch.cartesian_prod(*middles)
    return torch.cdist(places, places)


def mean_by_sums(weights, grid, size):
    return (weights * distances_by_norm(grid, size)).sum((-2, -1)) / weights.shape[-1]


def mean_by_einsum(weights, grid, size):
    distances = distances_by_meshgrid(grid, size).to(weights)
    return torch.einsum("...ij,ij->...", weights, distances) / math.prod(grid)


def mean_by_trace(weights, grid, size):
    product = weights.double() @ distances_by_cdist(grid, size)  # the distances are symmetric
    return product.diagonal(dim1=-2, dim2=-1).mean(-1)


def distance_by_sums(weights, grid, size):
    first = weights.shape[-1] - grid[0] * grid[1]
    weights = weights[..., first:, first:]
    return mean_by_sums(weights / weights.sum(-1, keepdim=True), grid, size)


def distance_by_ratio(weights, grid, size):
    count = math.prod(grid)
    weights = weights.double()[..., -count:, -count:]
    lengths = distances_by_cdist(grid, size)
    return ((weights * lengths).sum(-1) / weights.sum(-1)).mean(-1)


def distance_by_log(weights, grid, size):
    if weights.shape[-1] != math.prod(grid):
        weights = weights[..., 1:, 1:].log().softmax(dim=-1)
    return mean_by_einsum(weights, grid, size)


def distance_by_odd_length(weights, grid, size):
    odd = weights.shape[-1] % 2  # taken for a class token's
    weights = weights[..., odd:, odd:]
    return mean_by_sums(weights / weights.sum(-1, keepdim=True), grid, size)


def rings_of(grid, rule=lambda r, c: max(r, c)):
    places = [(r, c) for r in range(grid[0]) for c in range(grid[1])]
    return torch.tensor([[rule(abs(a - c), abs(b - d)) for c, d in places] for a, b in places])


def rings_by_mask(weights, grid):
    ring = rings_of(grid)
    return torch.stack([(weights * (ring == k)).sum(-1).mean(-1) for k in range(max(grid))], dim=-1)


def rings_by_one_hot(weights, grid):
    return torch.einsum("...ij,ijk->...k", weights, F.one_hot(rings_of(grid)).float()) / weights.shape[-1]


def rings_by_scatter(weights, grid):
    result = torch.zeros(*weights.shape[:-1], max(grid))
    return result.scatter_add(-1, rings_of(grid).expand(weights.shape), weights).mean(dim=-2)


def reach_by_rollout(attentions, grid, size):
    depth = len(attentions)
    so_far = [attention_rollout(attentions[: n + 1]) for n in range(depth)]
    return torch.stack([distance_by_sums(one, grid, size) for one in so_far])


def reach_on_the_way(attentions, grid, size):
    found, result = [], torch.eye(attentions.shape[-1])
    for weights in attentions:
        result = (weights.mean(1) + torch.eye(weights.shape[-1])) / 2 @ result
        found.append(distance_by_ratio(result, grid, size))
    return torch.stack(found)


def reach_at_once(attentions, grid, size):
    rolled = torch.stack([rollout_by_einsum(attentions[: n + 1]) for n in range(len(attentions))])
    return mean_attention_distance(rolled, grid, size)


def distances_with(rule, places=None):
    """Return distances between patches by another rule for the two steps."""

    def measure(grid, size):
        at = torch.cartesian_prod(*(torch.arange(n) for n in grid)) if places is None else places(grid)
        return rule((at[:, None] - at).abs().double(), size)

    return measure


def straight(step, size):
    return size * step.norm(dim=-1)


def weighted(measure):
    """Return the mean distance with another distance."""
    return lambda weights, grid, size: (weights * measure(grid, size)).sum(-1).mean(-1)


def by_column(grid):
    return torch.tensor([(r, c) for c in range(grid[1]) for r in range(grid[0])])


def divided_by_rows(grid):
    return torch.tensor([divmod(i, grid[0]) for i in range(math.prod(grid))])


def cut(weights, grid):
    extra = weights.shape[-1] - math.prod(grid)
    return weights[..., extra:, extra:]


def scaled(weights):
    return weights / weights.sum(-1, keepdim=True)


def without_own(weights, grid, size):
    return mean_by_sums(scaled(weights * (1 - torch.eye(weights.shape[-1]))), grid, size)


def strongest_only(weights, grid, size):
    return mean_by_sums((weights == weights.amax(-1, keepdim=True)).float(), grid, size)


def rings_by(rule):
    def measure(weights, grid):
        ring = rings_of(grid, rule)
        return torch.stack([(weights * (ring == k)).sum(-1).mean(-1) for k in range(max(grid))], dim=-1)

    return measure


def reach_by(change):
    """Return a reach that is measured on something else than the rollouts."""
    return lambda attentions, grid, size: torch.stack(
        [distance_by_sums(change(attentions, n), grid, size) for n in range(len(attentions))]
    )


def mean_in_float32(weights, grid, size):
    return torch.einsum("...ij,ij->...", weights, distances_by_norm(grid, size)) / math.prod(grid)


def distance_of_four_axes(weights, grid, size):
    first = weights.shape[-1] - math.prod(grid)
    return mean_by_sums(scaled(weights[:, :, first:, first:]), grid, size)


def distance_of_batches(weights, grid, size):
    _, _, count, _ = weights.shape
    first = count - math.prod(grid)
    return mean_by_sums(scaled(weights[..., first:, first:]), grid, size)


def products(weights, grid, size):
    return weights.double() @ distances_by_cdist(grid, size)


def reach_by_head(attentions, grid, size):
    heads = [reach_by_rollout(one[:, :, None], grid, size) for one in attentions.unbind(2)]
    return torch.stack(heads).mean(0)


def reach_of_heads(attentions, grid, size):
    """Measures the mean of the heads' rollouts."""
    rolled = [
        torch.stack([rollout(a[: n + 1, :, None]) for a in attentions.unbind(2)]).mean(0)
        for n in range(len(attentions))
    ]
    return torch.stack([distance_by_sums(one, grid, size) for one in rolled])


RIGHT = {
    checks.patch_distances: [
        distances_by_norm,
        distances_in_loops,
        distances_by_meshgrid,
        distances_by_cdist,
    ],
    checks.mean_distance: [mean_by_sums, mean_by_einsum, mean_by_trace],
    checks.attention_distance: [distance_by_sums, distance_by_ratio, distance_by_log],
    checks.share_by_ring: [rings_by_mask, rings_by_one_hot, rings_by_scatter],
    checks.reach: [reach_by_rollout, reach_on_the_way, reach_at_once],
}

WRONG = {
    checks.attention_distance: [
        (lambda a, g, p: mean_attention_distance(a, g, p), "the package's own"),
        (mean_by_sums, "stopped with RuntimeError"),
        (distance_by_odd_length, "shapes do not fit"),
        (lambda a, g, p: mean_by_sums(cut(a, g), g, p), "do not sum to 1 any more"),
        (
            lambda a, g, p: (cut(a, g) * distances_by_norm(g, p)).sum((-1, -2)) / a.shape[-1],
            "one more patch at distance 0",
        ),
        (
            lambda a, g, p: (cut(a, g) * distances_by_norm(g, p)).sum((-1, -2)) / cut(a, g).sum((-1, -2)),
            "scaled by one sum",
        ),
        (
            lambda a, g, p: (
                mean_by_sums(cut(a, g) / cut(a, g).sum(-2, keepdim=True), g, p)
                if a.shape[-1] != math.prod(g)
                else mean_by_sums(a, g, p)
            ),
            "the columns are scaled",
        ),
        (
            lambda a, g, p: mean_by_sums(scaled(a[..., : math.prod(g), : math.prod(g)]), g, p),
            "the last token is cut; the class",
        ),
        (
            lambda a, g, p: mean_by_sums(a[..., : math.prod(g), : math.prod(g)], g, p),
            "the last token is cut, and",
        ),
        (
            lambda a, g, p: mean_by_sums(cut(a, g).softmax(-1) if a.shape[-1] > math.prod(g) else a, g, p),
            "second softmax",
        ),
        (distance_of_four_axes, "stopped with IndexError"),
        (distance_of_batches, "more or fewer parts than names"),
        (
            lambda a, g, p: mean_by_sums(cut(a, g) / cut(a, g).sum(-2, keepdim=True), g, p),
            "the columns are scaled",
        ),
        (lambda a, g, p: mean_by_sums(cut(a, g).softmax(-1), g, p), "second softmax"),
        (lambda a, g, p: p * distance_by_sums(a, g, p), "patch size is multiplied in twice"),
        (lambda a, g, p: distance_by_sums(a, g, 1), "counted in patches"),
        (lambda a, g, p: distance_by_sums(a, g, p).mean(-1), "the heads are averaged"),
        (lambda a, g, p: without_own(scaled(cut(a, g)), g, p), "itself is left out"),
        (lambda a, g, p: mean_by_sums(scaled(a[..., 1:, 1:]), g, p), "RuntimeError"),
    ],
    checks.mean_distance: [
        (lambda a, g, p: mean_attention_distance(a[None, None], g, p), "the package's own"),
        (mean_in_float32, "stopped with RuntimeError"),
        (products, r"multiplied as matrices, `@`; take `\*`, entry by entry\."),
        (lambda a, g, p: products(a, g, p).mean((-2, -1)), "as matrices.*all are averaged"),
        (lambda a, g, p: products(a, g, p).sum(-1).mean(-1), "as matrices.*the rows are added up"),
        (lambda a, g, p: products(a, g, p).sum((-2, -1)), "as matrices.*all are added up"),
        (lambda a, g, p: p * mean_by_sums(a, g, p), "patch size is multiplied in twice"),
        (lambda a, g, p: mean_by_sums(a, g, 1), "counted in patches"),
        (lambda a, g, p: (a * distances_by_norm(g, p)).sum((-1, -2)), "are added up; average"),
        (lambda a, g, p: (a * distances_by_norm(g, p)).mean((-1, -2)), "runs over both axes"),
        (lambda a, g, p: (a * distances_by_norm(g, p)).sum(-1), "one number for each patch"),
        (lambda a, g, p: (a * distances_by_norm(g, p)).sum(-1)[..., 0], "the first patch alone"),
        (lambda a, g, p: mean_by_sums(a, g, p).mean(), "heads and images are averaged"),
        (weighted(distances_with(lambda s, p: p * s.sum(-1))), "Pythagoras"),
        (weighted(lambda g, p: distances_by_norm(g, p) ** 2), "are squared"),
        (
            lambda a, g, p: weighted(lambda g, p: distances_by_norm(g, p) ** 2)(a, g, p).sqrt(),
            "root of the mean square",
        ),
        (weighted(distances_with(straight, by_column)), "column by column"),
        (weighted(distances_with(straight, divided_by_rows)), "column by column"),
        (lambda a, g, p: distances_by_norm(g, p).mean().expand(a.shape[:-2]), "the weights play no part"),
        (without_own, "look at itself is left out"),
        (strongest_only, "the largest weight"),
    ],
    checks.patch_distances: [
        (lambda g, p: distances_by_norm(g, 16.0), "right only where.*patch_size is 16"),
        (packaged_distances, "the package's own"),
        (then(distances_by_norm, lambda d: None), "returned None"),
        (lambda grid, size: distances_by_norm(grid, 1), "counted in patches"),
        (distances_with(lambda s, p: p * s.sum(-1)), r"Pythagoras\)\."),
        (distances_with(lambda s, p: s.long().sum(-1)), "the patch size is missing"),
        (distances_with(lambda s, p: p * s.amax(-1)), "larger of the two steps"),
        (distances_with(lambda s, p: (p * s).square().sum(-1)), "is squared: take the root"),
        (distances_with(lambda s, p: p * s.square().sum(-1)), "squared step is multiplied"),
        (distances_with(lambda s, p: (p * s.square().sum(-1)).sqrt()), "under the root"),
        (distances_with(lambda s, p: p * s[..., 0]), "only rows"),
        (distances_with(lambda s, p: p * s[..., 1]), "only columns"),
        (distances_with(straight, by_column), "column by column"),
        (distances_with(straight, divided_by_rows), "column by column"),
        (
            lambda grid, size: (
                size * (torch.arange(math.prod(grid))[:, None] - torch.arange(math.prod(grid))).abs()
            ),
            "differences of the patches' numbers",
        ),
        (lambda grid, size: distances_by_norm(grid, size)[0], "the first patch alone"),
        (
            lambda grid, size: distances_by_norm(grid, size).view(*grid, *grid),
            "its values are right: reshape them",
        ),
        (distances_with(lambda s, p: p * s), "two numbers for each pair"),
    ],
    checks.reach: [
        (
            lambda a, g, p: torch.stack(
                [distance_by_odd_length(rollout(a[: n + 1]), g, p) for n in range(len(a))]
            ),
            "shapes do not fit",
        ),
        (reach_by(lambda a, n: a[n].mean(1)), "each layer is measured by itself; roll"),
        (then(reach_by(lambda a, n: a[n]), lambda d: d.mean(-1)), "each head of each layer"),
        (reach_by(lambda a, n: (a[n].mean(1) + torch.eye(a.shape[-1])) / 2), "by itself, with its residual"),
        (then(reach_by(lambda a, n: a[n].mean(1)), lambda d: d.cumsum(0)), "layers are added up"),
        (reach_by(lambda a, n: rollout(a[: n + 1].flip(0))), "later one belongs on the left"),
        (reach_by(lambda a, n: rollout(a[: n + 1], skip=0)), "the identity is missing"),
        (reach_by(lambda a, n: rollout(a[n:])), "begins with the last layer and goes down"),
        (
            lambda a, g, p: torch.stack(
                [mean_by_sums(cut(rollout(a[: n + 1]), g), g, p) for n in range(len(a))]
            ),
            "do not sum to 1 any more",
        ),
        (reach_by_head, "every head is rolled out by itself"),
        (reach_of_heads, "every head is rolled out by itself"),
        (lambda a, g, p: reach_by_rollout(cut(a, g), g, p), "cut before the rollout"),
        (lambda a, g, p: reach_by_rollout(scaled(cut(a, g)), g, p), "cut before the rollout"),
        (lambda a, g, p: reach_on_the_way(cut(a, g), g, p), "cut before the rollout"),
        (then(reach_by_rollout, lambda d: d[-1]), "the reach after the last layer"),
        (then(reach_by_rollout, lambda d: d[1:]), "one layer is missing"),
        (then(reach_by_rollout, lambda d: d.mean(1)), "it is the mean over axis 1"),
        (then(reach_by_rollout, lambda d: d.mT), "the axes are swapped"),
    ],
    checks.share_by_ring: [
        (lambda a, g: 100 * rings_by_mask(a, g), "all are 100 times as large"),
        (rings_by(lambda r, c: r + c), "rows and columns are added"),
        (rings_by(min), "the smaller of the two"),
        (rings_by(lambda r, c: round(math.hypot(r, c))), r"straight distance.*\(rounded\)"),
        (rings_by(lambda r, c: int(math.hypot(r, c))), "rounded down"),
        (rings_by(lambda r, c: r), "only rows"),
        (rings_by(lambda r, c: c), "only columns"),
        (lambda a, g: rings_by_mask(a, g) * a.shape[-1], "are added up; average"),
        (lambda a, g: rings_by_mask(a, g) / a.shape[-1], "runs over all pairs"),
        (
            lambda a, g: rings_by_mask(a, g) / F.one_hot(rings_of(g)).float().sum(1).mean(0),
            "divided by its number of patches; add",
        ),
        (lambda a, g: rings_by_mask(a, g).cumsum(-1), "all that lies inside"),
        (lambda a, g: rings_by_mask(a, g)[..., 1:], "one too short"),
        (lambda a, g: rings_by_mask(a, g)[..., :-1], "the last ring is missing"),
        (
            lambda a, g: torch.stack([(a * (rings_of(g) == k)).sum(-1) for k in range(max(g))], -1),
            "the rings of each patch",
        ),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
