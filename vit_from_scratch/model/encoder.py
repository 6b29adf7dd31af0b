"""Chapter 4: the MLP, the pre-norm block and the stack of blocks."""

from collections.abc import Iterable
from typing import Literal

from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.attention import MultiHeadSelfAttention
from vit_from_scratch.model.config import ViTConfig


class Mlp(nn.Module):
    """Two dense layers with a GELU between them, for each token on its own (section 3.1).

    Args:
        dim: width D in and out.
        mlp_dim: hidden width M.
        dropout: probability of dropping a value after each of the two layers.
        gelu: ``"erf"`` for the exact GELU, ``"tanh"`` for the approximation of the released JAX code.
    """

    def __init__(
        self, dim: int, mlp_dim: int, dropout: float = 0.0, gelu: Literal["erf", "tanh"] = "erf"
    ) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim, mlp_dim)
        self.gelu = nn.GELU(approximate="tanh" if gelu == "tanh" else "none")
        self.output = nn.Linear(mlp_dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-uniform weights and normal biases of standard deviation 1e-6, as in the reference code."""
        for layer in (self.hidden, self.output):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        hidden = self.dropout(self.gelu(self.hidden(tokens)))  # (B, T, M)
        return self.dropout(self.output(hidden))  # (B, T, D)


class Block(nn.Module):
    """One encoder layer: attention, then MLP, each on normalised input and added back.

    .. math::
        z'_\\ell &= \\text{MSA}(\\text{LN}(z_{\\ell-1})) + z_{\\ell-1} \\qquad (2) \\\\
        z_\\ell &= \\text{MLP}(\\text{LN}(z'_\\ell)) + z'_\\ell \\qquad\\quad (3)

    Whatever replaces `attention` is called as `attention(tokens, return_weights)`, and returns tokens
    (B, T, D) and weights (B, h, T, T), or None for these.

    Args:
        config: uses ``dim``, ``heads``, ``mlp_dim``, ``dropout``, ``qkv_bias``, ``layer_norm_eps`` and
            ``gelu``.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.dim, eps=config.layer_norm_eps)
        self.attention = MultiHeadSelfAttention(config.dim, config.heads, config.qkv_bias)
        self.dropout = nn.Dropout(config.dropout)
        self.mlp_norm = nn.LayerNorm(config.dim, eps=config.layer_norm_eps)
        self.mlp = Mlp(config.dim, config.mlp_dim, config.dropout, config.gelu)

    def forward(self, tokens: Tensor, return_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Map tokens (B, T, D) to tokens (B, T, D); weights (B, h, T, T) only if asked for."""
        gathered, weights = require_pair(self.attention(self.attention_norm(tokens), return_weights))
        tokens = tokens + self.dropout(gathered)  # equation 2
        tokens = tokens + self.mlp(self.mlp_norm(tokens))  # equation 3
        return tokens, weights


def require_pair(gathered: tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor | None]:
    """Return what attention returned; refuse a single tensor: for two images it would unpack as a pair."""
    if not isinstance(gathered, tuple):
        raise InputError(f"attention returned {type(gathered).__name__}: expected (tokens, weights or None).")
    return gathered


class Encoder(nn.Module):
    """L blocks, then (unless ``config.norm`` says otherwise) the final LayerNorm of equation 4.

    Args:
        config: the whole model's configuration.
        blocks: other blocks than the plain ones, for an ablation.
    """

    def __init__(self, config: ViTConfig, blocks: Iterable[nn.Module] | None = None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks or (Block(config) for _ in range(config.depth)))
        final = config.norm == "final"
        self.norm = nn.LayerNorm(config.dim, eps=config.layer_norm_eps) if final else nn.Identity()

    def forward(self, tokens: Tensor, intermediates: dict[str, list[Tensor]] | None = None) -> Tensor:
        """Map z_0 (B, T, D) to `norm` of z_L (B, T, D).

        It leaves in `intermediates`, layer by layer, ``"attention"`` (B, h, T, T) and ``"layers"`` (B, T, D).
        """
        if intermediates is not None:
            intermediates |= {"attention": [], "layers": []}
        for block in self.blocks:
            tokens, weights = block(tokens, return_weights=intermediates is not None)
            if intermediates is not None:
                intermediates["attention"].append(weights)
                intermediates["layers"].append(tokens)
        return self.norm(tokens)
