"""Right and wrong answers to the checks of chapters 13 to 16."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange, reduce, repeat

from vit_classroom import checks
from vit_from_scratch.inspection import (
    attention_rollout,
    embedding_filter_components,
    mean_attention_distance,
    object_share,
    position_similarity,
)
from vit_from_scratch.inspection.attention_distance import patch_distances as packaged_distances
from vit_from_scratch.inspection.masking import mask_patches
from vit_from_scratch.model.tokens import resize_positions

# Chapter 13: right


def rollout(attentions, fuse=lambda a: a.mean(1), skip=1.0, dim=-1, join=lambda step, result: step @ result):
    """Roll out, with each of the four moves open to mistakes."""
    eye = torch.eye(attentions[0].shape[-1])
    result = eye
    for weights in attentions:
        step = fuse(weights) + skip * eye
        if dim is not None:
            step = step / step.sum(dim=dim, keepdim=True)
        result = join(step, result)
    return result


def rollout_by_einsum(attentions):
    depth, _, heads, count, _ = attentions.shape
    steps = torch.einsum("lbhij->lbij", attentions) / heads / 2 + torch.eye(count) / 2
    found = steps[depth - 1]
    for layer in range(depth - 2, -1, -1):
        found = torch.einsum("bij,bjk->bik", found, steps[layer])
    return found


def rollout_by_chain(attentions):
    with torch.no_grad():
        steps = 0.5 * (attentions.double().mean(2) + torch.eye(attentions.shape[-1], dtype=torch.float64))
        flipped = steps.flip(0)
        return torch.stack([torch.linalg.multi_dot(list(flipped[:, b])) for b in range(steps.shape[1])])


def rollout_in_loops(attentions):
    images = []
    for image in attentions.unbind(1):
        result = None
        for heads in image:
            step = sum(head + torch.eye(len(head)) for head in heads) / len(heads)
            step = F.normalize(step, p=1, dim=1)
            result = step if result is None else torch.mm(step, result)
        images.append(result)
    return torch.stack(images)


def share_by_reduce(
    maps, mask, rule="mean", whole=lambda maps: maps.sum((1, 2)), then=lambda covered: covered
):
    """The share, with the mask's way to patches and the whole open to mistakes."""
    rows, columns = maps.shape[1:]
    covered = reduce(mask, "b (gh p) (gw q) -> b gh gw", rule, gh=rows, gw=columns)
    return (maps * then(covered)).sum((1, 2)) / whole(maps)


def share_by_pixels(maps, mask):
    _, rows, columns = maps.shape
    up, across = mask.shape[1] // rows, mask.shape[2] // columns
    pixels = maps.repeat_interleave(up, 1).repeat_interleave(across, 2)
    return (pixels * mask).flatten(1).sum(1) / pixels.flatten(1).sum(1)


def share_by_pooling(maps, mask):
    size = mask.shape[1] // maps.shape[1]
    covered = F.avg_pool2d(mask[:, None], size).squeeze(1)
    return torch.einsum("bhw,bhw->b", maps / maps.sum((1, 2), keepdim=True), covered)


def share_in_loops(maps, mask):
    found = []
    for map_, one in zip(maps.tolist(), mask, strict=True):
        size = one.shape[0] // len(map_)
        on = sum(
            weight * one[r * size : (r + 1) * size, c * size : (c + 1) * size].mean().item()
            for r, row in enumerate(map_)
            for c, weight in enumerate(row)
        )
        found.append(on / sum(map(sum, map_)))
    return torch.tensor(found)


def chosen_by_topk(scores, count, **named):
    """Which patches are hidden, (B, gh, gw)."""
    flat = scores.flatten(1)
    places = flat.topk(count, dim=1, **named).indices
    return torch.zeros_like(flat).scatter(1, places, 1.0).view_as(scores).bool()


def hide(
    images,
    scores,
    count,
    size,
    choose=chosen_by_topk,
    colour=lambda images: images.mean((2, 3), keepdim=True),
):
    """Hide patches, with choice and colour open to mistakes."""
    pixels = repeat(choose(scores, count), "b gh gw -> b 1 (gh p) (gw q)", p=size, q=size)
    return torch.where(pixels, colour(images), images)


def hide_in_loops(images, scores, count, size):
    result = images.clone()
    for number, image in enumerate(images):
        order = sorted(range(scores[number].numel()), key=lambda i, n=number: -scores[n].flatten()[i])
        for i in order[:count]:
            row, column = divmod(i, scores.shape[2])
            patch = (
                slice(None),
                slice(row * size, row * size + size),
                slice(column * size, (column + 1) * size),
            )
            result[number][patch] = image.mean((1, 2))[:, None, None]
    return result


def hide_by_patches(images, scores, count, size):
    _, rows, columns = scores.shape
    patches = rearrange(images, "b c (gh p) (gw q) -> b (gh gw) c p q", p=size, q=size).clone()
    mean = images.mean((2, 3))
    for one, score, colour in zip(patches, scores, mean, strict=True):
        one[score.flatten().argsort(descending=True)[:count]] = colour[:, None, None]
    return rearrange(patches, "b (gh gw) c p q -> b c (gh p) (gw q)", gh=rows, gw=columns)


def hide_by_rank(images, scores, count, size):
    rank = scores.flatten(1).argsort(1, descending=True).argsort(1).view_as(scores)
    keep = F.interpolate((rank >= count).float()[:, None], scale_factor=size)
    return keep * images + (1 - keep) * images.mean((2, 3), keepdim=True)


def centre_by_places(maps, size, start=0.5, order=(0, 1), whole=lambda maps: maps.sum((1, 2))):
    """The centre of mass, with its parts open to mistakes."""
    rows, columns = maps.shape[1:]
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).float() + start
    return (size * maps.flatten(1) @ places / whole(maps)[:, None])[:, list(order)]


def centre_by_margins(maps, size):
    shares = maps / maps.sum((1, 2), keepdim=True)
    found = []
    for axis in (1, 2):
        middles = torch.arange(size / 2, size * maps.shape[axis], size)
        found.append((shares.sum(3 - axis) * middles).sum(1))
    return torch.stack(found, dim=1)


def centre_by_pixels(maps, size):
    pixels = maps.repeat_interleave(size, 1).repeat_interleave(size, 2)
    down, across = (torch.arange(n) + 0.5 for n in pixels.shape[1:])
    total = pixels.sum((1, 2))
    both = (torch.einsum("bhw,h->b", pixels, down), torch.einsum("bhw,w->b", pixels, across))
    return torch.stack(both, 1) / total[:, None]


def centre_in_loops(maps, size):
    found = []
    for one in maps:
        row = sum((r + 0.5) * size * w for r, line in enumerate(one) for w in line) / one.sum()
        column = sum((c + 0.5) * size * w for line in one for c, w in enumerate(line)) / one.sum()
        found.append([float(row), float(column)])
    return torch.tensor(found)


def best_by_means(shares):
    chosen, rest = shares[0::2].mean(dim=0), shares[1::2].mean(dim=0)
    return torch.stack([chosen.max(), rest[chosen.argmax()]])


def best_by_mask(shares):
    even = torch.arange(len(shares)) % 2 == 0
    head = shares[even].sum(0).topk(1).indices[0]
    return torch.tensor([shares[even][:, head].mean(), shares[~even][:, head].mean()])


def best_by_sorting(shares):
    means = [sum(part) / len(part) for part in (shares[::2], shares[1::2])]
    head = sorted(range(shares.shape[1]), key=lambda h: float(means[0][h]))[-1]
    return torch.stack(means)[:, head]


# Chapter 14: right


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
    return torch.einsum("...ij,ij->...", weights, distances_by_meshgrid(grid, size)) / math.prod(grid)


def mean_by_trace(weights, grid, size):
    product = weights @ distances_by_norm(grid, size)  # the distances are symmetric
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


# Chapter 15: right


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


# Chapter 16: right


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
    return torch.linalg.eigvalsh(products @ products.T).flip(0).sqrt().acos() * 180 / math.pi


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


RIGHT = {
    checks.rollout: [rollout, rollout_by_einsum, rollout_by_chain, rollout_in_loops],
    checks.share_on_object: [share_by_reduce, share_by_pixels, share_by_pooling, share_in_loops],
    checks.hide_patches: [hide, hide_in_loops, hide_by_patches, hide_by_rank],
    checks.centre_of_mass: [centre_by_places, centre_by_margins, centre_by_pixels, centre_in_loops],
    checks.best_head: [best_by_means, best_by_mask, best_by_sorting],
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
    checks.similarity_maps: [maps_by_unit, maps_by_cosine, maps_by_einsum],
    checks.resize_table: [resized, resized_by_matrices, resized_in_two_steps],
    checks.centred_similarity: [centred_by_unit, centred_by_cosine, centred_by_products],
    checks.additive_share: [additive_by_means, additive_by_rest, additive_by_regression],
    checks.principal_components: [components_by_svd, components_by_eigh, components_by_pca],
    checks.participation_ratio: [ratio_by_shares, ratio_by_norms, ratio_by_moments],
    checks.space_overlap: [
        overlap_by_products,
        overlap_by_singular_values,
        overlap_by_projectors,
        overlap_in_loops,
    ],
    checks.principal_angles: [angles_by_svd, angles_by_eigenvalues, angles_by_sines],
    checks.redraw: [redraw_by_qr, redraw_by_pinv, redraw_by_least_squares, redraw_by_solving],
    checks.half_overlap: [halves_by_parts, halves_by_package, halves_by_covariance],
}


def then(function, change):
    """Return a function whose result is changed."""
    return lambda *arguments: change(function(*arguments))


def variant(function, **changes):
    """Return a function with some of its steps done in another way."""
    return lambda *arguments: function(*arguments, **changes)


def heads_apart(attentions):
    heads = [rollout(attentions[:, :, h : h + 1]) for h in range(attentions.shape[2])]
    return torch.stack(heads).mean(0)


def skip_at_the_end(attentions):
    result = rollout(attentions, skip=0) + torch.eye(attentions.shape[-1])
    return result / result.sum(-1, keepdim=True)


CHAPTER_12 = [
    (checks.rollout, attention_rollout, "the package's own"),
    (checks.rollout, lambda a: rollout(a).numpy(), "a NumPy array"),
    (
        checks.rollout,
        variant(rollout, join=lambda step, result: result @ step),
        "later one belongs on the left",
    ),
    (checks.rollout, lambda a: rollout(a.flip(0)), "later one belongs on the left"),
    (checks.rollout, variant(rollout, skip=0), "the identity is missing"),
    (checks.rollout, variant(rollout, dim=None), "not divided by their sums.*sums to 2"),
    (checks.rollout, variant(rollout, fuse=lambda a: a.amax(1)), "the maximum over the heads"),
    (checks.rollout, variant(rollout, fuse=lambda a: a.amin(1)), "the minimum over the heads"),
    (checks.rollout, variant(rollout, fuse=lambda a: a.sum(1)), "the heads are added up"),
    (checks.rollout, variant(rollout, fuse=lambda a: a[:, 0]), "only the first head"),
    (checks.rollout, heads_apart, "every head is rolled out by itself"),
    (checks.rollout, variant(rollout, dim=-2), "the columns are divided"),
    (
        checks.rollout,
        variant(rollout, join=lambda step, result: step * result),
        "entry by entry, from the identity",
    ),
    (checks.rollout, lambda a: ((a.mean(2) + torch.eye(a.shape[-1])) / 2).prod(0), r"entry by entry; `@`"),
    (checks.rollout, lambda a: ((a.mean(2) + torch.eye(a.shape[-1])) / 2).mean(0), "the layers are averaged"),
    (checks.rollout, variant(rollout, join=lambda step, result: step), "the last layer alone"),
    (checks.rollout, lambda a: rollout(a[1:]), "the first layer is missing"),
    (checks.rollout, lambda a: rollout(a[:-1]), "the last layer is missing"),
    (checks.rollout, lambda a: rollout(a.mT), "the weights are transposed"),
    (checks.rollout, then(rollout, lambda r: r.mT), "the result is transposed"),
    (checks.rollout, skip_at_the_end, "added to the result"),
    (checks.rollout, then(rollout, lambda r: r[:, 0]), "the row of the class token; return those"),
    (checks.rollout, then(rollout, lambda r: r[:, 0, 1:]), "class token, without itself"),
    (checks.share_on_object, object_share, "the package's own"),
    (
        checks.share_on_object,
        variant(share_by_reduce, whole=lambda maps: 1),
        "not divided by all of the attention",
    ),
    (
        checks.share_on_object,
        lambda maps, mask: (
            share_by_reduce(maps, mask)
            * maps.sum((1, 2))
            / (reduce(mask, "b (h p) (w q) -> b h w", "mean", h=maps.shape[1], w=maps.shape[2]).sum((1, 2)))
        ),
        "mean attention on the object",
    ),
    (
        checks.share_on_object,
        lambda maps, mask: share_by_reduce(maps, mask) / mask.mean((1, 2)),
        "the part of the photo that the object covers",
    ),
    (checks.share_on_object, variant(share_by_reduce, rule="sum"), "added up in each patch"),
    (checks.share_on_object, variant(share_by_reduce, rule="max"), "only touches counts in full"),
    (checks.share_on_object, variant(share_by_reduce, then=lambda c: (c > 0).float()), "threshold at 0"),
    (checks.share_on_object, variant(share_by_reduce, then=lambda c: c.round()), "rounded, so a patch"),
    (
        checks.share_on_object,
        lambda maps, mask: share_by_reduce(maps, mask.round()),
        "rounded pixel by pixel",
    ),
    (
        checks.share_on_object,
        lambda maps, mask: share_by_reduce(maps, F.interpolate(mask[:, None], maps.shape[1:])[:, 0]),
        "at one pixel of each patch",
    ),
    (
        checks.share_on_object,
        lambda maps, mask: share_by_reduce(
            maps, F.interpolate(mask[:, None], maps.shape[1:], mode="bilinear")[:, 0]
        ),
        "looks at four",
    ),
    (checks.share_on_object, variant(share_by_reduce, whole=torch.sum), "divided by one sum"),
    (checks.share_on_object, then(share_by_reduce, lambda share: 1 - share), "beside the object"),
    (checks.share_on_object, lambda maps, mask: mask.mean((1, 2)), "the maps play no part"),
    (
        checks.share_on_object,
        lambda maps, mask: share_by_reduce(maps.flatten(1).softmax(1).view_as(maps), mask),
        "a softmax is taken",
    ),
    (checks.share_on_object, then(share_by_reduce, torch.mean), "one share for each"),
    (checks.share_on_object, then(share_by_reduce, lambda share: share.mean().item()), "returned float"),
    (checks.hide_patches, mask_patches, "the package's own"),
    (checks.hide_patches, lambda i, s, n, p: hide(i, -s, n, p), "of lowest score"),
    (
        checks.hide_patches,
        variant(hide, choose=lambda s, n: ~chosen_by_topk(s, n)),
        "are kept, and all others",
    ),
    (checks.hide_patches, variant(hide, colour=lambda i: torch.zeros(())), "are set to 0"),
    (checks.hide_patches, variant(hide, colour=lambda i: torch.ones(())), "are set to 1"),
    (checks.hide_patches, variant(hide, colour=lambda i: i.mean((1, 2, 3), keepdim=True)), "is a grey"),
    (
        checks.hide_patches,
        variant(hide, colour=lambda i: i.mean((0, 2, 3), keepdim=True)),
        "the mean of the batch",
    ),
    (checks.hide_patches, variant(hide, colour=torch.mean), "the mean of everything"),
    (
        checks.hide_patches,
        lambda i, s, n, p: hide(
            i, s, n, p, colour=lambda i: F.interpolate(F.avg_pool2d(i, p), scale_factor=p)
        ),
        "its own mean colour",
    ),
    (
        checks.hide_patches,
        lambda i, s, n, p: hide(i, s[:1].expand_as(s), n, p),
        "the patches that the first one's scores",
    ),
    (
        checks.hide_patches,
        variant(hide, choose=lambda s, n: s > s.flatten().sort().values[-n - 1]),
        "in the batch as a whole",
    ),
    (checks.hide_patches, lambda i, s, n, p: hide(i, s, n + 1, p), "one patch too many"),
    (checks.hide_patches, lambda i, s, n, p: hide(i, s, max(n - 1, 0), p), "one patch too few"),
    (checks.hide_patches, lambda i, s, n, p: i.clone(), "nothing is hidden"),
    (checks.hide_patches, lambda i, s, n, p: i.copy_(hide(i, s, n, p)), "changes its input"),
    (checks.hide_patches, lambda i, s, n, p: hide(i, s, n / s[0].numel(), p), "stopped with TypeError"),
    (checks.centre_of_mass, variant(centre_by_places, start=0), "counted at their corner"),
    (checks.centre_of_mass, variant(centre_by_places, start=1), "counted from 1"),
    (checks.centre_of_mass, lambda m, p: centre_by_places(m, p, start=0) + 0.5, "half a pixel"),
    (checks.centre_of_mass, lambda m, p: centre_by_places(m, 1), "counted in patches; multiply"),
    (checks.centre_of_mass, lambda m, p: centre_by_places(m, 1, start=0), "counted in patches, and"),
    (checks.centre_of_mass, variant(centre_by_places, order=(1, 0)), "the column comes first"),
    (
        checks.centre_of_mass,
        variant(centre_by_places, whole=lambda m: torch.ones(len(m))),
        "not divided by their sum",
    ),
    (checks.centre_of_mass, variant(centre_by_places, whole=lambda m: m.amax((1, 2))), "by their largest"),
    (
        checks.centre_of_mass,
        lambda m, p: centre_by_places((m == m.amax((1, 2), keepdim=True)).float(), p),
        "the brightest patch; all",
    ),
    (checks.centre_of_mass, lambda m, p: centre_by_places(torch.ones_like(m), p), "the middle of the photo"),
    (checks.centre_of_mass, then(centre_by_places, lambda c: c[:, 1]), "the column alone"),
    (checks.centre_of_mass, then(centre_by_places, lambda c: c.mean(0)), "the photos are averaged"),
    (checks.centre_of_mass, then(centre_by_places, lambda c: c.mT), "the axes are swapped"),
    (
        checks.centre_of_mass,
        then(centre_by_places, lambda c: tuple(c.T)),
        r"returned a tuple of 2 \(Tensor, Tensor\): expected one tensor, \(B, 2\)",
    ),
    (
        checks.best_head,
        lambda s: torch.stack([s[n::2].mean(0)[s.mean(0).argmax()] for n in (0, 1)]),
        "chosen on all photos",
    ),
    (checks.best_head, lambda s: s.mean(0).max().expand(2), "measured on all"),
    (
        checks.best_head,
        lambda s: torch.stack([s[n::2].mean(0).max() for n in (0, 1)]),
        "each half chooses its own",
    ),
    (
        checks.best_head,
        lambda s: torch.stack([s[1::2].mean(0).max(), s[::2].mean(0)[s[1::2].mean(0).argmax()]]),
        "chosen on photos 1, 3, 5, ...; choose",
    ),
    (checks.best_head, then(best_by_means, lambda pair: pair.flip(0)), "have changed places"),
    (checks.best_head, lambda s: torch.stack([s[n::2].amax(1).mean() for n in (0, 1)]), "each photo chooses"),
    (
        checks.best_head,
        lambda s: torch.stack(
            [s[: len(s) // 2].mean(0).max(), s[len(s) // 2 :].mean(0)[s[: len(s) // 2].mean(0).argmax()]]
        ),
        "cut in the middle",
    ),
    (
        checks.best_head,
        then(best_by_means, lambda pair: pair[0].expand(2)),
        "the same photos choose and judge",
    ),
    (
        checks.best_head,
        lambda s: torch.stack([s[::2].mean(0).max(), s.mean(0)[s[::2].mean(0).argmax()]]),
        "the second number counts all",
    ),
    (checks.best_head, lambda s: torch.stack([s[::2].mean(), s[1::2].mean()]), "all heads are averaged"),
    (checks.best_head, lambda s: -best_by_means(-s), "the worst head"),
]


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


CHAPTER_13 = [
    (checks.patch_distances, packaged_distances, "the package's own"),
    (checks.patch_distances, then(distances_by_norm, lambda d: None), "returned None"),
    (checks.patch_distances, lambda grid, size: distances_by_norm(grid, 1), "counted in patches"),
    (checks.patch_distances, distances_with(lambda s, p: p * s.sum(-1)), r"Pythagoras\)\."),
    (checks.patch_distances, distances_with(lambda s, p: s.long().sum(-1)), "the patch size is missing"),
    (checks.patch_distances, distances_with(lambda s, p: p * s.amax(-1)), "larger of the two steps"),
    (
        checks.patch_distances,
        distances_with(lambda s, p: (p * s).square().sum(-1)),
        "is squared: take the root",
    ),
    (
        checks.patch_distances,
        distances_with(lambda s, p: p * s.square().sum(-1)),
        "squared step is multiplied",
    ),
    (checks.patch_distances, distances_with(lambda s, p: (p * s.square().sum(-1)).sqrt()), "under the root"),
    (checks.patch_distances, distances_with(lambda s, p: p * s[..., 0]), "only rows"),
    (checks.patch_distances, distances_with(lambda s, p: p * s[..., 1]), "only columns"),
    (checks.patch_distances, distances_with(straight, by_column), "column by column"),
    (checks.patch_distances, distances_with(straight, divided_by_rows), "column by column"),
    (
        checks.patch_distances,
        lambda grid, size: (
            size * (torch.arange(math.prod(grid))[:, None] - torch.arange(math.prod(grid))).abs()
        ),
        "difference of the patches' numbers",
    ),
    (checks.patch_distances, lambda grid, size: distances_by_norm(grid, size)[0], "the first patch alone"),
    (
        checks.patch_distances,
        lambda grid, size: distances_by_norm(grid, size).view(*grid, *grid),
        "axes of the grid are still apart",
    ),
    (checks.patch_distances, distances_with(lambda s, p: p * s), "two numbers for each pair"),
    (
        checks.mean_distance,
        lambda a, g, p: mean_attention_distance(a[None, None], g, p),
        "the package's own",
    ),
    (checks.mean_distance, lambda a, g, p: mean_by_sums(a, g, 1), "counted in patches"),
    (
        checks.mean_distance,
        lambda a, g, p: (a * distances_by_norm(g, p)).sum((-1, -2)),
        "are added up; average",
    ),
    (
        checks.mean_distance,
        lambda a, g, p: (a * distances_by_norm(g, p)).mean((-1, -2)),
        "runs over both axes",
    ),
    (
        checks.mean_distance,
        lambda a, g, p: (a * distances_by_norm(g, p)).sum(-1),
        "one number for each patch",
    ),
    (
        checks.mean_distance,
        lambda a, g, p: (a * distances_by_norm(g, p)).sum(-1)[..., 0],
        "the first patch alone",
    ),
    (
        checks.mean_distance,
        lambda a, g, p: mean_by_sums(a, g, p).mean(),
        "heads and images are averaged",
    ),
    (checks.mean_distance, weighted(distances_with(lambda s, p: p * s.sum(-1))), "Pythagoras"),
    (checks.mean_distance, weighted(lambda g, p: distances_by_norm(g, p) ** 2), "are squared"),
    (
        checks.mean_distance,
        lambda a, g, p: weighted(lambda g, p: distances_by_norm(g, p) ** 2)(a, g, p).sqrt(),
        "root of the mean square",
    ),
    (checks.mean_distance, weighted(distances_with(straight, by_column)), "column by column"),
    (checks.mean_distance, weighted(distances_with(straight, divided_by_rows)), "column by column"),
    (
        checks.mean_distance,
        lambda a, g, p: distances_by_norm(g, p).mean().expand(a.shape[:-2]),
        "the weights play no part",
    ),
    (checks.mean_distance, without_own, "look at itself is left out"),
    (checks.mean_distance, strongest_only, "the largest weight"),
    (
        checks.attention_distance,
        lambda a, g, p: mean_attention_distance(a, g, p),
        "the package's own",
    ),
    (checks.attention_distance, mean_by_sums, "stopped with RuntimeError"),
    (
        checks.attention_distance,
        lambda a, g, p: mean_by_sums(cut(a, g), g, p),
        "do not sum to 1 any more",
    ),
    (
        checks.attention_distance,
        lambda a, g, p: (cut(a, g) * distances_by_norm(g, p)).sum((-1, -2)) / a.shape[-1],
        "one more patch at distance 0",
    ),
    (
        checks.attention_distance,
        lambda a, g, p: (cut(a, g) * distances_by_norm(g, p)).sum((-1, -2)) / cut(a, g).sum((-1, -2)),
        "scaled by one sum",
    ),
    (
        checks.attention_distance,
        lambda a, g, p: (
            mean_by_sums(cut(a, g) / cut(a, g).sum(-2, keepdim=True), g, p)
            if a.shape[-1] != math.prod(g)
            else mean_by_sums(a, g, p)
        ),
        "the columns are scaled",
    ),
    (
        checks.attention_distance,
        lambda a, g, p: mean_by_sums(scaled(a[..., : math.prod(g), : math.prod(g)]), g, p),
        "the last token is cut; the class",
    ),
    (
        checks.attention_distance,
        lambda a, g, p: mean_by_sums(a[..., : math.prod(g), : math.prod(g)], g, p),
        "the last token is cut, and",
    ),
    (
        checks.attention_distance,
        lambda a, g, p: mean_by_sums(cut(a, g).softmax(-1) if a.shape[-1] > math.prod(g) else a, g, p),
        "second softmax",
    ),
    (checks.attention_distance, lambda a, g, p: distance_by_sums(a, g, 1), "counted in patches"),
    (
        checks.attention_distance,
        lambda a, g, p: distance_by_sums(a, g, p).mean(-1),
        "the heads are averaged",
    ),
    (
        checks.attention_distance,
        lambda a, g, p: without_own(scaled(cut(a, g)), g, p),
        "itself is left out",
    ),
    (
        checks.attention_distance,
        lambda a, g, p: mean_by_sums(scaled(a[..., 1:, 1:]), g, p),
        "RuntimeError",
    ),
    (checks.share_by_ring, rings_by(lambda r, c: r + c), "rows and columns are added"),
    (checks.share_by_ring, rings_by(min), "the smaller of the two"),
    (checks.share_by_ring, rings_by(lambda r, c: round(math.hypot(r, c))), r"straight distance.*\(rounded\)"),
    (checks.share_by_ring, rings_by(lambda r, c: int(math.hypot(r, c))), "rounded down"),
    (checks.share_by_ring, rings_by(lambda r, c: r), "only rows"),
    (checks.share_by_ring, rings_by(lambda r, c: c), "only columns"),
    (
        checks.share_by_ring,
        lambda a, g: rings_by_mask(a, g) * a.shape[-1],
        "are added up; average",
    ),
    (
        checks.share_by_ring,
        lambda a, g: rings_by_mask(a, g) / a.shape[-1],
        "runs over all pairs",
    ),
    (
        checks.share_by_ring,
        lambda a, g: rings_by_mask(a, g) / F.one_hot(rings_of(g)).float().sum(1).mean(0),
        "divided by the number of its patches; a",
    ),
    (checks.share_by_ring, lambda a, g: rings_by_mask(a, g).cumsum(-1), "all that lies inside"),
    (checks.share_by_ring, lambda a, g: rings_by_mask(a, g)[..., 1:], "one too short"),
    (
        checks.share_by_ring,
        lambda a, g: rings_by_mask(a, g)[..., :-1],
        "the last ring is missing",
    ),
    (
        checks.share_by_ring,
        lambda a, g: torch.stack([(a * (rings_of(g) == k)).sum(-1) for k in range(max(g))], -1),
        "the rings of each patch",
    ),
    (checks.reach, reach_by(lambda a, n: a[n].mean(1)), "each layer is measured by itself; roll"),
    (checks.reach, then(reach_by(lambda a, n: a[n]), lambda d: d.mean(-1)), "each head of each layer"),
    (
        checks.reach,
        reach_by(lambda a, n: (a[n].mean(1) + torch.eye(a.shape[-1])) / 2),
        "by itself, with its skip",
    ),
    (checks.reach, then(reach_by(lambda a, n: a[n].mean(1)), lambda d: d.cumsum(0)), "layers are added up"),
    (checks.reach, reach_by(lambda a, n: rollout(a[: n + 1].flip(0))), "later one belongs on the left"),
    (checks.reach, reach_by(lambda a, n: rollout(a[: n + 1], skip=0)), "the identity is missing"),
    (checks.reach, reach_by(lambda a, n: rollout(a[n:])), "begins with the last layer and goes down"),
    (
        checks.reach,
        lambda a, g, p: torch.stack([mean_by_sums(cut(rollout(a[: n + 1]), g), g, p) for n in range(len(a))]),
        "do not sum to 1 any more",
    ),
    (checks.reach, then(reach_by_rollout, lambda d: d[-1]), "the reach after the last layer"),
    (checks.reach, then(reach_by_rollout, lambda d: d[1:]), "one layer is missing"),
    (checks.reach, then(reach_by_rollout, lambda d: d.mean(1)), "the photos are averaged"),
    (checks.reach, then(reach_by_rollout, lambda d: d.mT), "the axes are swapped"),
]


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


CHAPTER_14 = [
    (checks.similarity_maps, position_similarity, "the package's own"),
    (checks.similarity_maps, likeness(lambda v: v @ v.T), "these are the dot products"),
    (checks.similarity_maps, likeness(lambda v: v @ v.T / v.shape[1]), "divided by D"),
    (checks.similarity_maps, likeness(lambda v: v @ v.T / v.shape[1] ** 0.5), "as in attention"),
    (checks.similarity_maps, likeness(lambda v: v @ F.normalize(v, dim=1).T), "by one of the two lengths"),
    (checks.similarity_maps, likeness(lambda v: v @ v.T / v.square().sum(1)), "the square of one length"),
    (
        checks.similarity_maps,
        likeness(lambda v: F.normalize(v, dim=0) @ F.normalize(v, dim=0).T),
        "over the places",
    ),
    (
        checks.similarity_maps,
        likeness(lambda v: (v / v.norm()) @ (v / v.norm()).T),
        "that of the whole table",
    ),
    (checks.similarity_maps, likeness(lambda v: cosines(v).abs()), "the sign is lost"),
    (checks.similarity_maps, likeness(lambda v: 1 - cosines(v)), "1 less the cosine"),
    (checks.similarity_maps, likeness(lambda v: torch.cdist(v, v)), "these are the distances"),
    (checks.similarity_maps, likeness(lambda v: cosines(v - v.mean(0))), "the mean vector is taken away"),
    (checks.similarity_maps, likeness(torch.corrcoef), "each vector's own mean"),
    (checks.similarity_maps, likeness(lambda v: cosines(v).softmax(-1)), "a softmax"),
    (checks.similarity_maps, lambda v, grid: cosines(v), "reshape to"),
    (checks.similarity_maps, then(maps_by_unit, lambda m: m.transpose(1, 2)), "the order .gh, gh, gw, gw"),
    (
        checks.similarity_maps,
        lambda v, grid: maps_by_unit(v, grid[::-1]),
        "rows and columns of the grid are swapped",
    ),
    (checks.resize_table, resize_positions, "the package's own"),
    (checks.resize_table, variant(resized, corners=False), "the corners do not stay"),
    (checks.resize_table, variant(resized, mode="bicubic"), "bicubic; bilinear"),
    (checks.resize_table, variant(resized, mode="bicubic", corners=False), "bicubic in place of"),
    (checks.resize_table, variant(resized, mode="nearest", corners=None), "nearest neighbour"),
    (checks.resize_table, swapped_grid, "old grid are swapped"),
    (checks.resize_table, columns_first, "column by column"),
    (checks.resize_table, along_one_line, "one long row"),
    (checks.resize_table, patches_only(lambda first, rest: rest), "row is lost"),
    (checks.resize_table, patches_only(lambda first, rest: torch.cat([rest, first], 1)), "stands last"),
    (checks.resize_table, patches_only(lambda first, rest: torch.cat([0 * first, rest], 1)), "row is 0"),
    (checks.resize_table, lambda t, old, new: resized(t, old, new).detach(), "no gradient can flow back"),
    (checks.resize_table, lambda t, old, new: t[:, : 1 + math.prod(new)], "expected"),
    (checks.resize_table, lambda t, old, new: F.interpolate(t, new), "stopped with"),
    (checks.centred_similarity, cosines, "the mean vector is not taken away"),
    (checks.centred_similarity, torch.corrcoef, r"each vector's own mean is taken away \(dim=1\)"),
    (checks.centred_similarity, lambda v: cosines(v - v.mean()), "one number is taken away"),
    (checks.centred_similarity, lambda v: cosines(v) - cosines(v).mean(), "the cosines are centred"),
    (
        checks.centred_similarity,
        lambda v: cosines(v) - cosines(v).mean(1, keepdim=True),
        "rows of the cosines",
    ),
    (
        checks.centred_similarity,
        lambda v: cosines(F.normalize(v, dim=1) - F.normalize(v, dim=1).mean(0)),
        "length 1 first and centred then",
    ),
    (checks.centred_similarity, lambda v: (v - v.mean(0)) @ (v - v.mean(0)).T, "these are the dot products"),
    (checks.centred_similarity, lambda v: cosines((v - v.mean(0)) / v.std(0)), "divided by their spread"),
    (checks.centred_similarity, lambda v: cosines(v - v.median(0).values), "the median"),
    (checks.centred_similarity, lambda v: torch.corrcoef(v.T), "correlations of the D values"),
    (checks.additive_share, additive_not_centred, "counted twice"),
    (checks.additive_share, additive_half_centred, "still in it: centre first"),
    (checks.additive_share, variant(additive, parts=lambda rows, columns: rows), "the columns are left out"),
    (checks.additive_share, variant(additive, parts=lambda rows, columns: columns), "the rows are left out"),
    (checks.additive_share, variant(additive, measure=lambda a, b: 1 - a / b), "the share of the rest"),
    (checks.additive_share, variant(additive, measure=lambda a, b: (a / b).sqrt()), "the root of the share"),
    (checks.additive_share, variant(additive, measure=lambda a, b: a), "not divided by that of the whole"),
    (checks.additive_share, variant(additive, measure=lambda a, b: (a / b).item()), "returned float"),
    (checks.additive_share, lambda v, grid: additive(v, grid[::-1]), "grid are swapped"),
    (
        checks.additive_share,
        lambda v, grid: additive(v - v.mean(1, keepdim=True), grid),
        "each vector's own mean",
    ),
]


def as_they_come(rows):
    """The signs of the decomposition, all turned so that none is right by chance."""
    return -with_signs(rows)


def second_turned(rows):
    rows = with_signs(rows)
    return torch.cat([rows[:1], -rows[1:2], rows[2:]])


def means_of_shares(share):
    return lambda variance: share(variance / variance.sum(-1, keepdim=True))


CHAPTER_15 = [
    (
        checks.principal_components,
        lambda f, k: embedding_filter_components(f, k).components,
        "the package's own",
    ),
    (checks.principal_components, lambda f, k: embedding_filter_components(f), "the package's own"),
    (
        checks.principal_components,
        variant(components_by_svd, centre=lambda w: w),
        "mean filter is not taken",
    ),
    (
        checks.principal_components,
        variant(components_by_svd, centre=lambda w: w - w.mean(1, keepdim=True)),
        "each filter's own mean",
    ),
    (
        checks.principal_components,
        variant(components_by_svd, centre=lambda w: w - w.mean()),
        "one number",
    ),
    (
        checks.principal_components,
        variant(components_by_svd, centre=lambda w: (w - w.mean(0)) / w.std(0)),
        "divided by their spread",
    ),
    (
        checks.principal_components,
        variant(components_by_svd, rows=lambda found, k: found.Vh.flip(0)[:k]),
        "the weakest components|values are not",
    ),
    (
        checks.principal_components,
        variant(components_by_svd, rows=lambda found, k: found.Vh[:k].flip(0)),
        "the strongest component comes last",
    ),
    (checks.principal_components, variant(components_by_svd, signs=as_they_come), "all signs are turned"),
    (checks.principal_components, variant(components_by_svd, signs=second_turned), "component 2: the sign"),
    (
        checks.principal_components,
        variant(components_by_svd, rows=lambda found, k: found.S[:k, None] * found.Vh[:k]),
        "multiplied by their sizes",
    ),
    (
        checks.principal_components,
        variant(components_by_svd, signs=lambda rows: with_signs(rows) / rows.abs().amax(1, keepdim=True)),
        "divided by their largest entry",
    ),
    (checks.principal_components, then(components_by_svd, lambda c: c.flatten(1)), "the components are flat"),
    (checks.principal_components, then(components_by_svd, lambda c: c.movedim(1, 3)), "channels come last"),
    (checks.principal_components, then(components_by_svd, torch.abs), "its sign is lost"),
    (
        checks.principal_components,
        lambda f, k: torch.linalg.svd(f.flatten(1)),
        "a (linalg_svd|tuple) of 3.*expected one tensor, .k, C, P, P",
    ),
    (checks.participation_ratio, lambda v: 1 / v.square().sum(-1), "not made shares first"),
    (
        checks.participation_ratio,
        means_of_shares(lambda s: s.square().sum(-1)),
        "the sum of the squared shares; the",
    ),
    (checks.participation_ratio, means_of_shares(lambda s: 1 / s.square().mean(-1)), "are averaged; add"),
    (checks.participation_ratio, means_of_shares(lambda s: 1 / s.sum(-1)), "are not squared"),
    (checks.participation_ratio, means_of_shares(lambda s: 1 / s.amax(-1)), "1 over the largest"),
    (
        checks.participation_ratio,
        means_of_shares(lambda s: torch.special.entr(s).sum(-1).exp()),
        "exponential of the entropy",
    ),
    (checks.participation_ratio, means_of_shares(lambda s: 1 / s.norm(dim=-1)), "the root of the sum"),
    (checks.participation_ratio, lambda v: ratio_by_shares(v.square()), "squared before they become shares"),
    (checks.participation_ratio, lambda v: 1 / (v / v.sum()).square().sum(-1), "divided by one sum"),
    (checks.participation_ratio, lambda v: ratio_by_shares(v.flatten()), "everything is one list"),
    (checks.participation_ratio, lambda v: ratio_by_shares(v).mean().item(), "returned float"),
    (checks.participation_ratio, lambda v: 1 / v.softmax(-1).square().sum(-1), "a softmax"),
    (
        checks.participation_ratio,
        means_of_shares(lambda s: (s > s.mean(-1, keepdim=True)).sum(-1)),
        "above an even one",
    ),
    (checks.space_overlap, lambda a, b: (a * b).sum(1).square().mean(), "compared one by one; compare"),
    (checks.space_overlap, lambda a, b: F.cosine_similarity(a, b).mean(), "one by one, and not squared"),
    (checks.space_overlap, lambda a, b: F.cosine_similarity(a, b).abs().mean(), "one by one, by size"),
    (checks.space_overlap, lambda a, b: (a @ b.T).sum() / len(a), "cosines are not squared"),
    (checks.space_overlap, lambda a, b: (a @ b.T).abs().sum() / len(a), "sizes are taken"),
    (checks.space_overlap, lambda a, b: (a @ b.T).square().sum(), "not divided by k"),
    (checks.space_overlap, lambda a, b: (a @ b.T).square().mean(), "averaged over all pairs"),
    (checks.space_overlap, lambda a, b: (a @ b.T).norm() / len(a), "the norm is not squared"),
    (
        checks.space_overlap,
        lambda a, b: (a @ b.T).square().amax(1).mean(),
        "only the best partner of each pattern counts; all do",
    ),
    (checks.space_overlap, lambda a, b: (a.T @ b).square().sum() / len(a), "runs over the patterns"),
    (checks.space_overlap, lambda a, b: (a @ b.T).square().sum() / a.shape[1], "the number of values"),
    (checks.space_overlap, lambda a, b: torch.linalg.norm(a @ b.T, 2) ** 2, "the best direction alone"),
    (
        checks.space_overlap,
        lambda a, b: torch.linalg.svdvals(a @ b.T).mean(),
        "the sum of the principal cosines",
    ),
    (checks.space_overlap, then(overlap_by_products, torch.Tensor.item), "returned float"),
    (checks.principal_angles, variant(angles_by_svd, turn=lambda angle: angle), "in radians; turn"),
    (checks.principal_angles, then(angles_by_svd, lambda a: a.flip(0)), "the largest comes first; begin"),
    (checks.principal_angles, lambda a, b: torch.linalg.svdvals(a @ b.T), "these are the cosines"),
    (
        checks.principal_angles,
        lambda a, b: torch.linalg.svdvals(a @ b.T).asin().rad2deg(),
        "taken for sines; they",
    ),
    (
        checks.principal_angles,
        lambda a, b: torch.linalg.eigvalsh(a @ b.T @ b @ a.T).flip(0).acos().rad2deg(),
        "eigenvalues of M M.T need a root",
    ),
    (
        checks.principal_angles,
        variant(angles_by_svd, cosines=torch.diagonal),
        "one by one; the angles lie between the spaces[.]",
    ),
    (
        checks.principal_angles,
        variant(angles_by_svd, cosines=lambda p: p.diagonal().sort(descending=True).values),
        r"\(sorted\)",
    ),
    (checks.principal_angles, variant(angles_by_svd, cosines=lambda p: p.diagonal().abs()), r"\(by size\)"),
    (checks.principal_angles, variant(angles_by_svd, cosines=lambda p: p.abs().amax(1)), "best partner"),
    (checks.principal_angles, variant(angles_by_svd, cosines=lambda p: p), "angles of all pairs"),
    (checks.principal_angles, variant(angles_by_svd, cosines=lambda p: p.norm(dim=1)), "lengths of the rows"),
    (checks.redraw, lambda x, p: x @ p.T @ p, "taken for orthonormal ones"),
    (checks.redraw, lambda x, p: x @ F.normalize(p).T @ F.normalize(p), "brought to length 1, and"),
    (checks.redraw, lambda x, p: x @ torch.linalg.pinv(p), "these are the coordinates"),
    (checks.redraw, lambda x, p: x @ p.T, "these are the dot products"),
    (checks.redraw, lambda x, p: x - redraw_by_qr(x, p), "this is what is lost"),
    (checks.redraw, lambda x, p: redraw_by_qr(x - x.mean(0), p), "taken away first, and not put back"),
    (checks.redraw, lambda x, p: redraw_by_qr(x - x.mean(0), p) + x.mean(0), "taken away first and put back"),
    (checks.redraw, lambda x, p: x, "as they went in"),
    (checks.redraw, lambda x, p: x @ torch.linalg.pinv(p) @ F.normalize(p), "meet patterns of length 1"),
    (checks.redraw, lambda x, p: x @ torch.linalg.inv(p @ p.T), "stopped with RuntimeError"),
    (checks.redraw, lambda x, p: x @ (p / p.norm()).T @ (p / p.norm()), "divided by one length"),
    (
        checks.half_overlap,
        lambda f, k: overlap_by_products(
            *(components_by_svd(f[n::2], k, centre=lambda w: w).flatten(1) for n in (0, 1))
        ),
        "each half is not taken away",
    ),
    (
        checks.half_overlap,
        lambda f, k: overlap_by_products(
            *(components_by_svd((f - f.mean(0))[n::2], k, centre=lambda w: w).flatten(1) for n in (0, 1))
        ),
        "lose the mean of all",
    ),
    (
        checks.half_overlap,
        variant(halves_by_parts, parts=lambda f: f.split([len(f) // 2, len(f) - len(f) // 2])),
        "cut in the middle",
    ),
    (checks.half_overlap, variant(halves_by_parts, parts=lambda f: (f[::2], f)), "compared with all"),
    (checks.half_overlap, variant(halves_by_parts, parts=lambda f: (f[::2], f[::2])), "compared with itself"),
    (
        checks.half_overlap,
        variant(halves_by_parts, compare=lambda a, b: (a * b).sum(1).square().mean()),
        "one by one; the spaces",
    ),
    (
        checks.half_overlap,
        variant(halves_by_parts, compare=lambda a, b: (a * b).sum(1).abs().mean()),
        r"\(by size\)",
    ),
    (checks.half_overlap, lambda f, k: k * halves_by_parts(f, k), "not divided by k"),
    (checks.half_overlap, lambda f, k: halves_by_parts(f, k) / k, "divided by k twice"),
    (checks.half_overlap, lambda f, k: halves_by_parts(f, k + 1), "one component too many"),
    (checks.half_overlap, then(halves_by_parts, torch.sqrt), "the root is taken"),
]

WRONG = [*CHAPTER_12, *CHAPTER_13, *CHAPTER_14, *CHAPTER_15]
