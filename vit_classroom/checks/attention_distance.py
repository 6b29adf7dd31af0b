"""Checks of chapter 14: distances between patches, and how far attention reaches."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from vit_classroom.checks.attention_maps import attention_like, rolled
from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case
from vit_from_scratch.inspection import attention_distance as inspected


def _steps(grid: tuple[int, int], by_column: bool = False) -> Tensor:
    """How many rows and columns are between two patches, (N, N, 2)."""
    counts = (torch.arange(n, dtype=torch.float64) for n in (grid[::-1] if by_column else grid))
    places = torch.cartesian_prod(*counts)
    places = places.flip(1) if by_column else places
    return (places[:, None] - places).abs()


BY_COLUMN = "the patches are numbered column by column; they come row by row: patch i lies in row i // gw"


UNSCALED = "the class token is cut, and the rows do not sum to 1 any more: scale them back"


IN_PATCHES = "the distance is counted in patches; multiply by the patch size"


MANHATTAN = "rows and columns are added; the straight line is the root of the sum of squares (Pythagoras)"


@function_check(
    "(N, N)",
    'chapter 14, "A weighted mean"',
    inspected.patch_distances,
    [(2, 3), (4, 4), (3, 2), (5, 3)],
    gradients=False,
)
def patch_distances(grid: tuple[int, int]) -> Case:
    """Check a function that measures how far the patches of a grid are apart, in pixels.

    It is called as ``function(grid, patch_size)`` with rows and columns of the grid; it returns (N, N), the
    distances between the middles of all pairs, patches row by row.
    """
    size = int(torch.randint(2, 33, ()))
    step = _steps(grid)
    right = size * step.norm(dim=-1)
    along = size * torch.arange(len(right)).double()
    mistakes: dict[str, Tensor] = {
        BY_COLUMN: size * _steps(grid, by_column=True).norm(dim=-1),
        IN_PATCHES: right / size,
        MANHATTAN: size * step.sum(-1),
        f"{MANHATTAN}; and the patch size is missing": step.sum(-1),
        "the larger of the two steps is taken; a straight line needs both (Pythagoras)": size * step.amax(-1),
        "the distance is squared: take the root": size**2 * step.square().sum(-1),
        "the squared step is multiplied by the patch size: take the root first": size * step.square().sum(-1),
        "the patch size stands under the root: a step is P pixels, not sqrt(P)": right / size**0.5,
        "only rows are measured; a patch has a column, too": size * step[..., 0],
        "only columns are measured; a patch has a row, too": size * step[..., 1],
        "these are differences of the patches' numbers; places have two axes": (along[:, None] - along).abs(),
        "these are the distances from the first patch alone; every patch has a row": right[0],
        "these are the steps, two numbers for each pair; take their length": size * step,
    }
    return Case((grid, size), right, mistakes)


def _mean_of(weights: Tensor, distances: Tensor) -> Tensor:
    """The mean distance of weights (..., N, N), whatever their rows sum to."""
    return (weights.double() * distances).sum(-1).mean(-1)


def _of_weights(weights: Tensor, grid: tuple[int, int], size: int) -> Tensor:
    return _mean_of(weights, size * _steps(grid).norm(dim=-1))


def _mean_mistakes(weights: Tensor, grid: tuple[int, int], size: int) -> dict[str, Tensor]:
    weights, step = weights.double(), _steps(grid)
    distances = size * step.norm(dim=-1)
    right, each = _mean_of(weights, distances), (weights * distances).sum(-1)
    others = weights.masked_fill(torch.eye(len(distances), dtype=torch.bool), 0)
    others = others / others.sum(-1, keepdim=True)
    products = weights @ distances
    as_matrices = "weights and distances are multiplied as matrices, `@`; take `*`, entry by entry"
    strongest = distances.expand_as(weights).gather(-1, weights.argmax(-1, keepdim=True))[..., 0]
    mistakes = {
        IN_PATCHES: right / size,
        "the patch size is multiplied in twice; the distances have it already": right * size,
        as_matrices: products,
        f"{as_matrices} (and all are averaged)": products.mean((-2, -1)),
        f"{as_matrices} (and all are added up)": products.sum((-2, -1)),
        f"{as_matrices} (and the rows are added up)": products.sum(-1).mean(-1),
        MANHATTAN: _mean_of(weights, size * step.sum(-1)),
        BY_COLUMN: _mean_of(weights, size * _steps(grid, by_column=True).norm(dim=-1)),
        "the distances are squared": _mean_of(weights, distances**2),
        "this is the root of the mean square; take the mean": (_mean_of(weights, distances**2).sqrt()),
        "the patches are added up; average over them": each.sum(-1),
        "the mean runs over both axes; over j the weights average, sum there": (right / len(distances)),
        "every patch counts alike: the weights play no part": distances.mean().expand(right.shape),
        "only the patch with the largest weight counts; all do, each by its weight": strongest.mean(-1),
        "a patch's look at itself is left out; it counts, with distance 0": _mean_of(others, distances),
        "this is one number for each patch: average over them": each,
        "this is the first patch alone: average over all": each[..., 0],
    }
    if right.ndim:
        mistakes["heads and images are averaged as well: keep the axes in front"] = right.mean()
    if right.ndim > 1:
        mistakes["the heads are averaged as well: keep the axes in front"] = right.mean(-1)
    return mistakes


@function_check(
    "(...), one number for each image and head",
    'chapter 14, "A weighted mean"',
    _of_weights,
    [
        ((2, 3), (3, 4), torch.float32),
        ((), (4, 4), torch.float32),
        ((2,), (5, 2), torch.float64),
        ((2, 1, 2), (2, 3), torch.float32),
    ],
    answers=[inspected.mean_attention_distance],
    gradients=False,
    call="mean_distance(A, grid, patch_size)",
)
def mean_distance(shape: tuple[int, ...], grid: tuple[int, int], dtype: torch.dtype) -> Case:
    """Check a function that computes the chapter's equation for the mean distance.

    It is called as ``function(A, grid, patch_size)``: A (..., N, N) with rows that sum to 1, any axes in
    front; it returns (...), pixels.
    """
    size = int(torch.randint(2, 33, ()))
    count = grid[0] * grid[1]
    weights = attention_like(*shape, count, count).to(dtype)
    mistakes = _mean_mistakes(weights, grid, size)
    return Case((weights, grid, size), _of_weights(weights, grid, size), mistakes, f"A is {dtype}")


def _scaled(weights: Tensor, axis: int = -1) -> Tensor:
    return weights / weights.sum(axis, keepdim=True)


def _class_token_mistakes(attention: Tensor, grid: tuple[int, int], size: int) -> Mapping[str, Tensor]:
    cut, first = attention[..., 1:, 1:], attention[..., :-1, :-1]
    unscaled = _of_weights(cut, grid, size)
    of_patches = cut.shape[-1] / attention.shape[-1]
    wrong = {
        UNSCALED: cut,
        "the class token counts as one more patch at distance 0; it lies nowhere": cut * of_patches,
        "the last token is cut; the class token is the first": _scaled(first),
        "the last token is cut, and the rows are not scaled back; the class token is the first": first,
    }
    return {sentence: _of_weights(weights, grid, size) for sentence, weights in wrong.items()} | {
        "all rows are scaled by one sum; each has its own": unscaled / cut.double().sum(-1).mean(-1)
    }


@function_check(
    "(...), one number for each image and head",
    'chapter 14, "The class token lies nowhere"',
    inspected.mean_attention_distance,
    [((2, 3), (3, 4), 1), ((2,), (3, 3), 1), ((3, 2), (3, 5), 0), ((1, 4), (3, 2), 1)],
    gradients=False,
    call="attention_distance(A, grid, patch_size)",
)
def attention_distance(shape: tuple[int, ...], grid: tuple[int, int], extra: int) -> Case:
    """Check a function like :func:`vit_from_scratch.inspection.mean_attention_distance`, for one layer.

    It is called as ``function(A, grid, patch_size)``: A (..., T, T), T = N or, with a class token in front,
    N + 1; it returns (...), pixels.
    """
    size = int(torch.randint(2, 33, ()))
    count = grid[0] * grid[1] + extra
    attention = attention_like(*shape, count, count)
    if extra:  # a class token that many look at, each patch in its own measure
        attention[..., 0] = 2 * torch.rand(*shape, count)
        attention = _scaled(attention)
    cut = attention[..., extra:, extra:]
    other = {
        "the columns are scaled; rows must sum to 1, so take dim=-1": _scaled(cut, -2),
        "a second softmax scales the rows; divide them by their sums": cut.softmax(-1),
    }
    mistakes = _mean_mistakes(_scaled(cut), grid, size)
    mistakes |= {sentence: _of_weights(weights, grid, size) for sentence, weights in other.items()}
    if extra:
        mistakes |= _class_token_mistakes(attention, grid, size)
    return Case((attention, grid, size), _distance(attention, grid, size), mistakes)


def _by_ring(weights: Tensor, ring: Tensor, count: int) -> Tensor:
    return torch.stack([(weights * (ring == k)).sum(-1).mean(-1) for k in range(count)], -1)


def _share_by_ring(weights: Tensor, grid: tuple[int, int]) -> Tensor:
    return _by_ring(weights, _steps(grid).amax(-1), max(grid)).float()


@function_check(
    "(..., K), one share for each ring",
    'chapter 14, exercise "Rings"',
    _share_by_ring,
    [((2, 3), (3, 4)), ((), (4, 4)), ((2,), (5, 3))],
    gradients=False,
    call="share_by_ring(A, grid)",
)
def share_by_ring(shape: tuple[int, ...], grid: tuple[int, int]) -> Case:
    """Check a function that says how much attention goes to each ring around the patch that looks.

    It is called as ``function(A, grid)``: A (..., N, N) with rows that sum to 1; it returns (..., K) with
    K = max(grid), averaged over the patches. In ring k are the patches of which the larger of the two steps,
    rows or columns, is k.
    """
    weights = attention_like(*shape, grid[0] * grid[1], grid[0] * grid[1])
    step, count = _steps(grid), max(grid)
    right, line = _share_by_ring(weights, grid), step.norm(dim=-1)
    ring = step.amax(-1)

    def by(rings: Tensor) -> Tensor:
        return _by_ring(weights, rings, count)

    patches = torch.stack([(ring == k).sum(-1) for k in range(count)], -1)  # (N, K)
    each = torch.stack([(weights * (ring == k)).sum(-1) for k in range(count)], -1)
    straight = "the rings go by the straight distance; take the larger of the two steps"
    mistakes = {
        "rows and columns are added; a ring goes by the larger of the two steps": by(step.sum(-1)),
        "a ring goes by the smaller of the two steps; take the larger": by(step.amin(-1)),
        f"{straight} (rounded)": by(line.round()),
        f"{straight} (rounded down)": by(line.floor()),
        "only rows are counted; take the larger of the two steps": by(step[..., 0]),
        "only columns are counted; take the larger of the two steps": by(step[..., 1]),
        "the patches that look are added up; average over them": right * len(ring),
        "the mean runs over all pairs; the shares of one patch are added up": right / len(ring),
        "each ring is divided by its number of patches; add them up": right / patches.float().mean(0),
        "a ring holds all that lies inside it as well; take what lies in it alone": right.cumsum(-1),
        "this is the first patch alone: average over all": each[..., 0, :],
        "these are the rings of each patch: average over the patches": each,
        "the first ring is missing, and the result one too short: ring 0 is the patch itself": right[..., 1:],
        "the last ring is missing: there are max(grid) of them": right[..., :-1],
    }
    if right.ndim > 1:
        average = right.flatten(0, -2).mean(0)
        mistakes["heads and images are averaged as well: keep the axes in front"] = average
    mistakes[BY_COLUMN] = by(_steps(grid, by_column=True).amax(-1))
    return Case((weights, grid), right, mistakes)


def _distance(attention: Tensor, grid: tuple[int, int], size: int) -> Tensor:
    extra = attention.shape[-1] - grid[0] * grid[1]
    return _of_weights(_scaled(attention[..., extra:, extra:]), grid, size)


def _reach(attentions: Tensor, grid: tuple[int, int], patch_size: int) -> Tensor:
    steps = (attentions.mean(2) + torch.eye(attentions.shape[-1])) / 2
    return torch.stack([_distance(rolled(steps[: n + 1]), grid, patch_size) for n in range(len(steps))])


@function_check(
    "(L, B)",
    'chapter 14, exercise "How far has it come?"',
    _reach,
    [(4, 2, 3, (3, 4), 1), (3, 3, 2, (3, 3), 1), (3, 2, 2, (3, 5), 0)],
    gradients=False,
)
def reach(depth: int, batch: int, heads: int, grid: tuple[int, int], extra: int) -> Case:
    """Check a function that measures how far attention has come after each layer.

    It is called as ``function(attentions, grid, patch_size)`` with (L, B, h, T, T), T = N or, with a class
    token in front, N + 1; it returns (L, B), pixels: the attention distance of the rollout of layers 1 to l.
    """
    size = int(torch.randint(2, 33, ()))
    count = grid[0] * grid[1] + extra
    attentions = attention_like(depth, batch, heads, count, count)
    if extra:
        attentions[..., 0] = torch.rand(depth, batch, heads, count)
        attentions = _scaled(attentions)
    fused, skip = attentions.mean(2), torch.eye(count)
    steps = (fused + skip) / 2
    right, each = _reach(attentions, grid, size), (attentions + skip) / 2
    single = _distance(attentions, grid, size).mean(-1)  # (L, B)
    of_layer = _distance(fused, grid, size)

    def reached(steps: Tensor, parts: Iterable[slice]) -> Tensor:
        return torch.stack([_distance(rolled(steps[part]), grid, size) for part in parts])

    up_to, from_on = [slice(n + 1) for n in range(depth)], [slice(n, None) for n in range(depth)]
    of_heads = [_distance(rolled(each[part]).mean(1), grid, size) for part in up_to]
    by_itself = "every head is rolled out by itself; take the mean of the heads first, layer by layer"
    late = "the rollout begins with the last layer"
    backwards = [_distance(rolled(steps[part].flip(0)), grid, size) for part in up_to]
    mistakes = {
        "each layer is measured by itself; roll out all layers up to it": of_layer,
        "each head of each layer is measured by itself; roll out all layers up to it": single,
        "each layer is measured by itself, with its residual path; multiply it with those before": _distance(
            steps, grid, size
        ),
        by_itself: torch.stack(of_heads),
        f"{by_itself} (their distances are averaged)": reached(each, up_to).mean(-1),
        "the distances of the layers are added up; multiply the layers, then measure": of_layer.cumsum(0),
        "the heads' distances are added up layer by layer; multiply layers, then measure": single.cumsum(0),
        "the layers stand in the wrong order: the later one belongs on the left": torch.stack(backwards),
        "the identity is missing: rollout adds it for the residual path": reached(fused, up_to),
        f"{late} and goes down; it begins with the first": reached(steps, from_on),
        "this is the reach after the last layer; return that after each": right[-1],
        "one layer is missing: after the first there is one, too": right[1:],
        "the last layer is missing": right[:-1],
        "the axes are swapped: layers first, (L, B)": right.mT,
        IN_PATCHES: right / size,
    }
    if extra:
        cut = [_of_weights(rolled(steps[part])[:, extra:, extra:], grid, size) for part in up_to]
        mistakes[UNSCALED] = torch.stack(cut)
        within = attentions[..., extra:, extra:]
        both, own = within.mean(2), torch.eye(count - extra)
        early = "the class token is cut before the rollout, and what it passes on is lost; cut it afterwards"
        mistakes |= {
            early: reached((both + own) / 2, up_to),
            f"{early} (rows scaled with the identity)": reached(_scaled(both + own), up_to),
            f"{early} (rows scaled without it)": reached((_scaled(within).mean(2) + own) / 2, up_to),
        }
    return Case((attentions, grid, size), right, mistakes)
