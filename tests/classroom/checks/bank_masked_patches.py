"""Right and wrong answers to the pieces of chapter 11."""

import torch
import torch.nn.functional as F
from einops import rearrange, reduce

from vit_classroom import checks
from vit_from_scratch.training.masked_patches import colour_numbers, mean_colours


# What is asked
def number_of(levels):
    red, green, blue = levels.long().unbind(-1)
    return 64 * red + 8 * green + blue


def means_of(images, size):
    return reduce(images, "b c (i p) (j q) -> b (i j) c", "mean", p=size, q=size)


def targets_by_reduce(images, patch_size):
    return number_of((means_of(images, patch_size) / 32).clamp(max=7))


def targets_by_pooling(images, patch_size):
    means = F.avg_pool2d(images, patch_size)  # (B, 3, gh, gw)
    levels = (means // 32).clamp(max=7)
    return (levels[:, 0] * 64 + levels[:, 1] * 8 + levels[:, 2]).flatten(1).long()


def targets_by_bits(images, patch_size):
    means = F.avg_pool2d(images, patch_size).flatten(2).mT.clamp(max=255).byte() >> 5
    red, green, blue = means.long().unbind(-1)
    return red << 6 | green << 3 | blue


def targets_in_loops(images, patch_size):
    found = []
    for image in images:
        row = []
        for top in range(0, image.shape[1], patch_size):
            for left in range(0, image.shape[2], patch_size):
                patch = image[:, top : top + patch_size, left : left + patch_size]
                red, green, blue = (min(int(float(channel.mean()) / 32), 7) for channel in patch)
                row.append(64 * red + 8 * green + blue)
        found.append(row)
    return torch.tensor(found)


def eighths_of(images, size):
    return means_of(images, size) / 255 * 8


def levels_of(images, size):
    return (means_of(images, size) / 32).floor().clamp(max=7)


def first_pixel(images, size):
    return rearrange(images, "b c (i p) (j q) -> b (i j) (p q) c", p=size, q=size)[:, :, 0]


# What is shown
def corrupted_by_where(embeddings, mask_token, others, chosen, fate):
    masked, replaced = chosen & (fate < 0.8), chosen & (fate >= 0.8) & (fate < 0.9)
    found = torch.where(masked[..., None], mask_token, embeddings)
    return torch.where(replaced[..., None], others, found)


def corrupted_by_index(embeddings, mask_token, others, chosen, fate):
    found = embeddings.clone()
    found[chosen & (fate < 0.8)] = mask_token
    replaced = chosen & (fate >= 0.8) & (fate < 0.9)
    found[replaced] = others[replaced]
    return found


def corrupted_by_shares(embeddings, mask_token, others, chosen, fate):
    masked = (chosen & (fate < 0.8))[..., None].to(embeddings)
    replaced = (chosen & (fate >= 0.8) & (fate < 0.9))[..., None].to(embeddings)
    return masked * mask_token + replaced * others + (1 - masked - replaced) * embeddings


def corrupted_in_loops(embeddings, mask_token, others, chosen, fate):
    rows = []
    for image, other, which, numbers in zip(embeddings, others, chosen, fate, strict=True):
        row = []
        for own, foreign, here, number in zip(image, other, which, numbers, strict=True):
            standing = mask_token if number < 0.8 else foreign if number < 0.9 else own
            row.append(standing if here else own)
        rows.append(torch.stack(row))
    return torch.stack(rows)


def standing(masked, replaced):
    """Return an answer whose masked and replaced patches are given by functions of chosen and fate."""

    def function(embeddings, mask_token, others, chosen, fate):
        found = torch.where(replaced(chosen, fate)[..., None], others, embeddings)
        return torch.where(masked(chosen, fate)[..., None], mask_token, found)

    return function


def low(chosen, fate):
    return chosen & (fate < 0.8)


def middle(chosen, fate):
    return chosen & (fate >= 0.8) & (fate < 0.9)


def none(chosen, fate):
    return torch.zeros_like(chosen)


# What counts
def loss_by_index(logits, targets, chosen):
    return F.cross_entropy(logits[chosen], targets[chosen])


def loss_by_weights(logits, targets, chosen):
    each = F.cross_entropy(logits.mT, targets, reduction="none")
    return (each * chosen).sum() / chosen.sum()


def loss_by_ignoring(logits, targets, chosen):
    asked = torch.where(chosen, targets, -100)
    return F.cross_entropy(logits.flatten(0, 1), asked.flatten())


def loss_by_images(logits, targets, chosen):
    logs = logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
    means = [-logs[i, chosen[i]].mean() for i in range(len(logits))]
    return torch.stack(means).mean()


def each_loss(logits, targets):
    return F.cross_entropy(logits.mT, targets, reduction="none")


# Pixels instead of colours
def visible_by_index(tokens, hidden):
    return tokens[~hidden].view(len(tokens), -1, tokens.shape[-1])


def visible_by_gather(tokens, hidden):
    kept = int((~hidden[0]).sum())
    places = hidden.int().argsort(dim=1, stable=True)[:, :kept]
    return tokens.gather(1, places[..., None].expand(-1, -1, tokens.shape[-1]))


def visible_in_loops(tokens, hidden):
    return torch.stack([image[~here] for image, here in zip(tokens, hidden, strict=True)])


def visible_by_take(tokens, hidden):
    rows = [torch.take_along_dim(x, (~h).nonzero(), dim=0) for x, h in zip(tokens, hidden, strict=True)]
    return torch.stack(rows)


# Sixteen colours a patch
PIECES = "b c (i u p) (j v q) -> b (i j) (u v) c"


def axes_of(images, size, pieces=4):
    return {"i": images.shape[2] // size, "j": images.shape[3] // size, "u": pieces, "v": pieces}


def pieces_of(images, size):
    return reduce(images, PIECES, "mean", **axes_of(images, size))


def downsized_by_reduce(images, patch_size):
    return number_of((pieces_of(images, patch_size) / 32).clamp(max=7))


def downsized_by_smaller_patches(images, patch_size):
    fine = targets_by_pooling(images, patch_size // 4)  # one grid for the whole image
    rows, columns = (side // patch_size for side in images.shape[2:])
    return rearrange(fine, "b (i u j v) -> b (i j) (u v)", i=rows, u=4, j=columns, v=4)


def downsized_by_unfold(images, patch_size):
    small = F.avg_pool2d(images, patch_size // 4)
    pieces = F.unfold(small, 4, stride=4)  # (B, 3 * 16, N)
    return number_of((rearrange(pieces, "b (c s) n -> b n s c", c=3) / 32).clamp(max=7))


def sampled(images, size):
    return rearrange(images, "b c (i u p) (j v q) -> b (i j) (u v) (p q) c", **axes_of(images, size))


# Each patch by itself
def standard_by_std(patches):
    mean = patches.mean(-1, keepdim=True)
    variance = ((patches - mean) ** 2).mean(-1, keepdim=True)
    return (patches - mean) / (variance + 1e-6) ** 0.5


def standard_by_norm(patches):
    return F.layer_norm(patches, patches.shape[-1:], eps=1e-6)


def standard_by_rsqrt(patches):
    centred = patches - reduce(patches, "b n d -> b n 1", "mean")
    return centred * torch.rsqrt(reduce(centred**2, "b n d -> b n 1", "mean") + 1e-6)


def centred_of(patches):
    return patches - patches.mean(-1, keepdim=True)


def var_of(patches, dim=-1, correction=0):
    return patches.var(dim, keepdim=True, correction=correction)


def by_colour(patches):
    colours = patches.unflatten(-1, (-1, 3))
    centred = colours - colours.mean(2, keepdim=True)
    return (centred / (var_of(colours, 2) + 1e-6).sqrt()).flatten(2)


def over(dims):
    return lambda x: (x - x.mean(dims, keepdim=True)) / (var_of(x, dims) + 1e-6).sqrt()


def visible_by_topk(tokens, hidden, **options):
    places = (~hidden).float().topk(int((~hidden[0]).sum()), **options).indices
    return tokens.take_along_dim(places[..., None], 1)


def visible_by_sorting(tokens, hidden):
    return tokens.take_along_dim(hidden.float().argsort(dim=1)[:, : int((~hidden[0]).sum()), None], 1)


RIGHT = {
    checks.colour_targets: (targets_by_reduce, targets_by_pooling, targets_by_bits, targets_in_loops),
    checks.corrupted: (corrupted_by_where, corrupted_by_index, corrupted_by_shares, corrupted_in_loops),
    checks.masked_loss: (loss_by_index, loss_by_weights, loss_by_ignoring),
    checks.visible_only: (visible_by_index, visible_by_gather, visible_in_loops, visible_by_take),
    checks.downsized_targets: (downsized_by_reduce, downsized_by_smaller_patches, downsized_by_unfold),
    checks.standardised_patches: (standard_by_std, standard_by_norm, standard_by_rsqrt),
}

WRONG = {
    checks.colour_targets: [
        (lambda x, p: colour_numbers(mean_colours(x, p)), "the package's own"),
        (lambda x, p: number_of(levels_of(x, p).flip(-1)), "red counts least"),
        (lambda x, p: levels_of(x, p).sum(-1).long(), "added without 64 and 8"),
        (
            lambda x, p: (levels_of(x, p).long() * torch.tensor([100, 10, 1])).sum(-1),
            "powers are those of 10",
        ),
        (lambda x, p: number_of((means_of(x, p) / 32).round().clamp(max=7)), "rounded to a level"),
        (lambda x, p: number_of((means_of(x, p) * 7 / 255).round()), "spread over 0 to 7"),
        (lambda x, p: number_of(eighths_of(x, p).clamp(max=7)), "a bin is 32 wide, not 255 / 8\\."),
        (lambda x, p: number_of(eighths_of(x, p)), "bins of 255 / 8 make white level 8"),
        (
            lambda x, p: number_of((means_of(x, p) / 32).round()),
            "rounded to a level, so that white is level 8",
        ),
        (lambda x, p: targets_by_reduce(x, p).float(), "float32: expected whole numbers"),
        (lambda x, p: number_of(means_of((x // 32).clamp(max=7), p)), "cut before the mean"),
        (lambda x, p: number_of((first_pixel(x, p) / 32).clamp(max=7)), "first pixel of each patch"),
        (lambda x, p: number_of((F.max_pool2d(x, p).flatten(2).mT / 32).clamp(max=7)), "brightest value"),
        (lambda x, p: targets_by_pooling(x.mT, p), "come column by column"),
        (
            lambda x, p: targets_by_reduce(x, p).view(len(x), x.shape[2] // p, -1),
            "its values are right: reshape them",
        ),
        (lambda x, p: levels_of(x, p).long(), "three levels a patch"),
        (lambda x, p: targets_by_reduce(x, p) + 1, "begin at 1"),
        (lambda x, p: number_of((means_of(x, p) * 8).clamp(max=7)), "from 0 to 1"),
        (lambda x, p: number_of(means_of(x, p).div(32).float().clamp(max=7))[0], "returned shape"),
        (lambda x, p: targets_by_reduce(x.clamp_(max=100.0), p), "changes its input"),
        (lambda x, p: print(targets_by_reduce(x, p)), "prints its result"),
    ],
    checks.corrupted: [
        (
            standing(lambda c, f: f < 0.8, lambda c, f: (f >= 0.8) & (f < 0.9)),
            "not chosen are corrupted, too",
        ),
        (standing(low, lambda c, f: (f >= 0.8) & (f < 0.9)), "the other patch also stands where nothing was"),
        (standing(lambda c, f: f < 0.8, middle), "the mask token also stands where nothing was"),
        (standing(lambda c, f: c & f < 0.8, middle), "with this type of number: look at .dtype"),
        (lambda e, m, o, c, f: corrupted_by_where(e, m, o, ~c, f), "corrupted, not the chosen"),
        (standing(lambda c, f: c, none), "every chosen patch is masked"),
        (standing(low, none), "no patch is replaced"),
        (standing(low, lambda c, f: c & (f >= 0.8)), "above 0.9 are replaced, too"),
        (standing(lambda c, f: c & ~middle(c, f), middle), "above 0.9 are masked"),
        (standing(middle, low), "shares have changed places"),
        (standing(lambda c, f: c & (f >= 0.2), lambda c, f: c & (f < 0.1)), "0.8 comes first"),
        (standing(low, lambda c, f: c & (f >= 0.9)), "from 0.9 on stands another patch"),
        (
            lambda e, m, o, c, f: corrupted_by_where(e, m, o, c, f) + low(c, f)[..., None] * e,
            "the mask token is added",
        ),
        (lambda e, m, o, c, f: corrupted_by_where(e, 0 * m, o, c, f), "zeros stand where"),
        (
            lambda e, m, o, c, f: corrupted_by_where(e, m, o, c, f) + middle(c, f)[..., None] * e,
            "the other patch is added",
        ),
        (
            lambda e, m, o, c, f: corrupted_by_where(e, m, o, c, f)[c],
            "only the corrupted patches are returned",
        ),
        (lambda e, m, o, c, f: e.clone(), "nothing is corrupted"),
        (lambda e, m, o, c, f: corrupted_by_where(e, m.detach(), o, c, f), "gradient"),
        (lambda e, m, o, c, f: e.masked_fill_(c[..., None], 0.0), "changes its input"),
    ],
    checks.downsized_targets: [
        (
            lambda x, p: rearrange(downsized_by_reduce(x, p), "b n (u v) -> b n (v u)", u=4),
            "pieces of a patch come",
        ),
        (
            lambda x, p: rearrange(downsized_by_reduce(x, p), "b (i j) s -> b (j i) s", i=x.shape[2] // p),
            "the patches come column by column",
        ),
        (lambda x, p: targets_by_pooling(x, p // 4).view(len(x), -1, 16), "in one grid"),
        (lambda x, p: targets_by_pooling(x, p), "one colour a patch"),
        (
            lambda x, p: number_of((reduce(x, PIECES, "mean", **axes_of(x, p, 2)) / 32).clamp(max=7)),
            "2 x 2 colours",
        ),
        (lambda x, p: number_of((sampled(x, p)[..., 0, :] / 32).clamp(max=7)), "first pixel of each piece"),
        (lambda x, p: number_of((pieces_of(x, p) / 32).round().clamp(max=7)), "rounded to a level"),
        (lambda x, p: number_of((pieces_of(x, p).flip(-1) / 32).clamp(max=7)), "red counts least"),
        (lambda x, p: (pieces_of(x, p) / 32).long().clamp(max=7), "three levels a piece"),
        (lambda x, p: downsized_by_reduce(x, p).unflatten(2, (4, 4)), "its values are right: reshape them"),
        (lambda x, p: downsized_by_reduce(x, p).double(), "float64: expected whole numbers"),
        (lambda x, p: downsized_by_reduce(x, p).mT, "its axes stand in another order"),
        (lambda x, p: downsized_by_reduce(x, p).flatten(1), "its values are right: reshape them"),
        (lambda x, p: number_of((pieces_of(x, p) * 8).clamp(max=7)), "from 0 to 1"),
        (lambda x, p: None, "is a return missing"),
    ],
    checks.masked_loss: [
        (lambda z, t, c: -z.softmax(-1).log().gather(-1, t[..., None])[c].mean(), "infinite loss"),
        (
            lambda z, t, c: (z.exp().sum(-1).log() - z.gather(-1, t[..., None])[..., 0])[c].mean(),
            "infinite loss|no number",
        ),
        (lambda z, t, c: loss_by_index(z[:1], t[:1], c[:1]), "right only where|it returned"),
        (lambda z, t, c: each_loss(z, t).mean(), "all patches count"),
        (lambda z, t, c: F.cross_entropy(z.flatten(0, 1), t.flatten()), "all patches count"),
        (lambda z, t, c: loss_by_index(z, t, ~c), "the patches that the model sees count"),
        (lambda z, t, c: each_loss(z, t)[c].sum(), "added up"),
        (lambda z, t, c: (each_loss(z, t) * c).mean(), "divided by all patches"),
        (lambda z, t, c: each_loss(z, t)[c].sum() / len(z), "divided by the images"),
        (loss_by_images, "the mean of the images' means"),
        (lambda z, t, c: each_loss(z * c[..., None], t).mean(), "set to zero"),
        (lambda z, t, c: loss_by_index(z.softmax(-1), t, c), "softmax is taken twice"),
        (lambda z, t, c: z.log_softmax(-1).gather(-1, t[..., None])[c].mean(), "the sign is turned"),
        (lambda z, t, c: each_loss(z, t)[c], "the single patches"),
        (lambda z, t, c: (each_loss(z, t) * c).sum(1) / c.sum(1), "losses of the images"),
        (lambda z, t, c: (z.argmax(-1) == t)[c].float().mean(), "share of right answers"),
        (lambda z, t, c: loss_by_index(z, t, c) / 0.6931471805599453, "in bits"),
        (lambda z, t, c: each_loss(z, t)[:, : z.shape[1] // 2].mean(), "first half of the patches"),
        (lambda z, t, c: loss_by_index(z.detach(), t, c), "no gradient can flow back"),
        (lambda z, t, c: loss_by_index(z, t, c).item(), "returned float"),
    ],
    checks.standardised_patches: [
        (lambda x: F.layer_norm(x, x.shape[-1:]), "1e-5 is added"),
        (lambda x: 2 * standard_by_norm(x), "all are 2 times as large"),
        (lambda x: x / (var_of(x) + 1e-6).sqrt(), "the mean is not taken away"),
        (centred_of, "not divided by the standard deviation"),
        (lambda x: centred_of(x) / (var_of(x) + 1e-6), "divide by its root"),
        (by_colour, "each colour is brought to mean 0"),
        (over((1, 2)), "all patches of an image go together"),
        (over(1), "it runs over the patches"),
        (lambda x: centred_of(x) / (var_of(x).sqrt() + 1e-6), "added to the standard deviation"),
        (lambda x: centred_of(x) / (var_of(x, correction=1) + 1e-6).sqrt(), "one less than their number"),
        (lambda x: centred_of(x) / var_of(x).sqrt(), "the 1e-6 is missing"),
        (lambda x: (x - x.amin(-1, keepdim=True)) / (x.amax(-1) - x.amin(-1))[..., None], "scaled to 0 to 1"),
        (lambda x: F.normalize(centred_of(x), dim=-1), "length 1"),
        (lambda x: -standard_by_norm(x), "the sign is turned"),
        (lambda x: standard_by_norm(x.sub_(1.0)), "changes its input"),
    ],
    checks.visible_only: [
        (lambda x, h: visible_by_index(x, h)[:, :2], "expected"),
        (lambda x, h: visible_by_index(x, h).flip(-1), "axis 2 is turned round"),
        (lambda x, h: visible_by_index(x, ~h), "these are the hidden patches"),
        (lambda x, h: x * ~h[..., None], "set to zero"),
        (lambda x, h: x.masked_fill(h[..., None], 0.0), "set to zero"),
        (lambda x, h: x[~h], "its values are right: reshape them"),
        (lambda x, h: x[:, : int((~h[0]).sum())], "the first patches of each image"),
        (lambda x, h: x[:, int(h[0].sum()) :], "the last patches of each image"),
        (lambda x, h: x[:, ~h[0]], "lose the patches of the first"),
        (lambda x, h: visible_by_index(x, h).flip(1), "axis 1 is turned round"),
        (lambda x, h: visible_by_index(x, h).mT, "its axes stand in another order"),
        (visible_by_sorting, "must keep their order: sort with stable=True.*3 of 4 inputs came out right"),
        (visible_by_topk, "must keep their order: sort the places"),
        (lambda x, h: visible_by_topk(x, h, sorted=False), "in another order; keep the order"),
        (lambda x, h: x * 1, "nothing is left out"),
        (lambda x, h: visible_by_index(x, h).mean(1), "it is the mean over axis 1"),
        (lambda x, h: visible_by_index(x, h).flip(0), "axis 0 is turned round"),
        (lambda x, h: visible_by_index(x.detach(), h), "no gradient can flow back"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
