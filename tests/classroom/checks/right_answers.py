"""Right answers, each written in at least three ways: loops, einsum, torch's own layers, no einops."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

from vit_classroom import checks
from vit_from_scratch import model
from vit_from_scratch.model import hybrid


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


class Sequence(nn.Module):
    def __init__(self, num_patches, dim):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(0.02 * torch.randn(1, num_patches + 1, dim))

    def forward(self, embeddings):
        first = self.class_token.expand(len(embeddings), -1, -1)
        return torch.cat([first, embeddings], dim=1) + self.position


class SequenceInParts(Sequence):
    def __init__(self, num_patches, dim):
        super().__init__(num_patches, dim)
        nn.init.trunc_normal_(self.position, std=0.02)

    def forward(self, embeddings):
        first = (self.class_token + self.position[:, :1]).repeat(len(embeddings), 1, 1)
        return torch.cat([first, embeddings + self.position[:, 1:]], dim=1)


class SequenceByPadding(Sequence):
    def forward(self, embeddings):
        padded = F.pad(embeddings, (0, 0, 1, 0))
        marked = F.pad(self.class_token, (0, 0, 0, embeddings.shape[1]))
        return padded + marked + self.position


def attention_by_einsum(q, k, v):
    scores = torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5
    return torch.einsum("...ij,...jd->...id", scores.softmax(-1), v)


def attention_in_loops(q, k, v):
    rows = []
    for i in range(q.shape[-2]):
        scores = (q[..., i : i + 1, :] * k).sum(-1) / math.sqrt(q.shape[-1])
        weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
        rows.append((weights[..., None] * v).sum(-2))
    return torch.stack(rows, dim=-2)


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.projection = nn.Linear(dim, dim)

    def forward(self, tokens):
        q, k, v = rearrange(self.qkv(tokens), "b t (qkv h dh) -> qkv b h t dh", qkv=3, h=self.heads)
        return self.projection(rearrange(attention_by_einsum(q, k, v), "b h t dh -> b t (h dh)"))


class AttentionHeadByHead(Attention):
    def forward(self, tokens):
        q, k, v = self.qkv(tokens).chunk(3, dim=-1)
        width = tokens.shape[-1] // self.heads
        parts = zip(q.split(width, -1), k.split(width, -1), v.split(width, -1), strict=True)
        return self.projection(torch.cat([attention_by_einsum(*part) for part in parts], dim=-1)), None


class AttentionOfTorch(Attention):
    def forward(self, tokens):
        q, k, v = self.qkv(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.projection(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, dim, mlp_dim):
        super().__init__()
        self.hidden, self.output = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)

    def forward(self, tokens):
        return self.output(F.gelu(self.hidden(tokens)))


class MlpByFormula(Mlp):
    def forward(self, tokens):
        x = self.hidden(tokens)
        return self.output(x * (1 + torch.erf(x / math.sqrt(2))) / 2)


class MlpWithDropout(Mlp):
    def __init__(self, dim, mlp_dim):
        super().__init__(dim, mlp_dim)
        self.gelu, self.dropout = nn.GELU(), nn.Dropout(0.5)

    def forward(self, tokens):
        return self.dropout(self.output(self.dropout(self.gelu(self.hidden(tokens)))))


class Block(nn.Module):
    def __init__(self, dim, heads, mlp_dim):
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim, eps=1e-6)
        self.attention = Attention(dim, heads)
        self.mlp_norm = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, mlp_dim)

    def forward(self, z):
        z = z + self.attention(self.attention_norm(z))
        return z + self.mlp(self.mlp_norm(z))


class BlockOfThePackagesPieces(Block):
    def __init__(self, dim, heads, mlp_dim):
        super().__init__(dim, heads, mlp_dim)
        self.attention, self.mlp = model.MultiHeadSelfAttention(dim, heads), model.Mlp(dim, mlp_dim)

    def forward(self, z):
        attended, weights = self.attention(self.attention_norm(z))
        middle = z + attended
        return middle + self.mlp(self.mlp_norm(middle)), weights


class BlockWithNormsByHand(Block):
    @staticmethod
    def normalised(layer, z):
        centred = z - z.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt() * layer.weight + layer.bias

    def forward(self, z):
        middle = self.attention(self.normalised(self.attention_norm, z)) + z
        return self.mlp(self.normalised(self.mlp_norm, middle)) + middle


class Encoder(nn.Module):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim, heads, mlp_dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, z):
        for block in self.blocks:
            z = block(z)
        return self.norm(z)


class ViT(nn.Module):
    def __init__(self, image_size, patch_size, channels, dim, depth, heads, mlp_dim, num_classes):
        super().__init__()
        self.patch_embedding = Embedding(patch_size, channels, dim)
        self.tokens = Sequence((image_size // patch_size) ** 2, dim)
        self.encoder = Encoder(dim, depth, heads, mlp_dim)
        self.head = nn.Linear(dim, num_classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images):
        return self.head(self.encoder(self.tokens(self.patch_embedding(images)))[:, 0])


class ViTOfThePackagesPieces(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        config = model.ViTConfig(**fields)
        self.patch_embedding = model.PatchEmbedding(fields["patch_size"], fields["channels"], fields["dim"])
        self.tokens, self.encoder = model.TokenSequence(config), model.Encoder(config)


class ViTThatNormsOnlyTheClassToken(ViT):
    def forward(self, images):
        z = self.tokens(self.patch_embedding(images))
        for block in self.encoder.blocks:
            z = block(z)
        return F.linear(self.encoder.norm(z[:, 0]), self.head.weight, self.head.bias)


def padding_by_formula(images, kernel, stride):
    amounts = []
    for side in reversed(images.shape[2:]):
        total = max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
        amounts += [total // 2, total - total // 2]
    return F.pad(images, amounts)


def padding_by_copying(images, kernel, stride):
    extra = [max((-(-side // stride) - 1) * stride + kernel - side, 0) for side in images.shape[2:]]
    padded = images.new_zeros(
        *images.shape[:2], *(s + e for s, e in zip(images.shape[2:], extra, strict=True))
    )
    top, left = extra[0] // 2, extra[1] // 2
    padded[:, :, top : top + images.shape[2], left : left + images.shape[3]] = images
    return padded


def padding_by_concatenation(images, kernel, stride):
    for axis in (2, 3):
        side = images.shape[axis]
        total = max((side + stride - 1) // stride * stride - stride + kernel - side, 0)
        shape = list(images.shape)
        parts = []
        for count in (total // 2, total - total // 2):
            shape[axis] = count
            parts.append(torch.zeros(shape))
        images = torch.cat([parts[0], images, parts[1]], dim=axis)
    return images


class Convolution(nn.Module):
    def __init__(self, channels, features, kernel, stride):
        super().__init__()
        self.kernel, self.stride = kernel, stride
        self.weight = nn.Parameter(torch.randn(features, channels, kernel, kernel))

    def forward(self, images):
        flat = self.weight.flatten(1)
        flat = flat - flat.mean(1, keepdim=True)
        flat = flat / (flat.square().mean(1, keepdim=True).sqrt() + 1e-5)
        padded = padding_by_formula(images, self.kernel, self.stride)
        return F.conv2d(padded, flat.view_as(self.weight), stride=self.stride)


class ConvolutionWithVarMean(Convolution):
    def forward(self, images):
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), keepdim=True, correction=0)
        filters = (self.weight - mean) / (variance.sqrt() + 1e-5)
        return F.conv2d(padding_by_copying(images, self.kernel, self.stride), filters, stride=self.stride)


class ConvolutionFilterByFilter(Convolution):
    def forward(self, images):
        padded = padding_by_concatenation(images, self.kernel, self.stride)
        maps = []
        for one in self.weight:
            one = (one - one.mean()) / (one.std(unbiased=False) + 1e-5)
            maps.append(F.conv2d(padded, one[None], stride=self.stride))
        return torch.cat(maps, dim=1)


class Bottleneck(hybrid.Bottleneck):
    def __init__(self, channels, width, stride):
        super().__init__(model.ViTConfig(), channels, width, stride)

    def forward(self, features):
        inner = F.relu(self.norm1(self.conv1(features)))
        inner = F.relu(self.norm2(self.conv2(inner)))
        return F.relu(self.shortcut_norm(self.shortcut(features)) + self.norm3(self.conv3(inner)))


class BottleneckAsSequential(Bottleneck):
    def forward(self, features):
        layers = (
            self.conv1,
            self.norm1,
            nn.ReLU(),
            self.conv2,
            self.norm2,
            nn.ReLU(),
            self.conv3,
            self.norm3,
        )
        return nn.Sequential(*layers)(features).add(self.shortcut_norm(self.shortcut(features))).clamp(min=0)


class BottleneckWithMaximum(Bottleneck):
    def forward(self, features):
        past = self.shortcut_norm(self.shortcut(features))
        inner = features
        for conv, norm in ((self.conv1, self.norm1), (self.conv2, self.norm2)):
            inner = torch.maximum(norm(conv(inner)), torch.zeros(()))
        return torch.maximum(past + self.norm3(self.conv3(inner)), torch.zeros(()))


RIGHT = {
    checks.patchify: (patchify_in_loops, patchify_by_permute, patchify_by_unfold, patchify_by_convolution),
    checks.unpatchify: (unpatchify_in_loops, unpatchify_by_permute, unpatchify_by_fold),
    checks.patch_embedding: (Embedding, EmbeddingByConvolution, EmbeddingByEinsum),
    checks.token_sequence: (Sequence, SequenceInParts, SequenceByPadding),
    checks.attention: (attention_by_einsum, attention_in_loops, F.scaled_dot_product_attention),
    checks.multi_head_attention: (Attention, AttentionHeadByHead, AttentionOfTorch),
    checks.mlp: (Mlp, MlpByFormula, MlpWithDropout),
    checks.block: (Block, BlockOfThePackagesPieces, BlockWithNormsByHand),
    checks.vision_transformer: (ViT, ViTOfThePackagesPieces, ViTThatNormsOnlyTheClassToken),
    checks.same_padding: (padding_by_formula, padding_by_copying, padding_by_concatenation),
    checks.standardised_conv: (Convolution, ConvolutionWithVarMean, ConvolutionFilterByFilter),
    checks.bottleneck: (Bottleneck, BottleneckAsSequential, BottleneckWithMaximum),
}
"""By check."""
