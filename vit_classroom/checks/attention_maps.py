"""Checks of chapter 13: rollout, the share on an object, hidden patches, and what a map points at."""

import dataclasses

import torch
import torch.nn.functional as F
from einops import reduce
from torch import Tensor

from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case
from vit_from_scratch.inspection import attention_maps, masking


def attention_like(*shape: int) -> Tensor:
    """Draw weights with rows that sum to 1, some rows sharp, some flat."""
    sharpness = 0.5 + 2 * torch.rand(*shape[:-1], 1)
    return (sharpness * torch.randn(*shape)).softmax(-1)


def rolled(steps: Tensor) -> Tensor:
    """Multiply the layers of (L, ...), the later one on the left."""
    result = steps[0]
    for step in steps[1:]:
        result = step @ result
    return result


def _shares(raw: Tensor) -> Tensor:
    return raw / raw.sum(-1, keepdim=True)


@function_check(
    "(B, T, T)",
    'chapter 13, "Rollout"',
    attention_maps.attention_rollout,
    [(3, 2, 3, 5), (2, 3, 2, 4), (4, 1, 4, 6)],
    call="rollout(attentions)",
    gradients=False,
)
def rollout(depth: int, batch: int, heads: int, count: int) -> Case:
    """Check a function like :func:`vit_from_scratch.inspection.attention_rollout`, with its defaults.

    It is called as ``function(attentions)`` with (L, B, h, T, T), first layer first; it returns (B, T, T).
    """
    attentions = attention_like(depth, batch, heads, count, count)
    skip = torch.eye(count)
    fused = attentions.mean(2)  # (L, B, T, T)
    steps = (fused + skip) / 2
    right = rolled(steps)
    by_head = torch.stack([rolled((one + skip) / 2) for one in attentions.unbind(2)])
    product, columns = steps.prod(0), (fused + skip).sum(-2, keepdim=True)

    def with_skip(layers: Tensor) -> Tensor:
        return rolled(_shares(layers + skip))

    mistakes = {
        "the layers stand in the wrong order: the later one goes left, step @ result": rolled(steps.flip(0)),
        "the identity is missing: add it for the residual path": rolled(fused),
        "the rows are not divided by their sums; with the identity a row sums to 2": rolled(fused + skip),
        "the maximum over the heads is taken; the first move is their mean": with_skip(attentions.amax(2)),
        "the minimum over the heads is taken; the first move is their mean": with_skip(attentions.amin(2)),
        "the heads are added up; the first move is their mean": with_skip(attentions.sum(2)),
        "every head is rolled out by itself, and their mean comes last; it comes first, for a token "
        "takes in all heads before the next layer": by_head.mean(0),
        "only the first head counts; the first move is the mean of all": by_head[0],
        "the columns are divided by their sums; rows sum to 1: take dim=-1": rolled((fused + skip) / columns),
        "the layers are averaged; rollout multiplies them": steps.mean(0),
        "the layers are multiplied entry by entry; `@` is the matrix product": product,
        "the layers are multiplied entry by entry, from the identity on; take `@`": product * skip,
        "this is the last layer alone: multiply all of them": steps[-1],
        "this is the first layer alone: multiply all of them": steps[0],
        "the first layer is missing in the product": rolled(steps[1:]),
        "the last layer is missing in the product": rolled(steps[:-1]),
        "the weights are transposed: row i holds what token i looks at": with_skip(fused.mT),
        "the result is transposed: row i says where token i comes from": right.mT,
        "the identity is added to the result; each layer has its own skip": _shares(rolled(fused) + skip),
        "this is the row of the class token; return those of all tokens": right[:, 0],
        "this is the row of the class token, without itself; return all rows whole": right[:, 0, 1:],
    }
    return Case((attentions,), right, mistakes)


def _boxes(batch: int, height: int, width: int) -> Tensor:
    """Draw a soft box for each image, whose edges cut through patches."""
    mask = torch.zeros(batch, height, width)
    for one in mask:
        top, left = (int(torch.randint(1, side // 2, ())) for side in (height, width))
        bottom, right = (int(torch.randint(side // 2 + 1, side, ())) for side in (height, width))
        one[top:bottom, left:right] = 0.3 + 0.7 * torch.rand(bottom - top, right - left)
    return mask


@function_check(
    "(B,)",
    'chapter 13, "Is attention on the object?"',
    attention_maps.object_share,
    [(1, 4, 4, 4, 4), (2, 3, 5, 6, 6), (4, 6, 3, 5, 2)],
    gradients=False,
)
def share_on_object(batch: int, rows: int, columns: int, height: int, width: int) -> Case:
    """Check a function like :func:`vit_from_scratch.inspection.object_share`.

    It is called as ``function(maps, mask)``: maps (B, gh, gw) of any scale, mask (B, H, W) from 0 to 1, in
    whole patches; it returns (B,).
    """
    maps = 10 ** (2 * torch.rand(()) - 1) * torch.rand(batch, rows, columns)
    mask = _boxes(batch, rows * height, columns * width)

    def by_patch(mask: Tensor, how: str = "mean") -> Tensor:
        return reduce(mask, "b (r p) (c q) -> b r c", how, r=rows, c=columns)

    covered, most, rounded = by_patch(mask), by_patch(mask, "max"), by_patch((mask > 0.5).float())
    on_it, everything, area = (maps * covered).sum((1, 2)), maps.sum((1, 2)), mask.mean((1, 2))
    right = on_it / everything

    def share(weights: Tensor) -> Tensor:
        return (maps * weights).sum((1, 2)) / everything

    soft = maps.flatten(1).softmax(1).view_as(maps)
    smooth = F.interpolate(mask[:, None], (rows, columns), mode="bilinear")[:, 0]
    middle = mask[:, height // 2 :: height, width // 2 :: width]
    square = F.avg_pool2d(mask[:, None], height)[:, 0]
    one_pixel = "the mask is read at one pixel of each patch; take its mean over the patch"
    touched = "a patch that the object only touches counts in full; take the mean of the mask over it"
    half = "the mask is rounded, so a patch counts in full or not at all; take the mean of the mask"
    mistakes = {
        "the result is not divided by all of the attention: a share is a part of the whole": on_it,
        "this is the mean attention on the object; the share divides by all attention, not by the "
        "object's size": on_it / covered.sum((1, 2)),
        "the share is divided by the part of the photo that the object covers": right / area,
        "the attention on the object is averaged over the patches; add it up, and divide by all attention": (
            on_it / (rows * columns)
        ),
        "a patch takes every gh-th row of pixels, not neighbours; in einops gh comes first, (gh p)": share(
            reduce(mask, "b (p r) (q c) -> b r c", "mean", r=rows, c=columns)
        ),
        "the mask is added up in a patch; take the mean, a full one counts 1": share(
            covered * height * width
        ),
        touched: share(most),
        f"{touched} (a threshold at 0)": share((covered > 0).float()),
        one_pixel: share(mask[:, ::height, ::width]),
        f"{one_pixel} (the middle one)": share(middle),
        f"{one_pixel} (F.interpolate looks at four of them)": share(smooth),
        half: share((covered > 0.5).float()),
        "the mask is rounded pixel by pixel; values from 0 to 1 say how much of each counts": share(rounded),
        "all photos are divided by one sum; divide each by its own": on_it / maps.sum(),
        "this is the share beside the object: 1 less what is asked": 1 - right,
        "this is the part of the photo that the object covers; the maps play no part in it": area,
        "a softmax is taken of the maps; divide by their sum": (soft * covered).sum((1, 2)),
        "the photos are averaged: return one share for each": right.mean(),
        "the photos are added up: return one share for each": right.sum(),
    }
    if width < height:  # one column of such patches is spread over the map
        mistakes["patches are taken to be square; one has H / gh by W / gw pixels"] = share(square)
    return Case((maps, mask), right, mistakes)


TIES = "where two scores are equal, another number of patches is hidden than `count`"


@function_check(
    "(B, C, H, W)",
    'chapter 13, exercise "Hide what a map points at"',
    masking.mask_patches,
    [(4, 3, 4, 4, 3, 5), (2, 1, 3, 5, 4, 4), (1, 3, 5, 2, 2, 3), (2, 3, 3, 3, 2, 0)],
    gradients=False,
)
def hide_patches(batch: int, channels: int, rows: int, columns: int, size: int, count: int) -> Case:
    """Check a function like :func:`vit_from_scratch.inspection.masking.mask_patches`.

    It is called as ``function(images, scores, count, patch_size)``: images (B, C, H, W), scores (B, gh, gw);
    it returns the images with the ``count`` patches of highest score in the image's mean colour. Of equal
    scores either may go.
    """
    images = torch.randn(batch, channels, rows * size, columns * size)
    images += torch.randn(batch, channels, 1, 1)
    scores = torch.randn(batch, rows, columns)
    order = scores.flatten(1).argsort(descending=True)
    if not count:
        return _hidden(images, scores, order, count, size)
    last, next_ = order[0, count - 1 : count + 1].clone()
    scores[0].view(-1)[next_] = scores[0].view(-1)[last]
    swapped = order.clone()
    swapped[0, count - 1 : count + 1] = torch.stack([next_, last])
    case, other = (_hidden(images, scores, each, count, size) for each in (order, swapped))
    return dataclasses.replace(case, others=[other], note="two of the scores equal")


def _hidden(images: Tensor, scores: Tensor, order: Tensor, count: int, size: int) -> Case:
    """What comes of hiding the first patches of an order, (B, N), and of mistakes."""
    batch, rows, columns = scores.shape
    mean = images.mean((2, 3), keepdim=True)

    def patches(numbers: Tensor, width: int = columns) -> Tensor:
        """Where patches of these numbers are, (B, gh, gw); those outside of the grid are nowhere."""
        down, across = (numbers // width)[:, None, None], (numbers % width)[:, None, None]
        is_there = (torch.arange(rows)[:, None, None] == down) & (torch.arange(columns)[:, None] == across)
        return is_there.any(-1)

    def paint(hidden: Tensor, colour: Tensor = mean, onto: Tensor = images) -> Tensor:
        pixels = hidden.repeat_interleave(size, 1).repeat_interleave(size, 2)
        return torch.where(pixels[:, None], colour, onto)

    def one_by_one(numbers: Tensor) -> Tensor:
        result = images
        for number in numbers.split(1, 1):
            result = paint(patches(number), result.mean((2, 3), keepdim=True), result)
        return result

    every = scores.flatten().argsort(descending=True)
    chosen, first = patches(order[:, :count]), patches(order[:1, :count]).expand(batch, -1, -1)
    together = torch.zeros(scores.numel(), dtype=torch.bool).scatter(0, every[:count], True).view_as(chosen)
    last = patches(order[:, rows * columns - count :])
    swapped = F.pad(chosen.mT, (0, columns - rows, 0, rows - columns))
    grey, of_batch = (images.mean(axes, keepdim=True) for axes in ((1, 2, 3), (0, 2, 3)))
    own = F.interpolate(F.avg_pool2d(images, size), scale_factor=size)
    axes = "rows and columns of the grid are swapped: patch i lies in row i // gw, column i % gw"
    colours = {
        "the hidden patches are set to 0; paint them in the photo's mean colour": torch.zeros(()),
        "the hidden patches are set to 1; paint them in the photo's mean colour": torch.ones(()),
        "the colour is a grey, the mean over channels as well; each channel has its own mean": grey,
        "all photos get one colour, the mean of the batch; each has its own": of_batch,
        "all photos get one value, the mean of everything; each photo and channel has its own": images.mean(),
        "each patch gets its own mean colour, which leaves its tone to be seen; take the photo's": own,
        "the mean is taken after the hidden patches are set to 0; take it before": paint(
            chosen, torch.zeros(())
        ).mean((2, 3), keepdim=True),
    }
    turns = order[:, :count]
    painted = "the mean is taken when painting has begun; take it once, before"
    in_turns = {
        painted: turns,
        f"{painted} (lowest first)": turns.flip(1),
        f"{painted} (row by row)": turns.sort().values,
    }
    kept = "the chosen patches are kept, and all others hidden"
    if not count:
        kept = "where `count` is 0 every patch is hidden; hide none ([-0:] takes all)"
    least = scores.flatten(1).gather(1, order[:, max(count, 1) - 1, None])[..., None] if count else torch.inf
    hidden = {
        f"{TIES}: `scores >= least` takes both": scores >= least,
        f"{TIES}: `scores > next` takes neither": scores
        > scores.flatten(1).gather(1, order[:, count, None])[..., None],
        "the patches of lowest score are hidden; hide those of the highest": last,
        kept: ~chosen,
        axes: swapped,
        "every photo loses the patches that the first one's scores name; each has its own scores": first,
        "so many patches are hidden in the batch as a whole; hide so many in each photo": together,
        "one patch too many is hidden": patches(order[:, : count + 1]),
        "one patch too few is hidden": patches(order[:, : max(count - 1, 0)]),
    }
    mistakes = {sentence: paint(chosen, colour) for sentence, colour in colours.items()}
    mistakes |= {sentence: paint(which) for sentence, which in hidden.items()}
    mistakes |= {sentence: one_by_one(numbers) for sentence, numbers in in_turns.items()}
    tiled = "the table of patches is repeated as a whole; each entry has to become one block of pixels: "
    tiled += "repeat_interleave, or (gh p) in einops"
    mistakes[tiled] = torch.where(chosen.repeat(1, size, size)[:, None], mean, images)
    mistakes["nothing is hidden: is the changed copy what you return?"] = images
    return Case((images, scores, count, size), paint(chosen), mistakes)


def _centre_of_mass(maps: Tensor, patch_size: int) -> Tensor:
    weights = maps / maps.sum((1, 2), keepdim=True)
    down, across = (patch_size * (torch.arange(n) + 0.5) for n in maps.shape[1:])
    return torch.stack([weights.sum(2) @ down, weights.sum(1) @ across], 1)


@function_check(
    "(B, 2)",
    'chapter 13, exercise "Does the map follow the cup?"',
    _centre_of_mass,
    [(3, 4, 6, 8), (1, 5, 5, 16), (4, 7, 3, 4)],
    gradients=False,
)
def centre_of_mass(batch: int, rows: int, columns: int, size: int) -> Case:
    """Check a function that finds the middle of a map, in pixels.

    It is called as ``function(maps, patch_size)`` with maps (B, gh, gw) of any scale; it returns (B, 2), row
    and column of the mean place, each patch counted at its own middle.
    """
    maps = 10 ** (2 * torch.rand(()) - 1) * torch.rand(batch, rows, columns) ** 3
    right = _centre_of_mass(maps, size)
    total = maps.sum((1, 2))[:, None]
    brightest = maps.flatten(1).argmax(1)
    at = torch.stack([brightest // columns, brightest % columns], 1)
    soft = maps.flatten(1).softmax(1).view_as(maps)
    middle = torch.tensor([rows * size / 2, columns * size / 2]).expand(batch, 2)
    half = "patches are counted at their corner; the middle lies half a patch further, P (r + 0.5)"
    mistakes = {
        half: right - size / 2,
        "patches are counted from 1; the middle of the first lies at P / 2": right + size / 2,
        "half a pixel is added; half a patch is needed, P (r + 0.5)": right - size / 2 + 0.5,
        "the place is counted in patches; multiply by the patch size": right / size,
        f"the place is counted in patches, and {half}": right / size - 0.5,
        "the column comes first; the order is row, column": right.flip(1),
        "the weights are not divided by their sum": right * total,
        "all maps are divided by one sum; divide each by its own": right * total / maps.sum(),
        "the weights are divided by their largest; divide by their sum": right
        * total
        / maps.amax((1, 2))[:, None],
        "this is the brightest patch; all of them pull, each by its weight": size * (at + 0.5),
        "this is the middle of the photo; the maps play no part in it": middle,
        "a softmax is taken of the maps; divide by their sum": _centre_of_mass(soft, size),
        "this is the column alone; return row and column": right[:, 1],
        "the photos are averaged: return one place for each": right.mean(0),
    }
    return Case((maps, size), right, mistakes)


def _best_head(shares: Tensor) -> Tensor:
    chosen, rest = shares[::2].mean(0), shares[1::2].mean(0)
    return torch.stack([chosen.max(), rest[chosen.argmax()]])


@function_check(
    "(2,)",
    'chapter 13, exercise "The best of 48 that know nothing"',
    _best_head,
    [(10, 12), (17, 8), (14, 14)],
    gradients=False,
)
def best_head(photos: int, heads: int) -> Case:
    """Check a function that chooses a head on one half of the photos and measures it on both.

    It is called as ``function(shares)`` with (photos, heads); it returns (2,): the mean share of the head
    that is best on photos 0, 2, 4, ..., on these photos and on all others.
    """
    while True:  # until each wrong choice gives something else
        shares = torch.rand(photos, heads)
        even, odd, everything = shares[::2].mean(0), shares[1::2].mean(0), shares.mean(0)
        early, late = shares[: photos // 2].mean(0), shares[photos // 2 :].mean(0)
        best, of_all, of_odd = even.argmax(), everything.argmax(), odd.argmax()
        photo = shares[::2].mean(1).argmax()
        apart = len({int(best), int(of_all), int(of_odd), int(early.argmax())}) == 4
        if apart and photo < photos // 2:
            break

    right = _best_head(shares)
    each = shares.amax(1)
    all_photos = "the head is chosen on all photos; those that judge it must have no part in the choice"
    odd_first = "the head is chosen on photos 1, 3, 5, ..."
    of_one = "each half chooses its own best head; the rest has to judge the head that the first half chose"
    pairs = {
        all_photos: (even[of_all], odd[of_all]),
        f"{all_photos} (and measured on all of them)": (everything[of_all], everything[of_all]),
        of_one: (even.max(), odd.max()),
        f"{odd_first}; choose on 0, 2, 4, ...": (odd.max(), even[of_odd]),
        "the two results have changed places: first the photos of the choice": (odd[best], even[best]),
        "each photo chooses its own best head; choose one by its mean": (each[::2].mean(), each[1::2].mean()),
        "the photos are cut in the middle; take every second one": (early.max(), late[early.argmax()]),
        "the axes are swapped: half of the heads choose a photo; half of the photos must choose a head": (
            *_best_head(shares.mT),
        ),
        "photos are compared by the mean of their heads; compare heads by the mean of their photos": (
            shares[::2].mean(1)[photo],
            shares[1::2].mean(1)[photo],
        ),
        "the shares are added up over the photos; take their mean": (
            shares[::2].sum(0)[best],
            shares[1::2].sum(0)[best],
        ),
        "all heads are averaged; only the chosen one counts": (even.mean(), odd.mean()),
        "the worst head is chosen": (even.min(), odd[even.argmin()]),
        "the second number counts all photos; those of the choice may not judge": (
            even[best],
            everything[best],
        ),
        "the same photos choose and judge: the second number has to come from the others": (even[best],) * 2,
    }
    mistakes = {sentence: torch.stack(pair) for sentence, pair in pairs.items()}
    return Case((shares,), right, mistakes)
