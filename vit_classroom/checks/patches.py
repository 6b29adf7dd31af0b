"""Checks of chapter 1: cutting into patches and embedding them."""

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from vit_classroom.checks.judging import class_check, function_check
from vit_classroom.checks.report import Case, draw, randomise
from vit_classroom.checks.starts import spread_like_linear
from vit_from_scratch.model import patches

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


STRIDED = "a patch gathers pixels that lie a grid apart; take neighbours: (gh p1) (gw p2), not (p1 gh)"
RESHAPED = (
    "reshape alone keeps the pixels in the order of memory; axes have to change places first, so that P rows "
    "and P columns of one patch come together"
)


def _shapes() -> list[tuple[int, int, int, int, int]]:
    """Draw batch, channels, rows and columns of the grid, and P: grey and colour, square and not."""
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


def _wrong_cuts(images: Tensor, size: int) -> dict[str, Tensor]:
    sizes = {"p1": size, "p2": size}
    cuts = {said: rearrange(images, f"b c (gh p1) (gw p2) -> {to}", **sizes) for to, said in ORDERS.items()}
    return cuts | {STRIDED: rearrange(images, "b c (p1 gh) (p2 gw) -> b (gh gw) (p1 p2 c)", **sizes)}


def _reshaped(images: Tensor, size: int) -> dict[str, Tensor]:
    count = images[0, 0].numel() // size**2
    last = images.permute(0, 2, 3, 1).reshape(len(images), count, -1)
    return {RESHAPED: images.reshape(len(images), count, -1), f"{RESHAPED} (channels were moved)": last}


@function_check("(B, N, P P C)", 'chapter 1, "Without the loop"', patches.patchify, _shapes, exact=True)
def patchify(batch: int, channels: int, rows: int, columns: int, size: int) -> Case:
    """Check a function like :func:`vit_from_scratch.model.patches.patchify`."""
    images = _scale() * torch.randn(batch, channels, rows * size, columns * size)
    right = patches.patchify(images, size)
    swapped = "the last two axes are swapped: one row for each patch, (B, N, P P C)"
    so_many = rearrange(images, "b c (gh p1) (gw p2) -> b (gh gw) (p1 p2 c)", gh=size, gw=size)
    mistakes = _wrong_cuts(images, size) | {
        "patch_size is taken for the number of patches along a side; it is the number of pixels: p1 and p2, "
        "not gh and gw": so_many,
        swapped: right.mT,
        f"{swapped}. F.unfold puts channels first besides": F.unfold(images, size, stride=size),
    }
    return Case((images, size), right, mistakes | _reshaped(images, size))


@function_check("(B, C, H, W)", 'chapter 1, "Without the loop"', patches.unpatchify, _shapes, exact=True)
def unpatchify(batch: int, channels: int, rows: int, columns: int, size: int) -> Case:
    """Check a function like :func:`vit_from_scratch.model.patches.unpatchify`."""
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
    return Case((cut, size, (rows, columns)), images, mistakes)


@class_check(
    "PatchEmbedding(patch_size, channels, dim)",
    "(B, N, D)",
    'chapter 1, "The finished class"',
    lambda *sizes: randomise(patches.PatchEmbedding(*sizes)),
    [(4, 3, 10), (3, 1, 7)],
    [(2, 2, 3), (1, 3, 2)],
    starts=[spread_like_linear("projection.weight")],
)
def patch_embedding(reference: patches.PatchEmbedding, batch: int, rows: int, columns: int) -> Case:
    """Check a class like :class:`vit_from_scratch.model.patches.PatchEmbedding`.

    It is called as ``cls(patch_size, channels, dim)``; its linear layer is named ``projection``.
    """
    layer, size = reference.projection, reference.patch_size
    channels = layer.in_features // size**2
    images = _scale() * torch.randn(batch, channels, size * rows, size * columns)
    right = reference(images)
    wrong = _wrong_cuts(images, size) | _reshaped(images, size)
    mistakes = {sentence: layer(cut) for sentence, cut in wrong.items()} | {
        "the images are divided by 255; the caller does that": layer(patches.patchify(images / 255, size)),
        "the colours are turned round; keep their order": layer(patches.patchify(images.flip(1), size)),
        "a ReLU follows the projection; equation 1 is linear": right.relu(),
        "a GELU follows the projection; equation 1 is linear": F.gelu(right),
        "the bias is not added": right - layer.bias,
        "the embeddings are normalised; equation 1 has no norm": F.layer_norm(right, right.shape[-1:]),
    }
    return Case((images,), right, mistakes)


@function_check(
    "(B, N, P P C)",
    'chapter 1, exercise "Patches that overlap"',
    lambda images, patch_size, stride: _windows(images, patch_size, stride, "b (gh gw) (p1 p2 c)"),
    [(1, 1, 6, 6, 2, 1), (2, 3, 12, 15, 6, 3), (3, 2, 11, 9, 5, 2), (2, 3, 14, 12, 5, 3)],
    exact=True,
)
def overlapping_patches(batch: int, channels: int, height: int, width: int, size: int, stride: int) -> Case:
    """Check a function ``(images, patch_size, stride)`` that cuts overlapping patches, (B, N, P P C).

    Images are (B, C, H, W). A window of P x P pixels moves by ``stride``; windows that would not fit are left
    out. Patches come row by row, the values of each as ``patchify`` orders them.
    """
    images = torch.randn(batch, channels, height, width)
    order = "b (gh gw) (p1 p2 c)"
    right = _windows(images, size, stride, order)
    unfolded, padded = F.unfold(images, size, stride=stride), F.pad(images, [size // 2] * 4)
    apart, anew = _windows(images, size, size - stride, order), unfolded.reshape(right.shape)
    mistakes = {sentence: _windows(images, size, stride, wrong) for wrong, sentence in ORDERS.items()} | {
        "the last two axes are swapped, and F.unfold puts channels first inside a patch": unfolded,
        "the rows of F.unfold are cut anew by reshape; its last two axes have to change places": anew,
        "the stride is not used: the patches lie side by side": _windows(images, size, size, order),
        "the windows move by patch_size - stride; the stride itself is the step": apart,
        "patch_size and stride have changed places": _windows(images, stride, size, order),
        "the images are padded; windows that do not fit are left out": _windows(padded, size, stride, order),
    }
    return Case((images, size, stride), right, mistakes)


def _windows(images: Tensor, size: int, stride: int, order: str) -> Tensor:
    cut = images.unfold(2, size, stride).unfold(3, size, stride)
    return rearrange(cut, f"b c gh gw p1 p2 -> {order}")
