"""Checks of chapter 3: scaled dot-product attention and its multi-head form."""

import math
from collections.abc import Callable

import torch
from einops import rearrange
from torch import Tensor

from vit_classroom.checks.judging import check, judge_function, judge_module
from vit_classroom.checks.report import Case, Piece, randomise
from vit_from_scratch.model import attention as ours

ATTENTION = Piece("attention", "attention(q, k, v)", "(..., T, Dh)", 'chapter 3, "Queries, keys and values"')
MULTI_HEAD = Piece(
    "MultiHeadSelfAttention",
    "MultiHeadSelfAttention(dim, heads)",
    "(B, T, D)",
    'chapter 3, "Many heads"',
    pair=True,
)


@check(ATTENTION)
def attention(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function of q, k and v, each (..., T, Dh), like ``explicit_attention``.

    Raises:
        CheckFailed: if it differs; the message names a wrong scale or a softmax over the wrong axis.
    """
    cases = []
    for shape in [(3, 4), (2, 5, 6), (2, 3, 7, 8)]:
        q, k, v = torch.randn(3, *shape).unbind()
        scores, width, count = q @ k.mT, shape[-1], shape[-2]
        right = scores / math.sqrt(width)
        mistakes = {
            "the scores are not divided by sqrt(Dh)": scores.softmax(-1) @ v,
            "the scores are multiplied by sqrt(Dh); equation 6 divides": (scores * math.sqrt(width)).softmax(
                -1
            )
            @ v,
            "the scores are divided by Dh; equation 6 divides by its square root": (scores / width).softmax(
                -1
            )
            @ v,
            "the scores are divided by sqrt(T), the number of tokens; equation 6 takes sqrt(Dh), the width": (
                (scores / math.sqrt(count)).softmax(-1) @ v
            ),
            "the softmax runs over the queries; rows must sum to 1, so take dim=-1": right.softmax(-2) @ v,
            "the softmax runs over the first axis; rows must sum to 1, so take dim=-1": right.softmax(0) @ v,
            "the softmax is missing": right @ v,
            "the division comes after the softmax; equation 6 divides the scores": scores.softmax(-1)
            / math.sqrt(width)
            @ v,
            "queries and keys have changed places: q k^T, not k q^T": right.mT.softmax(-1) @ v,
            "the weights are transposed before they meet the values": right.softmax(-1).mT @ v,
            "the keys stand where the values belong: equation 7 is A v": right.softmax(-1) @ k,
            "the queries stand where the values belong: equation 7 is A v": right.softmax(-1) @ q,
            "these are the weights A; equation 7 applies them to the values": right.softmax(-1),
            "every token looks at itself in full: the values come out as they went in": v,
            "a sigmoid stands in place of the softmax": right.sigmoid() @ v,
        }
        label = f"q, k and v of shape {shape}"
        cases.append(Case((q, k, v), ours.explicit_attention(q, k, v), mistakes, label))
    judge_function(
        ATTENTION, function, ours.explicit_attention, cases, [ours.explicit_attention, ours.fused_attention]
    )


@check(MULTI_HEAD)
def multi_head_attention(cls: Callable[[int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.attention.MultiHeadSelfAttention`.

    It is called as ``cls(dim, heads)``; linear layers ``qkv`` (D to 3 D: all queries, all keys, all values)
    and ``projection``; it returns the result (B, T, D), or a pair that begins with it.

    Raises:
        CheckFailed: if parameters or results differ.
    """
    dim, heads = 12, 3
    reference = ours.MultiHeadSelfAttention(dim, heads)
    randomise(reference)

    def cases() -> list[Case]:
        found = []
        for batch, count in ((2, 5), (3, 7)):
            tokens = torch.randn(batch, count, dim)
            label = f"tokens of shape {tuple(tokens.shape)}, {heads} heads"
            mistakes = _multi_head_mistakes(reference, tokens, heads)
            found.append(Case((tokens,), reference(tokens)[0], mistakes, label))
        return found

    judge_module(MULTI_HEAD, cls, (dim, heads), reference, cases)


def _multi_head_mistakes(
    reference: ours.MultiHeadSelfAttention, tokens: Tensor, heads: int
) -> dict[str, Tensor]:
    def parts(pattern: str, count: int = heads) -> tuple[Tensor, ...]:
        return tuple(rearrange(reference.qkv(tokens), f"b t ({pattern}) -> qkv b h t dh", qkv=3, h=count))

    def gather(pattern: str, scale: float, count: int = heads) -> Tensor:
        q, k, v = parts(pattern, count)
        return (q @ k.mT * scale).softmax(-1) @ v

    def join(gathered: Tensor, pattern: str = "(h dh)") -> Tensor:
        return reference.projection(rearrange(gathered, f"b h t dh -> b t {pattern}"))

    dim = tokens.shape[-1]
    right = 1 / math.sqrt(dim // heads)
    q, k, v = parts("qkv h dh")
    result = join(gather("qkv h dh", right))
    order = "the heads are joined in the wrong order; put each head's Dh values together: (h dh)"
    return {
        "the scores are divided by sqrt(D); equation 6 divides by sqrt(Dh), the width of one head": join(
            gather("qkv h dh", 1 / math.sqrt(dim))
        ),
        "the scores are not divided by sqrt(Dh)": join(gather("qkv h dh", 1.0)),
        "the scores are divided by Dh; equation 6 divides by its square root": join(
            gather("qkv h dh", right**2)
        ),
        "all heads work as one of width D; split queries, keys and values into heads": join(
            gather("qkv h dh", 1 / math.sqrt(dim), 1)
        ),
        "all heads work as one of width D, with the scale of a small one": join(gather("qkv h dh", right, 1)),
        "a head takes every h-th value; give each head Dh neighbouring values: (h dh), not (dh h)": join(
            gather("qkv dh h", right), "(dh h)"
        ),
        "q, k and v are interleaved head by head; the result of qkv is all q, then all k, then all v": join(
            gather("h qkv dh", right)
        ),
        order: join(gather("qkv h dh", right), "(dh h)"),
        "heads and tokens are joined without moving the heads' axis back: (B, h, T, Dh) has to become "
        "(B, T, h, Dh) first": reference.projection(gather("qkv h dh", right).reshape(tokens.shape)),
        "the output projection (U_msa of equation 8) is missing": rearrange(
            gather("qkv h dh", right), "b h t dh -> b t (h dh)"
        ),
        "the softmax runs over the queries; rows must sum to 1, so take dim=-1": join(
            (q @ k.mT * right).softmax(-2) @ v
        ),
        "the softmax runs over the heads; rows must sum to 1, so take dim=-1": join(
            (q @ k.mT * right).softmax(1) @ v
        ),
        "queries and keys have changed places": join((k @ q.mT * right).softmax(-1) @ v),
        "the keys stand where the values belong": join((q @ k.mT * right).softmax(-1) @ k),
        "the values come before the keys; the order is q, k, v": join((q @ v.mT * right).softmax(-1) @ k),
        "the input is added; that is the block's part, equation 2": result + tokens,
        "the heads are averaged; equation 8 puts them side by side": reference.projection(
            gather("qkv h dh", right).mean(1).repeat(1, 1, heads)
        ),
    }
