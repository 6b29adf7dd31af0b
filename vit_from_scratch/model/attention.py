"""Chapter 3: scaled dot-product attention, explicit and fused, and its multi-head form."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.precisions import has_bfloat16_units

BFLOAT16_IS_IMITATED = not has_bfloat16_units("cpu")


def attention_weights(q: Tensor, k: Tensor) -> Tensor:
    """How much every token looks at every other (equation 6): softmax(q k^T / sqrt(Dh)).

    Queries and keys are (..., T, Dh), the result (..., T, T); row i holds the weights of token i, sum 1.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, T)
    return scores.softmax(dim=-1)


def explicit_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention as equations 6 and 7 write it: form the weights A, then apply them to v; all (..., T, Dh)."""
    return attention_weights(q, k) @ v


def fused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The result of :func:`explicit_attention`, by a kernel that, where it can, never stores the weights."""
    return F.scaled_dot_product_attention(q, k, v)


def fused_is_faster(q: Tensor) -> bool:
    """Whether to take the fused kernel for queries like these (B, h, T, Dh).

    On a GPU always. On a CPU the fused kernel is slower in bfloat16 for short sequences, where the
    T x T weights fit in the cache anyway; ``benchmarks/attention_paths.py`` puts the crossover between 577
    and 1,025 tokens. On a CPU that emulates bfloat16 it is slower for short ones only in training.
    """
    if q.device.type != "cpu" or q.dtype != torch.bfloat16 or q.shape[-2] > 640:
        return True
    return BFLOAT16_IS_IMITATED and not q.requires_grad


class MultiHeadSelfAttention(nn.Module):
    """h attentions side by side, then one projection (equations 5 to 8, appendix A).

    One matrix holds queries, keys and values of all heads: in the result of ``qkv`` come all heads'
    queries, then all keys, then all values, each head's Dh values together.

    Args:
        dim: width D of the tokens.
        heads: number h of heads; Dh = D / h.
        qkv_bias: whether queries, keys and values get a bias.

    Raises:
        InputError: the heads do not divide the width.
    """

    def __init__(self, dim: int, heads: int, qkv_bias: bool = True) -> None:
        super().__init__()
        if heads < 1 or dim % heads:
            raise InputError(
                f"heads={heads} does not divide dim={dim}: expected a divisor; change one of them."
            )
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)  # U_qkv of every head
        self.projection = nn.Linear(dim, dim)  # U_msa
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform for q, k, v and the projection; biases 0.

        Each of q, k and v is drawn with its own fan (D in, D out). Drawn as one D x 3D matrix they
        would come out too small by a factor of sqrt(2).
        """
        for weight in (*self.qkv.weight.chunk(3), self.projection.weight):
            nn.init.xavier_uniform_(weight)
        for layer in (self.qkv, self.projection):
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, tokens: Tensor, return_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Let every token (B, T, D) gather from all: (B, T, D), and weights (B, h, T, T) if asked for."""
        q, k, v = rearrange(self.qkv(tokens), "b t (qkv h dh) -> qkv b h t dh", qkv=3, h=self.heads)
        weights = None
        if return_weights or not fused_is_faster(q):
            weights = attention_weights(q, k)  # (B, h, T, T)
            gathered = weights @ v  # (B, h, T, Dh)
        else:
            gathered = fused_attention(q, k, v)
        joined = rearrange(gathered, "b h t dh -> b t (h dh)")
        return self.projection(joined), weights if return_weights else None
