"""Checks of the exercises of Part I: what a reader builds beside the pieces of the model."""

import copy
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from vit_classroom.checks.encoder import block_mistakes
from vit_classroom.checks.judging import check, judge_function, judge_module
from vit_classroom.checks.patches import ORDERS
from vit_classroom.checks.report import Case, Piece, randomise
from vit_classroom.checks.starts import starts_at_zero, starts_normal
from vit_classroom.checks.tokens import with_class_token
from vit_classroom.checks.vit import FIELDS
from vit_from_scratch.model import attention as package_attention
from vit_from_scratch.model import cost, encoder, tokens, vit
from vit_from_scratch.model.config import ViTConfig

OVERLAPPING = Piece(
    "overlapping_patches",
    "overlapping_patches(images, patch_size, stride)",
    "(B, N, P P C)",
    'chapter 1, exercise "Patches that overlap"',
    exact=True,
)
GRID_POSITION = Piece(
    "GridPosition",
    "GridPosition(rows, columns, dim)",
    "(1, N, D)",
    'chapter 2, exercise "Rows and columns apart"',
)
OPTION = Piece(
    "TokenSequenceWithOption",
    "TokenSequenceWithOption(num_patches, dim, class_token)",
    "(B, T, D)",
    'chapter 2, exercise "Without a class token"',
)
WITHOUT_TOKEN = Piece(
    "TokenSequenceWithOption(..., class_token=False)", OPTION.call, "(B, N, D)", OPTION.where
)
MASKED = Piece(
    "masked_attention",
    "masked_attention(q, k, v, real)",
    "(B, h, T, Dh)",
    'chapter 3, exercise "Images of different sizes in one batch"',
)
STREAMED = Piece(
    "streamed_attention",
    "streamed_attention(q, k, v)",
    "(..., T, Dh)",
    'chapter 3, exercise "One key at a time"',
)
LAYER_NORM = Piece(
    "layer_norm",
    "layer_norm(x, weight, bias, eps)",
    "(..., D)",
    'chapter 4, exercise "LayerNorm from scratch"',
)
DROPOUT = Piece(
    "BlockWithDropout",
    "BlockWithDropout(dim, heads, mlp_dim, dropout)",
    "(B, T, D)",
    'chapter 4, exercise "Dropout in its three places"',
    pair=True,
)
IN_TRAINING = dataclasses.replace(DROPOUT, gradients=False)
PARAMETERS = Piece(
    "predicted_parameters",
    "predicted_parameters(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes)",
    "or a plain number",
    'chapter 5, "Counting parameters"',
    exact=True,
    number=True,
    gradients=False,
)
OPERATIONS = dataclasses.replace(
    PARAMETERS,
    name="predicted_operations",
    call=PARAMETERS.call.replace("parameters", "operations"),
    where='chapter 5, exercise "The bill in operations"',
)
MEAN_VIT = Piece("MeanViT", "MeanViT(image_size=, ...)", "(B, K)", 'chapter 5, exercise "Average pooling"')
QKV_FROM_JAX = Piece(
    "qkv_from_jax",
    "qkv_from_jax(query, key, value)",
    "(3 D, D)",
    'chapter 6, exercise "Weights from another house"',
    exact=True,
)
STRETCHED = Piece(
    "stretch_positions",
    "stretch_positions(table, count)",
    "(count, D)",
    'chapter 6, exercise "Corner on corner"',
)


@check(OVERLAPPING)
def overlapping_patches(function: Callable[[Tensor, int, int], Tensor]) -> None:
    """Check a function ``(images, patch_size, stride)`` that cuts overlapping patches, (B, N, P P C).

    Images are (B, C, H, W). A window of P x P pixels moves by ``stride``; windows that would not fit are left
    out. Patches come row by row, the values of each as ``patchify`` orders them.

    Raises:
        CheckFailed: if it differs; the message names the order of axes, or another stride.
    """
    cases = []
    for batch, channels, height, width, size, stride in [
        (1, 1, 6, 6, 2, 1),
        (2, 3, 12, 15, 6, 3),
        (3, 2, 11, 9, 5, 2),
        (2, 3, 14, 12, 5, 3),
    ]:
        images = torch.randn(batch, channels, height, width)
        order = "b (gh gw) (p1 p2 c)"
        right = _windows(images, size, stride, order)
        unfolded = F.unfold(images, size, stride=stride)
        mistakes = {sentence: _windows(images, size, stride, wrong) for wrong, sentence in ORDERS.items()} | {
            "the last two axes are swapped: one row for each patch, (B, N, P P C)": right.mT,
            "the last two axes are swapped, and F.unfold puts channels first inside a patch": unfolded,
            "the rows of F.unfold are cut anew by reshape; its last two axes have to change places": (
                unfolded.reshape(right.shape)
            ),
            "the stride is not used: the patches lie side by side": _windows(images, size, size, order),
            "the windows move by patch_size - stride; the stride itself is the step": _windows(
                images, size, size - stride, order
            ),
            "patch_size and stride have changed places": _windows(images, stride, size, order),
            "the images are padded; windows that would not fit are left out": _windows(
                F.pad(images, [size // 2] * 4), size, stride, order
            ),
        }
        label = f"images of shape {tuple(images.shape)}, patch_size {size}, stride {stride}"
        cases.append(Case((images, size, stride), right, mistakes, label))

    def ours(images: Tensor, size: int, stride: int) -> Tensor:
        return _windows(images, size, stride, "b (gh gw) (p1 p2 c)")

    judge_function(OVERLAPPING, function, ours, cases, [])


def _windows(images: Tensor, size: int, stride: int, order: str) -> Tensor:
    cut = images.unfold(2, size, stride).unfold(3, size, stride)
    return rearrange(cut, f"b c gh gw p1 p2 -> {order}")


class _GridPosition(nn.Module):
    """One vector for each row and one for each column; a place has their sum."""

    def __init__(self, rows: int, columns: int, dim: int) -> None:
        super().__init__()
        self.row = nn.Parameter(0.02 * torch.randn(rows, dim))
        self.column = nn.Parameter(0.02 * torch.randn(columns, dim))

    def forward(self) -> Tensor:
        """Return the positions, (1, N, D)."""
        return rearrange(self.row[:, None] + self.column, "gh gw d -> 1 (gh gw) d")


@check(GRID_POSITION)
def grid_position(cls: Callable[[int, int, int], object]) -> None:
    """Check a class of positions that are the sum of a row's vector and a column's.

    It is called as ``cls(rows, columns, dim)``; parameters ``row`` (rows, D) and ``column`` (columns, D),
    which start as N(0, 0.02); ``forward()`` takes nothing and returns (1, N, D), row by row.

    Raises:
        CheckFailed: if parameters or results differ.
    """
    for rows, columns, width, started in ((12, 9, 256, _look_at_grid), (3, 4, 8, lambda module: None)):
        reference = _GridPosition(rows, columns, width)
        randomise(reference)

        def cases(reference: _GridPosition = reference) -> list[Case]:
            row, column = reference.row, reference.column
            grid = row[:, None] + column
            joined = torch.cat(
                [row[:, None].expand_as(grid), column.expand_as(grid)], dim=-1
            )  # the paper's form, twice as wide
            mistakes = {
                "the places come column by column; let the rows run slowest": grid.transpose(0, 1).flatten(
                    0, 1
                )[None],
                "the places have only their row's vector: add the column's": row.repeat_interleave(
                    len(column), 0
                )[None],
                "the places have only their column's vector: add the row's": column.repeat(len(row), 1)[None],
                "row and column are joined side by side; here they are added": joined.flatten(0, 1)[None],
                "row and column are multiplied; here they are added": (row[:, None] * column).flatten(0, 1)[
                    None
                ],
                "row and column are averaged; here they are added": grid.flatten(0, 1)[None] / 2,
                "the column's vector is taken away; here it is added": (row[:, None] - column).flatten(0, 1)[
                    None
                ],
                "the grid is not flattened: the result is (1, N, D)": grid,
                "the grid is not flattened: the result is (1, N, D), N in place of rows and columns": (
                    grid[None]
                ),
                "the first axis is missing: (1, N, D) can be added to any batch": grid.flatten(0, 1),
            }
            label = f"{len(row)} rows and {len(column)} columns"
            return [Case((), reference(), mistakes, label)]

        judge_module(GRID_POSITION, cls, (rows, columns, width), reference, cases, started)


def _look_at_grid(module: nn.Module) -> None:
    starts_normal(GRID_POSITION, module, "row", 0.02)
    starts_normal(GRID_POSITION, module, "column", 0.02)


@check(OPTION)
def optional_class_token(cls: Callable[..., object]) -> None:
    """Check a class like the one of :func:`token_sequence` that can leave its class token out.

    It is called with the keywords ``num_patches, dim, class_token``. With ``class_token=True`` it is that
    class; with False its only parameter is ``position`` (1, N, D), and it maps (B, N, D) to (B, N, D).

    Raises:
        CheckFailed: if parameters or results differ, with the token or without.
    """
    side, width = 5, 128
    count = side**2
    for piece, wanted in ((OPTION, True), (WITHOUT_TOKEN, False)):
        config = ViTConfig(
            image_size=side,
            patch_size=1,
            channels=1,
            dim=width,
            depth=1,
            heads=2,
            mlp_dim=8,
            class_token=wanted,
            pool="cls" if wanted else "gap",
        )
        reference = tokens.TokenSequence(config)
        randomise(reference)

        def cases(reference: nn.Module = reference, wanted: bool = wanted) -> list[Case]:
            found = []
            for batch in (1, 3):
                embeddings = torch.randn(batch, count, width)
                mistakes = with_class_token if wanted else _without_class_token
                label = f"embeddings of shape {tuple(embeddings.shape)}, class_token={wanted}"
                found.append(
                    Case((embeddings,), reference(embeddings), mistakes(reference, embeddings), label)
                )
            return found

        def started(module: nn.Module, piece: Piece = piece, wanted: bool = wanted) -> None:
            if wanted:
                starts_at_zero(piece, module, ["class_token"], "the reference code begins it at 0")
            starts_normal(piece, module, "position", 0.02)

        arguments = {"num_patches": count, "dim": width, "class_token": wanted}
        judge_module(piece, cls, arguments, reference, cases, started)


def _without_class_token(reference: nn.Module, embeddings: Tensor) -> dict[str, Tensor]:
    position = reference.get_parameter("position")
    zeros = torch.zeros_like(embeddings[:, :1])
    placed = embeddings + position
    return {
        "the positions are not added": embeddings,
        "the positions are added twice": placed + position,
        "each token gets the position of the one before it": embeddings + position.roll(1, dims=1),
        "each token gets the position of the one after it": embeddings + position.roll(-1, dims=1),
        "every token gets the same position, the first": embeddings + position[:, :1],
        "the first patch gets no position; without a class token it is a token like any other": torch.cat(
            [embeddings[:, :1], placed[:, 1:]], 1
        ),
        "the first patch is lost; without a class token place 0 is a patch": placed[:, 1:],
        "a token of zeros still stands in front; leave it out": torch.cat([zeros, placed], 1),
        "the tokens are averaged; that is the part of the model's other end": placed.mean(1),
    }


@check(MASKED)
def masked_attention(function: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check attention that leaves padding out: ``(q, k, v, real)``.

    q, k and v are (B, h, T, Dh); ``real`` (B, T) is True for tokens of the image and False for padding, to
    which no token may look. Padding asks like any other token, so its rows are computed as well.

    Raises:
        CheckFailed: if it differs; the message names a mask that comes too late, or falls on the wrong axis.
    """
    cases = []
    for batch, heads, count, width in [(2, 3, 5, 4), (3, 1, 7, 6), (2, 2, 4, 8)]:
        q, k, v = torch.randn(3, batch, heads, count, width).unbind()
        real = torch.arange(count) < torch.randint(2, count, (batch, 1))  # one token of padding or more
        real = real.gather(1, torch.rand(batch, count).argsort(1))
        label = f"q, k and v of shape {(batch, heads, count, width)}, real of shape {(batch, count)}"
        right = _masked(q, k, v, real)
        cases.append(Case((q, k, v, real), right, _mask_mistakes(q, k, v, real), label))
    answers = [package_attention.explicit_attention, package_attention.fused_attention]
    judge_function(MASKED, function, _masked, cases, answers)


def _masked(q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~real[:, None, None, :], -math.inf).softmax(-1) @ v


def _mask_mistakes(q: Tensor, k: Tensor, v: Tensor, real: Tensor) -> dict[str, Tensor]:
    plain = q @ k.mT
    scores = plain / math.sqrt(q.shape[-1])
    keys, queries = real[:, None, None, :], real[:, None, :, None]

    def hidden(mask: Tensor, value: float = -math.inf) -> Tensor:
        return scores.masked_fill(~mask, value).softmax(-1) @ v

    on_queries = "the mask falls on the queries; hide the keys, the last axis of the scores"
    return {
        "the mask is not used: the padding is looked at like any token": scores.softmax(-1) @ v,
        "the mask is upside down: True stands for a token of the image": hidden(~keys),
        "the padding is taken away after the softmax, which has given it a share: the rows that are left no "
        "longer sum to 1. Put -inf into its scores before": scores.softmax(-1).masked_fill(~keys, 0) @ v,
        "the padding's scores are 0, and the softmax gives exp(0) = 1 a share like any other: put -inf": (
            hidden(keys, 0.0)
        ),
        "the mask is added to the scores as 0 and 1, which hides nothing: put -inf": (
            (scores + keys).softmax(-1) @ v
        ),
        on_queries: hidden(queries, -1e9),
        f"{on_queries}. A row of nothing but -inf has no softmax": hidden(queries),
        "the mask falls on queries and keys; hide the keys alone. A row of nothing but -inf has no softmax": (
            hidden(queries & keys)
        ),
        "the padding's own rows are set to 0; only what others see of it is hidden": _masked(q, k, v, real)
        * queries,
        "the scores are not divided by sqrt(Dh)": plain.masked_fill(~keys, -math.inf).softmax(-1) @ v,
        "the softmax runs over the queries; rows must sum to 1, so take dim=-1": (
            scores.masked_fill(~keys, -math.inf).softmax(-2).nan_to_num() @ v
        ),
    }


@check(STREAMED)
def streamed_attention(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check attention that goes over the keys one at a time: ``(q, k, v)``, each (..., T, Dh).

    The results are those of ``attention``, for scores of hundreds as well. That a row of weights is never
    stored, this check cannot see.

    Raises:
        CheckFailed: if it differs; the message names sums that are not rescaled, and an exp that overflows.
    """
    cases = []
    for shape, size in [((4, 5), 1), ((2, 3, 6, 8), 1), ((5, 4), 150), ((6, 4), -150)]:
        q, k, v = torch.randn(3, *shape).unbind()
        if abs(size) > 1:
            # The scores fall by 30 and more from key to key: rounding does not count, nor does rescaling.
            q = size / 2 + torch.randint(-4, 5, shape)
            factors = 1 + torch.arange(len(k)) / 4
            k = (factors if size < 0 else factors.flip(0))[:, None].repeat(1, shape[-1])
        mistakes = _stream_mistakes(q, k, v) | (_low_mistakes(q, k, v) if size < 0 else {})
        if size > 1:
            mistakes |= _overflow(q, k, v)
        label = f"q, k and v of shape {shape}, scores of about {size}"
        cases.append(Case((q, k, v), package_attention.explicit_attention(q, k, v), mistakes, label))
    answers = [package_attention.explicit_attention, package_attention.fused_attention]
    judge_function(STREAMED, function, package_attention.explicit_attention, cases, answers)


def _stream(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    rescale: tuple[bool, bool] = (True, True),
    start: float = -math.inf,
    scale: float | None = None,
    upside_down: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the sums of weighted values and of weights after the last key, with a mistake or without."""
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    highest, gathered, total = torch.full(q.shape[:-1], start), torch.zeros_like(v), torch.zeros(q.shape[:-1])
    for j in range(k.shape[-2]):
        higher = torch.maximum(highest, scores[..., j])
        shrink, share = (highest - higher).exp(), (scores[..., j] - higher).exp()
        shrink = 1 / shrink if upside_down and j else shrink
        gathered = (
            gathered * (shrink[..., None] if rescale[0] else 1) + share[..., None] * v[..., j : j + 1, :]
        )
        total = total * (shrink if rescale[1] else 1) + share
        highest = higher
    return gathered, total[..., None]


def _stream_mistakes(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    gathered, total = _stream(q, k, v)
    neither, values_only, sums_only = (
        _stream(q, k, v, rescale=which) for which in ((False, False), (True, False), (False, True))
    )
    unscaled, over = _stream(q, k, v, scale=1.0), _stream(q, k, v, upside_down=True)
    grown = "when a larger score arrives"
    return {
        f"what was gathered so far is not rescaled {grown}: multiply both sums by exp(old - new maximum)": (
            neither[0] / neither[1]
        ),
        f"the sum of weights is not rescaled {grown}; the gathered values are": values_only[0]
        / values_only[1],
        f"the gathered values are not rescaled {grown}; the sum of weights is": sums_only[0] / sums_only[1],
        f"the rescaling {grown} is upside down: exp(old - new maximum) is at most 1": over[0] / over[1],
        "the gathered values are not divided by the sum of the weights": gathered,
        "the sum of the weights is not returned, it divides": total.expand_as(v),
        "the scores are not divided by sqrt(Dh)": unscaled[0] / unscaled[1],
        "the last key is left out": scores[..., :-1].softmax(-1) @ v[..., :-1, :],
        "the first key is left out": scores[..., 1:].softmax(-1) @ v[..., 1:, :],
        "the values are averaged without weights": v.mean(-2, keepdim=True).expand_as(v),
    }


def _overflow(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    """What goes wrong only where scores are large."""
    shares = (q @ k.mT / math.sqrt(q.shape[-1])).exp()
    sentence = "no maximum is taken off before exp, which overflows at scores of 89 and more"
    return {sentence: shares @ v / shares.sum(-1, keepdim=True)}


def _low_mistakes(q: Tensor, k: Tensor, v: Tensor) -> dict[str, Tensor]:
    """What goes wrong only where all scores are far below 0."""
    gathered, total = _stream(q, k, v, start=0.0)
    return {
        "the running maximum begins at 0: where all scores lie far below, every weight is 0, and 0 / 0 is no "
        "number. Begin at -inf, or with the first score": gathered / total
    }


@check(LAYER_NORM)
def layer_norm(function: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> None:
    """Check a function ``(x, weight, bias, eps)`` that normalises the last axis of x, (..., D).

    ``weight`` and ``bias`` are (D,).

    Raises:
        CheckFailed: if it differs; the message names the variance, the axis, or the place of eps.
    """
    cases = []
    for shape, scale, eps in [((3, 8), 1.0, 1e-6), ((2, 5, 6), 3.0, 1e-5), ((2, 3, 4, 7), 1e-3, 1e-6)]:
        x = scale * (torch.randn(shape) + 0.5)
        weight, bias = torch.randn(2, shape[-1]).unbind()
        label = f"x of shape {shape}, values of about {scale:g}, eps {eps:g}"
        right = F.layer_norm(x, shape[-1:], weight, bias, eps)
        cases.append(Case((x, weight, bias, eps), right, _norm_mistakes(x, weight, bias, eps), label))

    def ours(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps)

    judge_function(LAYER_NORM, function, ours, cases, [])


def _norm_mistakes(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> dict[str, Tensor]:
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    variance = centred.square().mean(-1, keepdim=True)
    unbiased = x.var(-1, keepdim=True)
    normal = centred / (variance + eps).sqrt()

    def over(axis: int | tuple[int, ...]) -> Tensor:
        off = x - x.mean(axis, keepdim=True)
        return off / (off.square().mean(axis, keepdim=True) + eps).sqrt() * weight + bias

    result = normal * weight + bias
    return {
        "the variance divides by D - 1; take unbiased=False": centred / (unbiased + eps).sqrt() * weight
        + bias,
        "eps stands outside of the root; it belongs inside": centred / (variance.sqrt() + eps) * weight
        + bias,
        "eps stands outside of the root, and the variance divides by D - 1": (
            centred / (unbiased.sqrt() + eps) * weight + bias
        ),
        "eps is missing": centred / variance.sqrt() * weight + bias,
        "the root is missing: the deviation divides, not the variance": centred / (variance + eps) * weight
        + bias,
        "the mean is not taken off (that is another layer, RMSNorm)": (
            x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias
        ),
        "the mean is taken off, and nothing divides": centred * weight + bias,
        "the mean is not taken off before the deviation divides": x / (variance + eps).sqrt() * weight + bias,
        "mean and variance are taken over all values; each token has its own": over(tuple(range(x.ndim))),
        "mean and variance are taken over the first axis; take the last, dim=-1": over(0),
        "mean and variance are taken over the tokens; take the last axis, dim=-1": over(-2),
        "weight and bias are not used": normal,
        "the bias is not added": normal * weight,
        "the weight is not used": normal + bias,
        "the bias is added before the weight multiplies": (normal + bias) * weight,
        "weight and bias have changed places": normal * bias + weight,
        "the weight is added to 1; it multiplies as it is": result + normal,
    }


@check(DROPOUT)
def block_with_dropout(cls: Callable[[int, int, int, float], object]) -> None:
    """Check a class like that of :func:`block` that drops values in three places while it trains.

    It is called as ``cls(dim, heads, mlp_dim, dropout)``. Dropped are the attention's result, the values
    after the GELU, and the MLP's result; in evaluation nothing is.

    Raises:
        CheckFailed: if parameters or results differ, or a place is left out in training.
    """
    config = ViTConfig(image_size=4, patch_size=2, dim=12, depth=1, heads=3, mlp_dim=20)
    reference = encoder.Block(config)
    randomise(reference)

    def cases() -> list[Case]:
        found = []
        for count in (5, 7):
            z = torch.randn(2, count, 12)
            label = f"tokens of shape {tuple(z.shape)} in evaluation, dropout 0.5"
            found.append(Case((z,), reference(z)[0], block_mistakes(reference, z), label))
        return found

    judge_module(DROPOUT, cls, (12, 3, 20, 0.5), reference, cases)
    everything = _in_training(cls, reference, 1 - 1e-8)  # not 1, for readers who divide by 1 - dropout
    z = torch.randn(2, 5, 12)
    label = f"tokens of shape {tuple(z.shape)} in training, dropout nearly 1: nothing to add"
    case = Case((z,), z, _dropout_mistakes(reference, z), label)
    judge_function(IN_TRAINING, everything, lambda z: z, [case], [])
    _look_at_hidden_values(cls, reference)


def _in_training(cls: Callable[..., Any], reference: nn.Module, dropout: float) -> nn.Module:
    """Return a reader's block that trains, with the reference's weights."""
    theirs = cls(12, 3, 20, dropout)
    theirs.load_state_dict(reference.state_dict())
    return theirs.train()


def _dropout_mistakes(reference: encoder.Block, z: Tensor) -> dict[str, Tensor]:
    """What a block returns that drops everything, and forgets a place."""
    attended = reference.attention(reference.attention_norm(z))[0]
    bias = reference.mlp.output.bias
    feed = reference.mlp(reference.mlp_norm(z))
    both = z + attended
    no_attention, no_output = "the attention's result is not dropped", "the MLP's result is not dropped"
    return {
        no_attention: both,
        no_output: z + bias,
        "nothing is dropped in the MLP: after the GELU and after the second layer": z + feed,
        f"{no_attention}, and {no_output}": both + bias,
        "nothing is dropped in training": both + reference.mlp(reference.mlp_norm(both)),
        "the stream itself is dropped; drop what is added to it, z + dropout(...)": torch.zeros_like(z),
        "the normalised tokens are dropped; drop what the layers return": z
        + reference.attention(torch.zeros_like(z))[0]
        + reference.mlp(torch.zeros_like(z)),
    }


def _look_at_hidden_values(cls: Callable[..., Any], reference: encoder.Block) -> None:
    """See that a block in training drops its share, and also after the GELU: then sums differ, too.

    Raises:
        CheckFailed: it does not.
    """
    quiet = copy.deepcopy(reference)
    with torch.no_grad():
        quiet.attention.projection.weight.zero_()
        quiet.attention.projection.bias.zero_()
        z = torch.randn(2, 50, 12)
        full = 2 * quiet.mlp(quiet.mlp_norm(z))
        result = _in_training(cls, quiet, 0.5)(z)
        added = (result[0] if isinstance(result, tuple) else result) - z
    kept = added != 0
    share = 1 - kept.float().mean().item()
    if not 0.4 < share < 0.6:
        raise DROPOUT.failed(
            f"with dropout=0.5 it drops {share:.0%} of the MLP's results: does the argument arrive?"
        )
    if (added - full)[kept].abs().max() < 1e-4 * full.abs().max():
        raise DROPOUT.failed("the values after the GELU are not dropped: the MLP has two places")


@check(PARAMETERS)
def predicted_parameters(function: Callable[[int, int, int, int, int, int, int], int]) -> None:
    """Check a function that counts a ViT's parameters from its sizes, all of them integers.

    It is called as ``(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes)`` and returns a
    number.

    Raises:
        CheckFailed: if it differs; the message names what was forgotten.
    """

    cases = []
    for sizes in _sizes():
        right = cost.parameters_of(ViTConfig.from_dict({**sizes, "heads": 1}))
        mistakes = {sentence: right + off for sentence, off in _forgotten(**sizes).items()}
        cases.append(_count_case(sizes, right, mistakes))
    answers = [cost.parameters_of, cost.count_parameters]
    judge_function(PARAMETERS, function, _no_gradients, cases, answers)


@check(OPERATIONS)
def predicted_operations(function: Callable[[int, int, int, int, int, int, int], int]) -> None:
    """Check a function that counts the operations of a ViT's forward pass for one image, from its sizes.

    It is called like :func:`predicted_parameters`. Matrix products count, a multiply-add as 2 operations;
    biases, norms, softmax, GELU and additions do not.

    Raises:
        CheckFailed: if it differs; the message names what was forgotten.
    """
    cases = []
    for sizes in _sizes():
        right = cost.forward_flops(ViTConfig.from_dict({**sizes, "heads": 1}))
        mistakes = {sentence: right + 2 * off for sentence, off in _left_out(**sizes).items()}
        mistakes |= {
            "a multiply-add counts once; here it counts as 2 operations": right // 2,
            "a multiply-add counts as 2 operations, and here they count twice": 2 * right,
        }
        cases.append(_count_case(sizes, right, mistakes))
    judge_function(OPERATIONS, function, _no_gradients, cases, [cost.forward_flops])


def _left_out(
    *, image_size: int, patch_size: int, channels: int, dim: int, depth: int, mlp_dim: int, num_classes: int
) -> dict[str, int]:
    """How far off a count of multiply-adds is, by the mistake."""
    patches = (image_size // patch_size) ** 2
    tokens, values = patches + 1, patch_size**2 * channels
    dense = 4 * dim * dim + 2 * dim * mlp_dim
    block = tokens * dense + 2 * tokens**2 * dim
    embedding = patches * values * dim
    return {
        "the class token is missing: T = N + 1 in every block": depth
        * (patches * dense + 2 * patches**2 * dim - block),
        "the class token is cut and embedded like a patch; E meets the N patches only": values * dim,
        "both products with the T x T weights are missing, q k^T and A v": -2 * tokens**2 * dim * depth,
        "one of the two products with the T x T weights is missing: q k^T, and A v": (
            -(tokens**2) * dim * depth
        ),
        "queries, keys and values are one product with D x D; they are three": (
            -2 * tokens * dim * dim * depth
        ),
        "the output projection of the attention is missing": -tokens * dim * dim * depth,
        "the MLP has one product here; it has two": -tokens * dim * mlp_dim * depth,
        "the MLP is missing": -2 * tokens * dim * mlp_dim * depth,
        "there is one block only: multiply by the depth": -block * (depth - 1),
        "the head is missing": -dim * num_classes,
        "the head reads every token; it reads the class token alone": (tokens - 1) * dim * num_classes,
        "the patch embedding is missing": -embedding,
        "a patch has one channel here: P P C values": -embedding + patches * patch_size**2 * dim,
        "each matrix multiplies one token only; every one of T tokens passes it": (
            -(patches - 1) * values * dim - (tokens - 1) * dense * depth
        ),
    }


def _sizes() -> list[dict[str, int]]:
    """Draw sizes of four models."""

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, ()))

    found = []
    for _ in range(4):
        patch = draw(2, 9)
        found.append(
            {
                "image_size": patch * draw(3, 12),
                "patch_size": patch,
                "channels": draw(2, 4),
                "dim": 4 * draw(5, 30),
                "depth": draw(2, 9),
                "mlp_dim": draw(130, 300),
                "num_classes": draw(3, 99),
            }
        )
    return found


def _count_case(sizes: dict[str, int], right: int, mistakes: dict[str, int]) -> Case:
    label = ", ".join(f"{name} {value}" for name, value in sizes.items())
    wrong = {sentence: _number(value) for sentence, value in mistakes.items()}
    return Case(tuple(sizes.values()), _number(right), wrong, label)


def _no_gradients() -> Tensor:
    """Stand where a function of ours would, whose gradients nobody asks for."""
    return torch.empty(0)


def _forgotten(
    *, image_size: int, patch_size: int, channels: int, dim: int, depth: int, mlp_dim: int, num_classes: int
) -> dict[str, int]:
    """How far off a count is, by the mistake."""
    patches = (image_size // patch_size) ** 2
    values = patch_size**2 * channels
    block = 4 * dim * dim + 2 * dim * mlp_dim + 9 * dim + mlp_dim
    return {
        "the class token is missing, D numbers": -dim,
        "the class token's position is missing: the table has N + 1 rows": -dim,
        "class token and its position are missing, 2 D numbers": -2 * dim,
        "the positions are missing, N + 1 rows of D": -(patches + 1) * dim,
        "the positions of all patches are missing": -patches * dim,
        "the final LayerNorm is missing, 2 D numbers": -2 * dim,
        "a LayerNorm in each block is missing, 2 D numbers each": -2 * dim * depth,
        "the two LayerNorms of each block are missing, 4 D numbers": -4 * dim * depth,
        "no LayerNorm is counted: two in each block and the final one": -4 * dim * depth - 2 * dim,
        "a LayerNorm has D numbers here; it has a weight and a bias, 2 D": -2 * dim * depth - dim,
        "the head is missing": -(dim + 1) * num_classes,
        "the head has no bias": -num_classes,
        "the patch embedding has no bias": -dim,
        "qkv has no bias": -3 * dim * depth,
        "the MLP's layers have no bias": -(dim + mlp_dim) * depth,
        "no dense layer has a bias": -(dim + (5 * dim + mlp_dim) * depth + num_classes),
        "queries, keys and values are one matrix of D x D; they are three": -2 * dim * (dim + 1) * depth,
        "the output projection of the attention is missing": -dim * (dim + 1) * depth,
        "the MLP has one layer here; it has two": -(mlp_dim + 1) * dim * depth,
        "there is one block only: multiply by the depth": -block * (depth - 1),
        "a patch has one channel here: P P C values": -(values - patch_size**2) * dim,
        "the patch embedding is missing": -(values + 1) * dim,
    }


def _number(value: int) -> Tensor:
    return torch.tensor(float(value), dtype=torch.float64)


@check(MEAN_VIT)
def mean_vit(cls: Callable[..., object]) -> None:
    """Check a class like that of :func:`vision_transformer` whose head reads the mean of the patch tokens.

    It is called with the same keywords and has the same parameters. The class token stays in the sequence and
    is left out of the mean, which is taken after the final norm.

    Raises:
        CheckFailed: if parameters or results differ; the message names what the head reads.
    """
    config = ViTConfig.from_dict({**FIELDS, "pool": "gap"})
    reference = vit.VisionTransformer(config)
    randomise(reference)

    def cases() -> list[Case]:
        found = []
        for scale, batch in ((1.0, 2), (0.3, 3)):
            images = scale * torch.randn(batch, 3, 12, 12)
            label = f"images of shape {tuple(images.shape)}"
            found.append(Case((images,), reference(images), _mean_mistakes(reference, images), label))
        return found

    judge_module(MEAN_VIT, cls, FIELDS, reference, cases)


def _mean_mistakes(reference: vit.VisionTransformer, images: Tensor) -> dict[str, Tensor]:
    encoder, head = reference.encoder, reference.head
    assert head is not None
    last = reference.tokens(reference.patch_embedding(images))
    for block in encoder.blocks:
        last = block(last)[0]
    encoded = encoder.norm(last)
    patches = encoded[:, 1:]
    return {
        "the head reads the class token; here it reads the mean of the patches": head(encoded[:, 0]),
        "the class token is in the mean; leave it out, [:, 1:]": head(encoded.mean(1)),
        "the mean leaves the last patch out in place of the class token, which is number 0": head(
            encoded[:, :-1].mean(1)
        ),
        "the mean is taken before the final norm; the norm comes first": head(
            encoder.norm(last[:, 1:].mean(1))
        ),
        "the mean of all tokens is taken before the final norm; the norm comes first, and the class token is "
        "left out": head(encoder.norm(last.mean(1))),
        "the final norm is missing": head(last[:, 1:].mean(1)),
        "the final norm is applied twice": head(encoder.norm(patches.mean(1))),
        "the head reads the sum of the patches, not their mean": head(patches.sum(1)),
        "the head reads the largest value of the patches, not their mean": head(patches.amax(1)),
        "the head reads the median of the patches, not their mean": head(patches.median(1).values),
        "the head reads every patch: take their mean first, or the mean of its answers": head(patches),
        "class token and mean are added; the head reads the mean alone": head(
            encoded[:, 0] + patches.mean(1)
        ),
        "the features are returned; the head is not called": patches.mean(1),
        "a softmax follows the head; the model returns logits": head(patches.mean(1)).softmax(-1),
    }


@check(QKV_FROM_JAX)
def qkv_from_jax(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Check a function that packs three kernels of JAX, each (D, h, Dh), as the weight of ``qkv``, (3 D, D).

    A kernel of JAX is (in, out), a weight of ``nn.Linear`` (out, in). The order of the outputs is that of
    chapter 3: all queries, all keys, all values, in each of them head after head.

    Raises:
        CheckFailed: if it differs; the message names a missing transpose, or an order of heads.
    """
    cases = []
    for heads, width in ((2, 3), (3, 4), (4, 2)):
        dim = heads * width
        kernels = torch.randn(3, dim, heads, width)
        query, key, value = kernels.unbind()
        right = _packed(query, key, value)
        flat = kernels.flatten(2)  # (3, D, D): in, out
        mistakes = {
            "the kernels are not transposed: JAX has (in, out), nn.Linear (out, in)": flat.flatten(0, 1),
            "the three are joined along the wrong axis, and reshape puts that straight in shape only": (
                torch.cat(list(flat), dim=1).reshape(right.shape)
            ),
            "the result is transposed: JAX has (in, out), and nn.Linear (out, in), here (3 D, D)": right.mT,
            "in each third the heads are interleaved; put each head's Dh outputs together, (h dh)": rearrange(
                kernels, "qkv d h dh -> (qkv dh h) d"
            ),
            "q, k and v are interleaved head by head; all queries come first": rearrange(
                kernels, "qkv d h dh -> (h qkv dh) d"
            ),
            "q, k and v are interleaved row by row; all queries come first": rearrange(
                kernels, "qkv d h dh -> (h dh qkv) d"
            ),
            "the keys come first; the order is q, k, v": _packed(key, query, value),
            "the values come before the keys; the order is q, k, v": _packed(query, value, key),
            "the order is turned round; it is q, k, v": _packed(value, key, query),
            "the three are not joined: (3, D, D) has to become (3 D, D)": flat.mT,
            "the queries stand in all three places": _packed(query, query, query),
        }
        label = f"kernels of shape {(dim, heads, width)}"
        cases.append(Case((query, key, value), right, mistakes, label))
    judge_function(QKV_FROM_JAX, function, _packed, cases, [])


def _packed(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.cat([rearrange(kernel, "d h dh -> (h dh) d") for kernel in (query, key, value)])


@check(STRETCHED)
def stretch_positions(function: Callable[[Tensor, int], Tensor]) -> None:
    """Check a function ``(table, count)`` that stretches a table of n places, (n, D), to ``count`` places.

    Linear between neighbours; the first and the last place keep their vectors. ``count`` may be less than n.

    Raises:
        CheckFailed: if it differs; the message names the other way to lay two grids on each other.
    """
    cases = []
    for old, new, width in ((4, 9, 3), (5, 8, 6), (14, 24, 8), (9, 6, 5)):
        table = torch.randn(old, width)
        places = torch.arange(new)
        corners = places * (old - 1) / (new - 1)
        areas = ((places + 0.5) * old / new - 0.5).clamp(0, old - 1)
        mistakes = {
            "the areas lie on each other, PyTorch's default; lay corner on corner, (n - 1) / (count - 1)": (
                _between(table, areas)
            ),
            "a step is n / count long; between the corners it is (n - 1) / (count - 1)": _between(
                table, (places * old / new).clamp(max=old - 1)
            ),
            "a step is (n - 1) / count long and never reaches the last place; take (n - 1) / (count - 1)": (
                _between(table, places * (old - 1) / new)
            ),
            "a step is n / (count - 1) long; between the corners it is (n - 1) / (count - 1)": _between(
                table, (places * old / (new - 1)).clamp(max=old - 1)
            ),
            "each place takes its nearest neighbour; mix the two beside it": table[corners.round().long()],
            "each place takes its nearest neighbour, area on area (PyTorch's default mode); mix the two "
            "beside it, corner on corner": table[places * old // new],
            "each place takes its left neighbour alone; mix the two beside it": table[corners.long()],
            "the two shares have changed places: the nearer neighbour has the larger one": _between(
                table, corners, swapped=True
            ),
            "the two shares have changed places: of the two neighbours the nearer one has the larger share": (
                _between(table, corners, swapped=True, last=old - 2)
            ),
            "each place takes both neighbours in equal shares; the nearer one has the larger": (
                table[corners.long()] + table[(corners.long() + 1).clamp(max=old - 1)]
            )
            / 2,
            "the table is turned round": _between(table, corners).flip(0),
        }
        label = f"a table of {old} places, stretched to {new}"
        cases.append(Case((table, new), _stretched(table, new), mistakes, label))
    judge_function(STRETCHED, function, _stretched, cases, [tokens.resize_positions])


def _stretched(table: Tensor, count: int) -> Tensor:
    return F.interpolate(table.mT[None], count, mode="linear", align_corners=True)[0].mT


def _between(table: Tensor, places: Tensor, swapped: bool = False, last: int | None = None) -> Tensor:
    """Mix the two neighbours of each place."""
    left = places.long().clamp(max=len(table) - 1 if last is None else last)
    right = (left + 1).clamp(max=len(table) - 1)
    share = (places - left)[:, None]
    share = 1 - share if swapped else share
    return (1 - share) * table[left] + share * table[right]
