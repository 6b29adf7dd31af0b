"""Checks of chapter 16: principal components of filters, and the spaces that they span."""

import itertools
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case
from vit_from_scratch.inspection.embedding_filters import embedding_filter_components


def _rows_at_right_angles(*shape: int) -> Tensor:
    """Draw k orthonormal rows, (..., k, n)."""
    return torch.linalg.qr(torch.randn(*shape).mT)[0].mT.contiguous()


def _leading(matrix: Tensor, k: int) -> Tensor:
    """The first k right singular vectors, (k, n)."""
    return torch.linalg.svd(matrix, full_matrices=False).Vh[:k]


def _clear_order(sizes: Tensor, count: int) -> bool:
    """Say whether the first singular values are far enough apart for a float32 decomposition."""
    return bool(((sizes[:count] - sizes[1 : count + 1]) / sizes[0]).min() > 0.05)


def _filters(count: int, channels: int, side: int, k: int, sizes: Tensor) -> Tensor:
    """Draw filters (D, C, P, P) with components of these sizes.

    The first k are well defined, signs and variations as well.
    """
    values = channels * side * side
    while True:
        patterns = _rows_at_right_angles(len(sizes), values)
        scale = 10 ** (2 * torch.rand(()) - 1)
        with_mean = torch.cat([torch.ones(count, 1), torch.randn(count, len(sizes))], 1)
        coordinates = count**0.5 * torch.linalg.qr(with_mean)[0][:, 1:]  # of mean 0
        flat = coordinates * sizes @ patterns + 0.5 * torch.randn(values)
        centred, unit = flat - flat.mean(0), flat / flat.norm(dim=1, keepdim=True)
        variations = (centred, flat, unit - unit.mean(0), unit, centred / centred.std(0))
        if all(map(partial(_well_defined, k), variations)):
            return (scale * flat).unflatten(1, (channels, side, side))


def _well_defined(k: int, rows: Tensor) -> bool:
    found = torch.linalg.svd(rows, full_matrices=False)
    two_largest = found.Vh[:k].abs().topk(2, dim=1).values
    return _clear_order(found.S, k) and bool((two_largest[:, 0] - two_largest[:, 1]).min() > 0.01)


def _with_signs(patterns: Tensor) -> Tensor:
    """Make the entry of largest size in each row positive."""
    return patterns * patterns.gather(1, patterns.abs().argmax(1, keepdim=True)).sign()


def _principal_components(filters: Tensor, k: int) -> Tensor:
    return embedding_filter_components(filters, k).components


@function_check(
    "(k, C, P, P)",
    'chapter 16, "Principal components, by hand"',
    _principal_components,
    [(14, 2, 2, 3), (11, 1, 3, 2), (40, 3, 2, 2)],
    answers=[embedding_filter_components],
    gradients=False,
)
def principal_components(count: int, channels: int, side: int, k: int) -> Case:
    """Check a function like :func:`vit_from_scratch.inspection.embedding_filter_components`.

    It is called as ``function(filters, k)`` with (D, C, P, P); it returns the first k components,
    (k, C, P, P), of length 1, strongest first, the entry of largest size in each positive.
    """
    apart = torch.linspace(1, 0.2, channels * side**2)  # at the weak end, too, which eigh puts first
    filters = _filters(count, channels, side, k, apart)
    shape = filters.shape[1:]
    flat = filters.double().flatten(1)
    right = _principal_components(filters, k)
    _, sizes, all_rows = torch.linalg.svd(flat - flat.mean(0), full_matrices=False)
    rows = _with_signs(all_rows)

    def of(matrix: Tensor) -> Tensor:
        return _with_signs(_leading(matrix, k)).unflatten(1, shape)

    def scaled(factors: Tensor) -> Tensor:
        return right * factors[:, None, None, None]

    largest = right.flatten(1).amax(1)
    spread = flat / flat.std(0)

    def columns(rows: Tensor) -> dict[str, Tensor]:
        found = _with_signs(torch.linalg.svd(rows - rows.mean(0), full_matrices=False).Vh[:, :k].mT)
        return {"the patterns are the columns of V^T; take its rows": found.double().unflatten(1, shape)}

    mistakes = {
        "the mean filter is not taken away": of(flat),
        "each filter's own mean is taken away (dim=1); take dim=0": of(flat - flat.mean(1, keepdim=True)),
        "one number is taken away, the mean of everything; take away the mean filter": of(flat - flat.mean()),
        "the values are divided by their spread; only take the mean filter away": of(spread - spread.mean(0)),
        "the weakest components come first: eigh sorts upwards": rows.flip(0)[:k].unflatten(1, shape),
        "the strongest component comes last: eigh sorts upwards": right.flip(0),
        "the components are multiplied by their sizes; they have length 1": scaled(sizes[:k]),
        "the components are divided by their largest entry; they have length 1": scaled(1 / largest),
        "channels come last: the result is (k, C, P, P)": right.movedim(1, 3),
        "all signs are turned: the entry of largest size is to be positive, not negative": -right,
    }
    for signs in itertools.product((1.0, -1.0), repeat=k):
        turned = [str(n + 1) for n, sign in enumerate(signs) if sign < 0]
        if 0 < len(turned) < k:
            name = ("component " if len(turned) == 1 else "components ") + " and ".join(turned)
            sentence = f"{name}: the sign is to be turned, so that the entry of largest size is positive"
            mistakes[sentence] = scaled(torch.tensor(signs))
    in_float64 = Case((filters, k), right, columns(flat))  # where signs may be others
    return Case((filters, k), right, mistakes | columns(flat.float()), others=[in_float64])


def _effective(variance: Tensor) -> Tensor:
    return variance.sum(-1).square() / variance.square().sum(-1)


@function_check(
    "(...), one number for each list of variances",
    'chapter 16, "How many patterns?"',
    _effective,
    [(9,), (3, 7), (2, 4, 5)],
    gradients=False,
)
def participation_ratio(shape: tuple[int, ...]) -> Case:
    """Check a function that says how many components count: 1 over the sum of the squared shares.

    It is called as ``function(variance)`` with (..., n) of any scale, 0 or more; it returns (...).
    """
    variance = 10 ** (2 * torch.rand(()) - 1) * torch.rand(shape) ** 2
    right, share = _effective(variance), variance / variance.sum(-1, keepdim=True)
    entropy = torch.special.entr(share).sum(-1)

    def of(shares: Tensor) -> Tensor:
        return 1 / shares.square().sum(-1)

    mistakes = {
        "the variances are not made shares first: divide by their sum": of(variance),
        "this is the sum of the squared shares; the number is 1 over it": share.square().sum(-1),
        "the squares are averaged; add them up": 1 / share.square().mean(-1),
        "the shares are not squared": 1 / share.sum(-1),
        "this is 1 over the largest share; all shares count": 1 / share.amax(-1),
        "this is the exponential of the entropy; add up squared shares": entropy.exp(),
        "the root of the sum is taken": share.square().sum(-1).rsqrt(),
        "the variances are squared before they become shares: no singular values": _effective(variance**2),
        "a softmax makes the shares; divide by the sum": of(variance.softmax(-1)),
        "this counts the shares above an even one": (share > 1 / shape[-1]).sum(-1).float(),
    }
    if len(shape) > 1:
        mistakes |= {
            "all lists are divided by one sum; each has its own": of(variance / variance.sum()),
            "everything is one list; return one number for each": _effective(variance.flatten()),
        }
    return Case((variance,), right, mistakes)


def _space_overlap(one: Tensor, other: Tensor) -> Tensor:
    return (one @ other.T).square().sum() / len(one)


@function_check(
    "a single number",
    'chapter 16, "Do filters span the photos\' space?"',
    _space_overlap,
    [(3, 7), (2, 5), (4, 12)],
    gradients=False,
)
def space_overlap(k: int, width: int) -> Case:
    """Check a function that measures how far two spaces are the same.

    It is called as ``function(one, other)``, each (k, n) with orthonormal rows; it returns a single number
    from 0 to 1, the mean squared cosine of the principal angles.
    """
    one, other = _rows_at_right_angles(2, k, width)
    products, right = one @ other.T, _space_overlap(one, other)
    diagonal, cosines = products.diagonal(), torch.linalg.svdvals(products)
    across = (one.T @ other).square().sum() / k
    mistakes = {
        "the patterns are compared one by one; compare each with each": diagonal.square().mean(),
        "the patterns are compared one by one, and not squared; compare each with each": diagonal.mean(),
        "the patterns are compared one by one, by size; compare each with each": diagonal.abs().mean(),
        "the cosines are not squared": products.sum() / k,
        "the cosines' sizes are taken; take their squares": products.abs().sum() / k,
        "the sum is not divided by k": right * k,
        "the squares are averaged over all pairs; divide their sum by k": right / k,
        "the norm is not squared": (right * k).sqrt() / k,
        "the root is taken of the overlap": right.sqrt(),
        "only the best partner of each pattern counts; all do": products.square().amax(1).mean(),
        "only the best partner of each pattern counts, by size; all do, squared": products.abs()
        .amax(1)
        .mean(),
        "the product runs over the patterns; `one @ other.T` compares each with each": across,
        "the sum is divided by the number of values; divide by k": right * k / width,
        "this is the spectral norm, the best direction alone; all count": cosines[0] ** 2,
        "this is the sum of the principal cosines; take their squares": cosines.mean(),
    }
    return Case((one, other), right, mistakes)


def _principal_angles(one: Tensor, other: Tensor) -> Tensor:
    return torch.linalg.svdvals(one @ other.T).clamp(max=1).acos().rad2deg()


@function_check(
    "(k,), in degrees",
    'chapter 16, exercise "Angles between spaces"',
    _principal_angles,
    [(3, 8, False), (2, 6, False), (4, 15, False), (3, 9, True)],
    gradients=False,
)
def principal_angles(k: int, width: int, meet: bool) -> Case:
    """Check a function that finds the angles between two spaces.

    It is called as ``function(one, other)``, each (k, n) with orthonormal rows; it returns (k,), the
    principal angles in degrees, smallest first.
    """
    while True:
        one, other = _rows_at_right_angles(2, k, width)
        if meet:  # in one direction, whose cosine comes out above 1 as if by rounding
            other = torch.linalg.qr(torch.cat([one[:1], other[1:]]).T)[0].T
            one, other = ((1 + 1e-6) * _rows_at_right_angles(k, k) @ rows for rows in (one, other))
        angles = _principal_angles(one, other)
        if angles[int(meet) :].min() > 10 and angles.max() < 85:  # other angles near 0 or 90 are all rounding
            break
    products, right = one @ other.T, _principal_angles(one, other)
    cosines = torch.linalg.svdvals(products)
    squared, sines = cosines.square().acos().rad2deg(), cosines.asin().rad2deg()
    singly, by_size = (d.acos().rad2deg() for d in (products.diagonal(), products.diagonal().abs()))
    partners, lengths = products.abs().amax(1).acos(), products.norm(dim=1).clamp(max=1).acos()
    one_by_one = "the patterns are compared one by one; the angles lie between the spaces"
    mistakes = {
        "the angles are in radians; turn them into degrees": right.deg2rad(),
        "the largest comes first; begin with the smallest": right.flip(0),
        "these are the cosines; take the angles": cosines,
        "the cosines are squared before the angles are taken: eigenvalues of M M^T need a root": squared,
        "the singular values are taken for sines; they are cosines": sines,
        one_by_one: singly,
        f"{one_by_one} (sorted)": singly.sort().values,
        f"{one_by_one} (by size)": by_size,
        f"{one_by_one} (by size, sorted)": by_size.sort().values,
        "only the best partner of each pattern counts; the angles lie between the spaces": partners.rad2deg(),
        "these are the angles of all pairs; k lie between the spaces": products.acos().rad2deg(),
        "the lengths of the rows stand for cosines; singular values do": lengths.rad2deg(),
        "where the spaces share a direction rounding takes its cosine above 1, which no angle has: clamp "
        "them to 1": cosines.acos().rad2deg(),
    }
    clamped = [cosines.clamp(max=1 - least).acos().rad2deg() for least in (1e-7, 1e-6) if meet]
    return Case((one, other), right, mistakes, others=[Case((one, other), angles) for angles in clamped])


def _redraw(patches: Tensor, patterns: Tensor) -> Tensor:
    rows = torch.linalg.qr(patterns.T)[0].T
    return patches @ rows.T @ rows


@function_check(
    "(n, v)",
    'chapter 16, exercise "Redraw from raw filters"',
    _redraw,
    [(5, 3, 8), (4, 2, 6), (7, 4, 12)],
    gradients=False,
)
def redraw(count: int, k: int, width: int) -> Case:
    """Check a function that draws patches as well as it can be done from some patterns.

    It is called as ``function(patches, patterns)``, (n, v) and (k, v); the patterns are neither at right
    angles nor of length 1. It returns (n, v), for each patch the nearest sum of patterns.
    """
    mixing = _rows_at_right_angles(k, k) * torch.linspace(1, 2.5, k) @ _rows_at_right_angles(k, k)
    patterns = 10 ** (torch.rand(()) - 0.5) * (mixing @ _rows_at_right_angles(k, width))
    patches = 10 ** (torch.rand(()) - 0.5) * (torch.randn(count, width) + torch.randn(width))
    right, unit = _redraw(patches, patterns), F.normalize(patterns, dim=1)
    fitted = patches @ torch.linalg.pinv(patterns)
    mean, products = patches.mean(0), patches @ patterns.T
    moved, of_unit = _redraw(patches - mean, patterns), patches @ unit.T
    mistakes = {
        "the patterns are taken for orthonormal ones: what they share is drawn twice": products @ patterns,
        "the patterns are brought to length 1, and are still not at right angles": of_unit @ unit,
        "the patterns are divided by one length, that of all together": products
        @ patterns
        / patterns.square().sum(),
        "these are the coordinates; draw the patches from them": fitted,
        "these are the dot products with the patterns; draw the patches from them": products,
        "this is what is lost; return what is drawn": patches - right,
        "the mean patch is taken away first, and not put back": moved,
        "the mean patch is taken away first and put back; draw the patches as they are": moved + mean,
        "the coordinates are right, and meet patterns of length 1": fitted @ unit,
    }
    return Case((patches, patterns), right, mistakes)


def _first(flat: Tensor, k: int) -> Tensor:
    return _leading(flat - flat.mean(0), k)


def _half_overlap(filters: Tensor, k: int) -> Tensor:
    flat = filters.double().flatten(1)
    return _space_overlap(_first(flat[::2], k), _first(flat[1::2], k))


def _is_clear(flat: Tensor, k: int) -> bool:
    """Say whether a wrong comparison gives another number, and rounding none."""
    one, other = (_first(half, k) for half in (flat[::2], flat[1::2]))
    apart = _space_overlap(one, other) < 0.9 and (one * other).sum(1).square().mean() > 0.02
    sizes = [torch.linalg.svdvals(half - half.mean(0)) for half in (flat[::2], flat[1::2])]
    return bool(apart) and all(_clear_order(each, k) for each in sizes)


@function_check(
    "a single number",
    'chapter 16, exercise "Would other filters give the same components?"',
    _half_overlap,
    [(20, 2, 2, 2), (17, 1, 4, 3), (24, 3, 2, 2)],
    gradients=False,
)
def half_overlap(count: int, channels: int, side: int, k: int) -> Case:
    """Check a function that asks two halves of the filters for their components, and compares them.

    It is called as ``function(filters, k)`` with (D, C, P, P); it returns a single number, the overlap of the
    first k components of filters 0, 2, 4, ... with those of filters 1, 3, 5, ...
    """
    sizes = 0.7 ** torch.arange(min(count - 1, channels * side**2))
    while True:
        filters = _filters(count, channels, side, k, sizes)
        flat = filters.double().flatten(1)
        if _is_clear(flat, k):
            break
    even, odd = flat[::2], flat[1::2]
    right = _half_overlap(filters, k)
    one, other = _first(even, k), _first(odd, k)
    diagonal = (one * other).sum(1)
    one_by_one = "the patterns are compared one by one; the spaces are what counts"
    all_filters = [_space_overlap(half, _first(flat, k)) for half in (one, other)]

    def moved(centre: Tensor | float) -> Tensor:
        return _space_overlap(_leading(even - centre, k), _leading(odd - centre, k))

    def firsts(k: int, one: Tensor = even, other: Tensor = odd) -> Tensor:
        return _space_overlap(_first(one, k), _first(other, k))

    mistakes = {
        "the mean filter of each half is not taken away": moved(0.0),
        "both halves lose the mean of all filters; each has its own": moved(flat.mean(0)),
        "the list is cut in two; take every second filter": firsts(k, flat[: count // 2], flat[count // 2 :]),
        "one half is compared with all filters; compare the halves": all_filters[0],
        "a half is compared with itself": torch.ones_like(right),
        one_by_one: diagonal.square().mean(),
        f"{one_by_one} (by size)": diagonal.abs().mean(),
        "the overlap is not divided by k": right * k,
        "the overlap is divided by k twice": right / k,
        "the root is taken of the overlap": right.sqrt(),
        "one component too many is taken": firsts(k + 1),
        "all components are compared; take the first k": firsts(min(flat.shape)),
    }
    return Case((filters, k), right, mistakes)
