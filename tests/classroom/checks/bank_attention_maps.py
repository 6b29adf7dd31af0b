"""Right and wrong answers to the pieces of chapter 13."""

import torch
import torch.nn.functional as F
from einops import rearrange, reduce, repeat
from variations import then, variant

from vit_classroom import checks
from vit_from_scratch.inspection import attention_rollout, object_share
from vit_from_scratch.inspection.masking import mask_patches


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
    _, rows, columns = maps.shape
    covered = F.avg_pool2d(mask[:, None], (mask.shape[1] // rows, mask.shape[2] // columns)).squeeze(1)
    return torch.einsum("bhw,bhw->b", maps / maps.sum((1, 2), keepdim=True), covered)


def share_of_square_patches(maps, mask):
    size = mask.shape[1] // maps.shape[1]
    return (maps * F.avg_pool2d(mask[:, None], size)[:, 0]).sum((1, 2)) / maps.sum((1, 2))


def share_in_loops(maps, mask):
    found = []
    for map_, one in zip(maps.tolist(), mask, strict=True):
        up, across = one.shape[0] // len(map_), one.shape[1] // len(map_[0])
        on = sum(
            weight * one[r * up : (r + 1) * up, c * across : (c + 1) * across].mean().item()
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


def heads_apart(attentions):
    heads = [rollout(attentions[:, :, h : h + 1]) for h in range(attentions.shape[2])]
    return torch.stack(heads).mean(0)


def skip_at_the_end(attentions):
    result = rollout(attentions, skip=0) + torch.eye(attentions.shape[-1])
    return result / result.sum(-1, keepdim=True)


def at_least(images, scores, count, size):
    """Hides what is at least as high as the last of the chosen."""
    kth = scores.flatten(1).topk(max(count, 1)).values[:, -1, None, None]
    return hide(images, scores, count, size, choose=lambda s, n: (s >= kth) & (n > 0))


def above(images, scores, count, size):
    """Hides what is higher than the first of the rest."""
    kth = scores.flatten(1).sort(descending=True).values[:, count, None, None]
    return hide(images, scores, count, size, choose=lambda s, n: s > kth)


def hide_last_of_equals(images, scores, count, size):
    """Of equal scores the later patch goes first."""
    places = scores.flatten(1).flip(1).argsort(dim=1, descending=True, stable=True)[:, :count]
    numbers = scores[0].numel() - 1 - places
    chosen = torch.zeros_like(scores).flatten(1).scatter(1, numbers, 1.0).view_as(scores).bool()
    return hide(images, scores, count, size, choose=lambda s, n: chosen)


def hide_the_tail(images, scores, count, size):
    """With a count of 0 the tail is everything."""
    places = scores.flatten(1).argsort(dim=1)[:, -count:]
    chosen = torch.zeros_like(scores).flatten(1).scatter(1, places, 1.0).view_as(scores).bool()
    return hide(images, scores, count, size, choose=lambda s, n: chosen)


def hide_tiled(images, scores, count, size):
    pixels = chosen_by_topk(scores, count).repeat(1, size, size)
    return torch.where(pixels[:, None], images.mean((2, 3), keepdim=True), images)


def hide_one_by_one(images, scores, count, size, in_order=sorted):
    """Takes the mean again for each patch, with those before it painted."""
    result = images.clone()
    for number in range(len(images)):
        for i in in_order(scores[number].flatten().topk(count).indices.tolist()):
            row, column = (size * n for n in divmod(i, scores.shape[2]))
            colour = result[number].mean((1, 2))[:, None, None]
            result[number, :, row : row + size, column : column + size] = colour
    return result


def hide_from_black(images, scores, count, size):
    keep = ~repeat(chosen_by_topk(scores, count), "b gh gw -> b 1 (gh p) (gw q)", p=size, q=size)
    kept = images * keep
    return kept + kept.mean((2, 3), keepdim=True) * ~keep


def best_photo(shares):
    chosen, rest = shares[::2].mean(1), shares[1::2].mean(1)
    return torch.stack([chosen.max(), rest[chosen.argmax()]])


def best_by_sums(shares):
    chosen, rest = shares[::2].sum(0), shares[1::2].sum(0)
    return torch.stack([chosen.max(), rest[chosen.argmax()]])


RIGHT = {
    checks.rollout: [rollout, rollout_by_einsum, rollout_by_chain, rollout_in_loops],
    checks.share_on_object: [share_by_reduce, share_by_pixels, share_by_pooling, share_in_loops],
    checks.hide_patches: [hide_last_of_equals, hide, hide_in_loops, hide_by_patches, hide_by_rank],
    checks.centre_of_mass: [centre_by_places, centre_by_margins, centre_by_pixels, centre_in_loops],
    checks.best_head: [best_by_means, best_by_mask, best_by_sorting],
}

WRONG = {
    checks.best_head: [
        (
            lambda s: torch.stack([s[n::2].mean(0)[s.mean(0).argmax()] for n in (0, 1)]),
            "chosen on all photos",
        ),
        (lambda s: s.mean(0).max().expand(2), "measured on all"),
        (lambda s: torch.stack([s[n::2].mean(0).max() for n in (0, 1)]), "each half chooses its own"),
        (
            lambda s: torch.stack([s[1::2].mean(0).max(), s[::2].mean(0)[s[1::2].mean(0).argmax()]]),
            "chosen on photos 1, 3, 5, ...; choose",
        ),
        (then(best_by_means, lambda pair: pair.flip(0)), "have changed places"),
        (lambda s: torch.stack([s[n::2].amax(1).mean() for n in (0, 1)]), "each photo chooses"),
        (
            lambda s: torch.stack(
                [s[: len(s) // 2].mean(0).max(), s[len(s) // 2 :].mean(0)[s[: len(s) // 2].mean(0).argmax()]]
            ),
            "cut in the middle",
        ),
        (then(best_by_means, lambda pair: pair[0].expand(2)), "the same photos choose and judge"),
        (
            lambda s: torch.stack([s[::2].mean(0).max(), s.mean(0)[s[::2].mean(0).argmax()]]),
            "the second number counts all",
        ),
        (lambda s: torch.stack([s[::2].mean(), s[1::2].mean()]), "all heads are averaged"),
        (lambda s: -best_by_means(-s), "the worst head"),
        (lambda s: best_by_means(s.mT), "half of the heads choose a photo"),
        (best_photo, "photos are compared by the mean of their heads"),
        (best_by_sums, "added up over the photos"),
    ],
    checks.centre_of_mass: [
        (lambda m, p: centre_by_places(m, p).squeeze(0), "the photos are averaged"),
        (lambda m, p: centre_by_places(m, p).round(), "of them agree"),
        (variant(centre_by_places, start=0), "counted at their corner"),
        (variant(centre_by_places, start=1), "counted from 1"),
        (lambda m, p: centre_by_places(m, p, start=0) + 0.5, "half a pixel"),
        (lambda m, p: centre_by_places(m, 1), "counted in patches; multiply"),
        (lambda m, p: centre_by_places(m, 1, start=0), "counted in patches, and"),
        (variant(centre_by_places, order=(1, 0)), "the column comes first"),
        (variant(centre_by_places, whole=lambda m: torch.ones(len(m))), "not divided by their sum"),
        (variant(centre_by_places, whole=lambda m: m.amax((1, 2))), "by their largest"),
        (
            lambda m, p: centre_by_places((m == m.amax((1, 2), keepdim=True)).float(), p),
            "the brightest patch; all",
        ),
        (
            variant(centre_by_places, whole=lambda m: m.sum().expand(len(m))),
            "all maps are divided by one sum",
        ),
        (lambda m, p: centre_by_places(torch.ones_like(m), p), "the middle of the photo"),
        (then(centre_by_places, lambda c: c[:, 1]), "the column alone"),
        (then(centre_by_places, lambda c: c.mean(0)), "the photos are averaged"),
        (then(centre_by_places, lambda c: c.mT), "its axes stand in another order"),
        (
            then(centre_by_places, lambda c: tuple(c.T)),
            r"returned a tuple of 2 \(Tensor, Tensor\): expected one tensor, \(B, 2\)",
        ),
    ],
    checks.hide_patches: [
        (at_least, "another number of patches is hidden.*takes both"),
        (above, "another number of patches is hidden.*takes neither"),
        (lambda i, s, n, p: hide(i, s, n, p).squeeze(0), "wrong where axis 0 of images has length 1"),
        (lambda i, s, n, p: hide(i, s, n, p).flip(0), "right only where|turned round|along axis"),
        (mask_patches, "the package's own"),
        (variant(hide, colour=lambda i: i.mean((2, 3)).view(-1, 3, 1, 1)), "shapes do not fit"),
        (lambda i, s, n, p: hide(i, -s, n, p), "of lowest score"),
        (variant(hide, choose=lambda s, n: ~chosen_by_topk(s, n)), "are kept, and all others"),
        (variant(hide, colour=lambda i: torch.zeros(())), "are set to 0"),
        (variant(hide, colour=lambda i: torch.ones(())), "are set to 1"),
        (variant(hide, colour=lambda i: i.mean((1, 2, 3), keepdim=True)), "is a grey"),
        (variant(hide, colour=lambda i: i.mean((0, 2, 3), keepdim=True)), "the mean of the batch"),
        (variant(hide, colour=torch.mean), "the mean of everything"),
        (
            lambda i, s, n, p: hide(
                i, s, n, p, colour=lambda i: F.interpolate(F.avg_pool2d(i, p), scale_factor=p)
            ),
            "its own mean colour",
        ),
        (lambda i, s, n, p: hide(i, s[:1].expand_as(s), n, p), "the patches that the first one's scores"),
        (variant(hide, choose=lambda s, n: s > s.flatten().sort().values[-n - 1]), "in the batch as a whole"),
        (lambda i, s, n, p: hide(i, s, n + 1, p), "one patch too many"),
        (lambda i, s, n, p: hide(i, s, max(n - 1, 0), p), "one patch too few"),
        (lambda i, s, n, p: i.clone(), "nothing is hidden"),
        (hide_the_tail, ": where `count` is 0 every patch is hidden"),
        (hide_tiled, "has to become one block of pixels"),
        (hide_one_by_one, r"painting has begun; take it once, before \(row by row\)"),
        (variant(hide_one_by_one, in_order=list), r"painting has begun; take it once, before\."),
        (variant(hide_one_by_one, in_order=reversed), r"\(lowest first\)"),
        (hide_from_black, "patches are set to 0; take it before"),
        (lambda i, s, n, p: i.copy_(hide(i, s, n, p)), "changes its input"),
        (lambda i, s, n, p: hide(i, s, n / s[0].numel(), p), "stopped with TypeError"),
    ],
    checks.rollout: [
        (lambda a: rollout(a)[:, 1:, 1:], "expected"),
        (then(rollout, lambda r: r / r.amax(-1, keepdim=True)), "of them agree"),
        (attention_rollout, "the package's own"),
        (lambda a: rollout(a).numpy(), "a NumPy array"),
        (variant(rollout, join=lambda step, result: result @ step), "later one goes left"),
        (lambda a: rollout(a.flip(0)), "later one goes left"),
        (variant(rollout, skip=0), "the identity is missing"),
        (variant(rollout, dim=None), "not divided by their sums.*sums to 2"),
        (variant(rollout, fuse=lambda a: a.amax(1)), "the maximum over the heads"),
        (variant(rollout, fuse=lambda a: a.amin(1)), "the minimum over the heads"),
        (variant(rollout, fuse=lambda a: a.sum(1)), "the heads are added up"),
        (variant(rollout, fuse=lambda a: a[:, 0]), "only the first head"),
        (heads_apart, "every head is rolled out by itself"),
        (variant(rollout, dim=-2), "the columns are divided"),
        (variant(rollout, join=lambda step, result: step * result), "entry by entry, from the identity"),
        (lambda a: ((a.mean(2) + torch.eye(a.shape[-1])) / 2).prod(0), r"entry by entry; `@`"),
        (lambda a: ((a.mean(2) + torch.eye(a.shape[-1])) / 2).mean(0), "the layers are averaged"),
        (variant(rollout, join=lambda step, result: step), "the last layer alone"),
        (lambda a: rollout(a[1:]), "the first layer is missing"),
        (lambda a: rollout(a[:-1]), "the last layer is missing"),
        (lambda a: rollout(a.mT), "the weights are transposed"),
        (then(rollout, lambda r: r.mT), "the result is transposed"),
        (skip_at_the_end, "added to the result"),
        (then(rollout, lambda r: r[:, 0]), "the row of the class token; return those"),
        (then(rollout, lambda r: r[:, 0, 1:]), "class token, without itself"),
    ],
    checks.share_on_object: [
        (lambda maps, mask: share_by_reduce(maps, mask).squeeze(), "one share for each"),
        (lambda maps, mask: share_by_reduce(maps, mask.mT), "right only where|values are not|shapes do not"),
        (object_share, "the package's own"),
        (share_of_square_patches, "taken to be square"),
        (variant(share_by_reduce, whole=lambda maps: 1), "not divided by all of the attention"),
        (
            lambda maps, mask: (
                share_by_reduce(maps, mask)
                * maps.sum((1, 2))
                / (
                    reduce(mask, "b (h p) (w q) -> b h w", "mean", h=maps.shape[1], w=maps.shape[2]).sum(
                        (1, 2)
                    )
                )
            ),
            "mean attention on the object",
        ),
        (
            lambda maps, mask: share_by_reduce(maps, mask) / mask.mean((1, 2)),
            "the part of the photo that the object covers",
        ),
        (
            lambda maps, mask: (
                (maps * reduce(mask, "b (p h) (q w) -> b h w", "mean", h=maps.shape[1], w=maps.shape[2])).sum(
                    (1, 2)
                )
                / maps.sum((1, 2))
            ),
            "in einops gh comes first",
        ),
        (
            lambda maps, mask: share_by_reduce(maps, mask) * maps.mean((1, 2)),
            "averaged over the patches",
        ),
        (variant(share_by_reduce, rule="sum"), "added up in a patch"),
        (variant(share_by_reduce, rule="max"), "only touches counts in full"),
        (variant(share_by_reduce, then=lambda c: (c > 0).float()), "threshold at 0"),
        (variant(share_by_reduce, then=lambda c: c.round()), "rounded, so a patch"),
        (lambda maps, mask: share_by_reduce(maps, mask.round()), "rounded pixel by pixel"),
        (
            lambda maps, mask: share_by_reduce(maps, F.interpolate(mask[:, None], maps.shape[1:])[:, 0]),
            "at one pixel of each patch",
        ),
        (
            lambda maps, mask: share_by_reduce(
                maps, F.interpolate(mask[:, None], maps.shape[1:], mode="bilinear")[:, 0]
            ),
            "looks at four",
        ),
        (variant(share_by_reduce, whole=torch.sum), "divided by one sum"),
        (then(share_by_reduce, lambda share: 1 - share), "beside the object"),
        (lambda maps, mask: mask.mean((1, 2)), "the maps play no part"),
        (
            lambda maps, mask: share_by_reduce(maps.flatten(1).softmax(1).view_as(maps), mask),
            "a softmax is taken",
        ),
        (then(share_by_reduce, torch.mean), "one share for each"),
        (then(share_by_reduce, lambda share: share.mean().item()), "returned float"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
