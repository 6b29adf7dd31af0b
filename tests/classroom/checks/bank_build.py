"""Right and wrong answers to the exercises of Part I, and to chapter 4's encoder."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from right_answers import Block, BlockOfThePackagesPieces, Encoder, Mlp, ViT, attention_by_einsum
from torch import nn
from wrong_answers import then, with_forward, with_start

from vit_classroom import checks
from vit_from_scratch import model
from vit_from_scratch.model.cost import count_parameters, forward_flops, parameters_of

# Chapter 1: overlapping patches


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


OVERLAPPING = [
    (overlapping_in_order("b (gh gw) (c p1 p2)"), "channels come first"),
    (overlapping_in_order("b (gw gh) (p1 p2 c)"), "column by column"),
    (overlapping_in_order("b (gh gw) (p2 p1 c)"), "columns run before rows"),
    (lambda images, size, stride: F.unfold(images, size, stride=stride).mT, "channels come first"),
    (lambda images, size, stride: F.unfold(images, size, stride=stride), "F.unfold puts channels first"),
    (then(overlapping_by_views, lambda x: x.mT), "last two axes are swapped"),
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
]

# Chapter 2: positions of a grid


class GridPosition(nn.Module):
    def __init__(self, rows, columns, dim):
        super().__init__()
        self.row = nn.Parameter(0.02 * torch.randn(rows, dim))
        self.column = nn.Parameter(0.02 * torch.randn(columns, dim))

    def forward(self):
        return (self.row[:, None] + self.column[None]).flatten(0, 1)[None]


class GridPositionByRepeating(GridPosition):
    def __init__(self, rows, columns, dim):
        super().__init__(rows, columns, dim)
        for table in (self.row, self.column):
            nn.init.trunc_normal_(table, std=0.02)

    def forward(self):
        rows, columns = len(self.row), len(self.column)
        return (self.row.repeat_interleave(columns, dim=0) + self.column.repeat(rows, 1)).unsqueeze(0)


class GridPositionInLoops(GridPosition):
    def forward(self):
        return torch.stack([row + column for row in self.row for column in self.column])[None]


class GridPositionByIndex(GridPosition):
    def forward(self):
        places = torch.arange(len(self.row) * len(self.column))
        width = len(self.column)
        return F.embedding(places // width, self.row)[None] + F.embedding(places % width, self.column)[None]


def grid(forward):
    return with_forward(GridPosition, forward)


class GridOfFullTables(GridPosition):
    def __init__(self, rows, columns, dim):
        nn.Module.__init__(self)
        self.position = nn.Parameter(0.02 * torch.randn(1, rows * columns, dim))


class GridOfPlainTensors(GridPosition):
    def __init__(self, rows, columns, dim):
        nn.Module.__init__(self)
        self.row, self.column = 0.02 * torch.randn(rows, dim), 0.02 * torch.randn(columns, dim)


def joined(self):
    rows, columns = len(self.row), len(self.column)
    both = [self.row[:, None].expand(-1, columns, -1), self.column.expand(rows, -1, -1)]
    return torch.cat(both, dim=-1).flatten(0, 1)[None]


GRID = [
    (grid(lambda self: (self.column[:, None] + self.row).flatten(0, 1)[None]), "column by column"),
    (grid(lambda self: (self.row[:, None] + 0 * self.column).flatten(0, 1)[None]), "only their row's vector"),
    (grid(lambda self: (0 * self.row[:, None] + self.column).flatten(0, 1)[None]), "only their column's"),
    (grid(joined), "joined side by side"),
    (grid(lambda self: (self.row[:, None] * self.column).flatten(0, 1)[None]), "are multiplied"),
    (grid(lambda self: (self.row[:, None] + self.column).flatten(0, 1)[None] / 2), "are averaged"),
    (grid(lambda self: self.row[:, None] + self.column), "is not flattened"),
    (grid(lambda self: (self.row[:, None] + self.column)[None]), "is not flattened.*N in place of"),
    (grid(lambda self: (self.row[:, None] + self.column).flatten(0, 1)), "first axis is missing"),
    (grid(lambda self: (self.row + self.column).flatten()[None]), "stopped with RuntimeError"),
    (GridOfFullTables, r"missing +row \(12, 256\)(.|\n)*unexpected position"),
    (GridOfPlainTensors, "row is a plain tensor"),
    (with_start(GridPosition, lambda m: nn.init.zeros_(m.row)), "row begins as nothing but zeros"),
    (with_start(GridPosition, lambda m: nn.init.normal_(m.column)), "column begins with a deviation"),
    (
        grid(lambda self: (self.row.data[:, None] + self.column).flatten(0, 1)[None]),
        "row receives no gradient",
    ),
]

# Chapter 2: a class token or none


class SequenceWithOption(nn.Module):
    def __init__(self, num_patches, dim, class_token=True):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim)) if class_token else None
        self.position = nn.Parameter(0.02 * torch.randn(1, num_patches + class_token, dim))

    def forward(self, z):
        if self.class_token is not None:
            z = torch.cat([self.class_token.expand(len(z), -1, -1), z], dim=1)
        return z + self.position


class SequenceOfAList(nn.Module):
    def __init__(self, num_patches, dim, class_token):
        super().__init__()
        self.wanted = class_token
        if class_token:
            self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(torch.empty(1, num_patches + int(class_token), dim).normal_(std=0.02))

    def forward(self, embeddings):
        first = [self.class_token.repeat(len(embeddings), 1, 1)] if self.wanted else []
        return torch.cat([*first, embeddings], dim=1).add(self.position)


class SequenceWithAnEmptyToken(nn.Module):
    def __init__(self, num_patches, dim, class_token):
        super().__init__()
        self.register_parameter("class_token", nn.Parameter(torch.zeros(1, 1, dim)) if class_token else None)
        self.position = nn.Parameter(0.02 * torch.randn(1, num_patches + class_token, dim))

    def forward(self, embeddings):
        count = self.position.shape[1] - embeddings.shape[1]
        z = F.pad(embeddings, (0, 0, count, 0))
        if count:
            z = z + F.pad(self.class_token, (0, 0, 0, embeddings.shape[1]))
        return self.position + z


def option(forward):
    return with_forward(SequenceWithOption, forward)


class AlwaysAToken(SequenceWithOption):
    def __init__(self, num_patches, dim, class_token):
        super().__init__(num_patches, dim, True)


class OneRowTooMany(SequenceWithOption):
    def __init__(self, num_patches, dim, class_token):
        super().__init__(num_patches, dim, class_token)
        self.position = nn.Parameter(0.02 * torch.randn(1, num_patches + 1, dim))


class SkipsPlaceZero(SequenceWithOption):
    def forward(self, z):
        result = super().forward(z)
        return result if self.class_token is not None else result[:, 1:]


class KeepsAnEmptyPlace(SequenceWithOption):
    def forward(self, z):
        result = super().forward(z)
        return result if self.class_token is not None else F.pad(result, (0, 0, 1, 0))


class FirstPatchWithoutPosition(SequenceWithOption):
    def forward(self, z):
        result = super().forward(z)
        return result if self.class_token is not None else torch.cat([z[:, :1], result[:, 1:]], dim=1)


class AveragesAtOnce(SequenceWithOption):
    def forward(self, z):
        result = super().forward(z)
        return result if self.class_token is not None else result.mean(1)


class NoPositionsWithoutAToken(SequenceWithOption):
    def forward(self, z):
        return super().forward(z) if self.class_token is not None else z


class TokenLast(SequenceWithOption):
    def forward(self, z):
        if self.class_token is not None:
            z = torch.cat([z, self.class_token.expand(len(z), -1, -1)], dim=1)
        return z + self.position


class UsesATokenThatIsNotThere(SequenceWithOption):
    def forward(self, z):
        return torch.cat([self.class_token.expand(len(z), -1, -1), z], dim=1) + self.position


FALSE = r"class_token=False\): "
OPTION = [
    (AlwaysAToken, FALSE + r"it has other parameters(.|\n)*unexpected class_token"),
    (OneRowTooMany, FALSE + r"it has other parameters(.|\n)*position has shape \(1, 26, 128\)"),
    (SkipsPlaceZero, FALSE + "the first patch is lost"),
    (KeepsAnEmptyPlace, FALSE + "a token of zeros still stands in front"),
    (FirstPatchWithoutPosition, FALSE + "the first patch gets no position"),
    (AveragesAtOnce, FALSE + "the tokens are averaged"),
    (NoPositionsWithoutAToken, FALSE + "the positions are not added"),
    (UsesATokenThatIsNotThere, FALSE + "it stopped with AttributeError"),
    (TokenLast, "TokenSequenceWithOption: the class token stands last"),
    (option(lambda self, z: z), "TokenSequenceWithOption: "),
    (SequenceWithOption(25, 32), "hand in the class itself, as `TokenSequenceWithOption`"),
]

# Chapter 3: attention with padding, and one key at a time


def masked_by_filling(q, k, v, real):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(~real[:, None, None], -math.inf).softmax(dim=-1) @ v


def masked_by_torch(q, k, v, real):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=real[:, None, None, :])


def masked_image_by_image(q, k, v, real):
    return torch.stack(
        [
            attention_by_einsum(q[i], k[i][:, real[i]], v[i][:, real[i]])  # padding is cut away
            for i in range(len(q))
        ]
    )


def masked_by_renormalising(q, k, v, real):
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) * real[:, None, None, :]
    return weights / weights.sum(-1, keepdim=True) @ v


def masked_by_adding(q, k, v, real):
    bias = torch.zeros(real.shape).masked_fill(~real, -1e9)
    return (q @ k.mT * q.shape[-1] ** -0.5 + bias[:, None, None, :]).softmax(-1) @ v


def masking(change):
    def attention(q, k, v, real):
        return change(q @ k.mT / math.sqrt(q.shape[-1]), real[:, None, None, :], v)

    return attention


def on_queries(value):
    def attention(q, k, v, real):
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        return scores.masked_fill(~real[:, None, :, None], value).softmax(-1) @ v

    return attention


def on_both(q, k, v, real):
    pairs = real[:, None, :, None] & real[:, None, None, :]
    return (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~pairs, -math.inf).softmax(-1) @ v


MASKED = [
    (lambda q, k, v, real: attention_by_einsum(q, k, v), "the mask is not used"),
    (masking(lambda s, real, v: s.masked_fill(real, -math.inf).softmax(-1) @ v), "upside down"),
    (masking(lambda s, real, v: (s.softmax(-1) * real) @ v), "taken away after the softmax"),
    (lambda q, k, v, real: attention_by_einsum(q, k, v * real[:, None, :, None]), "taken away after the sof"),
    (masking(lambda s, real, v: (s * real).softmax(-1) @ v), r"exp\(0\) = 1 a share"),
    (lambda q, k, v, real: attention_by_einsum(q, k * real[:, None, :, None], v), r"exp\(0\) = 1 a share"),
    (masking(lambda s, real, v: (s + real).softmax(-1) @ v), "the mask is added to the scores as 0 and 1"),
    (on_queries(-1e9), "the mask falls on the queries"),
    (on_queries(-math.inf), "the mask falls on the queries.*nothing but -inf"),
    (on_both, "falls on queries and keys"),
    (
        lambda q, k, v, real: masked_by_filling(q, k, v, real) * real[:, None, :, None],
        "padding's own rows are set to 0",
    ),
    (
        lambda q, k, v, real: (q @ k.mT).masked_fill(~real[:, None, None], -math.inf).softmax(-1) @ v,
        r"not divided by sqrt\(Dh\)",
    ),
    (
        masking(lambda s, real, v: s.masked_fill(~real, -math.inf).softmax(-2).nan_to_num() @ v),
        "over the quer",
    ),
    (
        lambda q, k, v, real: (q @ k.mT).masked_fill(~real, -math.inf).softmax(-1) @ v,
        "stopped with RuntimeError",
    ),
    (lambda q, k, v: v, r"cannot be called as masked_attention\(q, k, v, real\)"),
    (lambda q, k, v, real: model.attention.explicit_attention(q, k, v), "the package's own"),
]


def streamed(q, k, v):
    scale = q.shape[-1] ** -0.5
    highest = torch.full((*q.shape[:-1], 1), -math.inf)
    total, gathered = torch.zeros_like(highest), torch.zeros_like(q)
    for j in range(k.shape[-2]):
        score = (q * k[..., j : j + 1, :]).sum(-1, keepdim=True) * scale
        higher = torch.maximum(highest, score)
        shrink, share = torch.exp(highest - higher), torch.exp(score - higher)
        total = total * shrink + share
        gathered = gathered * shrink + share * v[..., j : j + 1, :]
        highest = higher
    return gathered / total


def streamed_from_the_first(q, k, v):
    def score(j):
        return torch.einsum("...id,...d->...i", q, k[..., j, :]) / math.sqrt(q.shape[-1])

    mean, log_total = v[..., :1, :].expand_as(q), score(0)
    for j in range(1, k.shape[-2]):
        new_total = torch.logaddexp(log_total, score(j))
        mean = torch.lerp(mean, v[..., j : j + 1, :], (score(j) - new_total).exp()[..., None])
        log_total = new_total
    return mean


def streamed_query_by_query(q, k, v):
    rows = []
    for i in range(q.shape[-2]):
        scores = [(q[..., i, :] * k[..., j, :]).sum(-1) / math.sqrt(q.shape[-1]) for j in range(k.shape[-2])]
        highest = torch.stack(scores).amax(0)
        shares = [(score - highest).exp() for score in scores]
        rows.append(
            sum(share[..., None] * v[..., j, :] for j, share in enumerate(shares)) / sum(shares)[..., None]
        )
    return torch.stack(rows, dim=-2)


def streaming(
    shrink_total=True, shrink_gathered=True, start=-math.inf, divide=True, scaled=True, over=False, first=0
):
    def attention(q, k, v):
        highest = torch.full((*q.shape[:-1], 1), start)
        total, gathered = torch.zeros_like(highest), torch.zeros_like(q)
        for j in range(first, k.shape[-2]):
            score = (q * k[..., j : j + 1, :]).sum(-1, keepdim=True)
            score = score / math.sqrt(q.shape[-1]) if scaled else score
            higher = torch.maximum(highest, score)
            shrink, share = torch.exp(highest - higher), torch.exp(score - higher)
            shrink = 1 / shrink if over and j else shrink
            total = total * (shrink if shrink_total else 1) + share
            gathered = gathered * (shrink if shrink_gathered else 1) + share * v[..., j : j + 1, :]
            highest = higher
        return gathered / total if divide else gathered

    return attention


def streamed_without_maximum(q, k, v):
    total, gathered = 0, 0
    for j in range(k.shape[-2]):
        share = ((q * k[..., j : j + 1, :]).sum(-1, keepdim=True) / math.sqrt(q.shape[-1])).exp()
        total, gathered = total + share, gathered + share * v[..., j : j + 1, :]
    return gathered / total


STREAMED = [
    (
        streaming(shrink_total=False, shrink_gathered=False),
        "is not rescaled when a larger score arrives: mul",
    ),
    (streaming(shrink_total=False), "the sum of weights is not rescaled"),
    (streaming(shrink_gathered=False), "the gathered values are not rescaled"),
    (streaming(over=True), "upside down"),
    (streaming(start=0.0), "running maximum begins at 0"),
    (streaming(divide=False), "are not divided by the sum"),
    (streaming(scaled=False), r"not divided by sqrt\(Dh\)"),
    (streaming(first=1), "the first key is left out"),
    (streamed_without_maximum, "no maximum is taken off before exp"),
    (lambda q, k, v: streamed(q, k[..., :-1, :], v[..., :-1, :]), "the last key is left out"),
    (lambda q, k, v: v.mean(-2, keepdim=True).expand_as(v), "averaged without weights"),
    (lambda q, k, v: attention_by_einsum(q, k, v).detach(), "no gradient can flow back"),
    (model.attention.explicit_attention, "the package's own"),
]

# Chapter 4: the encoder, and LayerNorm by hand


class EncoderAsSequence(nn.Module):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__()
        self.blocks = nn.Sequential(*(Block(dim, heads, mlp_dim) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, z):
        return self.norm(self.blocks(z))


class EncoderOfBlocksThatReturnPairs(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__(dim, depth, heads, mlp_dim)
        self.blocks = nn.ModuleList([BlockOfThePackagesPieces(dim, heads, mlp_dim) for _ in range(depth)])

    def forward(self, z):
        for block in self.blocks:
            z, _ = block(z)
        return self.norm(z)


class EncoderWithNormByHand(Encoder):
    def forward(self, z):
        for layer in range(len(self.blocks)):
            z = self.blocks[layer](z)
        variance, mean = torch.var_mean(z, dim=-1, keepdim=True, correction=0)
        return torch.addcmul(self.norm.bias, (z - mean) * torch.rsqrt(variance + 1e-6), self.norm.weight)


def encoder(forward):
    return with_forward(Encoder, forward)


def run(blocks, z):
    for block in blocks:
        z = block(z)
    return z


def every_block_reads_z0(self, z):
    for block in self.blocks:
        out = block(z)
    return self.norm(out)


def norm_after_each(self, z):
    for block in self.blocks:
        z = self.norm(block(z))
    return z


def adds_again(self, z):
    for block in self.blocks:
        z = z + block(z)
    return self.norm(z)


def returns_inside_the_loop(self, z):
    for block in self.blocks:
        z = block(z)
        return self.norm(z)


class EncoderOfAPythonList(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        nn.Module.__init__(self)
        self.blocks = [Block(dim, heads, mlp_dim) for _ in range(depth)]
        self.norm = nn.LayerNorm(dim, eps=1e-6)


class EncoderOfOneBlock(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__(dim, depth, heads, mlp_dim)
        self.blocks = nn.ModuleList([Block(dim, heads, mlp_dim)] * depth)


class EncoderOfAnotherDepth(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__(dim, heads, depth, mlp_dim)


class EncoderWithoutNorm(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__(dim, depth, heads, mlp_dim)
        del self.norm

    def forward(self, z):
        return run(self.blocks, z)


def default_eps(module):
    module.norm.eps = 1e-5


def default_eps_everywhere(module):
    for layer in module.modules():
        if isinstance(layer, nn.LayerNorm):
            layer.eps = 1e-5


def package_sizes(dim, depth, heads, mlp_dim):
    return model.ViTConfig(4, 2, dim=dim, depth=depth, heads=heads, mlp_dim=mlp_dim)


ENCODER = [
    (encoder(lambda self, z: run(self.blocks, z)), "last norm is missing, or never called"),
    (encoder(norm_after_each), "the last norm follows every block; it comes once"),
    (encoder(lambda self, z: self.norm(norm_after_each(self, z))), "and once more the last of them"),
    (encoder(lambda self, z: run(self.blocks, self.norm(z))), "norm comes before the blocks; it belongs"),
    (encoder(lambda self, z: self.norm(run(self.blocks, self.norm(z)))), "before the blocks as well"),
    (encoder(returns_inside_the_loop), "only the first block is called"),
    (encoder(lambda self, z: self.norm(run(self.blocks[:-1], z))), "the last block is left out"),
    (encoder(lambda self, z: self.norm(run(self.blocks[1:], z))), "the first block is left out"),
    (encoder(lambda self, z: self.norm(run([self.blocks[0]] * 3, z))), "one and the same block is called L"),
    (encoder(lambda self, z: self.norm(run(reversed(self.blocks), z))), "called in reverse"),
    (encoder(lambda self, z: self.norm(z)), "the blocks are not called"),
    (encoder(every_block_reads_z0), "every block reads z_0"),
    (encoder(adds_again), "residual is added by the encoder as well"),
    (encoder(lambda self, z: self.norm(z + run(self.blocks, z))), "input is added at the end"),
    (encoder(lambda self, z: z + self.norm(run(self.blocks, z))), "input is added after the norm"),
    (encoder(lambda self, z: self.norm(run(self.blocks, z))[:, 0]), "returns the class token alone"),
    (encoder(lambda self, z: self.norm(run(self.blocks, z)).mean(1)), "returns the mean of the tokens"),
    (encoder(lambda self, z: self.norm(run(self.blocks, z)).detach()), "no gradient can flow back"),
    (with_start(Encoder, default_eps), "Encoder: the eps of the last norm is 1e-5"),
    (with_start(Encoder, default_eps_everywhere), "in all norms the eps of LayerNorm is 1e-5"),
    (EncoderOfAPythonList, "use nn.ModuleList"),
    (EncoderOfOneBlock, "are one and the same parameter"),
    (EncoderOfAnotherDepth, "it has other parameters"),
    (EncoderWithoutNorm, r"missing +norm.weight \(12,\)"),
    (lambda d, depth, h, m: model.Encoder(package_sizes(d, depth, h, m)), "the package's own"),
]


def norm_by_moments(x, weight, bias, eps):
    mean, square = x.mean(-1, keepdim=True), (x - x.mean(-1, keepdim=True)).square().mean(-1, keepdim=True)
    return (x - mean) / (square + eps).sqrt() * weight + bias


def norm_by_var_mean(x, weight, bias, eps):
    variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)


def norm_by_sums(x, weight, bias, eps):
    width = x.shape[-1]
    centred = x - (x.sum(-1) / width).unsqueeze(-1)
    variance = torch.einsum("...d,...d->...", centred, centred) / width
    return weight * (centred / (variance + eps).pow(0.5)[..., None]) + bias


def norm_of_torch(x, weight, bias, eps):
    layer = nn.LayerNorm(x.shape[-1], eps=eps, elementwise_affine=False)
    return layer(x) * weight + bias


def norm(change):
    def layer_norm(x, weight, bias, eps):
        centred = x - x.mean(-1, keepdim=True)
        return change(x, centred, centred.square().mean(-1, keepdim=True), eps) * weight + bias

    return layer_norm


def norm_over(*axes):
    def layer_norm(x, weight, bias, eps):
        centred = x - x.mean(axes, keepdim=True)
        return centred / (centred.square().mean(axes, keepdim=True) + eps).sqrt() * weight + bias

    return layer_norm


NORM = [
    (norm(lambda x, c, v, eps: c / (x.var(-1, keepdim=True) + eps).sqrt()), "divides by D - 1; take"),
    (norm(lambda x, c, v, eps: c / (x.std(-1, keepdim=True) + eps)), "outside of the root, and the variance"),
    (norm(lambda x, c, v, eps: c / (v.sqrt() + eps)), "eps stands outside of the root; it belongs"),
    (norm(lambda x, c, v, eps: c / v.sqrt()), "eps is missing"),
    (norm(lambda x, c, v, eps: c / (v + eps)), "the root is missing"),
    (norm(lambda x, c, v, eps: x / (x.square().mean(-1, keepdim=True) + eps).sqrt()), "RMSNorm"),
    (norm(lambda x, c, v, eps: c), "nothing divides"),
    (norm(lambda x, c, v, eps: x / (v + eps).sqrt()), "mean is not taken off before the deviation"),
    (norm_over(0), "over the first axis"),
    (norm_over(-2), "over the tokens"),
    (lambda x, w, b, eps: norm_over(*range(x.ndim))(x, w, b, eps), "over all values"),
    (lambda x, w, b, eps: norm_by_sums(x, 1, 0, eps), "weight and bias are not used"),
    (lambda x, w, b, eps: norm_by_sums(x, w, 0, eps), "the bias is not added"),
    (lambda x, w, b, eps: norm_by_sums(x, 1, b, eps), "the weight is not used"),
    (lambda x, w, b, eps: norm_by_sums(x, b, w, eps), "weight and bias have changed places"),
    (lambda x, w, b, eps: (norm_by_sums(x, 1, 0, eps) + b) * w, "before the weight multiplies"),
    (lambda x, w, b, eps: norm_by_sums(x, 1 + w, b, eps), "added to 1"),
    (lambda x, w, b, eps: norm_by_sums(x.detach(), w, b, eps), "input 1 receives no gradient"),
    (
        lambda x, w, b, eps: norm_by_sums(x - x.mean(-1, keepdim=True).data, w, b, 0),
        "eps is missing|gradient",
    ),
]


class DroppingBlock(Block):
    def __init__(self, dim, heads, mlp_dim, dropout=0.1):
        super().__init__(dim, heads, mlp_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, z):
        z = z + self.dropout(self.attention(self.attention_norm(z)))
        hidden = self.dropout(F.gelu(self.mlp.hidden(self.mlp_norm(z))))
        return z + self.dropout(self.mlp.output(hidden))


class DroppingMlp(Mlp):
    def __init__(self, dim, mlp_dim, dropout):
        super().__init__(dim, mlp_dim)
        self.drop_hidden, self.drop_output = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, tokens):
        return self.drop_output(self.output(self.drop_hidden(F.gelu(self.hidden(tokens)))))


class BlockWithADroppingMlp(Block):
    def __init__(self, dim, heads, mlp_dim, dropout=0.1):
        super().__init__(dim, heads, mlp_dim)
        self.mlp, self.after = DroppingMlp(dim, mlp_dim, dropout), nn.Dropout(dropout)

    def forward(self, z):
        z = z + self.after(self.attention(self.attention_norm(z)))
        return z + self.mlp(self.mlp_norm(z)), None


class BlockThatDropsByFunction(DroppingBlock):
    def __init__(self, dim, heads, mlp_dim, dropout=0.1):
        super().__init__(dim, heads, mlp_dim, 0.0)
        self.share = dropout

    def forward(self, z):
        def drop(x):
            return F.dropout(x, self.share, training=self.training)

        z = z + drop(self.attention(self.attention_norm(z)))
        return z + drop(self.mlp.output(drop(F.gelu(self.mlp.hidden(self.mlp_norm(z))))))


class BlockWithMasks(BlockThatDropsByFunction):
    def dropped(self, x):
        if not self.training:
            return x
        return x * (torch.rand_like(x) >= self.share) / (1 - self.share)

    def forward(self, z):
        z = z + self.dropped(self.attention(self.attention_norm(z)))
        return z + self.dropped(self.mlp.output(self.dropped(F.gelu(self.mlp.hidden(self.mlp_norm(z))))))


class BlockOfThePackage(model.Block):
    def __init__(self, dim, heads, mlp_dim, dropout=0.1):
        super().__init__(model.ViTConfig(4, 2, dim=dim, heads=heads, mlp_dim=mlp_dim, dropout=dropout))


def dropping(attended=True, hidden=True, output=True, share=lambda p: p):
    class Dropping(DroppingBlock):
        def __init__(self, dim, heads, mlp_dim, dropout=0.1):
            super().__init__(dim, heads, mlp_dim, share(dropout))

        def forward(self, z):
            a = self.attention(self.attention_norm(z))
            z = z + (self.dropout(a) if attended else a)
            h = F.gelu(self.mlp.hidden(self.mlp_norm(z)))
            o = self.mlp.output(self.dropout(h) if hidden else h)
            return z + (self.dropout(o) if output else o)

    return Dropping


class DropsTheStream(DroppingBlock):
    def forward(self, z):
        z = self.dropout(z + self.attention(self.attention_norm(z)))
        return self.dropout(z + self.mlp(self.mlp_norm(z)))


class DropsTheNormalised(DroppingBlock):
    def forward(self, z):
        z = z + self.attention(self.dropout(self.attention_norm(z)))
        return z + self.mlp(self.dropout(self.mlp_norm(z)))


class DropsForEver(DroppingBlock):
    def forward(self, z):
        return z + F.dropout(self.mlp(self.mlp_norm(z + self.attention(self.attention_norm(z)))), 0.5)


class DropsByPostNorm(DroppingBlock):
    def forward(self, z):
        z = self.attention_norm(z + self.dropout(self.attention(z)))
        return self.mlp_norm(z + self.dropout(self.mlp(z)))


DROPOUT = [
    (dropping(attended=False), "the attention's result is not dropped"),
    (dropping(output=False), "the MLP's result is not dropped"),
    (dropping(hidden=False), "the values after the GELU are not dropped"),
    (dropping(hidden=False, output=False), "nothing is dropped in the MLP"),
    (dropping(attended=False, output=False), "the attention's result is not dropped, and the MLP's"),
    (dropping(False, False, False), "nothing is dropped in training"),
    (dropping(share=lambda p: min(p, 0.1) if p < 0.9 else p), "does the argument arrive"),
    (BlockOfThePackage, "the package's own"),
    (DropsTheStream, "the stream itself is dropped"),
    (DropsTheNormalised, "the normalised tokens are dropped"),
    (DropsForEver, "two calls in evaluation differ|the values are not"),
    (DropsByPostNorm, "norms come after the additions"),
    (Block, "cannot be called as BlockWithDropout"),
]

# Chapter 5: counting, and the mean


def parameters_by_formula(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    tokens = (image_size // patch_size) ** 2 + 1
    block = 4 * dim * dim + 2 * dim * mlp_dim + 9 * dim + mlp_dim
    embedding = patch_size**2 * channels * dim + dim
    return embedding + dim + tokens * dim + depth * block + 2 * dim + dim * num_classes + num_classes


def parameters_of_layers(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    """Builds the layers and counts."""

    def count(*layers):
        return sum(p.numel() for layer in layers for p in layer.parameters())

    norm = nn.LayerNorm(dim)
    block = count(nn.MultiheadAttention(dim, 1), norm, norm)
    block += count(nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim))
    positions = ((image_size // patch_size) ** 2 + 1) * dim
    ends = count(nn.Conv2d(channels, dim, patch_size), norm, nn.Linear(dim, num_classes))
    return float(ends + positions + dim + depth * block)


def parameters_of_shapes(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    grid = image_size // patch_size
    once = [(dim, patch_size, patch_size, channels), (dim,), (dim,), (grid * grid + 1, dim), (2, dim)]
    once += [(num_classes, dim + 1)]
    each = [(2, dim), (3, dim, dim + 1), (dim, dim + 1), (2, dim), (mlp_dim, dim + 1), (dim, mlp_dim + 1)]
    return np.int64(sum(np.prod(s) for s in once) + depth * sum(np.prod(s) for s in each))


def counted(extra):
    """Return a count that is off by `extra` of N, P, C, D, L, M and K."""

    def predicted(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
        sizes = (image_size, patch_size, channels, dim, depth, mlp_dim, num_classes)
        patches = (image_size // patch_size) ** 2
        return parameters_by_formula(*sizes) + extra(
            patches, patch_size, channels, dim, depth, mlp_dim, num_classes
        )

    return predicted


def prints_the_count(*sizes):
    print(parameters_by_formula(*sizes))


def of_the_package(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    sizes = dict(zip(("channels", "dim", "depth", "mlp_dim"), (channels, dim, depth, mlp_dim), strict=True))
    return parameters_of(model.ViTConfig(image_size, patch_size, num_classes=num_classes, heads=1, **sizes))


def counted_by_the_package(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    return count_parameters(nn.Linear(dim, num_classes))


PARAMETERS = [
    (
        counted(lambda n, p, c, d, depth, m, k: -d),
        "the class token is missing.*class token's position is missing",
    ),
    (counted(lambda n, p, c, d, depth, m, k: -2 * d), "the final LayerNorm is missing"),
    (counted(lambda n, p, c, d, depth, m, k: -(n + 1) * d), "the positions are missing"),
    (counted(lambda n, p, c, d, depth, m, k: -4 * d * depth), "two LayerNorms of each block"),
    (counted(lambda n, p, c, d, depth, m, k: -4 * d * depth - 2 * d), "no LayerNorm is counted"),
    (counted(lambda n, p, c, d, depth, m, k: -2 * d * depth - d), r"LayerNorm has D numbers here"),
    (counted(lambda n, p, c, d, depth, m, k: -3 * d * depth), "qkv has no bias"),
    (counted(lambda n, p, c, d, depth, m, k: -(d + m) * depth), "MLP's layers have no bias"),
    (counted(lambda n, p, c, d, depth, m, k: -(d + (5 * d + m) * depth + k)), "no dense layer has a bias"),
    (counted(lambda n, p, c, d, depth, m, k: -k), "the head has no bias"),
    (counted(lambda n, p, c, d, depth, m, k: -2 * d * (d + 1) * depth), "are one matrix of D x D"),
    (counted(lambda n, p, c, d, depth, m, k: -d * (d + 1) * depth), "output projection of the attention"),
    (counted(lambda n, p, c, d, depth, m, k: -(m + 1) * d * depth), "MLP has one layer here"),
    (counted(lambda n, p, c, d, depth, m, k: -(c - 1) * p * p * d), "one channel here"),
    (
        lambda size, patch, c, d, depth, m, k: parameters_by_formula(size, patch, c, d, 1, m, k),
        "one block only: multiply by the depth",
    ),
    (counted(lambda n, p, c, d, depth, m, k: 17), r"it returned [\d,]+: expected [\d,]+\."),
    (prints_the_count, "it prints its result and returns None"),
    (of_the_package, "the package's own"),
    (counted_by_the_package, "the package's own"),
    (lambda image_size: 3, "cannot be called as predicted_parameters"),
    (12, "it got a int"),
]


def operations_by_formula(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    patches = (image_size // patch_size) ** 2
    tokens = patches + 1
    block = tokens * dim * (4 * dim + 2 * mlp_dim + 2 * tokens)
    return 2 * (patches * patch_size**2 * channels * dim + depth * block + dim * num_classes)


def operations_of_products(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    def product(rows, inner, columns):
        return 2.0 * rows * inner * columns

    tokens = 1 + (image_size // patch_size) ** 2
    total = product(tokens - 1, channels * patch_size * patch_size, dim) + product(1, dim, num_classes)
    for _ in range(depth):
        total += 3 * product(tokens, dim, dim) + product(tokens, dim, tokens) + product(tokens, tokens, dim)
        total += product(tokens, dim, dim) + product(tokens, dim, mlp_dim) + product(tokens, mlp_dim, dim)
    return total


def operations_of_tensors(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    patches = torch.tensor(image_size // patch_size) ** 2
    tokens = patches + 1
    shapes = torch.tensor([3 * dim * dim, dim * dim, dim * mlp_dim, dim * mlp_dim])
    block = (tokens * shapes).sum() + 2 * dim * tokens**2
    return 2 * (patches * dim * channels * patch_size**2 + depth * block + dim * num_classes)


def operations(change):
    """Return a count that is off by `change` of N, T, P P C, D, L, M and K, in multiply-adds."""

    def predicted(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
        sizes = (image_size, patch_size, channels, dim, depth, mlp_dim, num_classes)
        n = (image_size // patch_size) ** 2
        off = change(n, n + 1, patch_size**2 * channels, dim, depth, mlp_dim, num_classes)
        return operations_by_formula(*sizes) + 2 * off

    return predicted


def operations_without_class_token(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    n = (image_size // patch_size) ** 2
    block = n * dim * (4 * dim + 2 * mlp_dim + 2 * n)
    return 2 * (n * patch_size**2 * channels * dim + depth * block + dim * num_classes)


def operations_of_the_package(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    sizes = dict(zip(("channels", "dim", "depth", "mlp_dim"), (channels, dim, depth, mlp_dim), strict=True))
    return forward_flops(model.ViTConfig(image_size, patch_size, num_classes=num_classes, heads=1, **sizes))


OPERATIONS = [
    (operations_without_class_token, "class token is missing: T = N"),
    (then(operations_by_formula, lambda x: x // 2), "a multiply-add counts once"),
    (then(operations_by_formula, lambda x: 2 * x), "here they count twice"),
    (operations(lambda n, t, v, d, depth, m, k: v * d), "class token is cut and embedded"),
    (operations(lambda n, t, v, d, depth, m, k: -2 * t * t * d * depth), "both products with the T x T"),
    (
        operations(lambda n, t, v, d, depth, m, k: -t * t * d * depth),
        "one of the two products with the T x T",
    ),
    (operations(lambda n, t, v, d, depth, m, k: -2 * t * d * d * depth), "are one product with D x D"),
    (operations(lambda n, t, v, d, depth, m, k: -t * d * d * depth), "the output projection"),
    (operations(lambda n, t, v, d, depth, m, k: -t * d * m * depth), "the MLP has one product here"),
    (operations(lambda n, t, v, d, depth, m, k: (t - 1) * d * k), "the head reads every token"),
    (operations(lambda n, t, v, d, depth, m, k: -d * k), "the head is missing"),
    (operations(lambda n, t, v, d, depth, m, k: -n * v * d), "the patch embedding is missing"),
    (
        operations(
            lambda n, t, v, d, depth, m, k: (1 - depth) * t * d * (4 * d + 2 * m + 2 * t),
        ),
        "one block only",
    ),
    (operations(lambda n, t, v, d, depth, m, k: 1), r"it returned [\d,]+: expected [\d,]+"),
    (operations_of_the_package, "the package's own"),
]


def features(self, images):
    return self.encoder(self.tokens(self.patch_embedding(images)))


class MeanViT(ViT):
    def forward(self, images):
        return self.head(features(self, images)[:, 1:].mean(dim=1))


class MeanOfAnswers(ViT):
    def forward(self, images):
        return self.head(features(self, images))[:, 1:].mean(dim=1)


class MeanBySubtraction(ViT):
    def forward(self, images):
        encoded = features(self, images)
        return self.head((encoded.sum(1) - encoded[:, 0]) / (encoded.shape[1] - 1))


class MeanByPooling(ViT):
    def forward(self, images):
        grid = rearrange(features(self, images)[:, 1:], "b (gh gw) d -> b d gh gw", gh=4)
        return self.head(F.adaptive_avg_pool2d(grid, 1).flatten(1))


def mean_vit(forward):
    return with_forward(ViT, forward)


def before_the_norm(self, images):
    z = self.tokens(self.patch_embedding(images))
    return run(self.encoder.blocks, z)


class MeanWithoutClassToken(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        self.tokens = SequenceWithOption(16, fields["dim"], class_token=False)

    def forward(self, images):
        return self.head(features(self, images).mean(1))


MEAN = [
    (ViT, "the head reads the class token"),
    (mean_vit(lambda self, x: self.head(features(self, x).mean(1))), "the class token is in the mean"),
    (mean_vit(lambda self, x: self.head(features(self, x)[:, :-1].mean(1))), "leaves the last patch out"),
    (
        mean_vit(lambda self, x: self.head(self.encoder.norm(before_the_norm(self, x)[:, 1:].mean(1)))),
        "taken before the final norm; the norm comes first",
    ),
    (
        mean_vit(lambda self, x: self.head(self.encoder.norm(before_the_norm(self, x).mean(1)))),
        "mean of all tokens is taken before the final norm",
    ),
    (mean_vit(lambda self, x: self.head(before_the_norm(self, x)[:, 1:].mean(1))), "final norm is missing"),
    (
        mean_vit(lambda self, x: self.head(self.encoder.norm(features(self, x)[:, 1:].mean(1)))),
        "final norm is applied twice",
    ),
    (mean_vit(lambda self, x: self.head(features(self, x)[:, 1:].sum(1))), "reads the sum"),
    (mean_vit(lambda self, x: self.head(features(self, x)[:, 1:].amax(1))), "reads the largest value"),
    (mean_vit(lambda self, x: self.head(features(self, x)[:, 1:])), "the head reads every patch"),
    (mean_vit(lambda self, x: features(self, x)[:, 1:].mean(1)), "the head is not called"),
    (mean_vit(lambda self, x: self.head(features(self, x)[:, 1:].mean(-1))), "stopped with RuntimeError"),
    (mean_vit(lambda self, x: MeanViT.forward(self, x).softmax(-1)), "a softmax follows"),
    (MeanWithoutClassToken, r"missing +tokens.class_token"),
]

# Chapter 6: weights of other people


def qkv_by_rearrange(query, key, value):
    return rearrange([query, key, value], "qkv d h dh -> (qkv h dh) d")


def qkv_by_transposing(query, key, value):
    return torch.cat([kernel.flatten(1).T for kernel in (query, key, value)])


def qkv_by_columns(query, key, value):
    return torch.cat([query, key, value], dim=1).flatten(1).mT.contiguous()


def qkv_by_einsum(query, key, value):
    identity = torch.eye(len(query))
    return torch.cat(
        [torch.einsum("dhk,de->hke", one, identity).flatten(0, 1) for one in (query, key, value)]
    )


def packed(pattern):
    return lambda query, key, value: rearrange([query, key, value], f"qkv d h dh -> {pattern}")


QKV = [
    (lambda q, k, v: torch.cat([one.flatten(1) for one in (q, k, v)]), "are not transposed: JAX has"),
    (lambda q, k, v: torch.cat([one.reshape(len(one), -1) for one in (q, k, v)]), "are not transposed"),
    (
        lambda q, k, v: torch.cat([one.flatten(1) for one in (q, k, v)], dim=1),
        "the result is transposed",
    ),
    (
        lambda q, k, v: torch.cat([one.flatten(1) for one in (q, k, v)], dim=1).reshape(-1, len(q)),
        "puts that straight in shape only",
    ),
    (packed("d (qkv h dh)"), "the result is transposed"),
    (packed("(qkv dh h) d"), "the heads are interleaved"),
    (packed("(h qkv dh) d"), "interleaved head by head"),
    (packed("(h dh qkv) d"), "interleaved row by row"),
    (packed("qkv (h dh) d"), "are not joined"),
    (lambda q, k, v: qkv_by_transposing(k, q, v), "the keys come first"),
    (lambda q, k, v: qkv_by_transposing(q, v, k), "the values come before the keys"),
    (lambda q, k, v: qkv_by_transposing(v, k, q), "turned round"),
    (lambda q, k, v: qkv_by_transposing(q, q, q), "stand in all three places"),
    (lambda q, k, v: q.flatten(1).T, "returned shape"),
    (lambda q, k, v: qkv_by_transposing(q, k, v).data, "no gradient can flow back"),
]


def stretched_by_hand(table, count):
    places = torch.arange(count) * (len(table) - 1) / (count - 1)
    left = places.long().clamp(max=len(table) - 2)
    share = (places - left)[:, None]
    return (1 - share) * table[left] + share * table[left + 1]


def stretched_by_matrix(table, count):
    places = torch.linspace(0, len(table) - 1, count)
    hats = (1 - (places[:, None] - torch.arange(len(table))).abs()).clamp(min=0)
    return hats @ table


def stretched_by_interpolate(table, count):
    return F.interpolate(table.T[None], size=count, mode="linear", align_corners=True)[0].T


def stretched_in_a_loop(table, count):
    rows = []
    for i in range(count):
        numerator = i * (len(table) - 1)
        left, rest = divmod(numerator, count - 1)
        right = min(left + 1, len(table) - 1)
        rows.append(torch.lerp(table[left], table[right], rest / (count - 1)))
    return torch.stack(rows)


def stretched_at(place, swapped=False):
    def stretch(table, count):
        n = len(table)
        places = place(torch.arange(count), n, count).clamp(0, n - 1)
        left = places.long().clamp(max=n - 2)
        share = (places - left)[:, None]
        share = 1 - share if swapped else share
        return (1 - share) * table[left] + share * table[left + 1]

    return stretch


def at_corners(i, n, count):
    return i * (n - 1) / (count - 1)


STRETCHED = [
    (
        lambda table, count: F.interpolate(table.T[None], size=count, mode="linear")[0].T,
        "the areas lie on each other",
    ),
    (stretched_at(lambda i, n, count: (i + 0.5) * n / count - 0.5), "the areas lie on each other"),
    (stretched_at(lambda i, n, count: i * n / count), "a step is n / count long"),
    (stretched_at(lambda i, n, count: i * (n - 1) / count), "never reaches the last place"),
    (stretched_at(lambda i, n, count: i * n / (count - 1)), r"a step is n / \(count - 1\) long"),
    (stretched_at(lambda i, n, count: at_corners(i, n, count).round()), "its nearest neighbour; mix"),
    (lambda table, count: F.interpolate(table.T[None], size=count)[0].T, "nearest neighbour, area on area"),
    (stretched_at(lambda i, n, count: at_corners(i, n, count).floor()), "left neighbour alone"),
    (stretched_at(at_corners, swapped=True), "two shares have changed places"),
    (then(stretched_by_matrix, lambda x: x.flip(0)), "turned round"),
    (then(stretched_by_matrix, lambda x: x.T), "returned shape"),
    (lambda table, count: table, "returned shape"),
    (then(stretched_by_matrix, lambda x: x.detach()), "no gradient can flow back"),
]

RIGHT = {
    checks.overlapping_patches: (
        overlapping_by_unfold,
        overlapping_by_views,
        overlapping_in_loops,
        overlapping_by_convolution,
    ),
    checks.grid_position: (GridPosition, GridPositionByRepeating, GridPositionInLoops, GridPositionByIndex),
    checks.optional_class_token: (SequenceWithOption, SequenceOfAList, SequenceWithAnEmptyToken),
    checks.masked_attention: (
        masked_by_filling,
        masked_by_torch,
        masked_image_by_image,
        masked_by_renormalising,
        masked_by_adding,
    ),
    checks.streamed_attention: (
        streamed,
        streamed_from_the_first,
        streamed_query_by_query,
        F.scaled_dot_product_attention,
    ),
    checks.encoder: (Encoder, EncoderAsSequence, EncoderOfBlocksThatReturnPairs, EncoderWithNormByHand),
    checks.layer_norm: (norm_by_moments, norm_by_var_mean, norm_by_sums, norm_of_torch),
    checks.block_with_dropout: (
        DroppingBlock,
        BlockWithADroppingMlp,
        BlockThatDropsByFunction,
        BlockWithMasks,
    ),
    checks.predicted_parameters: (parameters_by_formula, parameters_of_layers, parameters_of_shapes),
    checks.predicted_operations: (operations_by_formula, operations_of_products, operations_of_tensors),
    checks.mean_vit: (MeanViT, MeanOfAnswers, MeanBySubtraction, MeanByPooling),
    checks.qkv_from_jax: (qkv_by_rearrange, qkv_by_transposing, qkv_by_columns, qkv_by_einsum),
    checks.stretch_positions: (
        stretched_by_hand,
        stretched_by_matrix,
        stretched_by_interpolate,
        stretched_in_a_loop,
    ),
}
"""By check."""

WRONG = [
    (check, piece, message)
    for check, mistakes in (
        (checks.overlapping_patches, OVERLAPPING),
        (checks.grid_position, GRID),
        (checks.optional_class_token, OPTION),
        (checks.masked_attention, MASKED),
        (checks.streamed_attention, STREAMED),
        (checks.encoder, ENCODER),
        (checks.layer_norm, NORM),
        (checks.block_with_dropout, DROPOUT),
        (checks.predicted_parameters, PARAMETERS),
        (checks.predicted_operations, OPERATIONS),
        (checks.mean_vit, MEAN),
        (checks.qkv_from_jax, QKV),
        (checks.stretch_positions, STRETCHED),
    )
    for piece, message in mistakes
]
"""Check, piece, and a pattern of the sentence that it must get."""
