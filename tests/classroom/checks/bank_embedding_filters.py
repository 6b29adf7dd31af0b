"""Right and wrong answers to the pieces of chapter 16."""

import math

import torch
import torch.nn.functional as F
from variations import then, variant

from vit_classroom import checks
from vit_from_scratch.inspection import embedding_filter_components


def with_signs(rows):
    largest = rows.gather(1, rows.abs().argmax(dim=1, keepdim=True))
    return rows * largest.sign()


def components_by_svd(
    filters, k, centre=lambda flat: flat - flat.mean(0), rows=lambda f, k: f.Vh[:k], signs=with_signs
):
    """Principal components, with each step open to mistakes."""
    flat = centre(filters.flatten(1))
    return signs(rows(torch.linalg.svd(flat, full_matrices=False), k)).unflatten(1, filters.shape[1:])


def components_by_eigh(filters, k):
    flat = filters.reshape(len(filters), -1)
    flat = flat - flat.mean(dim=0, keepdim=True)
    vectors = torch.linalg.eigh(flat.T @ flat).eigenvectors.flip(1)[:, :k].T
    return with_signs(vectors).reshape(k, *filters.shape[1:])


def components_upwards(filters, k):
    found = torch.linalg.eigh(torch.cov(filters.flatten(1).T)).eigenvectors
    return with_signs(found[:, :k].T).unflatten(1, filters.shape[1:])


def components_by_pca(filters, k):
    flat = filters.double().flatten(1).numpy()
    flat = flat - flat.mean(axis=0)
    found = torch.pca_lowrank(torch.tensor(flat), q=min(flat.shape), center=False)[2].T[:k]
    for row in found:
        if row.max() < -row.min():
            row.neg_()
    return found.reshape(k, *filters.shape[1:])


def ratio_by_shares(variance):
    share = variance / variance.sum(dim=-1, keepdim=True)
    return 1 / share.square().sum(dim=-1)


def ratio_by_norms(variance):
    return (variance.norm(p=1, dim=-1) / variance.norm(p=2, dim=-1)) ** 2


def ratio_by_moments(variance):
    mean = variance.mean(-1)
    spread = variance.var(-1, unbiased=False)
    return variance.shape[-1] / (1 + spread / mean**2)


def overlap_by_products(one, other):
    return (one @ other.T).square().sum() / len(one)


def overlap_by_singular_values(one, other):
    return (torch.linalg.svdvals(one @ other.mT) ** 2).mean()


def overlap_by_projectors(one, other):
    return torch.trace(one.T @ one @ other.T @ other) / one.shape[0]


def overlap_in_loops(one, other):
    total = sum((a @ b).item() ** 2 for a in one for b in other)
    return torch.tensor(total / len(one))


def angles_by_svd(one, other, cosines=lambda products: torch.linalg.svdvals(products), turn=torch.rad2deg):
    """Principal angles, with cosines and unit open to mistakes."""
    return turn(torch.acos(cosines(one @ other.T).clamp(-1, 1)))


def angles_by_eigenvalues(one, other):
    products = one.double() @ other.double().T
    return torch.linalg.eigvalsh(products @ products.T).flip(0).sqrt().clamp(max=1).acos() * 180 / math.pi


def angles_by_sines(one, other):
    beside = other - other @ one.T @ one
    return torch.linalg.svdvals(beside).asin().rad2deg().sort().values


def redraw_by_qr(patches, patterns):
    rows = torch.linalg.qr(patterns.T)[0].T
    return patches @ rows.T @ rows


def redraw_by_pinv(patches, patterns):
    return patches @ torch.linalg.pinv(patterns) @ patterns


def redraw_by_least_squares(patches, patterns):
    return (patterns.T @ torch.linalg.lstsq(patterns.T, patches.T).solution).T


def redraw_by_solving(patches, patterns):
    coordinates = torch.linalg.solve(patterns @ patterns.T, patterns @ patches.T).T
    return coordinates @ patterns


def first_components(filters, k):
    return components_by_svd(filters, k).flatten(1)


def halves_by_parts(filters, k, parts=lambda f: (f[::2], f[1::2]), compare=overlap_by_products):
    """The overlap of two halves, with halves and comparison open to mistakes."""
    return compare(*(first_components(part, k) for part in parts(filters)))


def halves_by_package(filters, k):
    one, other = (embedding_filter_components(filters[n::2], k).components.flatten(1) for n in (0, 1))
    return overlap_by_singular_values(one, other)


def halves_by_covariance(filters, k):
    spaces = []
    for start in (0, 1):
        found = torch.cov(filters[start::2].flatten(1).double().T)
        spaces.append(torch.linalg.eigh(found).eigenvectors[:, -k:])
    return (spaces[0].T @ spaces[1]).norm() ** 2 / k


def as_they_come(rows):
    """The signs of the decomposition, all turned so that none is right by chance."""
    return -with_signs(rows)


def second_turned(rows):
    rows = with_signs(rows)
    return torch.cat([rows[:1], -rows[1:2], rows[2:]])


def means_of_shares(share):
    return lambda variance: share(variance / variance.sum(-1, keepdim=True))


RIGHT = {
    checks.principal_components: [components_by_svd, components_by_eigh, components_by_pca],
    checks.participation_ratio: [ratio_by_shares, ratio_by_norms, ratio_by_moments],
    checks.space_overlap: [
        overlap_by_products,
        overlap_by_singular_values,
        overlap_by_projectors,
        overlap_in_loops,
    ],
    checks.principal_angles: [
        angles_by_svd,
        angles_by_eigenvalues,
        angles_by_sines,
        variant(angles_by_svd, cosines=lambda products: torch.linalg.svdvals(products).clamp(max=1 - 1e-7)),
    ],
    checks.redraw: [redraw_by_qr, redraw_by_pinv, redraw_by_least_squares, redraw_by_solving],
    checks.half_overlap: [
        halves_by_parts,
        halves_by_package,
        halves_by_covariance,
    ],
}

WRONG = {
    checks.half_overlap: [
        (
            lambda f, k: overlap_by_products(
                *(components_by_svd(f[n::2], k, centre=lambda w: w).flatten(1) for n in (0, 1))
            ),
            "each half is not taken away",
        ),
        (
            lambda f, k: overlap_by_products(
                *(components_by_svd((f - f.mean(0))[n::2], k, centre=lambda w: w).flatten(1) for n in (0, 1))
            ),
            "lose the mean of all",
        ),
        (
            variant(halves_by_parts, parts=lambda f: f.split([len(f) // 2, len(f) - len(f) // 2])),
            "cut in two",
        ),
        (variant(halves_by_parts, parts=lambda f: (f[::2], f)), "compared with all"),
        (variant(halves_by_parts, parts=lambda f: (f[::2], f[::2])), "compared with itself"),
        (
            variant(halves_by_parts, compare=lambda a, b: (a * b).sum(1).square().mean()),
            "one by one; the spaces",
        ),
        (variant(halves_by_parts, compare=lambda a, b: (a * b).sum(1).abs().mean()), r"\(by size\)"),
        (lambda f, k: k * halves_by_parts(f, k), "not divided by k"),
        (lambda f, k: halves_by_parts(f, k) / k, "divided by k twice"),
        (lambda f, k: halves_by_parts(f, k + 1), "one component too many"),
        (then(halves_by_parts, torch.sqrt), "the root is taken"),
        (
            then(halves_by_parts, lambda o: o[None, None]),
            r"shape \(1, 1\): expected \(\), a single number; its",
        ),
    ],
    checks.participation_ratio: [
        (lambda v: 1 / v.square().sum(-1), "not made shares first"),
        (means_of_shares(lambda s: s.square().sum(-1)), "the sum of the squared shares; the"),
        (means_of_shares(lambda s: 1 / s.square().mean(-1)), "are averaged; add"),
        (means_of_shares(lambda s: 1 / s.sum(-1)), "are not squared"),
        (means_of_shares(lambda s: 1 / s.amax(-1)), "1 over the largest"),
        (means_of_shares(lambda s: torch.special.entr(s).sum(-1).exp()), "exponential of the entropy"),
        (means_of_shares(lambda s: 1 / s.norm(dim=-1)), "the root of the sum"),
        (lambda v: ratio_by_shares(v.square()), "squared before they become shares"),
        (lambda v: 1 / (v / v.sum()).square().sum(-1), "divided by one sum"),
        (lambda v: ratio_by_shares(v.flatten()), "everything is one list"),
        (lambda v: ratio_by_shares(v).mean().item(), "returned float"),
        (lambda v: 1 / v.softmax(-1).square().sum(-1), "a softmax"),
        (then(ratio_by_shares, torch.atleast_1d), r"shape \(1,\): expected \(\)"),
        (means_of_shares(lambda s: (s > s.mean(-1, keepdim=True)).sum(-1)), "above an even one"),
    ],
    checks.principal_angles: [
        (variant(angles_by_svd, turn=lambda angle: angle), "in radians; turn"),
        (then(angles_by_svd, lambda a: a.flip(0)), "the largest comes first; begin"),
        (lambda a, b: torch.linalg.svdvals(a @ b.T), "these are the cosines"),
        (lambda a, b: torch.linalg.svdvals(a @ b.T).acos().rad2deg(), "above 1, which no angle has: clamp"),
        (
            lambda a, b: torch.linalg.svdvals(a @ b.T).clamp(max=0.999).acos().rad2deg(),
            "along axis 0 only 1 of 3 are wrong",
        ),
        (lambda a, b: torch.linalg.svdvals(a @ b.T).asin().rad2deg(), "taken for sines; they"),
        (
            lambda a, b: torch.linalg.eigvalsh(a @ b.T @ b @ a.T).flip(0).acos().rad2deg(),
            "eigenvalues of M M.T need a root",
        ),
        (variant(angles_by_svd, cosines=torch.diagonal), "one by one; the angles lie between the spaces[.]"),
        (variant(angles_by_svd, cosines=lambda p: p.diagonal().sort(descending=True).values), r"\(sorted\)"),
        (variant(angles_by_svd, cosines=lambda p: p.diagonal().abs()), r"\(by size\)"),
        (variant(angles_by_svd, cosines=lambda p: p.abs().amax(1)), "best partner"),
        (variant(angles_by_svd, cosines=lambda p: p), "angles of all pairs"),
        (variant(angles_by_svd, cosines=lambda p: p.norm(dim=1)), "lengths of the rows"),
    ],
    checks.principal_components: [
        (lambda f, k: embedding_filter_components(f, k).components, "the package's own"),
        (lambda f, k: embedding_filter_components(f), "the package's own"),
        (variant(components_by_svd, centre=lambda w: w), "mean filter is not taken"),
        (variant(components_by_svd, centre=lambda w: w - w.mean(1, keepdim=True)), "each filter's own mean"),
        (variant(components_by_svd, centre=lambda w: w - w.mean()), "one number"),
        (variant(components_by_svd, centre=lambda w: (w - w.mean(0)) / w.std(0)), "divided by their spread"),
        (
            variant(components_by_svd, rows=lambda found, k: found.Vh.flip(0)[:k]),
            "the weakest components come first",
        ),
        (components_upwards, "the weakest components come first"),
        (variant(components_by_svd, rows=lambda found, k: found.Vh.T[:k]), "the columns of V"),
        (
            variant(components_by_svd, rows=lambda found, k: found.Vh[:k].flip(0)),
            "the strongest component comes last",
        ),
        (variant(components_by_svd, signs=as_they_come), "all signs are turned"),
        (variant(components_by_svd, signs=second_turned), "component 2: the sign"),
        (
            variant(components_by_svd, rows=lambda found, k: found.S[:k, None] * found.Vh[:k]),
            "multiplied by their sizes",
        ),
        (
            variant(
                components_by_svd, signs=lambda rows: with_signs(rows) / rows.abs().amax(1, keepdim=True)
            ),
            "divided by their largest entry",
        ),
        (then(components_by_svd, lambda c: c.flatten(1)), "its values are right: reshape them"),
        (then(components_by_svd, lambda c: c.movedim(1, 3)), "channels come last"),
        (then(components_by_svd, torch.abs), "their signs are lost"),
        (
            lambda f, k: torch.linalg.svd(f.flatten(1)),
            "a (linalg_svd|tuple) of 3.*expected one tensor, .k, C, P, P",
        ),
    ],
    checks.redraw: [
        (lambda x, p: 2 * redraw_by_qr(x, p), "all are 2 times as large"),
        (lambda x, p: x @ p.T @ p, "taken for orthonormal ones"),
        (lambda x, p: x @ F.normalize(p).T @ F.normalize(p), "brought to length 1, and"),
        (lambda x, p: x @ torch.linalg.pinv(p), "these are the coordinates"),
        (lambda x, p: x @ p.T, "these are the dot products"),
        (lambda x, p: x - redraw_by_qr(x, p), "this is what is lost"),
        (lambda x, p: redraw_by_qr(x - x.mean(0), p), "taken away first, and not put back"),
        (lambda x, p: redraw_by_qr(x - x.mean(0), p) + x.mean(0), "taken away first and put back"),
        (lambda x, p: x, "an input comes back as it was"),
        (lambda x, p: x @ torch.linalg.pinv(p) @ F.normalize(p), "meet patterns of length 1"),
        (lambda x, p: x @ torch.linalg.inv(p @ p.T), "stopped with RuntimeError"),
        (lambda x, p: x @ (p / p.norm()).T @ (p / p.norm()), "divided by one length"),
    ],
    checks.space_overlap: [
        (lambda a, b: (a * b).sum(1).square().mean(), "compared one by one; compare"),
        (lambda a, b: F.cosine_similarity(a, b).mean(), "one by one, and not squared"),
        (lambda a, b: F.cosine_similarity(a, b).abs().mean(), "one by one, by size"),
        (lambda a, b: (a @ b.T).sum() / len(a), "cosines are not squared"),
        (lambda a, b: (a @ b.T).abs().sum() / len(a), "sizes are taken"),
        (lambda a, b: (a @ b.T).square().sum(), "not divided by k"),
        (lambda a, b: (a @ b.T).square().mean(), "averaged over all pairs"),
        (lambda a, b: (a @ b.T).norm() / len(a), "the norm is not squared"),
        (
            lambda a, b: (a @ b.T).square().amax(1).mean(),
            "only the best partner of each pattern counts; all do",
        ),
        (lambda a, b: (a.T @ b).square().sum() / len(a), "runs over the patterns"),
        (lambda a, b: (a @ b.T).square().sum() / a.shape[1], "the number of values"),
        (lambda a, b: torch.linalg.norm(a @ b.T, 2) ** 2, "the best direction alone"),
        (lambda a, b: torch.linalg.svdvals(a @ b.T).mean(), "the sum of the principal cosines"),
        (then(overlap_by_products, torch.Tensor.item), "returned float"),
        (then(overlap_by_products, lambda o: o[None]), r"shape \(1,\): expected \(\), a single number; its"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
