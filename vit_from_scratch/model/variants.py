"""Pieces that ablations need: other positions (appendix D.4); locality, a stem, other starts (chapter 9)."""

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.attention import MultiHeadSelfAttention
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.encoder import Block, Encoder, Mlp, require_pair
from vit_from_scratch.model.hybrid import ResNetStem
from vit_from_scratch.model.patches import PatchEmbedding, patchify
from vit_from_scratch.model.tokens import Positions, TokenSequence, grid_of_same_shape


class LocalMlp(Mlp):
    """The MLP with locality: between its two layers each patch also sees its eight neighbours.

    A depth-wise 3 x 3 convolution runs over the patch grid, channel by channel, and its GELU is added to
    what it reads; the class token has no place on the grid and skips the convolution. A variant of
    Li et al. (2021) and Irandoust et al. (2022), whose convolution replaces what it reads.

    Args:
        config: uses ``dim``, ``mlp_dim``, ``dropout``, ``gelu``, ``grid`` and ``class_token``.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config.dim, config.mlp_dim, config.dropout, config.gelu)
        self.grid = config.grid
        self.first_patch = int(config.class_token)
        self.neighbours = nn.Conv2d(config.mlp_dim, config.mlp_dim, 3, padding=1, groups=config.mlp_dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        hidden = self.gelu(self.hidden(tokens))  # (B, T, M)
        first, patches = hidden[:, : self.first_patch], hidden[:, self.first_patch :]
        rows, _ = grid_of_same_shape(self.grid, patches.shape[1])
        image = rearrange(patches, "b (gh gw) m -> b m gh gw", gh=rows)
        local = rearrange(self.neighbours(image), "b m gh gw -> b (gh gw) m")
        hidden = torch.cat([first, patches + self.gelu(local)], dim=1)  # (B, T, M)
        return self.dropout(self.output(self.dropout(hidden)))  # (B, T, D)


class ConvStem(nn.Module):
    """A few convolutions in place of the one linear layer on patches (after Xiao et al., 2021).

    A 3 x 3 convolution at full resolution, then log2(P) more that halve height and width and double the
    channels, each with BatchNorm and ReLU, and a 1 x 1 convolution to the width D: as many tokens as patches.

    Args:
        config: uses ``patch_size`` P (a power of two), ``channels``, ``stem.width`` and ``dim``.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.layers = nn.Sequential()
        width = config.channels
        for index in range(config.patch_size.bit_length()):
            before, width = width, config.stem.width * 2**index
            conv = nn.Conv2d(before, width, 3, 1 if index == 0 else 2, padding=1, bias=False)
            self.layers.extend([conv, nn.BatchNorm2d(width), nn.ReLU(inplace=True)])
        self.projection = nn.Conv2d(width, config.dim, 1)
        # Channels last in memory: there a convolution is fast, and the tokens need no transposing.
        self.to(memory_format=torch.channels_last)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) to embeddings (B, N, D)."""
        features = self.layers(images.contiguous(memory_format=torch.channels_last))  # (B, C', gh, gw)
        return rearrange(self.projection(features), "b d gh gw -> b (gh gw) d")


class NormalisedQueries(nn.Linear):
    """The projection to queries, keys and values, after which q and k of each head are x / RMS(x).

    A score is then sqrt(Dh) cos(q, k): no token can drown out others; learning rates may be higher.

    Args:
        config: uses ``dim``, ``heads`` and ``qkv_bias``.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config.dim, 3 * config.dim, bias=config.qkv_bias)
        self.head_width = config.dim // config.heads

    def forward(self, input: Tensor) -> Tensor:
        """Map tokens (B, T, D) to queries, keys and values side by side, (B, T, 3 D)."""
        q_and_k, v = super().forward(input).tensor_split([2 * self.in_features], dim=-1)
        heads = q_and_k.unflatten(-1, (-1, self.head_width))  # (B, T, 2 h, Dh)
        normalised = F.rms_norm(heads, heads.shape[-1:]).flatten(-2)  # (B, T, 2 D)
        return torch.cat([normalised.to(v.dtype), v], dim=-1)


class RelativeAttention(MultiHeadSelfAttention):
    """Attention whose scores also know how far apart two tokens stand in the sequence (appendix D.4).

    .. math:: A = \\text{softmax}\\big((q_i k_j^T + q_i r_{j-i}^T) / \\sqrt{D_h}\\big)

    There is one learned vector r of width Dh for each distance, the same for all heads of a layer.

    Args:
        config: uses ``dim``, ``heads``, ``qkv_bias`` and ``num_tokens``.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config.dim, config.heads, config.qkv_bias)
        self.farthest = config.num_tokens - 1
        self.relative_position = nn.Parameter(torch.empty(2 * self.farthest + 1, config.dim // config.heads))
        nn.init.normal_(self.relative_position, std=0.02)

    def forward(self, tokens: Tensor, return_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Let every token (B, T, D) gather from all: (B, T, D), and weights (B, h, T, T) if asked for.

        Raises:
            InputError: another number of tokens than the model was built for.
        """
        if tokens.shape[1] != self.farthest + 1:
            raise InputError(
                f"{tokens.shape[1]} tokens: expected {self.farthest + 1}, since relative positions are "
                "learned for one size of images; resize the images."
            )
        q, k, v = rearrange(self.qkv(tokens), "b t (qkv h dh) -> qkv b h t dh", qkv=3, h=self.heads)
        place = torch.arange(tokens.shape[1], device=tokens.device)
        apart = self.relative_position[place - place[:, None] + self.farthest]  # (T, T, Dh)
        scores = q @ k.mT + torch.einsum("bhtd,tsd->bhts", q, apart.to(q.dtype))
        weights = (scores / q.shape[-1] ** 0.5).softmax(dim=-1)  # (B, h, T, T)
        joined = rearrange(weights @ v, "b h t dh -> b t (h dh)")
        return self.projection(joined), weights if return_weights else None


class VariantBlock(Block):
    """A block with what its configuration changes: positions, locality, another start, stochastic depth.

    Args:
        config: as for :class:`Block`, and ``position``, ``position_at``, ``mlp``, ``qk_norm``,
            ``initialisation`` and ``stochastic_depth``.
        layer: counted from 0; the last layer is skipped most often (Huang et al., 2016).
        tokens: the model's, whose positions every layer adds if they are shared.
    """

    def __init__(self, config: ViTConfig, layer: int, tokens: TokenSequence) -> None:
        super().__init__(config)
        if config.position == "relative":
            self.attention = RelativeAttention(config)
        if config.qk_norm:
            self.attention.qkv = NormalisedQueries(config)
            self.attention.reset_parameters()
        self.positions: Positions | None = None
        self.added: list[Positions] = []  # a list: shared ones are not registered
        if layer and config.position_at == "every_layer":
            self.positions = Positions(config)
            self.added = [self.positions]
        elif layer and config.position_at == "every_layer_shared":
            self.added = [tokens]
        if config.mlp == "local":
            self.mlp = LocalMlp(config)
        if config.initialisation == "mimetic":
            mimetic_(self.attention)
        self.skip: nn.Module = nn.Identity()
        if config.stochastic_depth and layer:
            from torchvision.ops import StochasticDepth  # imported here: few models want it

            self.skip = StochasticDepth(config.stochastic_depth * layer / (config.depth - 1), mode="row")

    def forward(self, tokens: Tensor, return_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Map tokens (B, T, D) to tokens (B, T, D); weights (B, h, T, T) only if asked for."""
        for positions in self.added:
            position = positions.position_embedding(tokens.shape[1] - positions.first_patch)
            assert position is not None  # they are learned
            tokens = tokens + position.to(tokens.dtype)
        gathered, weights = require_pair(self.attention(self.attention_norm(tokens), return_weights))
        tokens = tokens + self.skip(self.dropout(gathered))
        tokens = tokens + self.skip(self.mlp(self.mlp_norm(tokens)))
        return tokens, weights


def build_encoder(config: ViTConfig, tokens: TokenSequence) -> Encoder:
    """Build the encoder over a model's tokens: plain blocks, unless the configuration asks for others."""
    plain = (
        config.position != "relative"
        and config.position_at == "stem"
        and config.mlp == "dense"
        and config.initialisation == "xavier"
        and config.stochastic_depth == 0
        and not config.qk_norm
    )
    if plain:
        return Encoder(config)
    return Encoder(config, (VariantBlock(config, layer, tokens) for layer in range(config.depth)))


def build_stem(config: ViTConfig) -> PatchEmbedding | ConvStem | ResNetStem:
    """Build what turns images (B, C, H, W) into embeddings (B, N, D), by the kind of stem."""
    if config.stem.kind == "patch":
        return PatchEmbedding(config.patch_size, config.channels, config.dim)
    return ConvStem(config) if config.stem.kind == "conv" else ResNetStem(config)


@torch.no_grad()
def mimetic_(attention: MultiHeadSelfAttention) -> None:
    """Begin as trained ViTs end: each token looks at tokens like itself, and its value is taken away from it.

    In trained models the product of query and key weights is close to a multiple of the identity, that of
    value and output weights to a negative one (Trockman and Kolter, 2023). Here, for every head,
    :math:`U_q U_k^T` is the best approximation of its rank Dh to :math:`0.7 Z + 0.7 I`, and, for all heads
    together, :math:`U_v U_{msa} = 0.4 Z - 0.4 I`, with Z from N(0, 1 / D). Biases are 0.
    """
    if attention.projection.weight.is_meta:
        return  # weights from elsewhere will come: nothing to decompose
    dim = attention.projection.in_features
    width = dim // attention.heads
    queries, keys, values = attention.qkv.weight.chunk(3)  # (D, D) each: head by head, Dh rows
    identity = torch.eye(dim, device=queries.device, dtype=queries.dtype)

    def near_identity(noise: float, diagonal: float) -> tuple[Tensor, Tensor]:
        """Two factors (D, D), left times right, with the strongest directions first."""
        drawn = torch.randn_like(identity) / dim**0.5
        left, sizes, right = torch.linalg.svd(noise * drawn + diagonal * identity)
        return left * sizes.sqrt(), sizes.sqrt()[:, None] * right

    for query, key in zip(queries.split(width), keys.split(width), strict=True):
        left, right = near_identity(0.7, 0.7)
        query.copy_(left[:, :width].T)  # a row of weights maps to one value of q
        key.copy_(right[:width])
    left, right = near_identity(0.4, -0.4)
    values.copy_(left.T)
    attention.projection.weight.copy_(right.T)
    for bias in (attention.qkv.bias, attention.projection.bias):
        if bias is not None:
            bias.zero_()


@torch.no_grad()
def whiten_(embedding: PatchEmbedding, images: Tensor) -> None:
    """Let a patch embedding begin with outputs that vary alike in all directions over some images' patches.

    Patches of photos are mostly brightness, and fine detail is faint in them: the eigenvalues S of their
    covariance U S U^T fall steeply. E begins as a rotation of (S + 0.01 mean(S))^(-1/2) U^T, times
    sqrt(D / min(D, P^2 C)), and the bias takes the mean away. Fast recipes for CIFAR-10 (Page, 2019; Jordan,
    2024) have such a first layer, and do not train it.

    Args:
        embedding: its weights are changed in place; the rotation is drawn from torch's global generator.
        images: (B, C, H, W) floats, normalised as the model's are.
    """
    weight, bias = embedding.projection.weight, embedding.projection.bias  # (D, P^2 C), (D,)
    patches = patchify(images, embedding.patch_size).flatten(0, 1)  # (B N, P^2 C)
    sizes, directions = torch.linalg.eigh(patches.T.cov())
    whitening = (directions / (sizes + 0.01 * sizes.mean()).sqrt()).T  # (P^2 C, P^2 C)
    rotation = nn.init.orthogonal_(torch.empty_like(weight))  # (D, P^2 C)
    weight.copy_((weight.shape[0] / min(weight.shape)) ** 0.5 * rotation @ whitening)
    bias.copy_(-(weight @ patches.mean(0)))
