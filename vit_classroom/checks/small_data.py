"""Checks of chapter 9: what a remedy for small data computes."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case
from vit_from_scratch.training.muon import COEFFICIENTS, ROUNDS, orthogonalise


def _mixup(values: Tensor, partners: Tensor, share: Tensor) -> Tensor:
    kept = share.view(-1, *[1] * (values.ndim - 1))
    return kept * values + (1 - kept) * values[partners]


@function_check(
    "(B, ...)",
    'chapter 9, "Remedy 1: show it more"',
    _mixup,
    [(4, 3, 5, 6), (6, 10), (5, 2, 3)],
    gradients=False,
)
def mixup(shape: tuple[int, ...]) -> Case:
    """Check a function ``(values, partners, share)`` that blends each of a batch with its partner.

    Values are (B, ...): images, or shares of classes; partners (B,) are places in the batch; share (B,) is
    what is kept of a value, the rest is its partner's.
    """
    count = shape[0]
    values, share = torch.randn(shape), 0.1 + 0.8 * torch.rand(count)
    partners = torch.randperm(count)
    while (partners == torch.arange(count)).any() or torch.equal(partners.argsort(), partners):
        partners = torch.randperm(count)
    kept, theirs = share.view(-1, *[1] * (len(shape) - 1)), values[partners]
    one, mean = share[:1].expand(count), share.mean().expand(count)
    mixed = values.clone()
    for i, partner in enumerate(partners):
        mixed[i] = share[i] * mixed[i] + (1 - share[i]) * mixed[partner]
    turned, rolled = torch.arange(count).flip(0), torch.arange(count).roll(1)
    mistakes = {
        "the shares have changed places: a value keeps `share`": _mixup(values, partners, 1 - share),
        "the share of the first pair is used for all; each pair has its own": _mixup(values, partners, one),
        "the mean of all shares is used; each pair has its own": _mixup(values, partners, mean),
        "the partners are the batch turned round; take values[partners]": _mixup(values, turned, share),
        "the partners are the neighbours in the batch; take values[partners]": _mixup(values, rolled, share),
        "the partners are used the wrong way round: partners[i] is where the partner of i stands": _mixup(
            values, partners.argsort(), share
        ),
        "the partner comes in whole; it gives 1 - share": kept * values + theirs,
        "the value stays whole; it keeps its share": values + (1 - kept) * theirs,
        "the partner comes in with its own share; the two shares of a pair add up to 1": kept * values
        + kept[partners] * theirs,
        "both are multiplied by the same share; the partner gives 1 - share": kept * (values + theirs),
        "some partners are read when they are blended already; read them from `values`, as they came": mixed,
        "these are the partners; blend them with the values": theirs,
    }
    return Case((values, partners, share), _mixup(values, partners, share), mistakes)


def _neighbours(hidden: Tensor, kernel: Tensor, bias: Tensor, rows: int) -> Tensor:
    image = hidden.mT.unflatten(2, (rows, -1))
    return _depthwise(F.pad(image, (1, 1, 1, 1)), kernel, bias).flatten(2).mT


@function_check(
    "(B, N, M)",
    'chapter 9, "Remedy 2: locality inside the MLP"',
    _neighbours,
    [(2, 3, 4, 5), (3, 5, 3, 4), (1, 4, 3, 6)],
)
def neighbours(batch: int, rows: int, columns: int, width: int) -> Case:
    """Check a function that lets each patch see its eight neighbours, hidden value by hidden value.

    It is called as ``(hidden, kernel, bias, rows)``: hidden values (B, N, M) of a grid of so many rows, a
    kernel (M, 1, 3, 3) and a bias (M,); the result is (B, N, M).
    """
    hidden, bias = torch.randn(batch, rows * columns, width), torch.randn(width)
    kernel = torch.randn(width, 1, 3, 3)

    def on_grid(
        tokens: Tensor = hidden,
        kernel: Tensor = kernel,
        bias: Tensor | None = bias,
        rows: int = rows,
        order: str = "gh gw",
        mode: str = "constant",
    ) -> Tensor:
        image = rearrange(tokens, f"b ({order}) m -> b m gh gw", gh=rows)
        padded = F.pad(image, (1, 1, 1, 1), mode=mode)
        return rearrange(_depthwise(padded, kernel, bias), f"b m gh gw -> b ({order}) m")

    right = on_grid()
    image, grid = (rearrange(z, "b (gh gw) m -> b m gh gw", gh=rows) for z in (hidden, right))
    seen = _depthwise(F.pad(hidden.reshape(image.shape), (1, 1, 1, 1)), kernel, bias)
    shared = kernel[:1].expand_as(kernel)
    mistakes = {
        "rows and columns of the grid have changed places": on_grid(rows=columns),
        "the tokens are read column by column; they come row by row": on_grid(order="gw gh"),
        "the tokens are reshaped to the grid without moving the hidden values: (B, N, M) has to become "
        "(B, M, N) first": seen.flatten(2).mT,
        "the tokens are reshaped to the grid and back without moving the hidden values: (B, N, M) has to "
        "become (B, M, N) first": seen.reshape(batch, -1, width),
        "the result is reshaped to tokens, the hidden values not moved last": grid.reshape(batch, -1, width),
        "the result is still a grid; make tokens of it, (B, N, M)": grid,
        "the bias is missing": on_grid(bias=None),
        "what it read is added; that is left to the caller": hidden + right,
        "a GELU follows; that is left to the caller": F.gelu(right),
        "the kernel is turned round; F.conv2d takes it as it is": on_grid(kernel=kernel.flip(2, 3)),
        "the kernel is transposed": on_grid(kernel=kernel.mT),
        "the grid's border is repeated; pad with zeros": on_grid(mode="replicate"),
        "the grid's border joins the other side; pad with zeros": on_grid(mode="circular"),
        "there is no padding, and the border is lost; take padding=1": _depthwise(image, kernel, bias)
        .flatten(2)
        .mT,
        "all hidden values share the first kernel; each has its own": on_grid(kernel=shared),
    }
    return Case((hidden, kernel, bias, rows), right, mistakes)


def _depthwise(image: Tensor, kernel: Tensor, bias: Tensor | None) -> Tensor:
    return F.conv2d(image, kernel, bias, groups=len(kernel))


Polynomial = Callable[[Tensor, Tensor], Tensor]
"""The next X, of X and G = X X^T."""


def _of_muon(a: float, b: float, c: float) -> Polynomial:
    return lambda x, gram: a * x + (b * gram + c * gram @ gram) @ x


MUON = _of_muon(*COEFFICIENTS)


def _rounds(
    gradient: Tensor,
    rounds: int = ROUNDS,
    norm: Tensor | None = None,
    polynomial: Polynomial = MUON,
) -> Tensor:
    x = gradient / (gradient.norm() if norm is None else norm)
    for _ in range(rounds):
        x = polynomial(x, x @ x.T)
    return x


@function_check(
    "(rows, columns)",
    'chapter 9, "Remedy 5: a faster optimiser"',
    _rounds,
    [(3, 5, 0.5, (1,)), (4, 4, 3.0, (2,)), (5, 3, 0.1, ()), (4, 3, 0.5, (3, 2.0, -1.5, 0.5))],
    answers=[orthogonalise],
    gradients=False,
    call="orthogonalised(gradient, rounds, a, b, c)",
)
def orthogonalised(rows: int, columns: int, scale: float, options: tuple[int | float, ...]) -> Case:
    """Check a function ``(gradient, rounds)`` that takes a matrix through rounds of Muon's polynomial.

    The matrix is (rows, columns), in float32; the package's own works in bfloat16. Also tried are
    ``(gradient)``, for five rounds, and ``(gradient, rounds, a, b, c)`` with other numbers than Muon's.
    """
    gradient = scale * _well_conditioned(rows, columns)
    rounds, numbers = int((*options, ROUNDS)[0]), options[1:] or COEFFICIENTS
    right, mistakes = (
        _rounds(gradient, rounds, None, _of_muon(*numbers)),
        _wrong_rounds(gradient, rounds, *numbers),
    )
    return Case((gradient, *options), right, mistakes)


def _well_conditioned(rows: int, columns: int) -> Tensor:
    """A random matrix whose singular values are between 0.3 and 1, so that no rounding error grows."""
    u, _, v = torch.linalg.svd(torch.randn(rows, columns), full_matrices=False)
    return u * torch.linspace(1.0, 0.3, min(rows, columns)) @ v


def _wrong_rounds(gradient: Tensor, rounds: int, a: float, b: float, c: float) -> dict[str, Tensor]:
    usual = _of_muon(a, b, c)
    u, sizes, v = torch.linalg.svd(gradient, full_matrices=False)
    first = gradient / gradient.norm()
    gram = first @ first.T
    norms = {
        "the matrix is not divided by its norm before the first round": torch.ones(()),
        "the matrix is divided by its largest singular value; take norm()": sizes[0],
        "each row is divided by its own norm; the matrix has one": gradient.norm(dim=1, keepdim=True),
        "each column is divided by its own norm; the matrix has one": gradient.norm(dim=0, keepdim=True),
        "the matrix is divided by its largest value; divide by gradient.norm()": gradient.abs().max(),
        "the matrix is divided by the square of its norm": gradient.square().sum(),
    }
    polynomials: dict[str, Polynomial] = {
        "the powers are taken value by value; take matrix products": lambda x, _: a * x + b * x**3 + c * x**5,
        "G is squared value by value, not G @ G": (lambda x, gram: a * x + (b * gram + c * gram**2) @ x),
        "c multiplies G; it multiplies G^2": lambda x, gram: a * x + (b * gram + c * gram) @ x,
        "b and c have changed places": lambda x, gram: a * x + (c * gram + b * gram @ gram) @ x,
        "the minus sign of b is lost": lambda x, gram: a * x + (c * gram @ gram - b * gram) @ x,
        "the last term is missing, c G^2 X": lambda x, gram: a * x + b * gram @ x,
        "a X is missing from the sum": lambda x, gram: (b * gram + c * gram @ gram) @ x,
        "that is Newton and Schulz, 1.5 X - 0.5 G X; Muon's polynomial has other numbers, and a third term": (
            lambda x, gram: 1.5 * x - 0.5 * gram @ x
        ),
        "G is computed once; it is X X^T of each round's own X": lambda x, _: usual(x, gram),
    }
    asked = "take as many as are asked for"
    again = gradient.norm() * _rounds(gradient, rounds, None, usual)
    return {
        **{said: _rounds(gradient, rounds, norm, usual) for said, norm in norms.items()},
        **{said: _rounds(gradient, rounds, polynomial=wrong) for said, wrong in polynomials.items()},
        "there is one round too few": _rounds(gradient, rounds - 1, None, usual),
        "there is one round too many": _rounds(gradient, rounds + 1, None, usual),
        f"there are always five rounds; {asked}": _rounds(gradient, 5, None, usual),
        f"there is always one round; {asked}": _rounds(gradient, 1, None, usual),
        "a, b and c are always Muon's; take those that are handed in": _rounds(gradient, rounds),
        "that is the exact U V^T; asked for are rounds of the polynomial, which come close": u @ v,
        "the matrix is only divided by its norm": first,
        "the result is multiplied by the norm again; its size does not matter to Muon": again,
    }


def _muon_step(weight: Tensor, gradient: Tensor, rate: float, parts: int) -> Tensor:
    made = [_rounds(part, ROUNDS) for part in gradient.chunk(parts)]
    rows, columns = made[0].shape
    return weight - rate * max(1.0, rows / columns) ** 0.5 * torch.cat(made)


@function_check(
    "(rows, columns)",
    'chapter 9, exercise "A step of Muon"',
    _muon_step,
    [(3, 4, 4, 0.1), (2, 6, 4, 0.5), (1, 3, 5, 0.02)],
    answers=[orthogonalise],
    gradients=False,
)
def muon_step(parts: int, rows: int, columns: int, rate: float) -> Case:
    """Check a function ``(weight, gradient, rate, parts)`` that takes a step of Muon without momentum.

    The matrix (rows, columns) holds equal parts, one below the other, as queries, keys and values do; each
    part's gradient is made orthogonal for itself, and a part with more rows than columns moves further by
    sqrt(rows / columns). It returns the new weight.
    """
    strengths = [1.0, 0.3, 3.0][:parts]
    gradient = torch.cat([0.1 * strength * _well_conditioned(rows, columns) for strength in strengths])
    weight = torch.randn(parts * rows, columns)
    tall, whole = (max(1.0, height / columns) ** 0.5 for height in (rows, parts * rows))
    made = torch.cat([_rounds(part, ROUNDS) for part in gradient.chunk(parts)])
    fused = _rounds(gradient, ROUNDS)
    low = torch.cat([_rounds(part, ROUNDS) for part in gradient.split(parts)])
    split = "split(parts) makes pieces of so many rows; its argument is the height of a part"
    decomposed = [torch.linalg.svd(part, full_matrices=False) for part in gradient.chunk(parts)]
    exact = torch.cat([u @ v for u, _, v in decomposed])
    interleaved = torch.empty_like(made)
    for first in range(parts):
        interleaved[first::parts] = _rounds(gradient[first::parts], ROUNDS)
    as_one, wide = "the matrix is made orthogonal as one", max(1.0, columns / rows) ** 0.5
    steps = {
        split: tall * low,
        f"{split}, which the factor needs as well": max(1.0, parts / columns) ** 0.5 * low,
        f"{as_one}; take its parts one by one": whole * fused,
        f"{as_one}, without the factor sqrt(rows / columns); take its parts one by one": fused,
        f"{as_one}, with a part's factor; take its parts one by one": tall * fused,
        "the factor sqrt(rows / columns) of a part with more rows than columns is missing": made,
        "the factor is that of the whole matrix; take rows and columns of a part": whole * made,
        "the factor lacks its root": tall**2 * made,
        "the factor is turned round: sqrt(rows / columns)": wide * made,
        "the factor is below 1 where a part is wide; it is at least 1": ((rows / columns) ** 0.5 * made),
        "the weight climbs along the gradient; take the step away": -tall * made,
        "the gradient is used as it is; make its parts orthogonal": tall * gradient,
        "a part takes every so many rows; parts stand one below the other": tall * interleaved,
        "the parts are made orthogonal exactly, U V^T; asked for are five rounds": tall * exact,
        "the rate is missing": tall * made / rate,
    }
    mistakes = {sentence: weight - rate * step for sentence, step in steps.items()} | {
        "that is the step; return the weight after it": rate * tall * made,
        "that is the change; return the weight after it": -rate * tall * made,
    }
    right = _muon_step(weight, gradient, rate, parts)
    return Case((weight, gradient, rate, parts), right, mistakes)


def _erased(images: Tensor, centres: Tensor, share: float) -> Tensor:
    side = images.shape[-1]
    near = (torch.arange(side) + 0.5 - centres[:, :, None]).abs() < share * side / 2  # (B, 2, S)
    return images.masked_fill((near[:, 0, :, None] & near[:, 1, None, :])[:, None], 127.5)


@function_check(
    "(B, C, H, W)",
    'chapter 9, exercise "Cutout by hand"',
    _erased,
    [(6, 3, 12, 0.4), (5, 1, 9, 0.4), (7, 2, 15, 0.25)],
    exact=True,
    gradients=False,
)
def erase(batch: int, channels: int, side: int, share: float) -> Case:
    """Check a function ``(images, centres, share)`` that sets a square of each image to 127.5.

    Images are (B, C, S, S), centres (B, 2) hold a row and a column in pixels, 0 to S, fractions included; the
    side of the square is a share of S, and a pixel is inside if its own middle is.
    """
    images = 255 * torch.rand(batch, channels, side, side)
    centres = side * torch.rand(batch, 2)
    centres[0] = 0.5 * share * side * torch.rand(2)  # over the border
    half = share * side / 2
    middles = torch.arange(side) + 0.5

    def filled(inside: Tensor, value: float = 127.5) -> Tensor:
        return images.masked_fill(inside, value)

    def near(reach: float, places: Tensor = middles, centres: Tensor = centres) -> tuple[Tensor, Tensor]:
        down, across = ((places - centres[:, axis, None]).abs() <= reach for axis in (0, 1))
        return down[:, None, :, None], across[:, None, None, :]

    def square(reach: float, places: Tensor = middles, centres: Tensor = centres) -> Tensor:
        down, across = near(reach, places, centres)
        return down & across

    inside = square(half)
    wrapped, begun = images.clone(), images.clone()
    for image, corner, (row, column) in zip(wrapped, begun, centres.tolist(), strict=True):
        top, bottom = (math.ceil(row - half - 0.5), math.floor(row + half - 0.5) + 1)
        left, right = (math.ceil(column - half - 0.5), math.floor(column + half - 0.5) + 1)
        image[:, top:bottom, left:right] = 127.5  # a negative index counts from the end
        rows, columns = (((middles >= start) & (middles <= start + 2 * half)) for start in (row, column))
        corner[:, rows[:, None] & columns] = 127.5
    down, across = near(half)
    only_first = inside & (torch.arange(channels) == 0)[:, None, None]
    rows, columns = ((middles - centres[:, axis, None]).square() for axis in (0, 1))
    circle = rows[:, None, :, None] + columns[:, None, None, :] <= half**2
    same_square = square(half, centres=centres[:1].expand(batch, 2))
    erased = {
        "all images lose the same square; each has its own centre": same_square,
        "row and column have changed places: (row, column)": square(half, centres=centres.flip(1)),
        "the square is twice too wide; half of its side lies on each side of the centre": square(2 * half),
        "the square is half as wide as it must be": square(half / 2),
        "a cross is erased; a pixel is inside if its row and its column are: & in place of |": down | across,
    }
    mistakes = {sentence: filled(which) for sentence, which in erased.items()} | {
        "only rows are looked at": filled(down.expand_as(down | across)),
        "only columns are looked at": filled(across.expand_as(down | across)),
        **{
            f"the erased pixels become {value:g}; they become 127.5": filled(inside, value)
            for value in (0, 127, 128, 0.5, 1)
        },
        "the square is kept, and all around it erased": filled(~inside),
        "only the first channel is erased": filled(only_first),
        "pixel i is taken to lie at i; its middle lies at i + 0.5": filled(square(half, middles - 0.5)),
        "the square begins at the centre; half of it lies before": begun,
        "a square that reaches over the border is lost, or wraps: negative ones count from the end": wrapped,
        "a circle is erased; asked for is a square": filled(circle),
    }
    return Case((images, centres, share), _erased(images, centres, share), mistakes)
