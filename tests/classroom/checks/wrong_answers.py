"""The bank of mistakes: wrong answers of the kind students write, and the sentence that each gets.

An empty sentence stands where no mistake is named, and the general description is enough.
"""

import math
import sys
import time

import torch
import torch.nn.functional as F
from einops import rearrange
from right_answers import (
    Attention,
    Block,
    Bottleneck,
    Convolution,
    Embedding,
    Encoder,
    Mlp,
    Sequence,
    ViT,
    attention_by_einsum,
    padding_by_formula,
    patchify_by_permute,
    unpatchify_by_permute,
)
from torch import nn

from vit_classroom import checks
from vit_from_scratch import model
from vit_from_scratch.model import hybrid


def with_forward(base, forward):
    """Return a class of layers that computes something else."""
    return type(f"Other{base.__name__}", (base,), {"forward": forward})


def with_start(base, change):
    """Return a class of layers that is changed as soon as it is made."""

    def made(*arguments, **named):
        module = base(*arguments, **named)
        change(module)
        return module

    return made


def then(function, change):
    """Return a function whose result is changed."""
    return lambda *arguments: change(function(*arguments))


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


ANYTHING = [
    (checks.patchify, None, "it got None: hand in `patchify` itself"),
    (checks.patchify, torch.zeros(2), "it got a tensor: hand in `patchify` itself, not its result"),
    (checks.patchify, "patchify", "it got a str"),
    (checks.patchify, model.patchify, "the package's own"),
    (checks.patchify, lambda images, size: model.patchify(images, size), "the package's own"),
    (checks.patchify, lambda images: images, r"cannot be called as patchify\(images, patch_size\)"),
    (checks.patchify, lambda images, size: None, "it returned None: is a return missing"),
    (checks.patchify, prints, "it prints its result and returns None"),
    (checks.patchify, then(patchify_by_permute, lambda x: x.numpy()), "returned a NumPy array"),
    (checks.patchify, then(patchify_by_permute, lambda x: (x, x)), r"a tuple of 2 \(Tensor, Tensor\)"),
    (checks.patchify, then(patchify_by_permute, list), r"a list of \d \(Tensor"),
    (checks.patchify, then(patchify_by_permute, torch.Tensor.tolist), r"a list of \d \(list"),
    (checks.patchify, then(patchify_by_permute, lambda x: x.sum().item()), "returned float"),
    (checks.patchify, then(patchify_by_permute, lambda x: nn.Identity()), r"returned a layer \(Identity\)"),
    (
        checks.patchify,
        then(patchify_by_permute, torch.Tensor.double),
        "torch.float64: expected torch.float32",
    ),
    (checks.patchify, then(patchify_by_permute, torch.Tensor.half), "torch.float16: expected torch.float32"),
    (checks.patchify, then(patchify_by_permute, lambda x: x.to("meta")), "a tensor on meta: expected cpu"),
    (checks.patchify, with_nan, "values are NaN: expected finite"),
    (checks.patchify, then(patchify_by_permute, lambda x: x / 0), "expected finite|are infinite"),
    (checks.patchify, normalises_in_place, "changes its input.*wrong as well"),
    (checks.patchify, zeroes_its_input, "changes its input"),
    (checks.patchify, lambda images, size: 1 / 0, "stopped with ZeroDivisionError"),
    (checks.patchify, lambda images, size: images.reshap(1), "AttributeError.*reshap"),
    (checks.patchify, lambda images, size: rearrange(images, "b c (h p) w -> b h", p=size), "EinopsError"),
    (checks.patchify, exits, r"calls exit\(\)"),
    (checks.patchify, recurses, "RecursionError"),
    (checks.patchify, without_gradient, "no gradient can flow back"),
    (checks.patchify, made_anew, "no gradient can flow back"),
    (checks.patchify, then(patchify_by_permute, torch.Tensor.detach), "no gradient can flow back"),
    (checks.patchify, never_ends, "did not come to an end"),
    (checks.patchify, catches_everything, "did not come to an end"),
]


# Chapter 1


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


CHAPTER_1 = [
    *[
        (check, way(order), sentence)
        for check, way in ((checks.patchify, cut), (checks.unpatchify, glued))
        for order, sentence in (
            ("b (gw gh) (p1 p2 c)", "column by column"),
            ("b (gh gw) (c p1 p2)", "channels come first"),
            ("b (gh gw) (p2 p1 c)", "columns run before rows"),
            ("b (gh gw) (c p2 p1)", "channels come first and columns run before rows"),
            ("b (gw gh) (c p1 p2)", "column by column, and inside a patch the channels"),
            ("b (gw gh) (p2 p1 c)", "column by column, and inside a patch columns"),
        )
    ],
    (checks.patchify, strided, "lie a grid apart"),
    (checks.patchify, reshaped, "reshape alone"),
    (checks.patchify, reshaped_channels_last, "reshape alone"),
    (checks.patchify, cut("b c (gh gw) (p1 p2)"), r"returned shape \(1, 1, 4, 4\): expected \(1, 4, 4\)"),
    (checks.patchify, then(patchify_by_permute, lambda x: x.mT), "last two axes are swapped"),
    (checks.patchify, lambda images, size: F.unfold(images, size, stride=size), "last two axes|F.unfold"),
    (checks.patchify, lambda images, size: F.unfold(images, size, stride=size).mT, "channels come first"),
    (checks.patchify, forgets_a_row, "returned shape"),
    (checks.patchify, first_channel, ""),
    (checks.patchify, then(patchify_by_permute, lambda x: x + 1), "the values are not"),
    (checks.patchify, then(patchify_by_permute, lambda x: x + 5e-6), "the values are not"),
    (checks.patchify, square_grids_only, "inputs came out right|returned shape"),
    (checks.unpatchify, glued_strided, "lie a grid apart"),
    (checks.unpatchify, glued_by_reshape, "reshape alone"),
    (checks.unpatchify, then(unpatchify_by_permute, lambda x: x.mT), "rows and columns of the image"),
    (checks.unpatchify, then(unpatchify_by_permute, lambda x: x.permute(0, 2, 3, 1)), "channels come last"),
    (checks.unpatchify, then(unpatchify_by_permute, lambda x: x.flip(2)), "the values are not"),
    (checks.unpatchify, then(unpatchify_by_permute, lambda x: x + 5e-6), "the values are not"),
    (checks.unpatchify, then(unpatchify_by_permute, lambda x: x.clamp(0, 1)), "the values are not"),
    (checks.unpatchify, lambda patches, size, grid: patches, "returned shape"),
    (checks.unpatchify, then(unpatchify_by_permute, torch.Tensor.detach), "no gradient"),
    (checks.patch_embedding, embedding(cut("b (gh gw) (c p1 p2)")), "channels come first"),
    (checks.patch_embedding, embedding(cut("b (gh gw) (p2 p1 c)")), "columns run before rows"),
    (checks.patch_embedding, embedding(cut("b (gw gh) (p1 p2 c)")), "column by column"),
    (checks.patch_embedding, embedding(strided), "lie a grid apart"),
    (checks.patch_embedding, embedding(reshaped), "reshape alone"),
    (checks.patch_embedding, embedding_then(torch.relu), "a ReLU follows"),
    (checks.patch_embedding, embedding_then(F.gelu), "a GELU follows"),
    (checks.patch_embedding, embedding_then(lambda x: F.layer_norm(x, x.shape[-1:])), "are normalised"),
    (checks.patch_embedding, embedding_then(lambda x: x.mT), "last two axes are swapped"),
    (checks.patch_embedding, embedding_then(torch.Tensor.detach), "no gradient can flow back"),
    (checks.patch_embedding, embedding_then(lambda x: x * math.nan), "values are NaN"),
    (
        checks.patch_embedding,
        with_forward(
            Embedding, lambda self, x: patchify_by_permute(x, self.patch_size) @ self.projection.weight.T
        ),
        "bias is not added",
    ),
    (
        checks.patch_embedding,
        with_forward(Embedding, lambda self, x: Embedding.forward(self, x.sub_(x.mean()))),
        "changes its input",
    ),
    (
        checks.patch_embedding,
        with_forward(Embedding, lambda self, x: Embedding.forward(self, x.detach())),
        "input 1 receives no gradient",
    ),
    (
        checks.patch_embedding,
        with_forward(
            Embedding,
            lambda self, x: F.linear(
                patchify_by_permute(x, self.patch_size), self.projection.weight.data, self.projection.bias
            ),
        ),
        "projection.weight receives no gradient",
    ),
    (checks.patch_embedding, EmbeddingWithoutBias, r"missing +projection.bias"),
    (checks.patch_embedding, EmbeddingWithAConvolution, r"projection.weight has shape \(10, 3, 4, 4\)"),
    (
        checks.patch_embedding,
        EmbeddingOfAnotherName,
        r"missing +projection.weight(.|\n)*unexpected proj.weight",
    ),
    (checks.patch_embedding, EmbeddingWithoutSuper, r"super\(\).__init__\(\) first"),
    (checks.patch_embedding, NoModule, "expected a subclass of nn.Module"),
    (checks.patch_embedding, Embedding(4, 3, 10), "hand in the class itself"),
    (checks.patch_embedding, model.PatchEmbedding, "the package's own"),
    (
        checks.patch_embedding,
        with_start(Embedding, lambda m: nn.init.zeros_(m.projection.weight)),
        "begins as nothing but zeros",
    ),
    (
        checks.patch_embedding,
        with_start(Embedding, lambda m: nn.init.normal_(m.projection.weight)),
        "begins with a deviation of .*nn.Linear does it",
    ),
    (
        checks.patch_embedding,
        with_start(Embedding, lambda m: m.projection.requires_grad_(False)),
        "is frozen",
    ),
    (checks.patch_embedding, with_start(Embedding, lambda m: m.double()), "is torch.float64"),
]


# Chapter 2


def sequence(forward):
    return with_forward(Sequence, forward)


def first_of(self, embeddings):
    return self.class_token.expand(len(embeddings), -1, -1)


class SequenceOfBuffers(Sequence):
    def __init__(self, num_patches, dim):
        nn.Module.__init__(self)
        self.register_buffer("class_token", torch.zeros(1, 1, dim))
        self.register_buffer("position", 0.02 * torch.randn(1, num_patches + 1, dim))


class SequenceOfPlainTensors(Sequence):
    def __init__(self, num_patches, dim):
        nn.Module.__init__(self)
        self.class_token = torch.zeros(1, 1, dim)
        self.position = 0.02 * torch.randn(1, num_patches + 1, dim)


class SequenceOfNPositions(nn.Module):
    def __init__(self, num_patches, dim):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(0.02 * torch.randn(1, num_patches, dim))


def repeat_one_row(module):
    with torch.no_grad():
        module.position.copy_(module.position[:, :1].expand_as(module.position).clone())


CHAPTER_2 = [
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([x, first_of(self, x)], 1) + self.position),
        "class token stands last",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([first_of(self, x), x], 1)),
        "positions are not added",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([first_of(self, x), x + self.position[:, 1:]], 1)),
        "class token gets no position",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([first_of(self, x), x + self.position[:, :-1]], 1)),
        "positions from 0 on, and the class token none",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) * self.position),
        "are multiplied",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) - self.position),
        "are taken away",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) + 2 * self.position),
        "added twice",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) + self.position.roll(1, 1)),
        "position of the one before",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) + self.position[:, :1]),
        "the same position, the first",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: x + self.position[:, 1:]),
        "no class token in the result",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: x + self.class_token + self.position[:, 1:]),
        "is added to the patches",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([torch.zeros_like(x[:, :1]), x], 1) + self.position),
        "is not the parameter",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([self.class_token, x], 1) + self.position),
        "stopped with RuntimeError",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) + self.position.detach()),
        "position receives no gradient",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: torch.cat([first_of(self, x).data, x], 1) + self.position),
        "class_token receives no gradient",
    ),
    (
        checks.token_sequence,
        sequence(lambda self, x: Sequence.forward(self, x).detach()),
        "no gradient can flow back",
    ),
    (checks.token_sequence, sequence(lambda self, x: Sequence.forward(self, x.mul_(2))), "changes its input"),
    (checks.token_sequence, sequence(lambda self, x: Sequence.forward(self, x) * math.nan), "values are NaN"),
    (checks.token_sequence, SequenceOfBuffers, "class_token is a buffer"),
    (checks.token_sequence, SequenceOfPlainTensors, "class_token is a plain tensor: wrap it in nn.Parameter"),
    (
        checks.token_sequence,
        SequenceOfNPositions,
        r"position has shape \(1, 36, 64\), expected \(1, 37, 64\)",
    ),
    (
        checks.token_sequence,
        with_start(Sequence, lambda m: m.position.requires_grad_(False)),
        "position is frozen",
    ),
    (
        checks.token_sequence,
        with_start(Sequence, lambda m: nn.init.uniform_(m.position, -0.0346, 0.0346)),
        "uniform: expected normal numbers",
    ),
    (
        checks.token_sequence,
        with_start(Sequence, lambda m: nn.init.normal_(m.position)),
        r"a deviation of (1|0\.9)",
    ),
    (checks.token_sequence, with_start(Sequence, lambda m: nn.init.zeros_(m.position)), "nothing but zeros"),
    (
        checks.token_sequence,
        with_start(Sequence, lambda m: nn.init.normal_(m.position, 0.01, 0.02)),
        "begins around",
    ),
    (checks.token_sequence, with_start(Sequence, repeat_one_row), "values that repeat|deviation"),
    (
        checks.token_sequence,
        with_start(Sequence, lambda m: nn.init.normal_(m.class_token, std=0.02)),
        "class_token begins at other values than 0",
    ),
]


# Chapter 3


def scores(q, k):
    return q @ k.mT / math.sqrt(q.shape[-1])


FORMULAS = [
    (lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "not divided"),
    (lambda q, k, v: (q @ k.mT * q.shape[-1] ** 0.5).softmax(-1) @ v, "equation 6 divides"),
    (lambda q, k, v: (q @ k.mT / q.shape[-1]).softmax(-1) @ v, "divided by Dh"),
    (lambda q, k, v: (q @ k.mT / q.shape[-2] ** 0.5).softmax(-1) @ v, "the number of tokens"),
    (lambda q, k, v: scores(q, k).softmax(-2) @ v, "rows must sum to 1"),
    (lambda q, k, v: scores(q, k).softmax(0) @ v, "rows must sum to 1"),
    (lambda q, k, v: scores(q, k) @ v, "the softmax is missing"),
    (lambda q, k, v: (q @ k.mT).softmax(-1) / q.shape[-1] ** 0.5 @ v, "after the softmax"),
    (lambda q, k, v: scores(k, q).softmax(-1) @ v, "queries and keys have changed places"),
    (lambda q, k, v: scores(q, k).softmax(-1).mT @ v, "weights are transposed"),
    (lambda q, k, v: scores(q, k).softmax(-1) @ k, "keys stand where the values belong"),
    (lambda q, k, v: scores(q, k).softmax(-1) @ q, "queries stand where the values belong"),
    (lambda q, k, v: scores(q, k).softmax(-1), "these are the weights A"),
    (lambda q, k, v: v, "values come out as they went in"),
    (lambda q, k, v: scores(q, k).sigmoid() @ v, "a sigmoid stands"),
    (lambda q, k, v: scores(q, k).log_softmax(-1) @ v, ""),
    (lambda q, k, v: scores(q, k).softmax(-1) @ v.mT, "RuntimeError|returned shape"),
    (lambda q, k, v: q @ k.T, "RuntimeError|returned shape|UserWarning"),
    (lambda q, k, v: F.dropout(attention_by_einsum(q, k, v)), ""),
    (lambda q, k, v: attention_by_einsum(q, k, v).detach(), "no gradient can flow back"),
    (lambda q, k, v: attention_by_einsum(q.detach(), k, v), "input 1 receives no gradient"),
    (lambda q, k, v: attention_by_einsum(q, k, v.clone().data), "input 3 receives no gradient"),
    (lambda q, k, v: attention_by_einsum(q.div_(q.shape[-1] ** 0.5), k, v), "changes its input"),
    (model.attention.explicit_attention, "the package's own"),
]


def heads_of(self, tokens, pattern="qkv h dh", heads=None):
    count = heads or self.heads
    return rearrange(self.qkv(tokens), f"b t ({pattern}) -> qkv b h t dh", qkv=3, h=count)


def joined(self, gathered, pattern="(h dh)"):
    return self.projection(rearrange(gathered, f"b h t dh -> b t {pattern}"))


def attention_class(compute):
    return with_forward(Attention, compute)


def scaled_by(power_of_width):
    def forward(self, tokens):
        q, k, v = heads_of(self, tokens)
        return joined(self, (q @ k.mT * power_of_width(tokens.shape[-1], q.shape[-1])).softmax(-1) @ v)

    return attention_class(forward)


def softmax_over(axis):
    def forward(self, tokens):
        q, k, v = heads_of(self, tokens)
        return joined(self, scores(q, k).softmax(axis) @ v)

    return attention_class(forward)


class AttentionInThreeLayers(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.projection = nn.Linear(dim, dim)


class AttentionWithoutBias(Attention):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)


CHAPTER_3 = [
    *[(checks.attention, formula, sentence) for formula, sentence in FORMULAS],
    (checks.multi_head_attention, scaled_by(lambda dim, width: dim**-0.5), r"divided by sqrt\(D\)"),
    (checks.multi_head_attention, scaled_by(lambda dim, width: 1.0), "not divided"),
    (checks.multi_head_attention, scaled_by(lambda dim, width: 1 / width), "divided by Dh"),
    (checks.multi_head_attention, softmax_over(-2), "softmax runs over the queries"),
    (checks.multi_head_attention, softmax_over(1), "softmax runs over the heads"),
    (
        checks.multi_head_attention,
        attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x, heads=1)))),
        "all heads work as one",
    ),
    (
        checks.multi_head_attention,
        attention_class(
            lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x, "qkv dh h")), "(dh h)")
        ),
        "every h-th value",
    ),
    (
        checks.multi_head_attention,
        attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x, "h qkv dh")))),
        "interleaved head by head",
    ),
    (
        checks.multi_head_attention,
        attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x)), "(dh h)")),
        "joined in the wrong order",
    ),
    (
        checks.multi_head_attention,
        attention_class(
            lambda self, x: self.projection(attention_by_einsum(*heads_of(self, x)).reshape(x.shape))
        ),
        "without moving the heads' axis back",
    ),
    (
        checks.multi_head_attention,
        attention_class(
            lambda self, x: rearrange(attention_by_einsum(*heads_of(self, x)), "b h t dh -> b t (h dh)")
        ),
        "output projection",
    ),
    (
        checks.multi_head_attention,
        attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x)[[1, 0, 2]]))),
        "queries and keys have changed places",
    ),
    (
        checks.multi_head_attention,
        attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x)[[0, 1, 1]]))),
        "keys stand where the values belong",
    ),
    (
        checks.multi_head_attention,
        attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x)[[0, 2, 1]]))),
        "values come before the keys",
    ),
    (
        checks.multi_head_attention,
        attention_class(lambda self, x: Attention.forward(self, x) + x),
        "the input is added",
    ),
    (
        checks.multi_head_attention,
        attention_class(
            lambda self, x: self.projection(attention_by_einsum(*heads_of(self, x)).mean(1).repeat(1, 1, 3))
        ),
        "heads are averaged",
    ),
    (
        checks.multi_head_attention,
        attention_class(
            lambda self, x: joined(
                self, attention_by_einsum(heads_of(self, x)[0].detach(), *heads_of(self, x)[1:])
            )
        ),
        "gradient of input 1 is not",
    ),
    (checks.multi_head_attention, attention_class(lambda self, x: None), "is a return missing"),
    (checks.multi_head_attention, AttentionInThreeLayers, r"missing +qkv.weight"),
    (checks.multi_head_attention, AttentionWithoutBias, r"missing +qkv.bias"),
    (checks.multi_head_attention, model.MultiHeadSelfAttention, "the package's own"),
]


# Chapter 4


def mlp_with(function):
    return with_forward(Mlp, lambda self, x: self.output(function(self.hidden(x))))


class MlpOfOtherNames(nn.Module):
    def __init__(self, dim, mlp_dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)


def clamps_its_input(self, x):
    x.clamp_(-1, 1)
    return Mlp.forward(self, x)


def without_grad(base):
    def forward(self, x):
        with torch.no_grad():
            return base.forward(self, x)

    return with_forward(base, forward)


def block(forward):
    return with_forward(Block, forward)


def post_norm(self, z):
    z = self.attention_norm(z + self.attention(z))
    return self.mlp_norm(z + self.mlp(z))


def norm_after_the_layer(self, z):
    z = z + self.attention_norm(self.attention(z))
    return z + self.mlp_norm(self.mlp(z))


def from_the_normalised(self, z):
    z = self.attention_norm(z)
    z = z + self.attention(z)
    z = self.mlp_norm(z)
    return z + self.mlp(z)


def attention_from_the_normalised(self, z):
    z = self.attention_norm(z)
    z = z + self.attention(z)
    return z + self.mlp(self.mlp_norm(z))


def mlp_from_the_normalised(self, z):
    z = z + self.attention(self.attention_norm(z))
    z = self.mlp_norm(z)
    return z + self.mlp(z)


def mlp_adds_the_input(self, z):
    middle = z + self.attention(self.attention_norm(z))
    return z + self.mlp(self.mlp_norm(middle))


def swapped_norms(self, z):
    z = z + self.attention(self.mlp_norm(z))
    return z + self.mlp(self.attention_norm(z))


def one_norm(self, z):
    z = z + self.attention(self.attention_norm(z))
    return z + self.mlp(self.attention_norm(z))


def other_norm(self, z):
    z = z + self.attention(self.mlp_norm(z))
    return z + self.mlp(self.mlp_norm(z))


def mlp_first(self, z):
    z = z + self.mlp(self.mlp_norm(z))
    return z + self.attention(self.attention_norm(z))


def parallel(self, z):
    return z + self.attention(self.attention_norm(z)) + self.mlp(self.mlp_norm(z))


def attends_twice(self, z):
    for _ in range(2):
        z = z + self.attention(self.attention_norm(z))
    return z + self.mlp(self.mlp_norm(z))


def adds_in_place(self, z):
    z += self.attention(self.attention_norm(z))
    z += self.mlp(self.mlp_norm(z))
    return z


def forgets_dropout_in_evaluation(self, z):
    z = z + self.attention(self.attention_norm(z))
    return z + F.dropout(self.mlp(self.mlp_norm(z)), 0.3)


def changes_its_weights(self, z):
    with torch.no_grad():
        self.mlp_norm.weight.mul_(1.0001)
    return Block.forward(self, z)


def block_with_eps(eps):
    def change(module):
        module.attention_norm.eps = module.mlp_norm.eps = eps

    return with_start(Block, change)


class BlockWithOneNorm(Block):
    def __init__(self, dim, heads, mlp_dim):
        super().__init__(dim, heads, mlp_dim)
        self.mlp_norm = self.attention_norm


CHAPTER_4 = [
    (checks.mlp, mlp_with(torch.relu), "ReLU"),
    (checks.mlp, mlp_with(lambda x: F.gelu(x, approximate="tanh")), "tanh approximation"),
    (checks.mlp, mlp_with(lambda x: x * (1.702 * x).sigmoid()), "1.702 x"),
    (checks.mlp, mlp_with(F.silu), "SiLU"),
    (checks.mlp, mlp_with(torch.tanh), "is a tanh"),
    (checks.mlp, mlp_with(torch.sigmoid), "is a sigmoid"),
    (checks.mlp, mlp_with(F.leaky_relu), "leaky ReLU"),
    (checks.mlp, mlp_with(F.elu), "ELU"),
    (checks.mlp, mlp_with(lambda x: x.softmax(-1)), "is a softmax"),
    (checks.mlp, mlp_with(lambda x: x), "no non-linearity"),
    (checks.mlp, mlp_with(lambda x: F.gelu(F.gelu(x))), "applied twice"),
    (checks.mlp, mlp_with(lambda x: F.gelu(x.detach())), "receives no gradient"),
    (checks.mlp, mlp_with(lambda x: F.dropout(F.gelu(x), 0.1)), "two calls in evaluation differ"),
    (checks.mlp, with_forward(Mlp, lambda self, x: F.gelu(Mlp.forward(self, x))), "follows the second layer"),
    (
        checks.mlp,
        with_forward(Mlp, lambda self, x: F.gelu(self.output(self.hidden(x)))),
        "stands at the end",
    ),
    (
        checks.mlp,
        with_forward(Mlp, lambda self, x: self.output(self.hidden(F.gelu(x)))),
        "before the first layer",
    ),
    (checks.mlp, with_forward(Mlp, lambda self, x: x + Mlp.forward(self, x)), "the input is added"),
    (
        checks.mlp,
        with_forward(Mlp, lambda self, x: Mlp.forward(self, F.layer_norm(x, x.shape[-1:]))),
        "a norm comes first",
    ),
    (
        checks.mlp,
        with_forward(Mlp, lambda self, x: self.hidden(x)),
        r"shape \(2, 5, 10\): expected \(2, 5, 6\)",
    ),
    (checks.mlp, with_forward(Mlp, clamps_its_input), "changes its input"),
    (checks.mlp, without_grad(Mlp), "no gradient can flow back"),
    (
        checks.mlp,
        with_start(Mlp, lambda m: nn.init.zeros_(m.output.weight)),
        "output.weight begins as nothing",
    ),
    (checks.mlp, MlpOfOtherNames, r"missing +hidden.weight(.|\n)*unexpected fc1.weight"),
    (checks.mlp, lambda dim, mlp_dim: Mlp(dim, 2 * mlp_dim), r"hidden.weight has shape \(20, 6\)"),
    (checks.mlp, lambda dim, mlp_dim: "no module", "expected a subclass of nn.Module"),
    (checks.mlp, model.Mlp, "the package's own"),
    (checks.block, block(post_norm), "post-norm"),
    (checks.block, block(norm_after_the_layer), "after the layers, before the additions"),
    (checks.block, block(from_the_normalised), "both residuals start from the normalised"),
    (checks.block, block(attention_from_the_normalised), "residual around the attention starts from"),
    (checks.block, block(mlp_from_the_normalised), "residual around the MLP starts from"),
    (checks.block, block(mlp_adds_the_input), "MLP's residual adds the block's input"),
    (checks.block, block(swapped_norms), "norms have changed places"),
    (checks.block, block(one_norm), "attention's norm is used for the MLP"),
    (checks.block, block(other_norm), "MLP's norm is used for the attention"),
    (checks.block, block(mlp_first), "MLP comes before the attention"),
    (checks.block, block(parallel), "MLP reads the block's input"),
    (checks.block, block(attends_twice), "attention is called twice"),
    (
        checks.block,
        block(lambda self, z: self.mlp_norm(Block.forward(self, z))),
        "a further norm follows",
    ),
    (
        checks.block,
        block(lambda self, z: z + self.attention(self.attention_norm(z))),
        "the MLP is missing",
    ),
    (checks.block, block(lambda self, z: z + self.mlp(self.mlp_norm(z))), "the attention is missing"),
    (
        checks.block,
        block(lambda self, z: self.mlp(self.mlp_norm(z + self.attention(self.attention_norm(z))))),
        "residual around the MLP is missing",
    ),
    (
        checks.block,
        block(
            lambda self, z: (
                self.attention(self.attention_norm(z))
                + self.mlp(self.mlp_norm(self.attention(self.attention_norm(z))))
            )
        ),
        "residual around the attention is missing",
    ),
    (
        checks.block,
        block(lambda self, z: self.mlp(self.mlp_norm(self.attention(self.attention_norm(z))))),
        "both residuals are missing",
    ),
    (
        checks.block,
        block(lambda self, z: z + self.attention(z) + self.mlp(self.mlp_norm(z + self.attention(z)))),
        "attention_norm is declared and never called",
    ),
    (
        checks.block,
        block(
            lambda self, z: (
                z
                + self.attention(self.attention_norm(z))
                + self.mlp(z + self.attention(self.attention_norm(z)))
            )
        ),
        "mlp_norm is declared and never called",
    ),
    (
        checks.block,
        block(lambda self, z: z + self.attention(z) + self.mlp(z + self.attention(z))),
        "both norms are declared and never called",
    ),
    (checks.block, block_with_eps(1e-5), "eps of LayerNorm is 1e-5"),
    (checks.block, block_with_eps(1e-12), "eps of LayerNorm is 1e-12"),
    (checks.block, block(adds_in_place), "changes its input"),
    (checks.block, block(forgets_dropout_in_evaluation), "two calls in evaluation differ"),
    (checks.block, block(changes_its_weights), "changes its own weights|two calls"),
    (checks.block, without_grad(Block), "no gradient can flow back"),
    (checks.block, block(lambda self, z: Block.forward(self, z) * math.nan), "values are NaN"),
    (checks.block, block(lambda self, z: [Block.forward(self, z)]), "returned a list of 1"),
    (checks.block, block(lambda self, z: Block.forward(self, z).numpy()), "NumPy|RuntimeError"),
    (checks.block, BlockWithOneNorm, "one and the same parameter"),
]


# Chapter 5


def vit(forward):
    return with_forward(ViT, forward)


def encoded(self, images):
    return self.encoder(self.tokens(self.patch_embedding(images)))


def through(self, images, blocks, norm_each=False):
    z = self.tokens(self.patch_embedding(images))
    for one in blocks:
        z = self.encoder.norm(one(z)) if norm_each else one(z)
    return z


def logits_of(self, z):
    return self.head(self.encoder.norm(z)[:, 0])


def vit_then(change):
    return vit(lambda self, images: change(ViT.forward(self, images)))


class OneBlockManyTimes(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        one = Block(fields["dim"], fields["heads"], fields["mlp_dim"])
        self.encoder.blocks = nn.ModuleList([one] * fields["depth"])


class BlocksInAList(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        blocks = [Block(fields["dim"], fields["heads"], fields["mlp_dim"]) for _ in range(fields["depth"])]
        del self.encoder.blocks
        self.encoder.blocks = blocks


class EncoderOfOne(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        self.encoder = Encoder(fields["dim"], 1, fields["heads"], fields["mlp_dim"])


def all_eps(eps):
    def change(module):
        for layer in module.modules():
            if isinstance(layer, nn.LayerNorm):
                layer.eps = eps

    return with_start(ViT, change)


CHAPTER_5 = [
    (
        checks.vision_transformer,
        vit(lambda self, x: self.head(encoded(self, x).mean(1))),
        "mean of all tokens",
    ),
    (
        checks.vision_transformer,
        vit(lambda self, x: self.head(encoded(self, x)[:, 1:].mean(1))),
        "mean of the patches",
    ),
    (checks.vision_transformer, vit(lambda self, x: self.head(encoded(self, x)[:, -1])), "the last token"),
    (checks.vision_transformer, vit(lambda self, x: self.head(encoded(self, x)[:, 1])), "the first patch"),
    (
        checks.vision_transformer,
        vit(lambda self, x: self.head(encoded(self, x).sum(1))),
        "the sum of all tokens",
    ),
    (
        checks.vision_transformer,
        vit(lambda self, x: self.head(encoded(self, x).amax(1))),
        "the largest value",
    ),
    (checks.vision_transformer, vit(lambda self, x: self.head(encoded(self, x))), "reads every token"),
    (checks.vision_transformer, vit(lambda self, x: encoded(self, x)[:, 0]), "the head is not called"),
    (
        checks.vision_transformer,
        vit(lambda self, x: self.head(through(self, x, self.encoder.blocks)[:, 0])),
        "final LayerNorm",
    ),
    (
        checks.vision_transformer,
        vit(lambda self, x: logits_of(self, through(self, x, self.encoder.blocks[:1]))),
        "only the first block",
    ),
    (
        checks.vision_transformer,
        vit(lambda self, x: logits_of(self, through(self, x, self.encoder.blocks[:-1]))),
        "last block is left out",
    ),
    (
        checks.vision_transformer,
        vit(lambda self, x: logits_of(self, through(self, x, [self.encoder.blocks[0]] * 3))),
        "one and the same block",
    ),
    (
        checks.vision_transformer,
        vit(lambda self, x: logits_of(self, through(self, x, reversed(self.encoder.blocks)))),
        "in reverse",
    ),
    (
        checks.vision_transformer,
        vit(lambda self, x: logits_of(self, through(self, x, []))),
        "blocks are not called",
    ),
    (
        checks.vision_transformer,
        vit(lambda self, x: self.head(through(self, x, self.encoder.blocks, norm_each=True)[:, 0])),
        "follows every block",
    ),
    (checks.vision_transformer, vit_then(lambda x: x.softmax(-1)), "a softmax follows the head"),
    (checks.vision_transformer, vit_then(lambda x: x.log_softmax(-1)), "a log-softmax follows"),
    (checks.vision_transformer, vit_then(torch.sigmoid), "a sigmoid follows the head"),
    (checks.vision_transformer, vit_then(torch.relu), "a ReLU follows the head"),
    (checks.vision_transformer, vit_then(lambda x: x.argmax(-1)), r"returned torch.int64|returned shape"),
    (checks.vision_transformer, vit_then(torch.Tensor.detach), "no gradient can flow back"),
    (checks.vision_transformer, vit_then(lambda x: x * math.nan), "values are NaN"),
    (
        checks.vision_transformer,
        vit(lambda self, x: self.head(encoded(self, x)[:, 0].tanh())),
        "a tanh comes before the head",
    ),
    (checks.vision_transformer, vit(lambda self, x: ViT.forward(self, x.div_(255))), "changes its input"),
    (
        checks.vision_transformer,
        vit(
            lambda self, x: (
                logits_of(self, through(self, x, self.encoder.blocks) + 0 * self.tokens.position).detach()
                + 0 * self.head.bias.sum()
            )
        ),
        "receives no gradient|gradient of",
    ),
    (checks.vision_transformer, without_grad(ViT), "no gradient can flow back"),
    (checks.vision_transformer, all_eps(1e-5), "eps of LayerNorm is 1e-5"),
    (checks.vision_transformer, OneBlockManyTimes, r"one and the same parameter: `\[layer\] \* L`"),
    (checks.vision_transformer, BlocksInAList, "use nn.ModuleList"),
    (checks.vision_transformer, EncoderOfOne, r"missing +encoder.blocks.1"),
    (
        checks.vision_transformer,
        with_start(ViT, lambda m: nn.init.xavier_uniform_(m.head.weight)),
        "head.weight begins at other values than 0",
    ),
    (checks.vision_transformer, lambda image_size, patch_size: None, "cannot be called as"),
    (
        checks.vision_transformer,
        lambda **fields: model.VisionTransformer(model.ViTConfig(**fields)),
        "the package's own",
    ),
]


# Chapter 7


def pads_alike(images, kernel, stride):
    return F.pad(images, [(kernel - 1) // 2] * 4)


def pads_before(images, kernel, stride):
    return padding_by_formula(images.flip(2, 3), kernel, stride).flip(2, 3)


def pads_with_the_border(images, kernel, stride):
    padded = padding_by_formula(images, kernel, stride)
    rows, columns = (new - old for new, old in zip(padded.shape[2:], images.shape[2:], strict=True))
    amounts = [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2]
    return F.pad(images, amounts, mode="replicate")


def pads_after(images, kernel, stride):
    padded = padding_by_formula(images, kernel, stride)
    return F.pad(images, (0, padded.shape[3] - images.shape[3], 0, padded.shape[2] - images.shape[2]))


def convolution_of(filters, pad=padding_by_formula):
    def forward(self, images):
        return F.conv2d(pad(images, self.kernel, self.stride), filters(self.weight), stride=self.stride)

    return with_forward(Convolution, forward)


def centred(weight):
    return weight - weight.mean(dim=(1, 2, 3), keepdim=True)


def deviation(weight):
    return centred(weight).square().mean(dim=(1, 2, 3), keepdim=True).sqrt()


def standardised(weight):
    return centred(weight) / (deviation(weight) + 1e-5)


def bottleneck(wire):
    def forward(self, features):
        def inner(first=F.relu, second=F.relu, last=lambda x: x):
            z = second(self.norm2(self.conv2(first(self.norm1(self.conv1(features))))))
            return last(self.norm3(self.conv3(z)))

        past = self.shortcut(features)
        return wire(self, inner, past, self.shortcut_norm(past))

    return with_forward(Bottleneck, forward)


def same(x):
    return x


CHAPTER_6 = [
    (checks.same_padding, pads_alike, "pads both sides alike"),
    (checks.same_padding, pads_before, "stand before the image"),
    (checks.same_padding, pads_with_the_border, "repeats the border"),
    (checks.same_padding, pads_after, "all of the padding stands after"),
    (checks.same_padding, lambda images, kernel, stride: images, "does not pad"),
    (
        checks.same_padding,
        lambda images, kernel, stride: padding_by_formula(images, kernel, 1),
        "pads as for stride 1",
    ),
    (
        checks.same_padding,
        lambda images, kernel, stride: F.pad(images, [kernel // 2] * 4),
        "pads both sides alike|kernel // 2",
    ),
    (checks.same_padding, then(padding_by_formula, torch.Tensor.detach), "no gradient"),
    (checks.same_padding, hybrid.same_padding, "the package's own"),
    (checks.standardised_conv, convolution_of(same), "used as they are"),
    (checks.standardised_conv, convolution_of(centred), "not divided by their deviation"),
    (checks.standardised_conv, convolution_of(lambda w: w / (deviation(w) + 1e-5)), "mean of the filters"),
    (
        checks.standardised_conv,
        convolution_of(lambda w: centred(w) / (deviation(w) ** 2 + 1e-5).sqrt()),
        "eps is added to the variance",
    ),
    (
        checks.standardised_conv,
        convolution_of(lambda w: centred(w) / (deviation(w) ** 2 + 1e-5)),
        "divided by the variance",
    ),
    (checks.standardised_conv, convolution_of(lambda w: centred(w) / deviation(w)), "there is no eps"),
    (
        checks.standardised_conv,
        convolution_of(lambda w: centred(w) / (w.std(dim=(1, 2, 3), keepdim=True) + 1e-5)),
        "divides by n - 1",
    ),
    (
        checks.standardised_conv,
        convolution_of(lambda w: (w - w.mean()) / (w.std(unbiased=False) + 1e-5)),
        "one mean and deviation for all",
    ),
    (checks.standardised_conv, convolution_of(standardised, pads_alike), "same on both sides"),
    (checks.standardised_conv, convolution_of(standardised, lambda x, *_: x), "not padded"),
    (
        checks.standardised_conv,
        with_forward(
            Convolution, lambda self, x: F.conv2d(padding_by_formula(x, 3, 1), standardised(self.weight))
        ),
        "the stride is 1",
    ),
    (
        checks.standardised_conv,
        convolution_of(lambda w: standardised(w.detach())),
        "weight receives no gradient",
    ),
    (
        checks.standardised_conv,
        convolution_of(lambda w: centred(w) / (deviation(w).detach() + 1e-5)),
        "gradient of weight is not",
    ),
    (checks.bottleneck, bottleneck(lambda self, inner, past, short: short + inner()), "last ReLU is missing"),
    (
        checks.bottleneck,
        bottleneck(lambda self, inner, past, short: short + F.relu(inner())),
        "last ReLU stands before the sum",
    ),
    (
        checks.bottleneck,
        bottleneck(lambda self, inner, past, short: F.relu(short + inner(last=F.relu))),
        "a ReLU before the sum as well",
    ),
    (checks.bottleneck, bottleneck(lambda self, inner, past, short: F.relu(inner())), "input is not added"),
    (
        checks.bottleneck,
        bottleneck(lambda self, inner, past, short: F.relu(past + inner())),
        "norm of the shortcut is missing",
    ),
    (
        checks.bottleneck,
        bottleneck(lambda self, inner, past, short: F.relu(short + inner(first=same))),
        "first ReLU is missing",
    ),
    (
        checks.bottleneck,
        bottleneck(lambda self, inner, past, short: F.relu(short + inner(second=same))),
        "second ReLU is missing",
    ),
    (
        checks.bottleneck,
        bottleneck(lambda self, inner, past, short: F.gelu(short + inner())),
        "a GELU stands in place",
    ),
    (checks.bottleneck, without_grad(Bottleneck), "no gradient can flow back"),
]

WRONG = [*ANYTHING, *CHAPTER_1, *CHAPTER_2, *CHAPTER_3, *CHAPTER_4, *CHAPTER_5, *CHAPTER_6]
"""All of them: a check, the wrong answer, and a pattern of what is said about it."""
