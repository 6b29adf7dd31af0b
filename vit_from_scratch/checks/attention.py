"""Checks of chapter 3: scaled dot-product attention and its multi-head form."""

import math
from collections.abc import Callable

import torch
from einops import rearrange
from torch import Tensor

from vit_from_scratch.checks.report import call, compare, passed, randomise, with_weights_of
from vit_from_scratch.model import attention as ours


def attention(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function of q, k and v, each (..., T, Dh), like ``explicit_attention``.

    Raises:
        CheckFailed: if it differs; the message names a wrong scale or a softmax over the wrong axis.
    """
    for shape in [(3, 4), (2, 5, 6), (2, 3, 7, 8)]:
        q, k, v = torch.randn(3, *shape).unbind()
        scores, width = q @ k.transpose(-2, -1), shape[-1]
        mistakes = {
            "the scores are not divided by sqrt(Dh).": scores.softmax(-1) @ v,
            "the scores are multiplied by sqrt(Dh); equation 6 divides.": (scores * math.sqrt(width)).softmax(
                -1
            )
            @ v,
            "the scores are divided by Dh; equation 6 divides by its square root.": (scores / width).softmax(
                -1
            )
            @ v,
            "the softmax runs over the queries; rows must sum to 1, so take dim=-1.": (
                (scores / math.sqrt(width)).softmax(-2) @ v
            ),
            "the softmax is missing.": scores / math.sqrt(width) @ v,
        }
        compare("attention", call("attention", function, q, k, v), ours.explicit_attention(q, k, v), mistakes)
    passed("attention", "3 shapes agree with the package")


def multi_head_attention(cls: Callable[[int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.attention.MultiHeadSelfAttention`.

    Args:
        cls: called as ``cls(dim, heads)``; linear layers ``qkv`` (D to 3 D: all queries, all keys, all
            values) and ``projection``; returns the result (B, T, D), or a pair that begins with it.

    Raises:
        CheckFailed: if parameters or results differ.
    """
    dim, heads = 12, 3
    reference = ours.MultiHeadSelfAttention(dim, heads)
    randomise(reference)
    theirs = with_weights_of(
        "MultiHeadSelfAttention", call("MultiHeadSelfAttention", cls, dim, heads), reference
    )
    tokens = torch.randn(2, 5, dim)
    got = call("MultiHeadSelfAttention", theirs, tokens)
    got = got[0] if isinstance(got, tuple) else got
    name = "MultiHeadSelfAttention"
    compare(name, got, reference(tokens)[0], _multi_head_mistakes(reference, tokens, heads))
    passed(name, "same weights, same result as the package")


def _multi_head_mistakes(
    reference: ours.MultiHeadSelfAttention, tokens: Tensor, heads: int
) -> dict[str, Tensor]:
    def gather(pattern: str, scale: float) -> Tensor:
        q, k, v = rearrange(reference.qkv(tokens), f"b t ({pattern}) -> qkv b h t dh", qkv=3, h=heads)
        return (q @ k.transpose(-2, -1) * scale).softmax(-1) @ v

    def join(gathered: Tensor, pattern: str = "(h dh)") -> Tensor:
        return reference.projection(rearrange(gathered, f"b h t dh -> b t {pattern}"))

    dim = tokens.shape[-1]
    right = 1 / math.sqrt(dim // heads)
    return {
        "the scores are divided by sqrt(D); equation 6 divides by sqrt(Dh), the width of one head.": join(
            gather("qkv h dh", 1 / math.sqrt(dim))
        ),
        "the scores are not divided by sqrt(Dh).": join(gather("qkv h dh", 1.0)),
        "a head takes every h-th value; give each head Dh neighbouring values: (h dh), not (dh h).": join(
            gather("qkv dh h", right), "(dh h)"
        ),
        "q, k and v are interleaved head by head; the result of qkv is all q, then all k, then all v.": join(
            gather("h qkv dh", right)
        ),
        "the heads are joined in the wrong order; put each head's Dh values together: (h dh).": join(
            gather("qkv h dh", right), "(dh h)"
        ),
        "the output projection (U_msa of equation 8) is missing.": rearrange(
            gather("qkv h dh", right), "b h t dh -> b t (h dh)"
        ),
    }
