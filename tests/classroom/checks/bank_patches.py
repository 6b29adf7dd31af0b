"""Right and wrong answers to the pieces of chapter 1."""

import math
import sys
import time

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn
from variations import then, with_forward, with_start

from vit_classroom import checks
from vit_from_scratch import model


def patchify_in_loops(images, patch_size):
    rows, columns = (side // patch_size for side in images.shape[2:])
    found = []
    for row in range(rows):
        for column in range(columns):
            top, left = row * patch_size, column * patch_size
            patch = images[:, :, top : top + patch_size, left : left + patch_size]
            found.append(patch.permute(0, 2, 3, 1).flatten(1))
    return torch.stack(found, dim=1)


def patchify_by_permute(images, patch_size):
    batch, channels, height, width = images.shape
    size = patch_size
    cut = images.reshape(batch, channels, height // size, size, width // size, size)
    return cut.permute(0, 2, 4, 3, 5, 1).reshape(batch, -1, size * size * channels)


def three_axes(images, patch_size):
    _, _, _ = images.shape
    return patchify_by_permute(images, patch_size)


def patchify_by_unfold(images, patch_size):
    cut = F.unfold(images, patch_size, stride=patch_size)  # (B, C P P, N)
    return cut.mT.unflatten(2, (images.shape[1], -1)).mT.flatten(2)


def patchify_by_convolution(images, patch_size):
    channels = images.shape[1]
    identity = torch.eye(channels * patch_size**2, dtype=images.dtype)
    kernel = rearrange(identity, "n (p q c) -> n c p q", p=patch_size, q=patch_size)
    return F.conv2d(images, kernel, stride=patch_size).flatten(2).mT


def unpatchify_in_loops(patches, patch_size, grid):
    rows, columns = grid
    tiles = patches.unflatten(2, (patch_size, patch_size, -1)).permute(0, 1, 4, 2, 3)
    lines = [
        torch.cat([tiles[:, row * columns + column] for column in range(columns)], dim=3)
        for row in range(rows)
    ]
    return torch.cat(lines, dim=2)


def unpatchify_by_permute(patches, patch_size, grid):
    batch, size = len(patches), patch_size
    tiles = patches.reshape(batch, *grid, size, size, -1)
    return tiles.permute(0, 5, 1, 3, 2, 4).reshape(batch, -1, grid[0] * size, grid[1] * size)


def unpatchify_by_fold(patches, patch_size, grid):
    columns = patches.unflatten(2, (patch_size**2, -1)).mT.flatten(2).mT
    sides = [n * patch_size for n in grid]
    return F.fold(columns, sides, patch_size, stride=patch_size)


class Embedding(nn.Module):
    def __init__(self, patch_size, channels, dim):
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(channels * patch_size**2, dim)

    def forward(self, images):
        return self.projection(patchify_by_permute(images, self.patch_size))


class EmbeddingByConvolution(Embedding):
    def forward(self, images):
        size = self.patch_size
        kernel = self.projection.weight.unflatten(1, (size, size, -1)).permute(0, 3, 1, 2)
        return F.conv2d(images, kernel, self.projection.bias, stride=size).flatten(2).mT


class EmbeddingByEinsum(Embedding):
    def __init__(self, patch_size, channels, dim):
        super().__init__(patch_size, channels, dim)
        nn.init.xavier_uniform_(self.projection.weight)

    def forward(self, images):
        patches = patchify_in_loops(images, self.patch_size)
        return torch.einsum("bnv,dv->bnd", patches, self.projection.weight) + self.projection.bias


# What goes wrong with any function, tried on patchify.
def never_ends(images, size):
    while True:
        pass


def catches_everything(images, size):
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            continue


def prints(images, size):
    print(patchify_by_permute(images, size).shape)


def normalises_in_place(images, size):
    images -= images.mean()
    return patchify_by_permute(images, size)


def zeroes_its_input(images, size):
    result = patchify_by_permute(images, size)
    images.zero_()
    return result


def exits(images, size):
    sys.exit()


def recurses(images, size):
    return recurses(images, size)


def without_gradient(images, size):
    with torch.no_grad():
        return patchify_by_permute(images, size)


def made_anew(images, size):
    return torch.tensor(patchify_by_permute(images, size).tolist())


def with_nan(images, size):
    return patchify_by_permute(images, size) / 0 * 0


def square_grids_only(images, size):
    cut = images.unfold(2, size, size).unfold(3, size, size)  # (B, C, gh, gw, P, P)
    return cut.permute(0, 3, 2, 4, 5, 1).flatten(3).transpose(1, 2).flatten(1, 2)[:, :4].repeat(1, 1, 1)


def cut(order):
    return lambda images, size: rearrange(images, f"b c (gh p1) (gw p2) -> {order}", p1=size, p2=size)


def strided(images, size):
    return rearrange(images, "b c (p1 gh) (p2 gw) -> b (gh gw) (p1 p2 c)", p1=size, p2=size)


def reshaped(images, size):
    batch, channels, height, width = images.shape
    return images.reshape(batch, height * width // size**2, size * size * channels)


def reshaped_channels_last(images, size):
    return reshaped(images.permute(0, 2, 3, 1).contiguous().view(images.shape), size)


def forgets_a_row(images, size):
    return patchify_by_permute(images, size)[:, :-1]


def first_channel(images, size):
    return patchify_by_permute(images[:, :1].expand_as(images), size)


def glued(order):
    def unpatchify(patches, size, grid):
        sizes = {"gh": grid[0], "gw": grid[1], "p1": size, "p2": size}
        return rearrange(patches, f"{order} -> b c (gh p1) (gw p2)", **sizes)

    return unpatchify


def glued_strided(patches, size, grid):
    sizes = {"gh": grid[0], "gw": grid[1], "p1": size, "p2": size}
    return rearrange(patches, "b (gh gw) (p1 p2 c) -> b c (p1 gh) (p2 gw)", **sizes)


def glued_by_reshape(patches, size, grid):
    return patches.reshape(len(patches), -1, grid[0] * size, grid[1] * size)


def embedding(cutting):
    return with_forward(Embedding, lambda self, images: self.projection(cutting(images, self.patch_size)))


def embedding_then(change):
    return with_forward(Embedding, lambda self, images: change(Embedding.forward(self, images)))


class EmbeddingWithoutBias(Embedding):
    def __init__(self, patch_size, channels, dim):
        super().__init__(patch_size, channels, dim)
        self.projection = nn.Linear(channels * patch_size**2, dim, bias=False)


class EmbeddingWithAConvolution(nn.Module):
    def __init__(self, patch_size, channels, dim):
        super().__init__()
        self.projection = nn.Conv2d(channels, dim, patch_size, patch_size)

    def forward(self, images):
        return self.projection(images).flatten(2).mT


class EmbeddingOfAnotherName(nn.Module):
    def __init__(self, patch_size, channels, dim):
        super().__init__()
        self.proj = nn.Linear(channels * patch_size**2, dim)


class EmbeddingWithoutSuper(nn.Module):
    def __init__(self, patch_size, channels, dim):
        self.projection = nn.Linear(channels * patch_size**2, dim)


class NoModule:
    def __init__(self, patch_size, channels, dim):
        self.projection = nn.Linear(channels * patch_size**2, dim)


def overlapping_by_unfold(images, patch_size, stride):
    columns = F.unfold(images, patch_size, stride=stride)
    return rearrange(columns, "b (c p1 p2) n -> b n (p1 p2 c)", p1=patch_size, p2=patch_size)


def overlapping_by_views(images, patch_size, stride):
    windows = images.unfold(2, patch_size, stride).unfold(3, patch_size, stride)  # (B, C, gh, gw, P, P)
    return windows.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)


def overlapping_in_loops(images, patch_size, stride):
    found = []
    for top in range(0, images.shape[2] - patch_size + 1, stride):
        for left in range(0, images.shape[3] - patch_size + 1, stride):
            window = images[:, :, top : top + patch_size, left : left + patch_size]
            found.append(window.movedim(1, -1).flatten(1))
    return torch.stack(found, dim=1)


def overlapping_by_convolution(images, patch_size, stride):
    values = images.shape[1] * patch_size**2
    kernel = torch.eye(values).view(values, patch_size, patch_size, -1).permute(0, 3, 1, 2)
    return F.conv2d(images, kernel, stride=stride).flatten(2).mT


def overlapping_in_order(order):
    def cut(images, size, stride):
        windows = images.unfold(2, size, stride).unfold(3, size, stride)
        return rearrange(windows, f"b c gh gw p1 p2 -> {order}")

    return cut


def overlapping_padded(images, size, stride):
    return overlapping_by_unfold(F.pad(images, [size // 2] * 4), size, stride)


def overlapping_by_reshape(images, size, stride):
    columns = F.unfold(images, size, stride=stride)
    return columns.reshape(len(images), columns.shape[2], columns.shape[1])


ORDERS = (
    ("b (gw gh) (p1 p2 c)", "column by column"),
    ("b (gh gw) (c p1 p2)", "channels come first"),
    ("b (gh gw) (p2 p1 c)", "columns run before rows"),
    ("b (gh gw) (c p2 p1)", "channels come first and columns run before rows"),
    ("b (gw gh) (c p1 p2)", "column by column, and inside a patch the channels"),
    ("b (gw gh) (p2 p1 c)", "column by column, and inside a patch columns"),
)


class EmbeddingThatDrops(Embedding):
    def forward(self, images):
        return F.dropout(super().forward(images), 0.1, self.training)


class EmbeddingOfPatchesOfFour(Embedding):
    def forward(self, images):
        return self.projection(patchify_by_permute(images, 4))


class EmbeddingByUnfold(Embedding):
    def forward(self, images):
        size = self.patch_size
        windows = images.unfold(2, size, size).unfold(3, size, size).permute(0, 2, 3, 4, 5, 1)
        return F.linear(windows.flatten(3).flatten(1, 2), self.projection.weight, self.projection.bias)


RIGHT = {
    checks.patchify: (patchify_in_loops, patchify_by_permute, patchify_by_unfold, patchify_by_convolution),
    checks.unpatchify: (unpatchify_in_loops, unpatchify_by_permute, unpatchify_by_fold),
    checks.patch_embedding: (EmbeddingByUnfold, Embedding, EmbeddingByConvolution, EmbeddingByEinsum),
    checks.overlapping_patches: (
        overlapping_by_unfold,
        overlapping_by_views,
        overlapping_in_loops,
        overlapping_by_convolution,
    ),
}

WRONG = {
    checks.overlapping_patches: [
        (
            lambda images, size, stride: overlapping_by_views(images, size, size // 2),
            "3 of 4 inputs came out right",
        ),
        (
            then(overlapping_by_views, lambda x: x.squeeze(0)),
            "they are wrong where axis 0 of images has length 1",
        ),
        (
            lambda images, size, stride: overlapping_by_views(images.mT, size, stride),
            "column by column",
        ),
        (overlapping_in_order("b (gh gw) (c p1 p2)"), "channels come first"),
        (overlapping_in_order("b (gw gh) (p1 p2 c)"), "column by column"),
        (overlapping_in_order("b (gh gw) (p2 p1 c)"), "columns run before rows"),
        (lambda images, size, stride: F.unfold(images, size, stride=stride).mT, "channels come first"),
        (lambda images, size, stride: F.unfold(images, size, stride=stride), "F.unfold puts channels first"),
        (then(overlapping_by_views, lambda x: x.mT), "its axes stand in another order"),
        (overlapping_by_reshape, "rows of F.unfold are cut anew by reshape"),
        (lambda images, size, stride: overlapping_by_views(images, size, size), "the stride is not used"),
        (
            lambda images, size, stride: overlapping_by_views(images, size, size - stride),
            "move by patch_size - str",
        ),
        (lambda images, size, stride: overlapping_by_views(images, stride, size), "have changed places"),
        (overlapping_padded, "images are padded"),
        (then(overlapping_by_views, lambda x: x[:, :-1]), "returned shape"),
        (then(overlapping_by_views, lambda x: x.flip(1)), "the values are not"),
        (then(overlapping_by_views, torch.Tensor.detach), "no gradient can flow back"),
        (
            lambda images, size: overlapping_by_views(images, size, size),
            "cannot be called as overlapping_patches",
        ),
    ],
    checks.patch_embedding: [
        (EmbeddingThatDrops, "while it trains it gives something else"),
        (EmbeddingOfPatchesOfFour, "shapes do not fit|an argument is not used"),
        (embedding_then(lambda x: x.squeeze()), "wrong where axis 0 of images has length 1"),
        (embedding_then(lambda x: x[:1].expand_as(x)), "right only where axis 0|along axis 0"),
        (embedding_then(lambda x: x.flip(1)), "axis 1 is turned round"),
        (embedding_then(lambda x: x * 0.5), "all are 0.5 times"),
        (embedding(lambda images, size: patchify_by_permute(images / 255, size)), "divided by 255"),
        (
            embedding(lambda images, size: patchify_by_permute(images.flip(1), size)),
            "colours are turned round",
        ),
        (embedding(cut("b (gh gw) (c p1 p2)")), "channels come first"),
        (embedding(cut("b (gh gw) (p2 p1 c)")), "columns run before rows"),
        (embedding(cut("b (gw gh) (p1 p2 c)")), "column by column"),
        (embedding(strided), "lie a grid apart"),
        (embedding(reshaped), "reshape alone"),
        (embedding_then(torch.relu), "a ReLU follows"),
        (embedding_then(F.gelu), "a GELU follows"),
        (embedding_then(lambda x: F.layer_norm(x, x.shape[-1:])), "are normalised"),
        (embedding_then(lambda x: x.mT), "its axes stand in another order"),
        (embedding_then(torch.Tensor.detach), "no gradient can flow back"),
        (embedding_then(lambda x: x * math.nan), "values are NaN"),
        (
            with_forward(
                Embedding, lambda self, x: patchify_by_permute(x, self.patch_size) @ self.projection.weight.T
            ),
            "bias is not added",
        ),
        (
            with_forward(Embedding, lambda self, x: Embedding.forward(self, x.sub_(x.mean()))),
            "changes its input",
        ),
        (
            with_forward(Embedding, lambda self, x: Embedding.forward(self, x.detach())),
            "input 1 receives no gradient",
        ),
        (
            with_forward(
                Embedding,
                lambda self, x: F.linear(
                    patchify_by_permute(x, self.patch_size), self.projection.weight.data, self.projection.bias
                ),
            ),
            "projection.weight receives no gradient",
        ),
        (EmbeddingWithoutBias, r"missing +projection.bias.*Tried with patch_size 4, channels 3, dim 10"),
        (EmbeddingWithAConvolution, r"projection.weight has shape \(10, 3, 4, 4\)"),
        (EmbeddingOfAnotherName, r"missing +projection.weight(.|\n)*unexpected proj.weight"),
        (EmbeddingWithoutSuper, r"super\(\).__init__\(\) first"),
        (NoModule, "expected a subclass of nn.Module"),
        (Embedding(4, 3, 10), "hand in the class itself"),
        (model.PatchEmbedding, "the package's own"),
        (with_start(Embedding, lambda m: nn.init.zeros_(m.projection.weight)), "begins as nothing but zeros"),
        (
            with_start(Embedding, lambda m: nn.init.normal_(m.projection.weight)),
            "begins with a standard deviation of .*nn.Linear does it",
        ),
        (with_start(Embedding, lambda m: m.projection.requires_grad_(False)), "is frozen"),
        (with_start(Embedding, lambda m: m.double()), "is torch.float64"),
    ],
    checks.patchify: [
        (
            lambda images, size: rearrange(
                images, "b c (gh p1) (gw p2) -> b (gh gw) (p1 p2 c)", gh=size, gw=size
            ),
            "patch_size is taken for the number of patches along a side",
        ),
        (
            lambda images, size: patchify_by_permute(images.flip(1), size),
            "right only where.*axis 1 of images has",
        ),
        (lambda images, size: patchify_by_permute(images / 255, size), "all are 0.003922 times"),
        (lambda images, size: patchify_by_permute(images[:1], size).expand(len(images), -1, -1), "axis 0"),
        (
            lambda images, size: patchify_by_permute(images, size).squeeze(0),
            "wrong where axis 0 of images has length 1",
        ),
        (lambda images, size: patchify_by_permute(images, size)[0], "its values are right|first of axis 0"),
        (lambda images, size: patchify_by_permute(images, size).abs(), "their signs are lost"),
        (
            lambda images, size: patchify_by_permute(images, size).flip(0),
            "axis 0 is turned round|right only where",
        ),
        (lambda images, size: patchify_by_permute(images, 2), "right only where.*patch_size is 2"),
        (
            lambda images, size: rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)", p=size, q=size, c=3),
            "shapes do not fit there.*EinopsError",
        ),
        (
            lambda images, size: rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)"),
            "told more sizes, by name.*EinopsError",
        ),
        (three_axes, "more or fewer parts than names.*ValueError"),
        (
            lambda images, size: (
                images.reshape(*images.shape[:2], *[images.shape[2] // size, size] * 2)
                .permute(0, 2, 4, 3, 5, 1)
                .flatten(3)
                .flatten(1, 2)
            ),
            "shapes do not fit there.*RuntimeError",
        ),
        (lambda images, size: patchify_by_permute(images, (size, size)), "kind of value|shapes do not"),
        (None, "it got None: hand in `patchify` itself"),
        (torch.zeros(2), "it got a tensor: hand in `patchify` itself, not its result"),
        ("patchify", "it got a str"),
        (model.patchify, "the package's own"),
        (lambda images, size: model.patchify(images, size), "the package's own"),
        (lambda images: images, r"cannot be called as patchify\(images, patch_size\)"),
        (lambda images, size: None, "it returned None: is a return missing"),
        (prints, "it prints its result and returns None"),
        (then(patchify_by_permute, lambda x: x.numpy()), "returned a NumPy array"),
        (then(patchify_by_permute, lambda x: (x, x)), r"a tuple of 2 \(Tensor, Tensor\)"),
        (then(patchify_by_permute, list), r"a list of \d \(Tensor"),
        (then(patchify_by_permute, torch.Tensor.tolist), r"a list of \d \(list"),
        (then(patchify_by_permute, lambda x: x.sum().item()), "returned float"),
        (then(patchify_by_permute, lambda x: nn.Identity()), r"returned a layer \(Identity\)"),
        (then(patchify_by_permute, torch.Tensor.double), "torch.float64: expected torch.float32"),
        (then(patchify_by_permute, torch.Tensor.half), "torch.float16: expected torch.float32"),
        (then(patchify_by_permute, lambda x: x.to("meta")), "a tensor on meta: expected cpu"),
        (with_nan, "values are NaN: expected finite"),
        (then(patchify_by_permute, lambda x: x / 0), "expected finite|are infinite"),
        (normalises_in_place, "changes its input.*wrong as well"),
        (zeroes_its_input, "changes its input"),
        (lambda images, size: 1 / 0, "stopped with ZeroDivisionError"),
        (lambda images, size: images.reshap(1), "AttributeError.*reshap"),
        (lambda images, size: rearrange(images, "b c (h p) w -> b h", p=size), "EinopsError"),
        (exits, r"calls exit\(\)"),
        (recurses, "RecursionError"),
        (without_gradient, "no gradient can flow back"),
        (made_anew, "no gradient can flow back"),
        (then(patchify_by_permute, torch.Tensor.detach), "no gradient can flow back"),
        (never_ends, "did not come to an end"),
        (catches_everything, "did not come to an end"),
        *[(cut(order), sentence) for order, sentence in ORDERS],
        (strided, "lie a grid apart"),
        (reshaped, "reshape alone"),
        (reshaped_channels_last, "reshape alone"),
        (cut("b c (gh gw) (p1 p2)"), r"returned shape \(1, 1, 4, 4\): expected \(1, 4, 4\)"),
        (then(patchify_by_permute, lambda x: x.mT), "last two axes are swapped"),
        (lambda images, size: F.unfold(images, size, stride=size), "last two axes|F.unfold"),
        (lambda images, size: F.unfold(images, size, stride=size).mT, "channels come first"),
        (forgets_a_row, "returned shape"),
        (first_channel, "right only where.*axis 1 of images has length 1"),
        (then(patchify_by_permute, lambda x: x + 1), "the values are not"),
        (then(patchify_by_permute, lambda x: x + 5e-6), "the values are not"),
        (square_grids_only, "inputs came out right|returned shape"),
    ],
    checks.unpatchify: [
        (
            lambda patches, size, grid: unpatchify_by_permute(
                patches, size, [math.isqrt(patches.shape[1])] * 2
            ),
            "shapes do not fit there",
        ),
        (
            lambda patches, size, grid: unpatchify_by_permute(patches, size, grid[::-1]),
            "2 of 4 inputs came out right",
        ),
        (
            lambda patches, size, grid: unpatchify_by_permute(patches, size, grid).flip(1),
            "axis 1 is turned|right only",
        ),
        (
            lambda patches, size, grid: unpatchify_by_permute(patches, size, grid).squeeze(),
            "wrong where axis 0 of patches has length 1",
        ),
        (
            lambda patches, size, grid: unpatchify_by_permute(patches, size, grid)[:1],
            "right only|along|first of",
        ),
        (lambda patches, size, grid: -unpatchify_by_permute(patches, size, grid), "sign is turned"),
        *[(glued(order), sentence) for order, sentence in ORDERS],
        (glued_strided, "lie a grid apart"),
        (glued_by_reshape, "reshape alone"),
        (then(unpatchify_by_permute, lambda x: x.mT), "rows and columns of the image"),
        (then(unpatchify_by_permute, lambda x: x.permute(0, 2, 3, 1)), "channels come last"),
        (then(unpatchify_by_permute, lambda x: x.flip(2)), "the values are not"),
        (then(unpatchify_by_permute, lambda x: x + 5e-6), "the values are not"),
        (then(unpatchify_by_permute, lambda x: x.clamp(0, 1)), "of them agree"),
        (lambda patches, size, grid: patches, "returned shape"),
        (then(unpatchify_by_permute, torch.Tensor.detach), "no gradient"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
