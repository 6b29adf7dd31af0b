"""Checks of chapter 7: a norm over the places of an image, and filters with mean 0 and deviation 1."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from vit_classroom.checks.judging import check, judge_function
from vit_classroom.checks.report import Case, Piece

GROUP_NORM = Piece(
    "group_norm",
    "group_norm(features, groups, eps)",
    "(B, C, H, W)",
    'chapter 7, "A norm that minds its own image"',
)
STANDARDISED = Piece(
    "standardised",
    "standardised(weight, eps)",
    "(features, channels, kernel, kernel)",
    'chapter 7, "Standardised weights"',
)


@check(GROUP_NORM)
def group_norm(function: Callable[[Tensor, int, float], Tensor]) -> None:
    """Check a function ``(features, groups, eps)`` that normalises (B, C, H, W) as GroupNorm, unscaled.

    Raises:
        CheckFailed: if it differs; the message names the wrong values to take mean and variance over.
    """
    cases = []
    for (batch, channels, height, width), groups, eps in [
        ((2, 6, 3, 5), 2, 1e-6),
        ((3, 12, 4, 3), 4, 1e-2),
        ((2, 8, 5, 2), 2, 1e-3),
    ]:
        level = torch.randn(batch, channels, 1, 1)  # each channel has its own
        features = 0.2 * (level + torch.randn(batch, channels, height, width))
        label = f"features of shape {tuple(features.shape)}, {groups} groups, eps {eps:g}"
        right = F.group_norm(features, groups, eps=eps)
        cases.append(Case((features, groups, eps), right, _wrong_norms(features, groups, eps), label))

    def ours(features: Tensor, groups: int, eps: float) -> Tensor:
        return F.group_norm(features, groups, eps=eps)

    judge_function(GROUP_NORM, function, ours, cases, [])


def _wrong_norms(features: Tensor, groups: int, eps: float) -> dict[str, Tensor]:
    """What each wrong choice of values gives."""
    shape, channels = features.shape, features.shape[1]
    parts = rearrange(features, "b (g c) h w -> b g (c h w)", g=groups)
    centred = parts - parts.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    size = channels // groups

    def over(*axes: int) -> Tensor:
        """Normalise (B, g, c, H, W) over these axes."""
        blocks = features.unflatten(1, (groups, size))
        between = blocks - blocks.mean(axes, keepdim=True)
        return (between / (between.square().mean(axes, keepdim=True) + eps).sqrt()).view(shape)

    mixed = rearrange(features, "b (c g) h w -> b (g c) h w", g=groups)
    strided = rearrange(F.group_norm(mixed, groups, eps=eps), "b (g c) h w -> b (c g) h w", g=groups)
    right = centred / (variance + eps).sqrt()
    return {
        "each place is normalised for itself, over the channels of its group; mean and variance of a group "
        "run over all places, too": over(2),
        "each place is normalised over its channels, as in LayerNorm; a group has one mean and variance, "
        "over some channels and all places": over(1, 2),
        "each channel is normalised for itself; the channels of a group share one mean and one variance": (
            over(3, 4)
        ),
        "mean and variance run over the whole image; each group has its own": over(1, 2, 3, 4),
        "mean and variance run over the batch as well; each image has its own": over(0, 2, 3, 4),
        "this is BatchNorm, a channel over all images; GroupNorm stays within one image": over(0, 3, 4),
        "a group takes every g-th channel; it takes neighbours: (g c), not (c g)": strided,
        "`groups` is taken for the channels of a group; it is how many groups there are": F.group_norm(
            features, size, eps=eps
        ),
        "the variance divides by n - 1; take the mean square (unbiased=False)": (
            centred / (parts.var(-1, keepdim=True) + eps).sqrt()
        ).view(shape),
        "eps is added to the deviation; it belongs to the variance, under the root": (
            centred / (variance.sqrt() + eps)
        ).view(shape),
        "eps is left out": (centred / variance.sqrt()).view(shape),
        "it divides by the variance; divide by its root": (centred / (variance + eps)).view(shape),
        "the mean is not taken away": (parts / (variance + eps).sqrt()).view(shape),
        "the mean is taken away, and nothing is divided by the deviation": centred.view(shape),
        "the result is still cut into groups; give it the shape of the features": right,
    }


@check(STANDARDISED)
def standardised(function: Callable[[Tensor, float], Tensor]) -> None:
    """Check a function ``(weight, eps)`` that brings each filter to mean 0 and deviation 1.

    The filters are (features, channels, kernel, kernel).

    Raises:
        CheckFailed: if it differs; the message names a wrong place of eps, or the wrong axes.
    """
    cases = []
    for shape, scale, eps in [
        ((4, 3, 3, 3), 1e-3, 1e-5),
        ((5, 2, 5, 5), 0.02, 1e-3),
        ((6, 4, 2, 2), 0.3, 1e-2),
    ]:
        weight = scale * (torch.randn(shape[0], 1, 1, 1) + torch.randn(shape))
        over_filters = weight - weight.mean(0)
        mistakes = {
            "the filters come back as they are": weight,
            "mean and deviation run over the filters, axis 0; each filter has its own": over_filters
            / (weight.std(0, unbiased=False) + eps),
            **wrong_filters(weight, eps),
        }
        if eps != 1e-5:
            mistakes["eps is always 1e-5; take the one that is handed in"] = _standardise(weight, 1e-5)
        label = f"filters of shape {shape}, eps {eps:g}"
        cases.append(Case((weight, eps), _standardise(weight, eps), mistakes, label))
    judge_function(STANDARDISED, function, _standardise, cases, [])


def _standardise(weight: Tensor, eps: float) -> Tensor:
    centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
    return centred / (centred.square().mean(dim=(1, 2, 3), keepdim=True).sqrt() + eps)


def wrong_filters(weight: Tensor, eps: float) -> dict[str, Tensor]:
    """What each wrong way to standardise makes of filters (features, channels, kernel, kernel)."""
    centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
    deviation = centred.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    by_channel = weight - weight.mean(dim=(2, 3), keepdim=True)
    return {
        "the mean of the filters is not taken away": weight / (deviation + eps),
        "the filters are not divided by their deviation": centred,
        "eps is added to the variance; the reference code adds it to the deviation": centred
        / (deviation.square() + eps).sqrt(),
        "the filters are divided by the variance; divide by the deviation": centred
        / (deviation.square() + eps),
        "there is no eps; the reference code adds one to the deviation": centred / deviation,
        "the deviation divides by n - 1; take the mean square (unbiased=False)": centred
        / (weight.std(dim=(1, 2, 3), keepdim=True) + eps),
        "one mean and deviation for all filters; each filter has its own": (weight - weight.mean())
        / (weight.std(unbiased=False) + eps),
        "mean and deviation run over rows and columns alone; over the channels, too": by_channel
        / (weight.std(dim=(2, 3), keepdim=True, unbiased=False) + eps),
    }
