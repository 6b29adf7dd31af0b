"""Checks of chapter 11: other targets, and what an encoder of the visible patches alone needs."""

from collections.abc import Callable

import torch
from einops import rearrange, reduce
from torch import Tensor

from vit_classroom.checks.judging import check, judge_function
from vit_classroom.checks.masked_patches import numbered
from vit_classroom.checks.report import Case, Piece

VISIBLE = Piece(
    "visible_only",
    "visible_only(tokens, hidden)",
    "(B, visible, D)",
    'chapter 11, "Pixels instead of colours"',
)
DOWNSIZED = Piece(
    "downsized_targets",
    "downsized_targets(images, patch_size)",
    "(B, N, 16), 16 colour numbers for each patch",
    'chapter 11, exercise "Sixteen colours a patch"',
    exact=True,
    gradients=False,
)
STANDARDISED = Piece(
    "standardised_patches",
    "standardised_patches(patches)",
    "(B, N, P P C)",
    'chapter 11, exercise "Each patch by itself"',
)


@check(VISIBLE)
def visible_only(function: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Check a function ``(tokens, hidden)`` that keeps the visible patches of each image, in their order.

    Tokens are (B, N, D), `hidden` (B, N) is true for as many patches of each image; the result is
    (B, visible, D).

    Raises:
        CheckFailed: if it differs; the message names the hidden ones, another order, or zeros in their place.
    """

    def ours(tokens: Tensor, hidden: Tensor) -> Tensor:
        return tokens[~hidden].view(len(tokens), -1, tokens.shape[-1])

    cases = []
    for batch, count, dim, share in [(2, 8, 3, 0.75), (3, 12, 2, 0.5), (4, 9, 5, 0.3)]:
        tokens = torch.randn(batch, count, dim)
        hidden = torch.rand(batch, count).argsort(1) < round(share * count)
        right, visible = ours(tokens, hidden), count - round(share * count)
        first = torch.stack([tokens[i, ~hidden[0]] for i in range(batch)])
        mistakes = {
            "these are the hidden patches; keep the others": tokens[hidden].view(batch, -1, dim),
            "hidden patches are set to zero; they have to be left out": tokens * ~hidden[..., None],
            "the images are run together: (B, visible, D)": tokens[~hidden],
            "the first patches of each image are kept, whichever they are": tokens[:, :visible],
            "the last patches of each image are kept, whichever they are": tokens[:, count - visible :],
            "all images lose the patches of the first": first,
            "the patches come in reverse order": right.flip(1),
            "the axes have changed places: (B, visible, D)": right.mT,
            "nothing is left out": tokens.clone(),
            "these are the means of the visible patches; keep each": right.mean(1),
            "these are the places of the visible patches; return the patches": (~hidden)
            .nonzero()[:, 1]
            .view(batch, -1)
            .to(tokens.dtype),
            "the images have changed places": right.flip(0),
        }
        label = f"tokens of shape {tuple(tokens.shape)}, {round(share * count)} hidden in each image"
        cases.append(Case((tokens, hidden), right, mistakes, label))
    judge_function(VISIBLE, function, ours, cases, [])


@check(DOWNSIZED)
def downsized_targets(function: Callable[[Tensor, int], Tensor]) -> None:
    """Check a function ``(images, patch_size)``: each patch as 4 x 4 colours of 3 bits a channel (B.1.2).

    Images are (B, 3, H, W) floats from 0 to 255, the patch size a multiple of 4; the result is (B, N, 16),
    the pieces of a patch row by row.

    Raises:
        CheckFailed: if it differs; the message names another order, or fewer pieces.
    """
    order = "b c (i u p) (j v q) -> b (i j) (u v) c"

    def cut(means: Tensor) -> Tensor:
        return numbered((means / 32).floor().clamp(max=7))

    cases = []
    for batch, rows, columns, size in [(2, 2, 3, 8), (1, 3, 2, 4), (2, 1, 2, 12)]:
        images = torch.rand(batch, 3, rows * size, columns * size) * 255
        images = (images - 127) * 0.5 + 255 * torch.rand(
            batch, 3, rows * size // 2, columns * size // 2
        ).repeat(1, 1, 2, 2)
        images = images.clamp(0, 255)
        axes = {"i": rows, "j": columns, "u": 4, "v": 4}
        means = reduce(images, order, "mean", **axes)
        right = cut(means)
        sampled = rearrange(images, "b c (i u p) (j v q) -> b (i j) (u v) (p q) c", **axes)
        halves = reduce(images, order, "mean", i=rows, j=columns, u=2, v=2)
        mistakes = {
            "the pieces of a patch come column by column; they come row by row": rearrange(
                right, "b n (u v) -> b n (v u)", u=4
            ),
            "the patches come column by column; they come row by row": rearrange(
                right, "b (i j) s -> b (j i) s", i=rows
            ),
            "all pieces of the image come in one grid; keep the 16 of a patch together": rearrange(
                right, "b (i j) (u v) -> b (i u j v)", i=rows, u=4
            ).view(right.shape),
            "it is one colour a patch; 4 x 4 of them are wanted": cut(
                reduce(images, "b c (i p) (j q) -> b (i j) c", "mean", i=rows, j=columns)
            ),
            "these are 2 x 2 colours a patch; 4 x 4 are wanted": cut(halves),
            "the first pixel of each piece is taken; take the mean": cut(sampled[..., 0, :]),
            "the mean is rounded to a level; cut it: floor(mean / 32)": numbered(
                (means / 32).round().clamp(max=7)
            ),
            "red counts least and blue most; it is 64 r + 8 g + b": cut(means.flip(-1)),
            "these are three levels a piece; make one number of them": (means / 32)
            .floor()
            .clamp(max=7)
            .long(),
            "the pieces are still a square: flatten them to 16": right.view(*right.shape[:2], 4, 4),
            "patches and pieces have changed places: (B, N, 16)": right.mT,
            "patches and pieces are run together: (B, N, 16)": right.flatten(1),
            "the images are taken to be from 0 to 1; they are from 0 to 255": cut(means * 256),
        }
        label = f"images of shape {tuple(images.shape)}, patch_size {size}"
        cases.append(Case((images, size), right, mistakes, label))
    judge_function(DOWNSIZED, function, lambda images, size: images, cases, [])


@check(STANDARDISED)
def standardised_patches(function: Callable[[Tensor], Tensor]) -> None:
    """Check a function ``(patches)`` that brings each patch (B, N, P P C) to mean 0 and variance 1.

    The variance is that of all values of the patch, with 1e-6 added to it.

    Raises:
        CheckFailed: if it differs; the message names a mean over other axes, or a forgotten root.
    """

    def ours(patches: Tensor) -> Tensor:
        mean = patches.mean(-1, keepdim=True)
        return (patches - mean) / (patches.var(-1, keepdim=True, correction=0) + 1e-6).sqrt()

    cases = []
    for batch, count, size, scale in [(2, 3, 4, 0.03), (3, 2, 3, 0.01), (1, 4, 2, 0.02)]:
        patches = scale * (torch.randn(batch, count, size * size * 3) + torch.randn(batch, count, 1))
        mean = patches.mean(-1, keepdim=True)
        variance = patches.var(-1, keepdim=True, correction=0)
        centred = patches - mean
        colours = patches.view(batch, count, -1, 3)
        each = (colours - colours.mean(2, keepdim=True)) / (
            colours.var(2, keepdim=True, correction=0) + 1e-6
        ).sqrt()
        whole = (patches - patches.mean((1, 2), keepdim=True)) / (
            patches.var((1, 2), keepdim=True, correction=0) + 1e-6
        ).sqrt()
        over_patches = (patches - patches.mean(1, keepdim=True)) / (
            patches.var(1, keepdim=True, correction=0) + 1e-6
        ).sqrt()
        mistakes = {
            "the mean is not taken away": patches / (variance + 1e-6).sqrt(),
            "it is not divided by the deviation": centred,
            "it is divided by the variance; divide by its root": centred / (variance + 1e-6),
            "each colour is brought to mean 0 by itself; all values of a patch go together": each.flatten(2),
            "all patches of an image go together; each has its own mean and variance": whole,
            "it runs over the patches; it runs over the values of one patch": over_patches,
            "1e-6 is added to the deviation; add it to the variance": centred / (variance.sqrt() + 1e-6),
            "the sum of squares is divided by one less than their number (torch's usual); divide by their "
            "number": centred / (patches.var(-1, keepdim=True) + 1e-6).sqrt(),
            "the 1e-6 is missing, and a patch of one colour would divide by zero": centred / variance.sqrt(),
            "it is scaled to 0 to 1; take mean and variance": (patches - patches.amin(-1, keepdim=True))
            / (patches.amax(-1, keepdim=True) - patches.amin(-1, keepdim=True)),
            "it has length 1 and not variance 1": centred / centred.norm(dim=-1, keepdim=True),
            "the sign is turned": -ours(patches),
        }
        label = f"patches of shape {tuple(patches.shape)} with a deviation near {scale:g}"
        cases.append(Case((patches,), ours(patches), mistakes, label))
    judge_function(STANDARDISED, function, ours, cases, [])
