"""Checks of chapter 3: scaled dot-product attention and its multi-head form."""

import functools
import math
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from vit_classroom.checks.judging import class_check, function_check
from vit_classroom.checks.report import Case, Layers, randomise
from vit_from_scratch.model import attention as ours

CAUSAL = "a causal mask hides later tokens, as in a language model; patches look at all others"


def _later(count: int) -> Tensor:
    return torch.ones(count, count, dtype=torch.bool).triu(1)


@function_check(
    "(..., T, Dh)",
    'chapter 3, "Queries, keys and values"',
    ours.explicit_attention,
    [(3, 4), (2, 5, 6), (2, 3, 7, 8)],
    answers=[ours.fused_attention],
)
def attention(shape: tuple[int, ...]) -> Case:
    """Check a function of q, k and v, each (..., T, Dh), like ``explicit_attention``."""
    q, k, v = torch.randn(3, *shape).unbind()
    scores, width, count = q @ k.mT, shape[-1], shape[-2]
    right = scores / math.sqrt(width)
    weights = right.softmax(-1)
    late, by_count = scores.softmax(-1) / math.sqrt(width), (scores / math.sqrt(count)).softmax(-1)
    scale, axis = "the scores are", "rows must sum to 1, so take dim=-1"
    along = _plain(*(part.transpose(0, -2) for part in (q, k, v))).transpose(0, -2)
    of_values = {
        f"{scale} not divided by sqrt(Dh)": scores.softmax(-1),
        f"{scale} multiplied by sqrt(Dh); equation 6 divides": (scores * math.sqrt(width)).softmax(-1),
        f"{scale} divided by Dh; equation 6 divides by its square root": (scores / width).softmax(-1),
        f"{scale} divided by sqrt(T), the number of tokens; equation 6 takes sqrt(Dh), the width": by_count,
        f"the softmax runs over the queries; {axis}": right.softmax(-2),
        f"the softmax runs over the first axis; {axis}": right.softmax(0),
        f"the softmax runs over axis 1, another one for each number of axes; {axis}": right.softmax(1),
        f"the softmax has no dim, and guesses one; {axis}": right.softmax(0 if right.ndim == 3 else 1),
        "the softmax is missing": right,
        "the division comes after the softmax; equation 6 divides the scores": late,
        "queries and keys have changed places: q k^T, not k q^T": right.mT.softmax(-1),
        "the weights are transposed before they meet the values": weights.mT,
        "the keys become (..., Dh, T) by reshape, which mixes tokens; transpose their last two axes": (
            (q @ k.reshape(*shape[:-2], width, count) / math.sqrt(width)).softmax(-1)
        ),
        "a sigmoid stands in place of the softmax": right.sigmoid(),
        "a log-softmax stands in place of the softmax": right.log_softmax(-1),
        "the softmax is taken twice": weights.softmax(-1),
        "the softmax is taken over all scores of a matrix at once; each row has its own": (
            right.flatten(-2).softmax(-1).view_as(right)
        ),
        "the scores are divided by 8, right for heads of 64 values; take sqrt(Dh)": (scores / 8).softmax(-1),
        "no token looks at itself: the diagonal is hidden, and it belongs to the scores": right.masked_fill(
            torch.eye(count, dtype=torch.bool), -math.inf
        ).softmax(-1),
        CAUSAL: right.masked_fill(_later(count), -math.inf).softmax(-1),
        f"{CAUSAL}. And the mask comes after the softmax": weights.tril(),
    }
    mistakes = {sentence: wrong @ v for sentence, wrong in of_values.items()} | {
        "tokens of different images look at each other; attention stays within the last two axes": along,
        "the queries are added; the residual is the block's part, equation 2": weights @ v + q,
        "the values are added; the residual is the block's part, equation 2": weights @ v + v,
        "the keys stand where the values belong: equation 7 is A v": weights @ k,
        "the queries stand where the values belong: equation 7 is A v": weights @ q,
        "these are the weights A; equation 7 applies them to the values": weights,
        "every token looks at itself in full: the values come out as they went in": v,
    }
    return Case((q, k, v), ours.explicit_attention(q, k, v), mistakes)


def without_weights(module: Layers) -> Layers:
    """Let a module of the package return its result alone, where it returns weights, too."""
    module.register_forward_hook(lambda _module, _given, returned: returned[0])
    return module


@class_check(
    "MultiHeadSelfAttention(dim, heads)",
    "(B, T, D)",
    'chapter 3, "Many heads"',
    lambda dim, heads: without_weights(randomise(ours.MultiHeadSelfAttention(dim, heads))),
    [(12, 3), (12, 2), (8, 2)],
    [(2, 5), (1, 7)],
)
def multi_head_attention(reference: ours.MultiHeadSelfAttention, batch: int, count: int) -> Case:
    """Check a class like :class:`vit_from_scratch.model.attention.MultiHeadSelfAttention`.

    It is called as ``cls(dim, heads)``; linear layers ``qkv`` (D to 3 D: all queries, all keys, all values)
    and ``projection``; it returns the result alone, (B, T, D).
    """
    tokens = torch.randn(batch, count, reference.qkv.in_features)
    mistakes = functools.partial(_multi_head_mistakes, reference, tokens, reference.heads)
    return Case((tokens,), reference(tokens), mistakes)


def _multi_head_mistakes(
    reference: ours.MultiHeadSelfAttention, tokens: Tensor, heads: int
) -> dict[str, Tensor]:
    dim = tokens.shape[-1]
    right = 1 / math.sqrt(dim // heads)

    def gather(pattern: str = "qkv h dh", scale: float = right, count: int = heads, axis: int = -1) -> Tensor:
        q, k, v = rearrange(reference.qkv(tokens), f"b t ({pattern}) -> qkv b h t dh", qkv=3, h=count)
        return (q @ k.mT * scale).softmax(axis) @ v

    def join(gathered: Tensor, pattern: str = "(h dh)") -> Tensor:
        return reference.projection(rearrange(gathered, f"b h t dh -> b t {pattern}"))

    q, k, v = rearrange(reference.qkv(tokens), "b t (qkv h dh) -> qkv b h t dh", qkv=3, h=heads)
    result = join(gather())
    cut = [part.reshape(len(tokens), heads, -1, dim // heads) for part in reference.qkv(tokens).chunk(3, -1)]
    sliced = _plain(*cut)
    across = _plain(*(part.movedim(0, 2) for part in (q, k, v))).movedim(2, 0)
    causal = (q @ k.mT * right).masked_fill(_later(tokens.shape[1]), -math.inf).softmax(-1) @ v
    among = _plain(*(part.transpose(1, 2) for part in (q, k, v))).flatten(2)
    by_reshape = "queries, keys and values are cut into heads by reshape alone, which mixes tokens; make "
    by_reshape += "them (B, T, h, Dh), then move the heads' axis: (B, h, T, Dh)"
    unmoved, mean = gather().reshape(tokens.shape), gather().mean(1).repeat(1, 1, heads)
    mixed, strided = gather("h qkv dh"), gather("qkv dh h")
    by_value, every = gather("h dh qkv"), "a head takes every h-th value"
    narrow = gather(scale=heads**-0.5, count=dim // heads)
    all_q = "the result of qkv is all q, then all k, then all v"
    order = "the heads are joined in the wrong order; put each head's Dh values together: (h dh)"
    as_one, axis = "all heads work as one of width D", "rows must sum to 1, so take dim=-1"
    wrong = {
        "the scores are divided by sqrt(D); equation 6 divides by sqrt(Dh)": gather(scale=dim**-0.5),
        "the scores are not divided by sqrt(Dh)": gather(scale=1.0),
        "the scores are divided by Dh; equation 6 divides by its square root": gather(scale=right**2),
        f"{as_one}; split queries, keys and values into heads": gather(scale=dim**-0.5, count=1),
        f"{as_one}, with the scale of a small one": gather(count=1),
        f"q, k and v are interleaved head by head; {all_q}": mixed,
        f"q, k and v are interleaved value by value; {all_q}": by_value,
        f"{every}, and they are joined as if it took Dh neighbouring ones; what comes out of qkv is "
        "(qkv h dh), not (qkv dh h)": strided,
        "there are D / h heads of h values each; `heads` says how many there are, not how wide": narrow,
        **{
            f"the parts are taken to be {order}; they are q, k, v": _plain(*parts)
            for order, parts in {"v, q, k": (k, v, q), "k, v, q": (v, q, k), "v, k, q": (v, k, q)}.items()
        },
        f"the softmax runs over the queries; {axis}": gather(axis=-2),
        f"the softmax runs over the heads; {axis}": gather(axis=1),
        "queries and keys have changed places": (k @ q.mT * right).softmax(-1) @ v,
        "the keys stand where the values belong": (q @ k.mT * right).softmax(-1) @ k,
        CAUSAL: causal,
        "the tokens of one image look at those of others, for attention runs over the batch (as in "
        "nn.MultiheadAttention without batch_first=True); move no axis but the heads'": across,
        "the softmax is missing": q @ k.mT * right @ v,
        "the values come before the keys; the order is q, k, v": (q @ v.mT * right).softmax(-1) @ k,
    }
    return {sentence: join(gathered) for sentence, gathered in wrong.items()} | {
        f"{every}; give each head Dh neighbouring values: (h dh), not (dh h)": join(strided, "(dh h)"),
        order: join(gather(), "(dh h)"),
        "heads and tokens are joined without moving the heads' axis back: (B, h, T, Dh) has to become "
        "(B, T, h, Dh) first": reference.projection(unmoved),
        by_reshape: join(sliced),
        f"{by_reshape}. They are joined in the same way": reference.projection(sliced.reshape(tokens.shape)),
        "the heads of a token attend to each other, and no token to another; move the heads' axis in front "
        "of the tokens', (B, h, T, Dh)": reference.projection(among),
        "the input is normalised; that is the block's part": reference(F.layer_norm(tokens, (dim,))),
        "the output projection (U_msa of equation 8) is missing": gather().transpose(1, 2).flatten(2),
        "the input is added; that is the block's part, equation 2": result + tokens,
        "the heads are averaged; equation 8 puts them side by side": reference.projection(mean),
    }


def _plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


def _masked(q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~real[:, None, None, :], -math.inf).softmax(-1) @ v


@function_check(
    "(B, h, T, Dh)",
    'chapter 3, exercise "Images of different sizes in one batch"',
    _masked,
    [(2, 3, 5, 4, False), (3, 1, 7, 6, False), (2, 2, 6, 16, True)],
    answers=[ours.explicit_attention, ours.fused_attention],
)
def masked_attention(batch: int, heads: int, count: int, width: int, low: bool) -> Case:
    """Check attention that leaves padding out: ``(q, k, v, real)``.

    q, k and v are (B, h, T, Dh); ``real`` (B, T) is True for tokens of the image and False for padding, to
    which no token may look. Padding asks like any other token, so its rows are computed as well.
    """
    q, k, v = torch.randn(3, batch, heads, count, width).unbind()
    real = torch.arange(count) < torch.randint(2, count, (batch, 1))  # one token of padding or more
    real = real.gather(1, torch.rand(batch, count).argsort(1))
    if low:
        # Padding in places that nobody would guess, with scores of its own.
        real = torch.tensor([[0, 1, 0, 1, 1, 1], [1, 0, 1, 1, 1, 1]]).bool()
        # By whole quarters, which no order of adding rounds: scores of -6000, and of about 0 for padding.
        q, k = ((4 * part).round() / 4 for part in (q, k))
        q[0, ..., 0], k[0, ..., 0] = 32.0, torch.where(real[0], -750.0, 0.0)
    right = _masked(q, k, v, real)
    return Case((q, k, v, real), right, _mask_mistakes(q, k, v, real), "scores of -6000" if low else "")


def _mask_mistakes(q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> dict[str, Tensor]:
    plain = q @ k.mT
    scores = plain / math.sqrt(q.shape[-1])
    keys, queries = real[:, None, None, :], real[:, None, :, None]

    def hidden(mask: Tensor, value: float = -math.inf) -> Tensor:
        return scores.masked_fill(~mask, value).softmax(-1) @ v

    numbers = {f"the padding's scores become a number, such as {n}": hidden(keys, n) for n in (-10, -1000)}
    numbers |= {
        f"a number is taken from the padding's scores, such as {value}": torch.where(
            keys, scores, scores - value
        ).softmax(-1)
        @ v
        for value in (10, 1000)
    }
    few = "a real token's score can be lower, and padding is looked at again: put -inf"
    places, counts = torch.arange(real.shape[1]), real.sum(1, keepdim=True)
    weights = scores.softmax(-1) * keys
    zeroed = "are set to 0, and exp(0) = 1 is a share like any other: put -inf into the scores"
    zero, added = hidden(keys, 0.0), (scores + keys).softmax(-1) @ v
    on_both = "the mask falls on queries and keys; hide the keys alone"
    on_queries = "the mask falls on the queries; hide the keys, the last axis of the scores"
    return {f"{said}; {few}": wrong for said, wrong in numbers.items()} | {
        "the padding is taken to be at the end; `real` says where it is": hidden(
            (places < counts)[:, None, None]
        ),
        "the keys end after as many places as the longest image has tokens; `real` says where padding is": (
            hidden(places < counts.max())
        ),
        "the keys end after as many places as the first image has tokens; `real` says where padding is": (
            hidden(places < counts[0])
        ),
        "all images get the first one's mask": hidden(keys[:1]),
        "the mask is not used: the padding is looked at like any token": scores.softmax(-1) @ v,
        "the mask is upside down: True stands for a token of the image": hidden(~keys),
        "the padding is taken away after the softmax, which has given it a share: the rows that are left no "
        "longer sum to 1. Put -inf into its scores before": weights @ v,
        "the padding is taken away after the softmax, and the rest is divided by its sum, 0 where all real "
        "scores lie far below the padding's. Put -inf into its scores before": weights
        / weights.sum(-1, keepdim=True)
        @ v,
        "the padding's scores are 0, and the softmax gives exp(0) = 1 a share like any other: put -inf": zero,
        f"the padding's keys and values {zeroed}": (scores * keys).softmax(-1) @ (v * queries),
        f"the padding's queries, keys and values {zeroed}": (scores * keys * queries).softmax(-1)
        @ (v * queries),
        "the mask is added to the scores as 0 and 1, which hides nothing: put -inf": added,
        on_queries: hidden(queries, -1e9),
        f"{on_queries}. A row of nothing but -inf has no softmax": hidden(queries),
        on_both: hidden(queries & keys, -1e9),
        f"{on_both}. A row of nothing but -inf has no softmax": hidden(queries & keys),
        "the padding's own rows are set to 0; hide only what others see of it": _masked(q, k, v, real)
        * queries,
        "the scores are not divided by sqrt(Dh)": plain.masked_fill(~keys, -math.inf).softmax(-1) @ v,
        "the softmax runs over the queries; rows must sum to 1, so take dim=-1": (
            scores.masked_fill(~keys, -math.inf).softmax(-2).nan_to_num() @ v
        ),
    }


@function_check(
    "(..., T, Dh)",
    'chapter 3, exercise "One key at a time"',
    ours.explicit_attention,
    [((4, 5), 1), ((2, 3, 6, 8), 1), ((5, 4), 150), ((6, 4), -150)],
    answers=[ours.fused_attention],
)
def streamed_attention(shape: tuple[int, ...], size: int) -> Case:
    """Check attention that goes over the keys one at a time: ``(q, k, v)``, each (..., T, Dh).

    The results are those of ``attention``, for scores of hundreds as well. That a row of weights is never
    stored, this check cannot see.
    """
    q, k, v = torch.randn(3, *shape).unbind()
    if abs(size) > 1:
        # The scores fall by 30 and more from key to key: rounding does not count, nor does rescaling.
        q = size / 2 + torch.randint(-4, 5, shape)
        factors = 1 + torch.arange(len(k)) / 4
        k = (factors if size < 0 else factors.flip(0))[:, None].repeat(1, shape[-1])
        q[0] *= 0.01  # a query whose scores lie far from the others'
    mistakes = _stream_mistakes(q, k, v) | (_low_mistakes(q, k, v) if size < 0 else {})
    if size > 1:
        mistakes |= _overflow(q, k, v)
    return Case((q, k, v), ours.explicit_attention(q, k, v), mistakes)


def _stream(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    rescale: tuple[bool, bool] = (True, True),
    start: float | None = -math.inf,
    scale: float | None = None,
    upside_down_from: int | None = None,
    shared: bool = False,
    renewed: bool = True,
) -> tuple[Tensor, Tensor]:
    """Return the sums of weighted values and of weights after the last key, with a mistake or without.

    Without a `start` the running maximum begins with the first score.
    """
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    highest = scores[..., 0] if start is None else torch.full(q.shape[:-1], start)
    gathered, total = torch.zeros_like(v), torch.zeros(q.shape[:-1])
    for j in range(k.shape[-2]):
        higher = torch.maximum(highest, scores[..., j])
        higher = higher.max().expand_as(higher) if shared else higher
        shrink, share = (highest - higher).exp(), (scores[..., j] - higher).exp()
        shrink = 1 / shrink if upside_down_from is not None and j >= upside_down_from else shrink
        gathered = gathered * (shrink[..., None] if rescale[0] else 1)
        gathered = gathered + share[..., None] * v[..., j : j + 1, :]
        total = total * (shrink if rescale[1] else 1) + share
        highest = higher if renewed else highest
    return gathered, total[..., None]


def _stream_mistakes(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    gathered, _ = _stream(q, k, v)

    def ratio(**changes: Any) -> Tensor:
        gathered, total = _stream(q, k, v, **changes)
        return gathered / total

    grown, renew = "when a larger score arrives", "after each key the new one takes its place"
    return {
        f"what was gathered so far is not rescaled {grown}: multiply both sums by exp(old - new maximum)": (
            ratio(rescale=(False, False))
        ),
        f"the sum of weights is not rescaled {grown}; the gathered values are": ratio(rescale=(True, False)),
        f"the gathered values are not rescaled {grown}; the sum of weights is": ratio(rescale=(False, True)),
        f"the rescaling {grown} is upside down: exp(old - new maximum) is at most 1": ratio(
            upside_down_from=1
        ),
        "every value is NaN, as where the rescaling is upside down: exp(new - old maximum) is infinite at "
        "the first key, and 0 * inf is not a number; it is exp(old - new maximum)": ratio(upside_down_from=0),
        f"the running maximum stays the first score; {renew}": ratio(start=None, renewed=False),
        f"the last value is all that is left, as where the running maximum stays -inf; {renew}": (
            ratio(renewed=False)
        ),
        "one maximum serves all queries; each has its own, or weights far below become 0": ratio(shared=True),
        "the gathered values are not divided by the sum of the weights": gathered,
        "every token looks at the keys up to its own alone; there is no causal mask here": (
            scores.masked_fill(_later(k.shape[-2]), -math.inf).softmax(-1) @ v
        ),
        "the scores are not divided by sqrt(Dh)": ratio(scale=1.0),
        "the last key is left out": scores[..., :-1].softmax(-1) @ v[..., :-1, :],
        "the first key is left out": scores[..., 1:].softmax(-1) @ v[..., 1:, :],
        "the values are averaged without weights": v.mean(-2, keepdim=True).expand_as(v),
    }


def _overflow(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    shares = (q @ k.mT / math.sqrt(q.shape[-1])).exp()
    sentence = "no maximum is taken off before exp, which overflows at scores of 89 and more"
    return {sentence: shares @ v / shares.sum(-1, keepdim=True)}


def _low_mistakes(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    gathered, total = _stream(q, k, v, start=0.0)
    return {
        "the running maximum begins at 0: where all scores lie far below, every weight is 0, and 0 / 0 is no "
        "number. Begin at -inf, or with the first score": gathered / total
    }
