"""A right piece passes its check; a wrong one fails with a sentence that names the mistake."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

from vit_from_scratch import VisionTransformer, ViTConfig, checks, model
from vit_from_scratch.model import hybrid
from vit_from_scratch.model.attention import explicit_attention


def block_of(dim, heads, mlp_dim):
    return model.Block(ViTConfig(dim=dim, heads=heads, mlp_dim=mlp_dim))


def sequence_of(num_patches, dim):
    return model.TokenSequence(ViTConfig(image_size=(num_patches, 1), patch_size=1, dim=dim, heads=1))


def vit_of(**fields):
    return VisionTransformer(ViTConfig(**fields))


def conv_of(channels, features, kernel, stride, kind=hybrid.StandardisedConv):
    return kind(channels, features, kernel, stride, eps=1e-5, eps_on_variance=False)


def bottleneck_of(channels, width, stride, kind=hybrid.Bottleneck):
    return kind(ViTConfig(), channels, width, stride)


RIGHT = [
    (checks.patchify, model.patchify),
    (checks.unpatchify, model.unpatchify),
    (checks.patch_embedding, model.PatchEmbedding),
    (checks.token_sequence, sequence_of),
    (checks.attention, explicit_attention),
    (checks.attention, F.scaled_dot_product_attention),
    (checks.multi_head_attention, model.MultiHeadSelfAttention),
    (checks.mlp, model.Mlp),
    (checks.block, block_of),
    (checks.vision_transformer, vit_of),
    (checks.same_padding, hybrid.same_padding),
    (checks.standardised_conv, conv_of),
    (checks.bottleneck, bottleneck_of),
]


@pytest.mark.parametrize(("check", "piece"), RIGHT)
def test_the_packages_own_pieces_pass(check, piece, capsys):
    check(piece)
    assert capsys.readouterr().out.startswith("✓ ")


def cut(pattern):
    return lambda images, size: rearrange(images, f"b c (gh p1) (gw p2) -> {pattern}", p1=size, p2=size)


class LastToken(model.TokenSequence):
    def __init__(self, num_patches, dim):
        super().__init__(ViTConfig(image_size=(num_patches, 1), patch_size=1, dim=dim, heads=1))

    def forward(self, embeddings):
        class_token = self.class_token.expand(len(embeddings), -1, -1)
        return torch.cat([embeddings, class_token], 1) + self.position


class NoPosition(LastToken):
    def forward(self, embeddings):
        return torch.cat([self.class_token.expand(len(embeddings), -1, -1), embeddings], 1)


class LoudPosition(LastToken):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        nn.init.normal_(self.position)


class WholeWidthScale(model.MultiHeadSelfAttention):
    pattern, joined, head_scale = "qkv h dh", "(h dh)", False

    def forward(self, tokens):
        q, k, v = rearrange(self.qkv(tokens), f"b t ({self.pattern}) -> qkv b h t dh", qkv=3, h=self.heads)
        width = q.shape[-1] if self.head_scale else tokens.shape[-1]
        gathered = (q @ k.mT / math.sqrt(width)).softmax(-1) @ v
        return self.projection(rearrange(gathered, f"b h t dh -> b t {self.joined}"))


class StridedHeads(WholeWidthScale):
    pattern, joined, head_scale = "qkv dh h", "(dh h)", True


class NoProjection(model.MultiHeadSelfAttention):
    def forward(self, tokens):
        q, k, v = rearrange(self.qkv(tokens), "b t (qkv h dh) -> qkv b h t dh", qkv=3, h=self.heads)
        return rearrange(explicit_attention(q, k, v), "b h t dh -> b t (h dh)")


class ReluMlp(model.Mlp):
    def forward(self, tokens):
        return self.output(self.hidden(tokens).relu())


class BlockFromSizes(model.Block):
    def __init__(self, dim, heads, mlp_dim, dropout=0.0):
        super().__init__(ViTConfig(dim=dim, heads=heads, mlp_dim=mlp_dim, dropout=dropout))

    def attend(self, tokens):
        return self.attention(tokens)[0]


class PostNorm(BlockFromSizes):
    def forward(self, z):
        z = self.attention_norm(z + self.attend(z))
        return self.mlp_norm(z + self.mlp(z))


class NormForgotten(BlockFromSizes):
    def forward(self, z):
        z = z + self.attend(z)
        return z + self.mlp(self.mlp_norm(z))


class NoResidual(BlockFromSizes):
    def forward(self, z):
        z = z + self.attend(self.attention_norm(z))
        return self.mlp(self.mlp_norm(z))


class DropoutInEvaluation(BlockFromSizes):
    def forward(self, z):
        z = z + self.attend(self.attention_norm(z))
        return z + F.dropout(self.mlp(self.mlp_norm(z)), 0.3)


class ViTFromFields(VisionTransformer):
    def __init__(self, **fields):
        super().__init__(ViTConfig(**fields))


class NoFinalNorm(ViTFromFields):
    def forward(self, images):
        z = self.tokens(self.patch_embedding(images))
        for block in self.encoder.blocks:
            z = block(z)[0]
        return self.head(z[:, 0])


class RandomHead(ViTFromFields):
    def reset_head(self):
        nn.init.normal_(self.head.weight)


class OtherNames(nn.Module):
    def __init__(self, dim, mlp_dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)


def symmetric_padding(images, kernel, stride):
    return F.pad(images, [(kernel - 1) // 2] * 4)


def padding_before(images, kernel, stride):
    return hybrid.same_padding(images.flip(2, 3), kernel, stride).flip(2, 3)


class PlainConv(hybrid.StandardisedConv):
    def standardised(self):
        return self.weight


class SampleDeviation(hybrid.StandardisedConv):
    def standardised(self):
        flat = self.weight.flatten(1)
        flat = (flat - flat.mean(1, keepdim=True)) / (flat.std(1, keepdim=True) + self.eps)
        return flat.view_as(self.weight)


class SymmetricConv(hybrid.StandardisedConv):
    def forward(self, input):
        return F.conv2d(input, self.standardised(), stride=2, padding=1)


def eps_on_variance(channels, features, kernel, stride):
    return hybrid.StandardisedConv(channels, features, kernel, stride, eps=1e-5, eps_on_variance=True)


class NoLastRelu(hybrid.Bottleneck):
    def forward(self, features):
        inner = F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(features))))))
        return self.shortcut_norm(self.shortcut(features)) + self.norm3(self.conv3(inner))


class NoShortcutNorm(hybrid.Bottleneck):
    def forward(self, features):
        inner = F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(features))))))
        return F.relu(self.shortcut(features) + self.norm3(self.conv3(inner)))


WRONG = [
    (checks.patchify, cut("b (gw gh) (p1 p2 c)"), "column by column"),
    (checks.patchify, cut("b (gh gw) (c p1 p2)"), "channels come first"),
    (checks.patchify, cut("b (gh gw) (p2 p1 c)"), "columns run before rows"),
    (checks.patchify, cut("b c (gh gw) (p1 p2)"), r"returned shape \(1, 1, 4, 4\): expected \(1, 4, 4\)"),
    (checks.patchify, lambda images, size: None, "returned NoneType.*is a return missing"),
    (checks.patchify, lambda images, size: 1 / 0, "stopped with ZeroDivisionError"),
    (checks.patchify, lambda images, size: model.patchify(images, size) + 1, "the values are not"),
    (
        checks.unpatchify,
        lambda patches, size, grid: model.unpatchify(patches, size, grid).flip(2),
        "values are not",
    ),
    (checks.token_sequence, LastToken, "class token stands last"),
    (checks.token_sequence, NoPosition, "positions are not added"),
    (checks.token_sequence, LoudPosition, r"spread of .*expected N\(0, 0.02\)"),
    (checks.attention, lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "not divided"),
    (checks.attention, lambda q, k, v: (q @ k.mT * q.shape[-1] ** 0.5).softmax(-1) @ v, "equation 6 divides"),
    (checks.attention, lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-2) @ v, "rows must sum to 1"),
    (checks.multi_head_attention, WholeWidthScale, r"divided by sqrt\(D\)"),
    (checks.multi_head_attention, StridedHeads, "every h-th value"),
    (checks.multi_head_attention, NoProjection, "output projection"),
    (checks.mlp, ReluMlp, "ReLU"),
    (checks.mlp, lambda dim, mlp_dim: model.Mlp(dim, mlp_dim, gelu="tanh"), "tanh approximation"),
    (checks.mlp, OtherNames, r"missing +hidden.weight(.|\n)*unexpected fc1.weight"),
    (checks.mlp, lambda dim, mlp_dim: model.Mlp(dim, 2 * mlp_dim), r"hidden.weight has shape \(20, 6\)"),
    (checks.mlp, lambda dim, mlp_dim: "no module", "expected a subclass of nn.Module"),
    (checks.block, PostNorm, "post-norm"),
    (checks.block, NormForgotten, "attention_norm is declared and never called"),
    (checks.block, NoResidual, "residual around the MLP is missing"),
    (checks.block, DropoutInEvaluation, "two calls in evaluation differ"),
    (checks.same_padding, symmetric_padding, "pads both sides alike"),
    (checks.same_padding, padding_before, "stand before the image"),
    (checks.standardised_conv, partial(conv_of, kind=PlainConv), "used as they are"),
    (checks.standardised_conv, partial(conv_of, kind=SampleDeviation), "divides by n - 1"),
    (checks.standardised_conv, partial(conv_of, kind=SymmetricConv), "same on both sides"),
    (checks.standardised_conv, eps_on_variance, "eps is added to the variance"),
    (checks.bottleneck, partial(bottleneck_of, kind=NoLastRelu), "last ReLU is missing"),
    (checks.bottleneck, partial(bottleneck_of, kind=NoShortcutNorm), "norm of the shortcut is missing"),
    (checks.vision_transformer, NoFinalNorm, "final LayerNorm"),
    (checks.vision_transformer, RandomHead, "untrained logits are not 0"),
    (checks.vision_transformer, lambda **fields: vit_of(**fields, pool="gap"), "values are not"),
]


@pytest.mark.parametrize(("check", "piece", "message"), WRONG)
def test_a_mistake_is_called_by_its_name(check, piece, message, capsys):
    with pytest.raises(checks.CheckFailed, match=message):
        check(piece)
    assert capsys.readouterr().out == ""
