"""Right and wrong answers to the pieces of chapter 3."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn
from variations import with_forward

from vit_classroom import checks
from vit_from_scratch import model


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
        return self.projection(torch.cat([attention_by_einsum(*part) for part in parts], dim=-1))


class AttentionOfTorch(Attention):
    def forward(self, tokens):
        q, k, v = self.qkv(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.projection(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


def scores(q, k):
    return q @ k.mT / math.sqrt(q.shape[-1])


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


def by_reshape(self, tokens):
    """Attention of heads that are cut out of (B, T, D) without moving an axis: (B, h, T, Dh)."""
    shape = (len(tokens), self.heads, tokens.shape[1], -1)
    return attention_by_einsum(*(part.reshape(shape) for part in self.qkv(tokens).chunk(3, -1)))


class AttentionInThreeLayers(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.projection = nn.Linear(dim, dim)


class AttentionWithoutBias(Attention):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)


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


def on_both(value):
    def attention(q, k, v, real):
        pairs = real[:, None, :, None] & real[:, None, None, :]
        return (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~pairs, value).softmax(-1) @ v

    return attention


def zeroed(x, real):
    return x * real[:, None, :, None]


def cut_after(count):
    def attention(q, k, v, real):
        kept = slice(int(count(real.sum(1))))
        return attention_by_einsum(q, k[:, :, kept], v[:, :, kept])

    return attention


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
    shrink_total=True,
    shrink_gathered=True,
    start=-math.inf,
    divide=True,
    scaled=True,
    over_from=math.inf,
    first=0,
    renewed=True,
):
    def attention(q, k, v):
        highest = torch.full((*q.shape[:-1], 1), start)
        total, gathered = torch.zeros_like(highest), torch.zeros_like(q)
        for j in range(first, k.shape[-2]):
            score = (q * k[..., j : j + 1, :]).sum(-1, keepdim=True)
            score = score / math.sqrt(q.shape[-1]) if scaled else score
            higher = torch.maximum(highest, score)
            shrink, share = torch.exp(highest - higher), torch.exp(score - higher)
            shrink = 1 / shrink if j >= over_from else shrink
            total = total * (shrink if shrink_total else 1) + share
            gathered = gathered * (shrink if shrink_gathered else 1) + share * v[..., j : j + 1, :]
            highest = higher if renewed else highest
        return gathered / total if divide else gathered

    return attention


def streamed_with_the_first_maximum(q, k, v):
    highest, total, gathered = scores(q, k[..., :1, :]), 1.0, v[..., :1, :]
    for j in range(1, k.shape[-2]):
        score = scores(q, k[..., j : j + 1, :])
        higher = torch.maximum(highest, score)  # and is forgotten
        shrink, share = (highest - higher).exp(), (score - higher).exp()
        total, gathered = total * shrink + share, gathered * shrink + share * v[..., j : j + 1, :]
    return gathered / total


def streamed_without_maximum(q, k, v):
    total, gathered = 0, 0
    for j in range(k.shape[-2]):
        share = ((q * k[..., j : j + 1, :]).sum(-1, keepdim=True) / math.sqrt(q.shape[-1])).exp()
        total, gathered = total + share, gathered + share * v[..., j : j + 1, :]
    return gathered / total


def attention_over(axis):
    """Attention along another axis than the tokens'."""
    return lambda q, k, v: attention_by_einsum(*(x.transpose(axis, -2) for x in (q, k, v))).transpose(
        axis, -2
    )


def causal(count):
    return torch.ones(count, count).tril().bool()


def batch_first_forgotten(self, x):
    """The layer of PyTorch with these weights, which takes (T, B, D) unless told otherwise."""
    layer = nn.MultiheadAttention(x.shape[-1], self.heads)
    layer.in_proj_weight, layer.in_proj_bias = self.qkv.weight, self.qkv.bias
    layer.out_proj.weight, layer.out_proj.bias = self.projection.weight, self.projection.bias
    return layer(x, x, x, need_weights=False)[0]


class AttentionOfTheLayer(Attention):
    def forward(self, tokens):
        return batch_first_forgotten(self, tokens.transpose(0, 1)).transpose(0, 1)


def attention_by_logarithms(q, k, v):
    logs = torch.log_softmax((q / q.shape[-1] ** 0.25) @ (k / k.shape[-1] ** 0.25).mT, dim=-1)
    return logs.exp() @ v


def masked_by_minimum(q, k, v, real):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return torch.where(real[:, None, None], scores, torch.finfo(scores.dtype).min).softmax(-1) @ v


def streamed_by_two(q, k, v):
    """Over the keys in pairs, each pair shared out first."""
    highest = torch.full((*q.shape[:-1], 1), -math.inf)
    total, gathered = torch.zeros_like(highest), torch.zeros_like(v)
    for keys, values in zip(k.split(2, -2), v.split(2, -2), strict=True):
        parts = scores(q, keys)
        higher = torch.maximum(highest, parts.amax(-1, keepdim=True))
        shares, shrink = (parts - higher).exp(), (highest - higher).exp()
        total = total * shrink + shares.sum(-1, keepdim=True)
        gathered = gathered * shrink + shares @ values
        highest = higher
    return gathered / total


def streamed_with_one_maximum(q, k, v):
    highest, total, gathered = torch.tensor(-math.inf), torch.zeros(*q.shape[:-1], 1), torch.zeros_like(v)
    for j in range(k.shape[-2]):
        score = scores(q, k[..., j : j + 1, :])
        higher = torch.maximum(highest, score.max())
        total = total * (highest - higher).exp() + (score - higher).exp()
        gathered = gathered * (highest - higher).exp() + (score - higher).exp() * v[..., j : j + 1, :]
        highest = higher
    return gathered / total


class AttentionOfThreeHeads(Attention):
    def __init__(self, dim, heads):
        super().__init__(dim, 3 if dim % 3 == 0 else 4)


class AttentionOfFourValues(Attention):
    def __init__(self, dim, heads):
        super().__init__(dim, dim // 4)


class AttentionOfWidth12(Attention):
    def __init__(self, dim, heads):
        super().__init__(12, heads)


class AttentionWithABuffer(Attention):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.register_buffer("scale", torch.tensor((dim // heads) ** -0.5))


class AttentionThatKeepsNotes(Attention):
    """Its own attributes have the names of things of ours."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.weights, self.number, self.piece = [], (dim, heads), torch.zeros(2)


class AttentionWithBuffersOfSuchNames(Attention):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        for name in ("weights", "number", "piece"):
            self.register_buffer(name, torch.zeros(2))


class AttentionThatRegistersWhatItSaw(Attention):
    def forward(self, tokens):
        self.register_buffer("seen", tokens.detach())
        return super().forward(tokens)


class AttentionThatRefreshesBuffers(Attention):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.register_buffer("seen", torch.zeros(2, 3))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, tokens):
        self.calls += 1
        self.seen = super().forward(tokens)
        return 1 * self.seen


class AttentionThatDrops(Attention):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.dropout = nn.Dropout(0.1)

    def forward(self, tokens):
        return self.dropout(super().forward(tokens))


class AttentionWithANorm(Attention):
    def forward(self, tokens):
        return super().forward(F.layer_norm(tokens, tokens.shape[-1:]))


RIGHT = {
    checks.attention: (
        attention_by_logarithms,
        attention_by_einsum,
        attention_in_loops,
        F.scaled_dot_product_attention,
    ),
    checks.multi_head_attention: (
        AttentionOfTheLayer,
        Attention,
        AttentionHeadByHead,
        AttentionOfTorch,
        AttentionWithABuffer,
        AttentionThatKeepsNotes,
        AttentionWithBuffersOfSuchNames,
        AttentionThatRegistersWhatItSaw,
        AttentionThatRefreshesBuffers,
    ),
    checks.masked_attention: (
        masked_by_minimum,
        masked_by_filling,
        masked_by_torch,
        masked_image_by_image,
        masked_by_adding,
    ),
    checks.streamed_attention: (
        streamed_by_two,
        streamed,
        streamed_from_the_first,
        streamed_query_by_query,
        F.scaled_dot_product_attention,
    ),
}

WRONG = {
    checks.attention: [
        (attention_over(0), "different images look at each other"),
        (
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            "a causal mask hides later tok",
        ),
        (
            lambda q, k, v: (scores(q, k).softmax(-1) * causal(q.shape[-2])) @ v,
            "causal mask .*after the softmax",
        ),
        (lambda q, k, v: scores(q, k).softmax(-1).softmax(-1) @ v, "softmax is taken twice"),
        (lambda q, k, v: (q @ k.mT / 8).softmax(-1) @ v, "divided by 8"),
        (
            lambda q, k, v: scores(q, k).flatten(-2).softmax(-1).view_as(scores(q, k)) @ v,
            "over all scores of a matrix at once",
        ),
        (
            lambda q, k, v: (
                scores(q, k).masked_fill(torch.eye(q.shape[-2]).bool(), -math.inf).softmax(-1) @ v
            ),
            "no token looks at itself",
        ),
        (lambda q, k, v: q + attention_by_einsum(q, k, v), "the queries are added"),
        (lambda q, k, v: v + attention_by_einsum(q, k, v), "the values are added"),
        (lambda q, k, v: 2 * attention_by_einsum(q, k, v), "all are 2 times as large"),
        (lambda q, k, v: -attention_by_einsum(q, k, v), "the sign is turned"),
        (lambda q, k, v: attention_by_einsum(q, k, v)[None], "its values are right: reshape them"),
        (
            lambda q, k, v: attention_by_einsum(q.half(), k.half(), v.half()).float(),
            "differ by more than rounding",
        ),
        (lambda q, k, v: attention_by_einsum(q, k, v).flip(-2), "every one is there, at another place"),
        (
            lambda q, k, v: attention_by_einsum(q, keys, v),  # noqa: F821 - a name that is mistyped
            "a name is not known there.*stopped with NameError",
        ),
        (
            lambda q, k, v: attention_by_einsum(q, k, v[0, 0, 0]),
            "a place is not there.*stopped with IndexError",
        ),
        (lambda q, k, v: (q @ k.mT).softmax(-1) @ v.long(), "two types of number meet.*RuntimeError"),
        (lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "not divided"),
        (lambda q, k, v: (q @ k.mT * q.shape[-1] ** 0.5).softmax(-1) @ v, "equation 6 divides"),
        (lambda q, k, v: (q @ k.mT / q.shape[-1]).softmax(-1) @ v, "divided by Dh"),
        (lambda q, k, v: (q @ k.mT / q.shape[-2] ** 0.5).softmax(-1) @ v, "the number of tokens"),
        (lambda q, k, v: scores(q, k).softmax(-2) @ v, "rows must sum to 1"),
        (lambda q, k, v: scores(q, k).softmax(0) @ v, "rows must sum to 1"),
        (lambda q, k, v: scores(q, k).softmax(1) @ v, "runs over axis 1"),
        (lambda q, k, v: F.softmax(scores(q, k)) @ v, "has no dim"),
        (
            lambda q, k, v: scores(q, k.reshape(*k.shape[:-2], -1, k.shape[-2]).mT).softmax(-1) @ v,
            "by reshape",
        ),
        (lambda q, k, v: scores(q, k) @ v, "the softmax is missing"),
        (lambda q, k, v: (q @ k.mT).softmax(-1) / q.shape[-1] ** 0.5 @ v, "after the softmax"),
        (lambda q, k, v: scores(k, q).softmax(-1) @ v, "queries and keys have changed places"),
        (lambda q, k, v: scores(q, k).softmax(-1).mT @ v, "weights are transposed"),
        (lambda q, k, v: scores(q, k).softmax(-1) @ k, "keys stand where the values belong"),
        (lambda q, k, v: scores(q, k).softmax(-1) @ q, "queries stand where the values belong"),
        (lambda q, k, v: scores(q, k).softmax(-1), "these are the weights A"),
        (lambda q, k, v: v, "values come out as they went in"),
        (lambda q, k, v: scores(q, k).sigmoid() @ v, "a sigmoid stands"),
        (lambda q, k, v: scores(q, k).log_softmax(-1) @ v, "a log-softmax stands"),
        (lambda q, k, v: scores(q, k).softmax(-1) @ v.mT, "RuntimeError|returned shape"),
        (lambda q, k, v: q @ k.T, "RuntimeError|returned shape|UserWarning"),
        (lambda q, k, v: F.dropout(attention_by_einsum(q, k, v)), "two calls with one input differ"),
        (lambda q, k, v: attention_by_einsum(q, k, v).detach(), "no gradient can flow back"),
        (lambda q, k, v: attention_by_einsum(q.detach(), k, v), "input 1 receives no gradient"),
        (lambda q, k, v: attention_by_einsum(q, k, v.clone().data), "input 3 receives no gradient"),
        (lambda q, k, v: attention_by_einsum(q.div_(q.shape[-1] ** 0.5), k, v), "changes its input"),
        (lambda q, k, v: attention_by_einsum(q.unsqueeze_(0), k, v)[0], "changes its input"),
        (lambda q, k, v: q / q.shape(0), "a kind of value there that it cannot take"),
        (model.attention.explicit_attention, "the package's own"),
    ],
    checks.masked_attention: [
        *[
            (
                masking(lambda s, real, v, n=n: s.masked_fill(~real, n).softmax(-1) @ v),
                "become a number.*put -inf",
            )
            for n in (-10.0, -20.0, -50.0, -100.0, -1000.0)
        ],
        *[
            (
                masking(lambda s, real, v, n=n: (s - n * ~real).softmax(-1) @ v),
                "a number is taken from the padding's scores.*put -inf",
            )
            for n in (10, 30, 50, 1000)
        ],
        (masked_by_renormalising, "the rest is divided by its sum, 0 where all real scores lie far below"),
        (cut_after(torch.max), "end after as many places as the longest image"),
        (cut_after(lambda counts: counts[0]), "end after as many places as the first image"),
        (
            lambda q, k, v, real: attention_by_einsum(q, zeroed(k, real), zeroed(v, real)),
            "the padding's keys and values are set to 0",
        ),
        (
            lambda q, k, v, real: attention_by_einsum(*(zeroed(part, real) for part in (q, k, v))),
            "the padding's queries, keys and values are set to 0",
        ),
        (
            lambda q, k, v, real: masked_by_filling(
                q, k, v, torch.arange(real.shape[1]) < real.sum(1, keepdim=True)
            ),
            "taken to be at the end",
        ),
        (lambda q, k, v, real: masked_by_filling(q, k, v, real[:1]), "the first one's mask"),
        (
            lambda q, k, v, real: masked_by_filling(q, k, v, real)[:, :1].expand_as(q),
            "along axis 1 only 1 of|right only",
        ),
        (
            lambda q, k, v, real: masked_by_filling(q[:, :, real[0]], k, v, real),
            "expected",
        ),
        (lambda q, k, v, real: attention_by_einsum(q, k, v), "the mask is not used"),
        (masking(lambda s, real, v: s.masked_fill(real, -math.inf).softmax(-1) @ v), "upside down"),
        (masking(lambda s, real, v: (s.softmax(-1) * real) @ v), "taken away after the softmax"),
        (
            lambda q, k, v, real: attention_by_einsum(q, k, v * real[:, None, :, None]),
            "taken away after the sof",
        ),
        (masking(lambda s, real, v: (s * real).softmax(-1) @ v), r"exp\(0\) = 1 a share"),
        (
            lambda q, k, v, real: attention_by_einsum(q, k * real[:, None, :, None], v),
            r"exp\(0\) = 1 a share",
        ),
        (
            masking(lambda s, real, v: (s + real).softmax(-1) @ v),
            "the mask is added to the scores as 0 and 1",
        ),
        (on_queries(-1e9), "the mask falls on the queries"),
        (on_queries(-math.inf), "the mask falls on the queries.*nothing but -inf"),
        (on_both(-math.inf), "falls on queries and keys.*nothing but -inf"),
        (on_both(-1e9), "falls on queries and keys; hide the keys alone"),
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
    ],
    checks.multi_head_attention: [
        *[
            (
                attention_class(lambda self, x, more=more: (Attention.forward(self, x), *more)),
                "a tuple of [23]",
            )
            for more in ([None], ["A"], [None, None])
        ],
        (
            attention_class(
                lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x, "qkv dh h")))
            ),
            "a head takes every h-th value, and they are joined as if",
        ),
        (
            attention_class(
                lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x, "h dh qkv")))
            ),
            "interleaved value by value",
        ),
        (
            attention_class(
                lambda self, x: joined(
                    self, attention_by_einsum(*heads_of(self, x, heads=x.shape[-1] // self.heads))
                )
            ),
            "D / h heads of h values each",
        ),
        *[
            (
                attention_class(
                    lambda self, x, order=order: joined(self, attention_by_einsum(*heads_of(self, x)[order]))
                ),
                f"the parts are taken to be {said}; they are q, k, v",
            )
            for order, said in (([1, 2, 0], "v, q, k"), ([2, 0, 1], "k, v, q"), ([2, 1, 0], "v, k, q"))
        ],
        (attention_class(batch_first_forgotten), "runs over the batch"),
        (
            attention_class(
                lambda self, x: joined(
                    self, F.scaled_dot_product_attention(*heads_of(self, x), is_causal=True)
                )
            ),
            "a causal mask hides later tokens",
        ),
        (AttentionOfThreeHeads, "an argument is not used"),
        (AttentionOfFourValues, r"right for \(12, 3\) and not for \(12, 2\), so an argument is not used"),
        (AttentionOfWidth12, r"has shape \(36, 12\), expected \(24, 8\)"),
        (AttentionThatDrops, "while it trains it gives something else"),
        (AttentionWithANorm, "the input is normalised"),
        (
            attention_class(
                lambda self, x: joined(
                    self,
                    F.dropout(scores(*heads_of(self, x)[:2]).softmax(-1), 0.1, self.training)
                    @ heads_of(self, x)[2],
                )
            ),
            "while it trains it gives something else",
        ),
        (
            attention_class(
                lambda self, x: joined(self, scores(*heads_of(self, x)[:2]) @ heads_of(self, x)[2])
            ),
            "the softmax is missing",
        ),
        (
            attention_class(lambda self, x: Attention.forward(self, x).squeeze()),
            "wrong where axis 0 of tokens has length 1",
        ),
        (
            attention_class(lambda self, x: Attention.forward(self, x[:1]).expand_as(x)),
            "right only where axis 0 of tokens has length 1",
        ),
        (attention_class(lambda self, x: self.project(x)), "not made in __init__.*AttributeError"),
        (scaled_by(lambda dim, width: dim**-0.5), r"divided by sqrt\(D\)"),
        (scaled_by(lambda dim, width: 1.0), "not divided"),
        (scaled_by(lambda dim, width: 1 / width), "divided by Dh"),
        (softmax_over(-2), "softmax runs over the queries"),
        (softmax_over(1), "softmax runs over the heads"),
        (
            attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x, heads=1)))),
            "all heads work as one",
        ),
        (
            attention_class(
                lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x, "qkv dh h")), "(dh h)")
            ),
            "every h-th value",
        ),
        (
            attention_class(
                lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x, "h qkv dh")))
            ),
            "interleaved head by head",
        ),
        (
            attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x)), "(dh h)")),
            "joined in the wrong order",
        ),
        (
            attention_class(
                lambda self, x: self.projection(attention_by_einsum(*heads_of(self, x)).reshape(x.shape))
            ),
            "without moving the heads' axis back",
        ),
        (
            attention_class(lambda self, x: joined(self, by_reshape(self, x))),
            "cut into heads by reshape alone",
        ),
        (
            attention_class(lambda self, x: self.projection(by_reshape(self, x).reshape(x.shape))),
            "by reshape alone.*joined in the same way",
        ),
        (
            attention_class(
                lambda self, x: self.projection(
                    attention_by_einsum(*(part.transpose(1, 2) for part in heads_of(self, x))).flatten(2)
                )
            ),
            "attend to each other",
        ),
        (
            attention_class(
                lambda self, x: rearrange(attention_by_einsum(*heads_of(self, x)), "b h t dh -> b t (h dh)")
            ),
            "output projection",
        ),
        (
            attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x)[[1, 0, 2]]))),
            "queries and keys have changed places",
        ),
        (
            attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x)[[0, 1, 1]]))),
            "keys stand where the values belong",
        ),
        (
            attention_class(lambda self, x: joined(self, attention_by_einsum(*heads_of(self, x)[[0, 2, 1]]))),
            "values come before the keys",
        ),
        (attention_class(lambda self, x: Attention.forward(self, x) + x), "the input is added"),
        (
            attention_class(
                lambda self, x: self.projection(
                    attention_by_einsum(*heads_of(self, x)).mean(1).repeat(1, 1, 3)
                )
            ),
            "heads are averaged",
        ),
        (
            attention_class(
                lambda self, x: joined(
                    self, attention_by_einsum(heads_of(self, x)[0].detach(), *heads_of(self, x)[1:])
                )
            ),
            "gradient of input 1 is not",
        ),
        (attention_class(lambda self, x: None), "is a return missing"),
        (AttentionInThreeLayers, r"missing +qkv.weight"),
        (AttentionWithoutBias, r"missing +qkv.bias"),
        (model.MultiHeadSelfAttention, "the package's own"),
    ],
    checks.streamed_attention: [
        (streamed_with_one_maximum, "one maximum serves all queries"),
        (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), "no causal mask"),
        (lambda q, k, v: streamed(q, k - k.mean(-2, keepdim=True), v).detach(), "gradient"),
        (
            lambda q, k, v: scores(q, k).clamp(max=80).softmax(-1) @ v,
            "the values are not: along axis 0|right only",
        ),
        (
            streaming(shrink_total=False, shrink_gathered=False),
            "is not rescaled when a larger score arrives: mul",
        ),
        (streaming(shrink_total=False), "the sum of weights is not rescaled"),
        (streaming(shrink_gathered=False), "the gathered values are not rescaled"),
        (streaming(over_from=1), "when a larger score arrives is upside down"),
        (streaming(over_from=0), "every value is NaN, as where the rescaling is upside down"),
        (streaming(renewed=False), "the last value is all that is left, as where the running maximum stays"),
        (streamed_with_the_first_maximum, "the running maximum stays the first score"),
        (streaming(start=0.0), "running maximum begins at 0"),
        (streaming(divide=False), "are not divided by the sum"),
        (streaming(scaled=False), r"not divided by sqrt\(Dh\)"),
        (streaming(first=1), "the first key is left out"),
        (streamed_without_maximum, "no maximum is taken off before exp"),
        (lambda q, k, v: streamed(q, k[..., :-1, :], v[..., :-1, :]), "the last key is left out"),
        (lambda q, k, v: v.mean(-2, keepdim=True).expand_as(v), "averaged without weights"),
        (lambda q, k, v: attention_by_einsum(q, k, v).detach(), "no gradient can flow back"),
        (model.attention.explicit_attention, "the package's own"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
