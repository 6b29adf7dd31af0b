"""Checks of chapter 6: weights from elsewhere, and positions on another grid."""

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case
from vit_from_scratch.model.tokens import resize_positions


def _packed(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.cat([rearrange(kernel, "d h dh -> (h dh) d") for kernel in (query, key, value)])


@function_check(
    "(3 D, D)",
    'chapter 6, exercise "Weights from another framework"',
    _packed,
    [(2, 3), (3, 4), (4, 2)],
    exact=True,
    gradients=False,
)
def qkv_from_jax(heads: int, width: int) -> Case:
    """Check a function that packs three kernels of JAX, each (D, h, Dh), as the weight of ``qkv``, (3 D, D).

    A kernel of JAX is (in, out), a weight of ``nn.Linear`` (out, in). The order of the outputs is that of
    chapter 3: all queries, all keys, all values, in each of them head after head.
    """
    dim = heads * width
    kernels = torch.randn(3, dim, heads, width)
    query, key, value = kernels.unbind()
    right = _packed(query, key, value)
    flat = kernels.flatten(2)  # (3, D, D): in, out
    wrong_axis = torch.cat(list(flat), dim=1).reshape(right.shape)
    orders = {
        "in each third the heads are interleaved; put each head's Dh outputs together, (h dh)": "(qkv dh h)",
        "q, k and v are interleaved head by head; all queries come first": "(h qkv dh)",
        "q, k and v are interleaved row by row; all queries come first": "(h dh qkv)",
    }
    mistakes = {said: rearrange(kernels, f"qkv d h dh -> {order} d") for said, order in orders.items()} | {
        "the kernels are not transposed: JAX has (in, out), nn.Linear (out, in)": flat.flatten(0, 1),
        "the three are joined along the wrong axis, and reshape puts that straight in shape only": wrong_axis,
        "the result is transposed: JAX has (in, out), and nn.Linear (out, in), here (3 D, D)": right.mT,
        "the keys come first; the order is q, k, v": _packed(key, query, value),
        "the values come before the keys; the order is q, k, v": _packed(query, value, key),
        "the order is turned round; it is q, k, v": _packed(value, key, query),
        "the queries stand in all three places": _packed(query, query, query),
    }
    return Case((query, key, value), right, mistakes)


def _stretched(table: Tensor, count: int) -> Tensor:
    return F.interpolate(table.mT[None], count, mode="linear", align_corners=True)[0].mT


@function_check(
    "(count, D)",
    'chapter 6, exercise "Corner on corner"',
    _stretched,
    [(4, 9, 3), (5, 8, 6), (14, 24, 8), (9, 6, 5)],
    answers=[resize_positions],
    gradients=False,
)
def stretch_positions(old: int, new: int, width: int) -> Case:
    """Check a function ``(table, count)`` that stretches a table of n places, (n, D), to ``count`` places.

    Linear between neighbours; the first and the last place keep their vectors. ``count`` may be less than n.
    """
    table = torch.randn(old, width)
    places = torch.arange(new)
    corners = places * (old - 1) / (new - 1)
    areas = ((places + 0.5) * old / new - 0.5).clamp(0, old - 1)
    left, inverted = corners.long(), places * (new - 1) / (old - 1)
    upside_down = "the step is upside down, (count - 1) / (n - 1)"
    between, take = "between the corners it is (n - 1) / (count - 1)", "mix the two beside it"
    short = places * (old - 1) / new
    steps = {
        "the areas lie on each other, PyTorch's default; lay corner on corner, (n - 1) / (count - 1)": areas,
        f"a step is n / count long; {between}": places * old / new,
        "a step is (n - 1) / count long and never reaches the last place; take (n - 1) / (count - 1)": short,
        f"a step is n / (count - 1) long; {between}": places * old / (new - 1),
        f"{upside_down}; {between}": inverted,
    }
    shares = {
        "the two shares have changed places: of the two neighbours the nearer one has the larger share": (
            lambda share: 1 - share
        ),
        "both neighbours have a half; the nearer one has the larger share": lambda share: 0 * share + 0.5,
    }
    mistakes = {said: _between(table, step.clamp(max=old - 1)) for said, step in steps.items()} | {
        f"each place takes its nearest neighbour; {take}": table[corners.round().long()],
        f"each place takes its nearest neighbour, area on area (PyTorch's default mode); {take}, corner on "
        "corner": table[places * old // new],
        f"each place takes its left neighbour alone; {take}": table[left],
        f"{upside_down}, and what lies beyond the table goes on in a line; {between}": _between(
            table, inverted
        ),
        **{
            f"{said}{where}": (1 - share(at)) * table[one] + share(at) * table[other]
            for said, share in shares.items()
            for where, (one, other, at) in _neighbours(corners, old).items()
        },
    }
    return Case((table, new), _stretched(table, new), mistakes)


def _neighbours(places: Tensor, count: int) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
    """Left and right neighbours and the right one's share, in three ways; in two of them ends have one."""
    left, inner, last = places.long(), places.long().clamp(max=count - 2), count - 1
    ways = {
        "": (inner, inner + 1),
        " (the last place, with one neighbour, does not show it)": (left, (left + 1).clamp(max=last)),
        " (the two ends, with one neighbour, do not show it)": (left, places.ceil().long()),
    }
    return {where: (one, other, (places - one)[:, None]) for where, (one, other) in ways.items()}


def _between(table: Tensor, places: Tensor) -> Tensor:
    one, other, share = _neighbours(places, len(table))[""]
    return (1 - share) * table[one] + share * table[other]
