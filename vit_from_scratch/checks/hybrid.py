"""Checks of chapter 6: the pieces of the hybrid's ResNet."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_from_scratch.checks.report import CheckFailed, call, compare, passed, randomise, with_weights_of
from vit_from_scratch.model import hybrid as ours
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.stem_config import StemConfig

CONFIG = ViTConfig(32, 8, stem=StemConfig("resnet", layers=(1, 1), width=8))
"""For the eps of the reference code."""


def same_padding(function: Callable[[Tensor, int, int], Tensor]) -> None:
    """Check a function ``(images, kernel, stride)`` that pads (B, C, H, W) with zeros as the reference code.

    Raises:
        CheckFailed: if it differs; the message names symmetric padding, and the extra row on the wrong side.
    """
    name = "same_padding"
    for height, width, kernel, stride in [(8, 8, 3, 2), (14, 9, 7, 2), (7, 7, 3, 1), (9, 6, 1, 2)]:
        images = torch.randn(2, 3, height, width)
        got = call(name, function, images, kernel, stride)
        symmetric = F.pad(images, [(kernel - 1) // 2] * 4)
        expected = ours.same_padding(images, kernel, stride)
        if isinstance(got, Tensor) and symmetric.shape != expected.shape and torch.equal(got, symmetric):
            raise CheckFailed(
                f"{name}: it pads both sides alike; SAME pads as little as it can, and puts the odd row and "
                "column after the image."
            )
        flipped = ours.same_padding(images.flip(2, 3), kernel, stride).flip(2, 3)
        mistake = "the odd row and column stand before the image; SAME puts them after it."
        compare(name, got, expected, {mistake: flipped})
    passed(name, "4 sizes agree with the package")


def standardised_conv(cls: Callable[[int, int, int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.hybrid.StandardisedConv`.

    Args:
        cls: called as ``cls(channels, features, kernel, stride)``; one parameter, ``weight``.

    Raises:
        CheckFailed: if parameters or results differ; the message names a well-known mistake.
    """
    name = "StandardisedConv"
    reference = ours.conv(CONFIG, 3, 6, 3, 2)
    randomise(reference)
    with torch.no_grad():
        reference.weight.mul_(1e-3)  # small filters, so that the eps and where it goes can be seen
    theirs = with_weights_of(name, call(name, cls, 3, 6, 3, 2), reference)
    images = torch.randn(2, 3, 8, 8)
    padded, eps = ours.same_padding(images, 3, 2), reference.eps
    weight = reference.weight
    centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
    deviation = centred.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()

    def convolved(filters: Tensor) -> Tensor:
        return F.conv2d(padded, filters, stride=2)

    standardised = reference.standardised()
    compare(
        name,
        call(name, theirs, images),
        reference(images),
        {
            "the filters are used as they are; standardise them each time.": convolved(weight),
            "the mean of the filters is not taken away.": convolved(weight / (deviation + eps)),
            "the filters are not divided by their deviation.": convolved(centred),
            "eps is added to the variance; the reference code adds it to the deviation.": convolved(
                centred / (deviation.square() + eps).sqrt()
            ),
            "the deviation divides by n - 1; take the mean square (unbiased=False).": convolved(
                centred / (weight.std(dim=(1, 2, 3), keepdim=True) + eps)
            ),
            "one mean and deviation for all filters; each filter has its own.": convolved(
                (weight - weight.mean()) / (weight.std(unbiased=False) + eps)
            ),
            "the padding is the same on both sides; the reference code pads as SAME (see same_padding).": (
                F.conv2d(images, standardised, stride=2, padding=1)
            ),
        },
    )
    passed(name, "same weights, same result as the package")


def bottleneck(cls: Callable[[int, int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.hybrid.Bottleneck`.

    Args:
        cls: called as ``cls(channels, width, stride)``; submodules ``conv1`` to ``conv3``, ``norm1`` to
            ``norm3``, ``shortcut`` and ``shortcut_norm``, the last two `nn.Identity()` where nothing changes.

    Raises:
        CheckFailed: if parameters or results differ; the message names a well-known mistake.
    """
    name = "Bottleneck"
    for channels, stride in [(32, 1), (16, 2)]:
        reference = ours.Bottleneck(CONFIG, channels, 8, stride)
        randomise(reference)
        theirs = with_weights_of(name, call(name, cls, channels, 8, stride), reference)
        features = torch.randn(2, channels, 6, 6)
        with torch.no_grad():
            inner = F.relu(reference.norm1(reference.conv1(features)))
            inner = reference.norm3(reference.conv3(F.relu(reference.norm2(reference.conv2(inner)))))
            past = reference.shortcut(features)
            short = reference.shortcut_norm(past)
            mistakes = {
                "the last ReLU is missing; it follows the sum.": short + inner,
                "the last ReLU stands before the sum; it follows it.": short + F.relu(inner),
                "the input is not added.": F.relu(inner),
                "the norm of the shortcut is missing.": F.relu(past + inner),
            }
            compare(name, call(name, theirs, features), reference(features), mistakes)
    passed(name, "same weights, same result as the package")
