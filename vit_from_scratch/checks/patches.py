"""Checks of chapter 1: cutting into patches and embedding them."""

from collections.abc import Callable

import torch
from einops import rearrange
from torch import Tensor

from vit_from_scratch.checks.report import call, compare, passed, randomise, with_weights_of
from vit_from_scratch.model import patches

#: (B, C, H, W) and P: grey and colour, square and not, so that no axis can be mistaken for another.
CASES = [((1, 1, 4, 4), 2), ((2, 3, 8, 8), 4), ((2, 3, 6, 4), 2), ((3, 2, 10, 15), 5)]

ORDERS = {
    "the patches come column by column; let the grid's rows run slowest: (gh gw), not (gw gh).": (
        "b (gw gh) (p1 p2 c)"
    ),
    "inside a patch the channels come first; the paper's order is rows, columns, channels: (p1 p2 c).": (
        "b (gh gw) (c p1 p2)"
    ),
    "inside a patch columns run before rows; the paper's order is (p1 p2 c).": "b (gh gw) (p2 p1 c)",
}


def patchify(function: Callable[[Tensor, int], Tensor]) -> None:
    """Check a function like :func:`vit_from_scratch.model.patches.patchify`.

    Raises:
        CheckFailed: if it differs; the message names the order of axes where that is the reason.
    """
    for shape, size in CASES:
        images = torch.randn(shape)
        mistakes = {
            sentence: rearrange(images, f"b c (gh p1) (gw p2) -> {order}", p1=size, p2=size)
            for sentence, order in ORDERS.items()
        }
        got = call("patchify", function, images, size)
        compare("patchify", got, patches.patchify(images, size), mistakes)
    passed("patchify", f"{len(CASES)} shapes agree with the package")


def unpatchify(function: Callable[[Tensor, int, tuple[int, int]], Tensor]) -> None:
    """Check a function like :func:`vit_from_scratch.model.patches.unpatchify`.

    Raises:
        CheckFailed: if patches of an image do not come back as that image.
    """
    for shape, size in CASES:
        images = torch.randn(shape)
        grid = shape[2] // size, shape[3] // size
        got = call("unpatchify", function, patches.patchify(images, size), size, grid)
        compare("unpatchify", got, images)
    passed("unpatchify", f"gives {len(CASES)} images back exactly")


def patch_embedding(cls: Callable[[int, int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.patches.PatchEmbedding`.

    Args:
        cls: called as ``cls(patch_size, channels, dim)``; its linear layer is named ``projection``.

    Raises:
        CheckFailed: if parameters or results differ.
    """
    reference = randomise(patches.PatchEmbedding(4, 3, 10))
    theirs = with_weights_of("PatchEmbedding", call("PatchEmbedding", cls, 4, 3, 10), reference)
    images = torch.randn(2, 3, 8, 12)
    compare("PatchEmbedding", call("PatchEmbedding", theirs, images), reference(images))
    passed("PatchEmbedding", "same weights, same embeddings as the package")
