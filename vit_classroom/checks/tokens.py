"""Checks of chapter 2: class token and positions."""

import contextlib

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from vit_classroom.checks.judging import class_check, function_check
from vit_classroom.checks.report import Case, Piece, randomise
from vit_classroom.checks.starts import starts_at_zero, starts_normal
from vit_from_scratch.model import tokens
from vit_from_scratch.model.config import ViTConfig

ZERO = "the reference code begins it at 0"


def _token_sequence(num_patches: int, dim: int) -> nn.Module:
    image = {"image_size": (num_patches // 4, 4), "patch_size": 1, "channels": 1}
    return randomise(tokens.TokenSequence(ViTConfig(**image, dim=dim, depth=1, heads=2, mlp_dim=8)))


@class_check(
    "TokenSequence(num_patches, dim)",
    "(B, N + 1, D)",
    'chapter 2, "Equation 1"',
    _token_sequence,
    [(36, 64), (20, 32)],
    [1, 4],
    starts=[starts_at_zero("class_token", why=ZERO), starts_normal("position")],
)
def token_sequence(reference: tokens.TokenSequence, batch: int) -> Case:
    """Check a class like :class:`vit_from_scratch.model.tokens.TokenSequence`.

    It is called as ``cls(num_patches, dim)``; parameters ``class_token`` (1, 1, D) and ``position``
    (1, N + 1, D).
    """
    _, length, dim = reference.get_parameter("position").shape
    embeddings = torch.randn(batch, length - 1, dim)
    return Case((embeddings,), reference(embeddings), _with_class_token(reference, embeddings))


def _with_class_token(reference: nn.Module, embeddings: Tensor) -> dict[str, Tensor]:
    """What each wrong way from embeddings to N + 1 tokens gives."""
    first, position = reference.get_parameter("class_token"), reference.get_parameter("position")
    class_token = first.expand(len(embeddings), 1, -1)
    plain = torch.cat([class_token, embeddings], 1)
    only = "there is no class token in the result: N patches need N + 1 tokens"
    placed, zero = embeddings + position[:, 1:], torch.zeros_like(class_token)
    apart = {
        "the class token gets no position; equation 1 adds E_pos to every token": (class_token, placed),
        "the patches get positions from 0, class token none": ((class_token, embeddings + position[:, :-1])),
    }
    right, only_first = plain + position, torch.cat([class_token[:1], zero[1:]])
    return {sentence: torch.cat(parts, 1) for sentence, parts in apart.items()} | {
        "a LayerNorm follows; the blocks bring their own, equation 2": F.layer_norm(right, right.shape[-1:]),
        "the patches are multiplied by sqrt(D), as in the Transformer for words; equation 1 does not": (
            torch.cat([class_token, embeddings * embeddings.shape[-1] ** 0.5], 1) + position
        ),
        "only the first image gets the class token": torch.cat([only_first, embeddings], 1) + position,
        "the class token is added again, to every patch": torch.cat([class_token, embeddings + first], 1)
        + position,
        "the class token is the mean of the patches; it is the parameter": torch.cat(
            [embeddings.mean(1, keepdim=True), embeddings], 1
        )
        + position,
        "the class token stands last; it is the first": (torch.cat([embeddings, class_token], 1) + position),
        "the positions are not added": plain,
        "the positions are added twice": plain + 2 * position,
        "the positions are multiplied; equation 1 adds them": plain * position,
        "the positions are taken away; equation 1 adds them": plain - position,
        "each token gets the position of the one before it": plain + position.roll(1, dims=1),
        "every token gets the same position, the first": plain + position[:, :1],
        only: placed,
        "the class token is added to the patches; equation 1 puts it in front of them": placed + first,
        "the class token is zero: it is not the parameter": torch.cat([zero, embeddings], 1) + position,
    }


class _GridPosition(nn.Module):
    """One vector for each row and one for each column; a place has their sum."""

    def __init__(self, rows: int, columns: int, dim: int) -> None:
        super().__init__()
        self.row = nn.Parameter(0.02 * torch.randn(rows, dim))
        self.column = nn.Parameter(0.02 * torch.randn(columns, dim))

    def forward(self) -> Tensor:
        """Return the positions, (1, N, D)."""
        return rearrange(self.row[:, None] + self.column, "gh gw d -> 1 (gh gw) d")


def _made_in_forward(piece: Piece, module: nn.Module) -> None:
    """See that other parameters give other positions."""
    kept = False
    with contextlib.suppress(Exception), torch.no_grad():  # whatever else is wrong is said later
        before = module().clone()
        for parameter in module.parameters():
            parameter.add_(1)
        kept = torch.equal(before, module())
    if kept:
        raise piece.failed(
            "new values of row and column change nothing, nor would training: add the two in forward, not in "
            "__init__"
        )


@class_check(
    "GridPosition(rows, columns, dim)",
    "(1, N, D)",
    'chapter 2, exercise "Rows and columns apart"',
    lambda *sizes: randomise(_GridPosition(*sizes)),
    [(12, 9, 256), (3, 4, 8)],
    [()],
    starts=[starts_normal("row", "column"), _made_in_forward],
)
def grid_position(reference: _GridPosition) -> Case:
    """Check a class of positions that are the sum of a row's vector and a column's.

    It is called as ``cls(rows, columns, dim)``; parameters ``row`` (rows, D) and ``column`` (columns, D),
    which start as N(0, 0.02); ``forward()`` takes nothing and returns (1, N, D), row by row.
    """
    down, across = torch.broadcast_tensors(reference.row[:, None], reference.column)
    grid, joined = down + across, torch.cat([down, across], dim=-1)  # the paper joins them, twice as wide
    flat = {
        "the places come column by column; let the rows run slowest": grid.transpose(0, 1),
        "the places have only their row's vector: add the column's": down,
        "the places have only their column's vector: add the row's": across,
        "row and column are joined side by side; here they are added": joined,
        "row and column are multiplied; here they are added": down * across,
        "row and column are averaged; here they are added": grid / 2,
    }
    mistakes = {sentence: wrong.flatten(0, 1)[None] for sentence, wrong in flat.items()}
    return Case((), reference(), mistakes, f"{len(reference.row)} rows and {len(reference.column)} columns")


def _read_places(tokens: Tensor, position: Tensor) -> Tensor:
    return (tokens @ position.mT).argmax(-1)


@function_check(
    "(B, N)",
    'chapter 2, exercise "Can you read the place back?"',
    _read_places,
    [(2, 20, 8), (1, 15, 12), (3, 12, 6)],
    gradients=False,
)
def read_places(batch: int, count: int, dim: int) -> Case:
    """Check a function ``(tokens, position)`` that finds the place of each token in the position table.

    Tokens are (B, N, D), the table (N, D); the result is (B, N), for each token the place, from 0, whose
    position vector has the largest dot product with it.
    """
    position = (0.3 + 1.5 * torch.rand(count, 1)) * torch.randn(count, dim)
    content = torch.randn(batch, count, dim)
    tokens = content + position
    scores = tokens @ position.mT  # (B, N, N)
    unit, right = F.normalize(position, dim=-1), _read_places(tokens, position)
    places = {
        "the largest cosine decides; take the largest dot product": (tokens @ unit.mT).argmax(-1),
        "the nearest position vector decides; take the one with the largest dot product": torch.cdist(
            tokens, position.expand_as(tokens)
        ).argmin(-1),
        "the tokens are compared with each other; compare them with the position vectors": (
            tokens @ tokens.mT
        ).argmax(-1),
        "the position vectors are compared with each other; compare the tokens with them": (
            position @ position.mT
        )
        .argmax(-1)
        .expand(batch, count),
        "the smallest dot product decides; take the largest": scores.argmin(-1),
        "the places are counted from 1; count them from 0": right + 1,
        "for each place a token is found; find a place for each token": scores.argmax(1),
        "each token gets the place where it stands; find it by the dot products": torch.arange(count).expand(
            batch, count
        ),
        "the images are averaged, and all get the same places; each image has its own": (
            scores.mean(0).argmax(-1).expand(batch, count)
        ),
        "all images get the places of the first; each image has its own": right[:1].expand(batch, count),
        "these are the largest dot products; return their places": scores.amax(-1),
        "these are all dot products; return the place of the largest": scores,
        "these are the weights of a softmax; return the place of the largest": scores.softmax(-1),
    }
    mistakes = {sentence: wrong.long() for sentence, wrong in places.items()}
    return Case((tokens, position), right, mistakes)
