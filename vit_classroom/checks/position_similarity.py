"""Checks of chapter 15: likeness of positions, and the table on another grid."""

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case
from vit_from_scratch.inspection.position_similarity import position_similarity
from vit_from_scratch.model.tokens import resize_positions


def _vectors(count: int, dim: int) -> Tensor:
    """Draw vectors (N, D) of different lengths, with something in common."""
    common = 0.7 * torch.randn(dim)
    return 10 ** (2 * torch.rand(()) - 1) * (0.3 + torch.rand(count, 1)) * (torch.randn(count, dim) + common)


def _cosines(vectors: Tensor) -> Tensor:
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    return unit @ unit.T


def _likeness_mistakes(vectors: Tensor) -> dict[str, Tensor]:
    dots, lengths, dim = vectors @ vectors.T, vectors.norm(dim=-1), vectors.shape[-1]
    cosines, by_column = _cosines(vectors), F.normalize(vectors, dim=0)
    divided, both = "the dot products are divided by", "divide by both lengths"
    return {
        f"these are the dot products: {both}": dots,
        f"{divided} D; {both}": dots / dim,
        f"{divided} sqrt(D), as in attention; {both}": dots / dim**0.5,
        f"{divided} one of the two lengths, the second's; {both}": dots / lengths,
        f"{divided} one of the two lengths, the first's; {both}": dots / lengths[:, None],
        f"{divided} the square of one length; {both}": dots / lengths**2,
        "the lengths are taken over the places; each vector has its own: dim=-1": (by_column @ by_column.T),
        "all vectors are divided by the whole table's length; each has its own": dots / vectors.norm() ** 2,
        "the signs of the cosines are lost; keep them": cosines.abs(),
        "the cosines are squared": cosines.square(),
        "this is 1 less the cosine, a distance; like vectors must get 1": 1 - cosines,
        "these are the distances between the vectors; like vectors must get 1": torch.cdist(vectors, vectors),
        "a softmax stands over the cosines": cosines.softmax(-1),
    }


@function_check(
    "(gh, gw, gh, gw)",
    'chapter 15, "One patch, by hand"',
    position_similarity,
    [((2, 3), 5), ((4, 4), 8), ((5, 2), 3)],
    gradients=False,
    call="similarity_maps(vectors, grid)",
)
def similarity_maps(grid: tuple[int, int], dim: int) -> Case:
    """Check a function like :func:`vit_from_scratch.inspection.position_similarity`.

    It is called as ``function(vectors, grid)``: one vector a patch, (N, D), no class token, patches row by
    row; it returns (gh, gw, gh, gw), at [i, j] the map of the patch in row i, column j.
    """
    vectors = _vectors(grid[0] * grid[1], dim)
    cosines = _cosines(vectors)
    right = cosines.view(*grid, *grid)
    shaped = {sentence: wrong.reshape(right.shape) for sentence, wrong in _likeness_mistakes(vectors).items()}
    mistakes = shaped | {
        "the mean vector is taken away first; keep it": _cosines(vectors - vectors.mean(0)).view(right.shape),
        "each vector's own mean is taken away first; the equation does not": _cosines(
            vectors - vectors.mean(1, keepdim=True)
        ).view(right.shape),
        "the axes stand in the order (gh, gh, gw, gw); the patch comes first": right.transpose(1, 2),
        "rows and columns of the grid swap: (gh, gw, gh, gw)": cosines.reshape(*grid[::-1], *grid[::-1]),
    }
    return Case((vectors, grid), right, mistakes)


@function_check(
    "(1, T', D)",
    'chapter 15, "How much smoothness comes free?"',
    resize_positions,
    [
        ((3, 4), (5, 7), 1, 6),
        ((5, 3), (7, 6), 0, 5),
        ((7, 5), (3, 2), 1, 4),
        ((2, 3), (2, 3), 1, 3),
        ((11, 2), (15, 3), 0, 2),  # 11 (15 / 11) is 14 in floats, rounded down
    ],
    call="resize_table(table, old_grid, new_grid)",
)
def resize_table(old: tuple[int, int], new: tuple[int, int], extra: int, dim: int) -> Case:
    """Check a function like :func:`vit_from_scratch.model.tokens.resize_positions`.

    It is called as ``function(table, old_grid, new_grid)`` with (1, T, D), T = N or, with a class token in
    front, N + 1; it returns (1, T', D): bilinear, corners stay corners, the class token's row as it was.
    """
    table = torch.randn(1, old[0] * old[1] + extra, dim)
    first, patches = table[:, :extra], table[:, extra:]
    right = resize_positions(table, old, new)

    def resized(
        grid: tuple[int, int] = old,
        to: tuple[int, int] = new,
        first: Tensor = first,
        patches: Tensor = patches,
        mode: str = "bilinear",
        corners: bool | None = True,
        antialias: bool = False,
    ) -> Tensor:
        square = patches.mT.unflatten(-1, grid)
        found = F.interpolate(square, to, mode=mode, align_corners=corners, antialias=antialias)
        return torch.cat([first, found.flatten(2).mT], 1)

    line = F.interpolate(table.mT, right.shape[1], mode="linear", align_corners=True).mT
    cubic, nearest = resized(mode="bicubic", corners=False), resized(mode="nearest", corners=None)
    inner = resized(first=first[:, :0])
    by_column = inner.unflatten(1, new).transpose(1, 2).flatten(1, 2)
    mixed = resized(first=first[:, :0], patches=patches.reshape(1, dim, -1).mT)
    rounded = (int(old[0] * (new[0] / old[0])), int(old[1] * (new[1] / old[1])))

    def not_swapped_back(inner: Tensor) -> Tensor:
        return torch.cat([first, inner.mT.reshape(1, -1, dim)], 1)

    corner = "the corners do not stay where they are: take align_corners=True"
    as_values = "the D values are read as places; swap axes before reshaping"
    as_line = "the table is stretched as one long row; interpolate over rows and columns of the grid"
    mistakes = {
        corner: resized(corners=False),
        f"{corner}; and the interpolation is bicubic in place of bilinear": cubic,
        "the interpolation is bicubic; bilinear is asked for": resized(mode="bicubic"),
        "each place takes its nearest neighbour; bilinear is asked for": nearest,
        "rows and columns of the old grid swap: patches come row by row": resized(grid=(old[1], old[0])),
        "the new patches come column by column; they come row by row": torch.cat([first, by_column], 1),
        as_line: line,
        as_values: torch.cat([first, mixed], 1),
        f"{as_values}, and back after it": not_swapped_back(mixed),
        "the places are read as D values in the end; swap axes back before reshaping": not_swapped_back(
            inner
        ),
        "antialias=True takes in more than the nearest neighbours; leave it out": resized(antialias=True),
    }
    if rounded != new:
        scaled = "a scale factor is rounded, and the size comes out too small; hand in the new grid itself"
        mistakes[scaled] = resized(to=rounded)
    if extra:
        mistakes |= {
            "the class token's row is lost: hand it through, in front": inner,
            "the class token's row stands last; it comes first": torch.cat([inner, first], 1),
            "the class token's row is 0: hand it through": torch.cat([0 * first, inner], 1),
        }
    return Case((table, old, new), right, mistakes)


def _centred_similarity(vectors: Tensor) -> Tensor:
    return _cosines(vectors - vectors.mean(0))


@function_check(
    "(N, N)",
    'chapter 15, exercise "Same model, other picture"',
    _centred_similarity,
    [(6, 5), (9, 9), (4, 12)],
    gradients=False,
)
def centred_similarity(count: int, dim: int) -> Case:
    """Check a function that compares vectors after their mean was taken away.

    It is called as ``function(vectors)`` with (N, D); it returns (N, N), the cosines.
    """
    vectors = _vectors(count, dim)
    cosines, unit = _cosines(vectors), F.normalize(vectors, dim=-1)
    centred, lengths = vectors - vectors.mean(0), vectors.norm(dim=-1)
    half = F.normalize(centred, dim=-1) @ unit.T
    moved, rows = unit - unit.mean(0), cosines - cosines.mean(1, keepdim=True)
    by_row, by_all = (_cosines(vectors - mean) for mean in (vectors.mean(1, keepdim=True), vectors.mean()))
    spread = centred / vectors.std(0)
    mistakes = _likeness_mistakes(centred) | {
        "the mean vector is not taken away": cosines,
        "each vector's own mean is taken away (dim=1); take away the mean of all vectors (dim=0)": by_row,
        "one number is taken away, the mean of the whole table; each value has its own mean (dim=0)": by_all,
        "the cosines are centred; the vectors are what moves": cosines - cosines.mean(),
        "the rows of the cosines are centred; the vectors are what moves": rows,
        "the vectors are brought to length 1 first and centred then; centre first": _cosines(moved),
        "the vectors are brought to length 1 first and centred then, and have other lengths again; centre "
        "first": moved @ moved.T,
        "only the first of the two vectors is centred; centre both": half,
        "only the second of the two vectors is centred; centre both": half.T,
        "the lengths are those before the mean was taken away; take those after it": centred
        @ centred.T
        / torch.outer(lengths, lengths),
        "the values are divided by their spread as well; only the mean is taken away": _cosines(spread),
        "the median is taken away; take the mean": _cosines(vectors - vectors.median(0).values),
        "these are the correlations of the D values; compare the N vectors": torch.corrcoef(vectors.T),
    }
    right = _centred_similarity(vectors)
    return Case((vectors,), right, mistakes)


def _additive_share(vectors: Tensor, grid: tuple[int, int]) -> Tensor:
    table = vectors.view(*grid, -1)
    table = table - table.mean((0, 1))
    sums = table.mean(1, keepdim=True) + table.mean(0, keepdim=True)
    return sums.square().sum() / table.square().sum()


@function_check(
    "a single number",
    'chapter 15, exercise "How much is row plus column?"',
    _additive_share,
    [((3, 4), 6), ((4, 4), 5), ((5, 2), 7)],
    gradients=False,
)
def additive_share(grid: tuple[int, int], dim: int) -> Case:
    """Check a function that says how much of a table is a row's part plus a column's part.

    It is called as ``function(vectors, grid)`` with (N, D), patches row by row; it returns a single number
    from 0 to 1, the share of the squared length of the centred vectors.
    """
    parts = torch.randn(grid[0], 1, dim) + 1.4 * torch.randn(1, grid[1], dim)
    table = 10 ** (2 * torch.rand(()) - 1) * (parts + torch.randn(*grid, dim) + torch.randn(dim))
    vectors = table.flatten(0, 1)
    right = _additive_share(vectors, grid)
    raw_rows, raw_columns = table.mean(1, keepdim=True), table.mean(0, keepdim=True)
    mean = table.mean((0, 1))
    centred = table - mean
    rows, columns = raw_rows - mean, raw_columns - mean
    both = rows + columns
    whole, length = table.square().sum(), centred.square().sum()
    raw = raw_rows + raw_columns
    own = vectors - vectors.mean(1, keepdim=True)
    mistakes = {
        "the mean vector is still in it: centre first": (raw - mean).square().sum() / whole,
        "the mean vector counts twice, in rows and in columns; centre first": (raw.square().sum() / whole),
        "the columns are left out": rows.expand_as(table).square().sum() / length,
        "the rows are left out": columns.expand_as(table).square().sum() / length,
        "this is the share of the rest: 1 less what is asked": 1 - right,
        "this is the root of the share: the lengths are not squared": right.sqrt(),
        "rows and columns are swapped: patches go row by row": _additive_share(vectors, (grid[1], grid[0])),
        "each vector's own mean is taken away; take away the mean of all vectors": _additive_share(own, grid),
        "the squared length is not divided by that of the whole": both.square().sum(),
        "it is divided by the squared length of the vectors as they came; centre them there as well": (
            both.square().sum() / whole
        ),
        "the mean of a row or column counts once; it counts once for each of its places": (
            (rows.square().sum() + columns.square().sum()) / length
        ),
    }
    return Case((vectors, grid), right, mistakes)
