"""Checks of chapter 11: what is asked of a patch, what is shown in its place, and what counts."""

import torch
import torch.nn.functional as F
from einops import rearrange, reduce
from torch import Tensor

from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case, normalised
from vit_from_scratch.training import masked_patches


def _numbered(levels: Tensor) -> Tensor:
    """Number colours (..., 3) of 0 to 7 a channel: 64 r + 8 g + b."""
    return (levels.long() * torch.tensor([64, 8, 1])).sum(-1)


def _pixels(images: Tensor, size: int) -> Tensor:
    return rearrange(images, "b c (i p) (j q) -> b (i j) (p q) c", p=size, q=size)


def _levels(means: Tensor) -> Tensor:
    return (means / 32).floor().clamp(max=7)


def _cut(means: Tensor) -> Tensor:
    return _numbered(_levels(means))


def _rounded(means: Tensor) -> Tensor:
    return _numbered((means / 32).round().clamp(max=7))


@function_check(
    "(B, N), a colour number for each patch",
    'chapter 11, "What is asked"',
    lambda images, patch_size: _cut(_pixels(images, patch_size).mean(2)),
    [(2, 3, 2, 4), (3, 2, 4, 2), (1, 4, 4, 3)],
    answers=[masked_patches.mean_colours, masked_patches.colour_numbers],
    exact=True,
    gradients=False,
)
def colour_targets(batch: int, rows: int, columns: int, size: int) -> Case:
    """Check a function ``(images, patch_size)`` that numbers the mean colour of each patch (appendix B.1.2).

    Images are (B, 3, H, W) floats from 0 to 255; the result is (B, N), 0 to 511: eight equal bins a channel,
    64 r + 8 g + b.
    """
    patches = torch.rand(batch, rows * columns, 1, 3) * 255
    patches = (patches + 120 * torch.randn(batch, rows * columns, size * size, 3)).clamp(0, 255)
    patches[:, 0], patches[:, 1] = 0.0, 255.0  # the first and the last colour
    patches[:, 2] = 223.5  # in bin 6 of bins 32 wide, and in bin 7 of those 255 / 8 wide
    images = rearrange(patches, "b (i j) (p q) c -> b c (i p) (j q)", i=rows, p=size)
    pixels = _pixels(images, size)
    means, levels = pixels.mean(2), _levels(pixels.mean(2))
    right = _numbered(levels)
    white = "so that white is level 8, and a number up to 584"
    by_column = rearrange(right, "b (i j) -> b (j i)", i=rows)
    as_tens = levels.long() * torch.tensor([100, 10, 1])
    mistakes = {
        "red counts least and blue most; it is 64 r + 8 g + b": _numbered(levels.flip(-1)),
        "the channels are added without 64 and 8, so that colours share a number": levels.sum(-1).long(),
        "the powers are those of 10: a channel has 8 levels, so 64, 8 and 1": as_tens.sum(-1),
        "the mean is rounded to a level; cut it: floor(mean / 32)": _rounded(means),
        "the 255 is spread over 0 to 7 and rounded; a bin is 32 wide": _numbered((means / 255 * 7).round()),
        "a bin is 32 wide, not 255 / 8": _cut(means * (256 / 255)),
        "bins of 255 / 8 make white level 8, and numbers up to 584; a bin is 32 wide": _numbered(
            (means / 255 * 8).floor()
        ),
        f"the mean is rounded to a level, {white}; cut it: floor(mean / 32)": _numbered((means / 32).round()),
        "each pixel is cut before the mean; average first": _numbered(_levels(pixels).mean(2).floor()),
        "it is the first pixel of each patch; take the mean": _cut(pixels[:, :, 0]),
        "the brightest value of each channel is taken; take the mean": _cut(pixels.amax(2)),
        "the patches come column by column; they come row by row": by_column,
        "these are three levels a patch; make one number of them": levels.long(),
        "the numbers begin at 1; they begin at 0": right + 1,
        "the images are taken to be from 0 to 1; they are from 0 to 255": _cut(means * 256),
    }
    return Case((images, size), right, mistakes)


def _by(mask: Tensor, other: Tensor, embeddings: Tensor, token: Tensor, others: Tensor) -> Tensor:
    """The mask token where `mask` is true, else the other patch where `other` is."""
    return torch.where(mask[..., None], token, torch.where(other[..., None], others, embeddings))


def _corrupted(
    embeddings: Tensor, mask_token: Tensor, others: Tensor, chosen: Tensor, fate: Tensor
) -> Tensor:
    middle = chosen & (fate >= 0.8) & (fate < 0.9)
    return _by(chosen & (fate < 0.8), middle, embeddings, mask_token, others)


@function_check("(B, N, D)", 'chapter 11, "What is shown"', _corrupted, [(2, 40, 3), (3, 30, 4), (1, 60, 5)])
def corrupted(batch: int, count: int, dim: int) -> Case:
    """Check a function ``(embeddings, mask_token, others, chosen, fate)`` that corrupts patches (B.1.2).

    Embeddings and those of other patches are (B, N, D), the mask token (D,), `chosen` (B, N) is true where a
    patch is corrupted, and `fate` (B, N) has numbers in [0, 1): below 0.8 the mask token stands there, below
    0.9 the other patch, else the patch itself.
    """
    embeddings, others = torch.randn(batch, count, dim), torch.randn(batch, count, dim)
    token = torch.randn(dim)
    chosen = torch.rand(batch, count).argsort(1) < count // 2
    fate = torch.rand(batch, count).argsort(1) / count  # every tenth is there
    values = (embeddings, token, others)
    low, middle, high = fate < 0.8, (fate >= 0.8) & (fate < 0.9), fate >= 0.9
    never = torch.zeros_like(chosen)
    right = _corrupted(*values, chosen, fate)
    masked, replaced = (chosen & low)[..., None], (chosen & middle)[..., None]
    stays = "no patch is left as it is"
    kinds = {  # of patches: masked, and replaced by another
        "patches that were not chosen are corrupted, too": (low, middle),
        "the other patch also stands where nothing was chosen; its condition needs `chosen`, too": (
            (chosen & low, middle)
        ),
        "the mask token also stands where nothing was chosen; its condition needs `chosen`, too": (
            (low, chosen & middle)
        ),
        "the patches that were not chosen are corrupted, not the chosen": ((~chosen & low, ~chosen & middle)),
        "every chosen patch is masked; one in ten is replaced and one in ten left": (chosen, never),
        "no patch is replaced by another": (chosen & low, never),
        f"{stays}: those above 0.9 are replaced, too": (chosen & low, chosen & ~low),
        f"{stays}: those above 0.9 are masked": (chosen & ~middle, chosen & middle),
        "shares have changed places: below 0.8 stands the mask token": ((chosen & middle, chosen & low)),
        "the order is turned round: 0.8 comes first": ((chosen & (fate >= 0.2), chosen & (fate < 0.1))),
        "from 0.9 on stands another patch; those are the ones that stay": ((chosen & low, chosen & high)),
    }
    mistakes = {sentence: _by(*kind, *values) for sentence, kind in kinds.items()} | {
        "the mask token is added; it replaces the patch": torch.where(masked, embeddings + token, right),
        "zeros stand where the mask token belongs": torch.where(masked, torch.zeros(dim), right),
        "the other patch is added; it takes the place": torch.where(replaced, embeddings + others, right),
        "only the corrupted patches are returned; the others belong to the sequence": right[chosen],
        "nothing is corrupted": embeddings.clone(),
    }
    return Case((*values, chosen, fate), right, mistakes)


def _masked_loss(logits: Tensor, targets: Tensor, chosen: Tensor) -> Tensor:
    return F.cross_entropy(logits[chosen], targets[chosen])


@function_check(
    "a single number",
    'chapter 11, "What counts"',
    _masked_loss,
    [(2, 10, 7, 2.0), (1, 8, 5, 2.0), (4, 12, 9, 200.0)],
)
def masked_loss(batch: int, count: int, classes: int, scale: float) -> Case:
    """Check a function ``(logits, targets, chosen)``: the mean cross-entropy of the chosen patches alone.

    Logits are (B, N, K), targets (B, N) class numbers, `chosen` (B, N) is true for the patches that
    count, other numbers of them in other images; the result is a single number.
    """
    logits = scale * torch.randn(batch, count, classes)  # some are too large for `exp`
    targets = torch.randint(classes, (batch, count))
    counts = count // 3 + 1 - torch.arange(batch)[:, None]  # not half: more of one kind
    chosen = torch.rand(batch, count).argsort(1) < counts
    each = F.cross_entropy(logits.mT, targets, reduction="none")
    of_images = (each * chosen).sum(1) / chosen.sum(1)
    right = _masked_loss(logits, targets, chosen)
    zeroed = F.cross_entropy((logits * chosen[..., None]).flatten(0, 1), targets.flatten())
    twice = F.cross_entropy(logits[chosen].softmax(-1), targets[chosen])
    correct = (logits.argmax(-1) == targets)[chosen].float()
    mistakes = {
        "all patches count; only the corrupted ones may": each.mean(),
        "the patches that the model sees count; the corrupted ones may": each[~chosen].mean(),
        "the losses are added up; take their mean": each[chosen].sum(),
        "the sum is divided by all patches; divide by the corrupted ones": (each * chosen).mean(),
        "the sum is divided by the images; divide by the corrupted patches": each[chosen].sum() / batch,
        "it is the mean of the images' means; each corrupted patch counts as much": of_images.mean(),
        "the logits of the other patches are set to zero; they still count, as a loss of ln K": zeroed,
        "softmax is taken twice: cross_entropy takes logits": twice,
        "these are the losses of the single patches; return their mean": each[chosen],
        "these are the losses of the images; return one number": of_images,
        "this is the share of right answers; return the loss": correct.mean(),
        "the loss is in bits; it is in nats, with the natural logarithm": right / torch.tensor(2.0).log(),
        "the first half of the patches counts; those that `chosen` marks do": each[:, : count // 2].mean(),
    }
    if scale > 100:
        mistakes |= {
            "large logits end in an infinite loss: shares round to 0; take log_softmax": right + torch.inf,
            "large logits end in no number: exp overflows; take log_softmax": right * torch.nan,
        }
    return Case((logits, targets, chosen), right, mistakes)


def _visible_only(tokens: Tensor, hidden: Tensor) -> Tensor:
    return tokens[~hidden].view(len(tokens), -1, tokens.shape[-1])


@function_check(
    "(B, visible, D)",
    'chapter 11, "Pixels instead of colours"',
    _visible_only,
    [(2, 8, 3, 0.75), (3, 12, 2, 0.5), (4, 9, 5, 0.3), (2, 196, 3, 0.75)],
)
def visible_only(batch: int, count: int, dim: int, share: float) -> Case:
    """Check a function ``(tokens, hidden)`` that keeps the visible patches of each image, in their order.

    Tokens are (B, N, D), `hidden` (B, N) is true for as many patches of each image; the result is
    (B, visible, D).
    """
    tokens = torch.randn(batch, count, dim)
    hidden = torch.rand(batch, count).argsort(1) < round(share * count)
    right, visible = _visible_only(tokens, hidden), count - round(share * count)
    first = torch.stack([tokens[i, ~hidden[0]] for i in range(batch)])
    by_sorting = hidden.int().argsort(dim=1)[:, :visible]
    by_topk = (~hidden).int().topk(visible).indices
    order = "the patches have changed places, and must keep their order"
    mistakes = {
        "these are the hidden patches; keep the others": tokens[hidden].view(batch, -1, dim),
        "hidden patches are set to zero; they have to be left out": tokens * ~hidden[..., None],
        "the first patches of each image are kept, whichever they are": tokens[:, :visible],
        "the last patches of each image are kept, whichever they are": tokens[:, count - visible :],
        "all images lose the patches of the first": first,
        "nothing is left out": tokens.clone(),
        f"{order}: sort with stable=True": tokens.take_along_dim(by_sorting[..., None], 1),
        f"{order}: sort the places that topk gives": tokens.take_along_dim(by_topk[..., None], 1),
    }
    return Case((tokens, hidden), right, mistakes)


def _pieces(images: Tensor, size: int, side: int) -> Tensor:
    """The mean colours of side x side pieces of each patch, (B, N, pieces, C)."""
    order = "b c (i u p) (j v q) -> b (i j) (u v) c"
    return reduce(images, order, "mean", u=side, v=side, p=size // side, q=size // side)


@function_check(
    "(B, N, 16), 16 colour numbers for each patch",
    'chapter 11, exercise "Sixteen colours a patch"',
    lambda images, patch_size: _cut(_pieces(images, patch_size, 4)),
    [(2, 2, 3, 8), (1, 3, 2, 4), (2, 1, 2, 12)],
    exact=True,
    gradients=False,
)
def downsized_targets(batch: int, rows: int, columns: int, size: int) -> Case:
    """Check a function ``(images, patch_size)``: each patch as 4 x 4 colours of 3 bits a channel (B.1.2).

    Images are (B, 3, H, W) floats from 0 to 255, the patch size a multiple of 4; the result is (B, N, 16),
    the pieces of a patch row by row.
    """
    images = torch.rand(batch, 3, rows * size, columns * size) * 255
    coarse = 255 * torch.rand(batch, 3, rows * size // 2, columns * size // 2)
    images = ((images - 127) * 0.5 + coarse.repeat(1, 1, 2, 2)).clamp(0, 255)
    means = _pieces(images, size, 4)
    right, levels = _cut(means), _levels(means)
    sampled = images[..., :: size // 4, :: size // 4]  # the first pixel of each piece
    pieces_down = rearrange(right, "b n (u v) -> b n (v u)", u=4)
    patches_down = rearrange(right, "b (i j) s -> b (j i) s", i=rows)
    one_grid = rearrange(right, "b (i j) (u v) -> b (i u j v)", i=rows, u=4).view(right.shape)
    mistakes = {
        "the pieces of a patch come column by column; they come row by row": pieces_down,
        "the patches come column by column; they come row by row": patches_down,
        "all pieces of the image come in one grid; keep the 16 of a patch together": one_grid,
        "it is one colour a patch; 4 x 4 of them are wanted": _cut(_pieces(images, size, 1))[..., 0],
        "these are 2 x 2 colours a patch; 4 x 4 are wanted": _cut(_pieces(images, size, 2)),
        "the first pixel of each piece is taken; take the mean": _cut(_pieces(sampled, 4, 4)),
        "the mean is rounded to a level; cut it: floor(mean / 32)": _rounded(means),
        "red counts least and blue most; it is 64 r + 8 g + b": _cut(means.flip(-1)),
        "these are three levels a piece; make one number of them": levels.long(),
        "the images are taken to be from 0 to 1; they are from 0 to 255": _cut(means * 256),
    }
    return Case((images, size), right, mistakes)


def _standardised_patches(patches: Tensor) -> Tensor:
    return normalised(patches, -1, 1e-6)


@function_check(
    "(B, N, P P C)",
    'chapter 11, exercise "Each patch by itself"',
    _standardised_patches,
    [(2, 3, 4, 0.03), (3, 2, 3, 0.01), (1, 4, 2, 0.02)],
    gradients=False,
)
def standardised_patches(batch: int, count: int, size: int, scale: float) -> Case:
    """Check a function ``(patches)`` that brings each patch (B, N, P P C) to mean 0 and variance 1.

    The variance is that of all values of the patch, with 1e-6 added to it.
    """
    patches = scale * (torch.randn(batch, count, size * size * 3) + torch.randn(batch, count, 1))
    mean = patches.mean(-1, keepdim=True)
    variance = patches.var(-1, keepdim=True, correction=0)
    centred = patches - mean
    colours = patches.view(batch, count, -1, 3)
    low, high = patches.amin(-1, keepdim=True), patches.amax(-1, keepdim=True)
    mistakes = {
        "the mean is not taken away": patches / (variance + 1e-6).sqrt(),
        "it is not divided by the standard deviation": centred,
        "it is divided by the variance; divide by its root": centred / (variance + 1e-6),
        "each colour is brought to mean 0 by itself; take all": normalised(colours, 2, 1e-6).flatten(2),
        "all patches of an image go together; each goes by itself": normalised(patches, (1, 2), 1e-6),
        "it runs over the patches; it runs over the values of one patch": normalised(patches, 1, 1e-6),
        "1e-6 is added to the standard deviation; add it to the variance": centred / (variance.sqrt() + 1e-6),
        "the sum of squares is divided by one less than their number (torch's usual); divide by their "
        "number": normalised(patches, -1, 1e-6, correction=1),
        "1e-5 is added, PyTorch's own; add 1e-6": normalised(patches, -1, 1e-5),
        "the 1e-6 is missing, and a patch of one colour would divide by zero": centred / variance.sqrt(),
        "it is scaled to 0 to 1; take mean and variance": (patches - low) / (high - low),
        "it has length 1 and not variance 1": centred / centred.norm(dim=-1, keepdim=True),
    }
    return Case((patches,), _standardised_patches(patches), mistakes)
