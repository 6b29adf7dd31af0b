"""Checks of chapter 1: cutting into patches and embedding them."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from vit_classroom.checks.judging import check, judge_function, judge_module
from vit_classroom.checks.report import Case, Piece, randomise
from vit_classroom.checks.starts import spread_like_linear
from vit_from_scratch.model import patches

PATCHIFY = Piece(
    "patchify",
    "patchify(images, patch_size)",
    "(B, N, P P C)",
    'chapter 1, "Without the loop"',
    exact=True,
)
UNPATCHIFY = Piece(
    "unpatchify",
    "unpatchify(patches, patch_size, grid)",
    "(B, C, H, W)",
    'chapter 1, "Without the loop"',
    exact=True,
)
EMBEDDING = Piece(
    "PatchEmbedding",
    "PatchEmbedding(patch_size, channels, dim)",
    "(B, N, D)",
    'chapter 1, "The finished class"',
)

ORDERS = {
    "b (gh gw) (c p1 p2)": "inside a patch the channels come first; the paper's order is rows, columns, "
    "channels: (p1 p2 c)",
    "b (gh gw) (p2 p1 c)": "inside a patch columns run before rows; the paper's order is (p1 p2 c)",
    "b (gh gw) (c p2 p1)": "inside a patch the channels come first and columns run before rows; the "
    "paper's order is (p1 p2 c)",
    "b (gw gh) (p1 p2 c)": "the patches come column by column; let the grid's rows run slowest: (gh gw), not "
    "(gw gh)",
    "b (gw gh) (c p1 p2)": "the patches come column by column, and inside a patch the channels come "
    "first; the order is (gh gw) (p1 p2 c)",
    "b (gw gh) (p2 p1 c)": "the patches come column by column, and inside a patch columns run before "
    "rows; the order is (gh gw) (p1 p2 c)",
}
"""What each wrong order of axes is called. Patches are cut by it, or put together again."""
STRIDED = (
    "a patch gathers pixels that lie a grid apart; take neighbours: (gh p1) (gw p2), not (p1 gh) (p2 gw)"
)
RESHAPED = (
    "reshape alone keeps the pixels in the order of memory; axes have to change places first, so that P "
)
RESHAPED += "rows and P columns of one patch come together"


def _shapes() -> list[tuple[int, int, int, int, int]]:
    """Draw batch, channels, rows and columns of the grid, and P: grey and colour, square and not."""

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, ()))

    rows = draw(2, 4)
    return [
        (1, 1, 2, 2, 2),
        (draw(2, 3), 3, rows, rows, draw(3, 4)),
        (draw(2, 3), 3, rows, rows + draw(1, 2), draw(2, 3)),
        (draw(2, 3), 2, rows + draw(1, 2), rows, draw(4, 5)),
    ]


def _scale() -> float:
    """Draw a scale, so that nothing hangs on values of about 1."""
    return float(10 ** (2 * torch.rand(()) - 1))


def _label(images: Tensor, size: int) -> str:
    return f"images of shape {tuple(images.shape)} and patch_size {size}"


def _reshaped(images: Tensor, size: int) -> dict[str, Tensor]:
    """What reshape alone makes of images, channels first or last."""
    count = images[0, 0].numel() // size**2
    last = images.permute(0, 2, 3, 1).reshape(len(images), count, -1)
    return {RESHAPED: images.reshape(len(images), count, -1), f"{RESHAPED} (channels were moved)": last}


@check(PATCHIFY)
def patchify(function: Callable[[Tensor, int], Tensor]) -> None:
    """Check a function like :func:`vit_from_scratch.model.patches.patchify`.

    Raises:
        CheckFailed: if it differs; the message names the order of axes where that is the reason.
    """
    cases = []
    for batch, channels, rows, columns, size in _shapes():
        images = _scale() * torch.randn(batch, channels, rows * size, columns * size)
        mistakes = {
            sentence: rearrange(images, f"b c (gh p1) (gw p2) -> {order}", p1=size, p2=size)
            for order, sentence in ORDERS.items()
        }
        mistakes[STRIDED] = rearrange(images, "b c (p1 gh) (p2 gw) -> b (gh gw) (p1 p2 c)", p1=size, p2=size)
        right = patches.patchify(images, size)
        swapped = "the last two axes are swapped: one row for each patch, (B, N, P P C)"
        mistakes |= {
            swapped: right.mT,
            f"{swapped}. F.unfold puts channels first besides": F.unfold(images, size, stride=size),
        }
        cases.append(Case((images, size), right, mistakes | _reshaped(images, size), _label(images, size)))
    judge_function(PATCHIFY, function, patches.patchify, cases, [patches.patchify])


@check(UNPATCHIFY)
def unpatchify(function: Callable[[Tensor, int, tuple[int, int]], Tensor]) -> None:
    """Check a function like :func:`vit_from_scratch.model.patches.unpatchify`.

    Raises:
        CheckFailed: if patches of an image do not come back as that image, to the last bit.
    """
    cases = []
    for batch, channels, rows, columns, size in _shapes():
        images = _scale() * torch.randn(batch, channels, rows * size, columns * size)
        cut = patches.patchify(images, size)
        sizes = {"gh": rows, "gw": columns, "p1": size, "p2": size}
        mistakes = {
            sentence: rearrange(cut, f"{order} -> b c (gh p1) (gw p2)", **sizes)
            for order, sentence in ORDERS.items()
        }
        mistakes[STRIDED] = rearrange(cut, "b (gh gw) (p1 p2 c) -> b c (p1 gh) (p2 gw)", **sizes)
        mistakes[RESHAPED] = cut.reshape(images.shape)
        mistakes["rows and columns of the image are swapped: the result is (B, C, H, W)"] = images.mT
        mistakes["channels come last: the result is (B, C, H, W)"] = images.permute(0, 2, 3, 1)
        label = f"{_label(images, size)}, cut into a grid of {rows} x {columns}"
        cases.append(Case((cut, size, (rows, columns)), images, mistakes, label))
    judge_function(UNPATCHIFY, function, patches.unpatchify, cases, [patches.unpatchify])


@check(EMBEDDING)
def patch_embedding(cls: Callable[[int, int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.patches.PatchEmbedding`.

    It is called as ``cls(patch_size, channels, dim)``; its linear layer is named ``projection``.

    Raises:
        CheckFailed: if parameters or results differ, or the first weights are no start to learn from.
    """
    reference = patches.PatchEmbedding(4, 3, 10)
    randomise(reference)
    layer = reference.projection

    def cases() -> list[Case]:
        found = []
        for rows, columns in ((2, 3), (3, 2)):
            images = _scale() * torch.randn(2, 3, 4 * rows, 4 * columns)
            mistakes = {
                sentence: layer(rearrange(images, f"b c (gh p1) (gw p2) -> {order}", p1=4, p2=4))
                for order, sentence in ORDERS.items()
            }
            mistakes[STRIDED] = layer(
                rearrange(images, "b c (p1 gh) (p2 gw) -> b (gh gw) (p1 p2 c)", p1=4, p2=4)
            )
            for sentence, reshaped in _reshaped(images, 4).items():
                mistakes[sentence] = layer(reshaped)
            right = reference(images)
            mistakes["a ReLU follows the projection; equation 1 is linear"] = right.relu()
            mistakes["a GELU follows the projection; equation 1 is linear"] = F.gelu(right)
            mistakes["the bias is not added"] = right - layer.bias
            mistakes["the bias is added twice"] = right + layer.bias
            mistakes["the embeddings are normalised; equation 1 has no norm"] = F.layer_norm(right, (10,))
            mistakes["the last two axes are swapped: one row for each patch, (B, N, D)"] = right.mT
            found.append(Case((images,), right, mistakes, _label(images, 4)))
        return found

    judge_module(EMBEDDING, cls, (4, 3, 10), reference, cases, _look_at_start)


def _look_at_start(module: nn.Module) -> None:
    spread_like_linear(EMBEDDING, module, ["projection.weight"])
