"""Right and wrong answers to the pieces of chapter 15."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from variations import then, variant

from vit_classroom import checks
from vit_from_scratch.inspection import position_similarity
from vit_from_scratch.model.tokens import resize_positions


def maps_by_unit(vectors, grid):
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    return (unit @ unit.T).reshape(*grid, *grid)


def maps_by_cosine(vectors, grid):
    table = vectors.unflatten(0, grid)
    return F.cosine_similarity(table[:, :, None, None], table[None, None], dim=-1)


def maps_by_einsum(vectors, grid):
    table = rearrange(vectors, "(a b) d -> a b d", a=grid[0])
    lengths = table.square().sum(-1).sqrt()
    dots = torch.einsum("abd,ced->abce", table, table)
    return dots / lengths[:, :, None, None] / lengths


def resized(table, old, new, mode="bilinear", corners=True):
    extra = table.shape[1] - old[0] * old[1]
    grid = table[0, extra:].T.reshape(1, -1, *old)
    found = F.interpolate(grid, size=new, mode=mode, align_corners=corners)
    return torch.cat([table[:, :extra], found.flatten(2).transpose(1, 2)], dim=1)


def line(old, new):
    """Linear interpolation of a row of values as a matrix, (new, old); ends stay ends."""
    at = torch.linspace(0, old - 1, new)[:, None]
    return (1 - (at - torch.arange(old)).abs()).clamp(min=0)


def resized_by_matrices(table, old, new):
    extra = table.shape[1] - old[0] * old[1]
    square = rearrange(table[0, extra:], "(r c) d -> r c d", r=old[0])
    found = torch.einsum("ar,bc,rcd->abd", line(old[0], new[0]), line(old[1], new[1]), square)
    return torch.cat([table[:, :extra], found.flatten(0, 1)[None]], dim=1)


def resized_in_two_steps(table, old, new):
    first, square = table.split([table.shape[1] - old[0] * old[1], old[0] * old[1]], dim=1)
    square = square.reshape(*old, -1)
    rows = F.interpolate(square.permute(1, 2, 0), new[0], mode="linear", align_corners=True)  # (gw, D, gh')
    both = F.interpolate(rows.permute(2, 1, 0), new[1], mode="linear", align_corners=True)  # (gh', D, gw')
    return torch.cat([first, both.transpose(1, 2).reshape(1, -1, table.shape[-1])], dim=1)


def centred_by_unit(vectors):
    unit = F.normalize(vectors - vectors.mean(0), dim=1)
    return unit @ unit.T


def centred_by_cosine(vectors):
    moved = vectors - vectors.sum(0) / len(vectors)
    return F.cosine_similarity(moved[:, None], moved[None], dim=2)


def centred_by_products(vectors):
    centring = torch.eye(len(vectors)) - 1 / len(vectors)
    products = centring @ vectors @ vectors.T @ centring
    lengths = products.diagonal().sqrt()
    return products / torch.outer(lengths, lengths)


def additive_by_means(vectors, grid):
    table = (vectors - vectors.mean(0)).view(*grid, -1)
    both = table.mean(1, keepdim=True) + table.mean(0, keepdim=True)
    return both.square().sum() / table.square().sum()


def additive_by_rest(vectors, grid):
    table = rearrange(vectors, "(r c) d -> r c d", r=grid[0])
    rest = table - table.mean(1, keepdim=True) - table.mean(0, keepdim=True) + table.mean((0, 1))
    return 1 - rest.norm() ** 2 / (table - table.mean((0, 1))).norm() ** 2


def additive_by_regression(vectors, grid):
    rows, columns = (F.one_hot(index) for index in torch.cartesian_prod(*map(torch.arange, grid)).unbind(1))
    design = torch.cat([rows, columns], 1).double()
    centred = (vectors - vectors.mean(0)).double()
    fitted = design @ (torch.linalg.pinv(design) @ centred)
    return fitted.square().sum() / centred.square().sum()


def cosines(vectors):
    return F.cosine_similarity(vectors[:, None], vectors[None], dim=-1)


def likeness(change):
    """Return maps of another likeness."""
    return lambda vectors, grid: change(vectors).reshape(*grid, *grid)


def along_one_line(table, old, new):
    count = math.prod(new) + table.shape[1] - math.prod(old)
    return F.interpolate(table.mT, count, mode="linear", align_corners=True).mT


def patches_only(change):
    """Return a resize that treats the class token's row in its own way."""

    def resize(table, old, new):
        extra = table.shape[1] - math.prod(old)
        return change(table[:, :extra], resized(table[:, extra:], old, new))

    return resize


def resized_by_odd_length(table, old, new):
    extra = table.shape[1] % 2
    return torch.cat([table[:, :extra], resized(table[:, extra:], old, new)], 1)


def swapped_grid(table, old, new):
    return resized(table, old[::-1], new)


def columns_first(table, old, new):
    extra = table.shape[1] - math.prod(old)
    found = resized(table, old, new)
    return torch.cat([found[:, :extra], rearrange(found[:, extra:], "o (r c) d -> o (c r) d", r=new[0])], 1)


def additive(vectors, grid, parts=lambda rows, columns: rows + columns, measure=lambda a, b: a / b):
    """The additive share, with its parts open to mistakes."""
    table = (vectors - vectors.mean(0)).view(*grid, -1)
    both = parts(table.mean(1, keepdim=True), table.mean(0, keepdim=True))
    return measure(both.expand_as(table).square().sum(), table.square().sum())


def additive_not_centred(vectors, grid):
    table = vectors.view(*grid, -1)
    both = table.mean(1, keepdim=True) + table.mean(0, keepdim=True)
    return both.square().sum() / table.square().sum()


def additive_half_centred(vectors, grid):
    table = vectors.view(*grid, -1)
    both = table.mean(1, keepdim=True) + table.mean(0, keepdim=True) - table.mean((0, 1))
    return both.square().sum() / table.square().sum()


def by_scale_factor(table, old, new):
    factors = tuple(there / here for here, there in zip(old, new, strict=True))
    extra = table.shape[1] - math.prod(old)
    grid = table[:, extra:].mT.unflatten(-1, old)
    found = F.interpolate(grid, scale_factor=factors, mode="bilinear", align_corners=True)
    return torch.cat([table[:, :extra], found.flatten(2).mT], dim=1)


def not_swapped(back):
    """Return a resize that takes the rows of the table for its D values."""

    def resize(table, old, new):
        extra = table.shape[1] - math.prod(old)
        grid = table[:, extra:].reshape(1, -1, *old)
        found = F.interpolate(grid, size=new, mode="bilinear", align_corners=True)
        return torch.cat([table[:, :extra], back(found)], dim=1)

    return resize


def not_swapped_back(table, old, new):
    extra, dim = table.shape[1] - math.prod(old), table.shape[2]
    grid = table[:, extra:].mT.unflatten(-1, old)
    found = F.interpolate(grid, size=new, mode="bilinear", align_corners=True)
    return torch.cat([table[:, :extra], found.reshape(1, -1, dim)], dim=1)


def resized_antialias(table, old, new):
    extra = table.shape[1] - math.prod(old)
    grid = table[:, extra:].mT.unflatten(-1, old)
    found = F.interpolate(grid, size=new, mode="bilinear", align_corners=True, antialias=True)
    return torch.cat([table[:, :extra], found.flatten(2).mT], dim=1)


def additive_without_counts(vectors, grid):
    table = (vectors - vectors.mean(0)).view(*grid, -1)
    return (table.mean(1).square().sum() + table.mean(0).square().sum()) / table.square().sum()


RIGHT = {
    checks.similarity_maps: [maps_by_unit, maps_by_cosine, maps_by_einsum],
    checks.resize_table: [resized, resized_by_matrices, resized_in_two_steps],
    checks.centred_similarity: [centred_by_unit, centred_by_cosine, centred_by_products],
    checks.additive_share: [
        additive_by_means,
        additive_by_rest,
        additive_by_regression,
    ],
}

WRONG = {
    checks.additive_share: [
        (
            then(additive_by_means, lambda share: share[None]),
            r"shape \(1,\): expected \(\), a single number; its",
        ),
        (then(additive_by_means, lambda share: share[None, None]), r"shape \(1, 1\): expected \(\)"),
        (additive_without_counts, "once for each of its places"),
        (
            lambda v, grid: additive_by_means(v, grid) * (v - v.mean(0)).square().sum() / v.square().sum(),
            "the vectors as they came; centre them",
        ),
        (lambda v, grid: 100 * additive_by_means(v, grid), "it is 100 times as large"),
        (additive_not_centred, "counts twice"),
        (additive_half_centred, "still in it: centre first"),
        (variant(additive, parts=lambda rows, columns: rows), "the columns are left out"),
        (variant(additive, parts=lambda rows, columns: columns), "the rows are left out"),
        (variant(additive, measure=lambda a, b: 1 - a / b), "the share of the rest"),
        (variant(additive, measure=lambda a, b: (a / b).sqrt()), "the root of the share"),
        (variant(additive, measure=lambda a, b: a), "not divided by that of the whole"),
        (variant(additive, measure=lambda a, b: (a / b).item()), "returned float"),
        (lambda v, grid: additive(v, grid[::-1]), "rows and columns are swapped"),
        (lambda v, grid: additive(v - v.mean(1, keepdim=True), grid), "each vector's own mean"),
    ],
    checks.centred_similarity: [
        (lambda v: 2 * centred_by_unit(v), "all are 2 times as large"),
        (cosines, "the mean vector is not taken away"),
        (torch.corrcoef, r"each vector's own mean is taken away \(dim=1\)"),
        (lambda v: cosines(v - v.mean()), "one number is taken away"),
        (lambda v: cosines(v) - cosines(v).mean(), "the cosines are centred"),
        (lambda v: cosines(v) - cosines(v).mean(1, keepdim=True), "rows of the cosines"),
        (
            lambda v: cosines(F.normalize(v, dim=1) - F.normalize(v, dim=1).mean(0)),
            "length 1 first and centred then",
        ),
        (
            lambda v: (F.normalize(v) - F.normalize(v).mean(0)) @ (F.normalize(v) - F.normalize(v).mean(0)).T,
            "centred then, and have other lengths again",
        ),
        (
            lambda v: F.cosine_similarity((v - v.mean(0))[:, None], v[None], dim=-1),
            "only the first of the two vectors is centred",
        ),
        (
            lambda v: F.cosine_similarity(v[:, None], (v - v.mean(0))[None], dim=-1),
            "only the second of the two vectors is centred",
        ),
        (
            lambda v: (v - v.mean(0)) @ (v - v.mean(0)).T / torch.outer(v.norm(dim=1), v.norm(dim=1)),
            "the lengths are those before",
        ),
        (lambda v: (v - v.mean(0)) @ (v - v.mean(0)).T, "these are the dot products"),
        (lambda v: cosines((v - v.mean(0)) / v.std(0)), "divided by their spread"),
        (lambda v: cosines(v - v.median(0).values), "the median"),
        (lambda v: torch.corrcoef(v.T), "correlations of the D values"),
    ],
    checks.resize_table: [
        (resize_positions, "the package's own"),
        (variant(resized, corners=False), "the corners do not stay"),
        (variant(resized, mode="bicubic"), "bicubic; bilinear"),
        (variant(resized, mode="bicubic", corners=False), "bicubic in place of"),
        (variant(resized, mode="nearest", corners=None), "nearest neighbour"),
        (swapped_grid, "old grid swap"),
        (columns_first, "column by column"),
        (along_one_line, "one long row"),
        (resized_by_odd_length, "shapes do not fit"),
        (by_scale_factor, "hand in the new grid itself"),
        (not_swapped(lambda grid: grid.flatten(2).mT), r"swap axes before reshaping\."),
        (
            not_swapped(lambda grid: grid.reshape(1, math.prod(grid.shape[2:]), -1)),
            "swap axes before reshaping, and back after it",
        ),
        (not_swapped_back, "swap axes back"),
        (resized_antialias, "antialias=True"),
        (patches_only(lambda first, rest: rest), "row is lost"),
        (patches_only(lambda first, rest: torch.cat([rest, first], 1)), "stands last"),
        (patches_only(lambda first, rest: torch.cat([0 * first, rest], 1)), "row is 0"),
        (lambda t, old, new: resized(t, old, new).detach(), "no gradient can flow back"),
        (lambda t, old, new: t[:, : 1 + math.prod(new)], "expected"),
        (lambda t, old, new: F.interpolate(t, new), "stopped with"),
    ],
    checks.similarity_maps: [
        (position_similarity, "the package's own"),
        (likeness(lambda v: v @ v.T), "these are the dot products"),
        (likeness(lambda v: v @ v.T / v.shape[1]), "divided by D"),
        (likeness(lambda v: v @ v.T / v.shape[1] ** 0.5), "as in attention"),
        (likeness(lambda v: v @ F.normalize(v, dim=1).T), "one of the two lengths, the second's"),
        (likeness(lambda v: F.normalize(v, dim=1) @ v.T), "one of the two lengths, the first's"),
        (likeness(lambda v: v @ v.T / v.square().sum(1)), "the square of one length"),
        (likeness(lambda v: F.normalize(v, dim=0) @ F.normalize(v, dim=0).T), "over the places"),
        (likeness(lambda v: (v / v.norm()) @ (v / v.norm()).T), "the whole table's length"),
        (likeness(lambda v: cosines(v).abs()), "the signs of the cosines are lost"),
        (likeness(lambda v: 1 - cosines(v)), "1 less the cosine"),
        (likeness(lambda v: torch.cdist(v, v)), "these are the distances"),
        (likeness(lambda v: cosines(v - v.mean(0))), "the mean vector is taken away"),
        (likeness(torch.corrcoef), "each vector's own mean"),
        (likeness(lambda v: cosines(v).softmax(-1)), "a softmax"),
        (lambda v, grid: cosines(v), "its values are right: reshape them"),
        (then(maps_by_unit, lambda m: m.transpose(1, 2)), "the order .gh, gh, gw, gw"),
        (lambda v, grid: maps_by_unit(v, grid[::-1]), "rows and columns of the grid swap"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
