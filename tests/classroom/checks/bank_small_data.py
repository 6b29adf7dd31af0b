"""Right and wrong answers to the pieces of chapter 9."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from variations import right_with_options

from vit_classroom import checks
from vit_from_scratch.training.muon import orthogonalise


def mixup_by_view(values, partners, share):
    kept = share.view(-1, *[1] * (values.dim() - 1))
    return kept * values + (1 - kept) * values[partners]


def mixup_flat(values, partners, share):
    flat = values.flatten(1)
    return (flat[partners] + share[:, None] * (flat - flat[partners])).view_as(values)


def mixup_one_by_one(values, partners, share):
    return torch.stack([s * v + (1 - s) * values[p] for v, p, s in zip(values, partners, share, strict=True)])


def mixup_by_matrix(values, partners, share):
    weights = torch.diag(share) + (1 - share)[:, None] * F.one_hot(partners, len(values))
    return torch.einsum("ij,j...->i...", weights, values)


def mixup_with(formula):
    def function(values, partners, share):
        return formula(values, values[partners], share.view(-1, *[1] * (values.dim() - 1)), partners)

    return function


def mixup_in_a_loop(values, partners, share):
    mixed = values.clone()
    for i, partner in enumerate(partners):
        mixed[i] = share[i] * mixed[i] + (1 - share[i]) * mixed[partner]
    return mixed


def local_by_rearrange(hidden, kernel, bias, rows):
    image = rearrange(hidden, "b (gh gw) m -> b m gh gw", gh=rows)
    local = F.conv2d(image, kernel, bias, padding=1, groups=len(kernel))
    return rearrange(local, "b m gh gw -> b (gh gw) m")


def local_by_shifts(hidden, kernel, bias, rows):
    grid = F.pad(hidden.unflatten(1, (rows, -1)), (0, 0, 1, 1, 1, 1))  # (B, rows + 2, columns + 2, M)
    height, width = grid.shape[1] - 2, grid.shape[2] - 2
    total = bias
    for down in range(3):
        for right in range(3):
            seen = grid[:, down : down + height, right : right + width]
            total = total + seen * kernel[:, 0, down, right]
    return total.flatten(1, 2)


def local_by_unfold(hidden, kernel, bias, rows):
    batch, count, width = hidden.shape
    image = hidden.mT.reshape(batch, width, rows, count // rows)
    windows = F.unfold(image, 3, padding=1).unflatten(1, (width, 9))  # (B, M, 9, N)
    return torch.einsum("bmkn,mk->bnm", windows, kernel.flatten(1)) + bias


def local_with(cut="b (gh gw) m -> b m gh gw", back="b m gh gw -> b (gh gw) m", convolve=None):
    def function(hidden, kernel, bias, rows):
        image = rearrange(hidden, cut, gh=rows)
        convolved = (convolve or F.conv2d)(image, kernel, bias, padding=1, groups=len(kernel))
        return rearrange(convolved, back)

    return function


def local_by_view(hidden, kernel, bias, rows):
    batch, _, width = hidden.shape
    local = F.conv2d(hidden.view(batch, width, rows, -1), kernel, bias, padding=1, groups=width)
    return local.flatten(2).mT


def local_by_view_and_back(hidden, kernel, bias, rows):
    image = hidden.view(len(hidden), hidden.shape[2], rows, -1)
    return F.conv2d(image, kernel, bias, padding=1, groups=len(kernel)).view_as(hidden)


def local_without_moving_back(hidden, kernel, bias, rows):
    image = hidden.mT.unflatten(2, (rows, -1))
    return F.conv2d(image, kernel, bias, padding=1, groups=len(kernel)).reshape(hidden.shape)


def padded_like(mode):
    def convolve(image, kernel, bias, padding, groups):
        return F.conv2d(F.pad(image, (1, 1, 1, 1), mode=mode), kernel, bias, groups=groups)

    return local_with(convolve=convolve)


def orthogonal_by_loop(gradient, rounds=5, a=3.4445, b=-4.7750, c=2.0315):
    x = gradient / gradient.norm()
    for _ in range(rounds):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


def orthogonal_from_the_right(gradient, rounds=5, a=3.4445, b=-4.7750, c=2.0315):
    x = gradient / (gradient**2).sum().sqrt()
    for _ in range(rounds):
        gram = x.T @ x
        x = x @ (a * torch.eye(len(gram)) + b * gram + c * gram.matrix_power(2))
    return x


@torch.no_grad()
def orthogonal_by_singular_values(gradient, rounds=5, a=3.4445, b=-4.7750, c=2.0315):
    u, s, v = torch.linalg.svd(gradient, full_matrices=False)
    s = s / s.norm()
    for _ in range(rounds):
        s = a * s + b * s**3 + c * s**5
    return u * s @ v


def orthogonal_with(
    step=None, count=lambda rounds: rounds, start=lambda gradient: gradient / gradient.norm()
):
    def function(gradient, rounds=5, a=3.4445, b=-4.7750, c=2.0315):
        x = start(gradient)
        for _ in range(count(rounds)):
            gram = x @ x.T
            x = step(x, gram) if step else a * x + (b * gram + c * gram @ gram) @ x
        return x

    return function


def orthogonal_with_one_gram(gradient, rounds=5):
    x = gradient / gradient.norm()
    gram = x @ x.T
    for _ in range(rounds):
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


def exactly_orthogonal(gradient, rounds=5):
    u, _, v = torch.linalg.svd(gradient, full_matrices=False)
    return u @ v


def muon_by_chunks(weight, gradient, rate, parts):
    rows, columns = len(weight) // parts, weight.shape[1]
    steps = [orthogonal_by_loop(part) for part in gradient.chunk(parts)]
    return weight - rate * max(1, rows / columns) ** 0.5 * torch.cat(steps)


@torch.no_grad()
def muon_part_by_part(weight, gradient, rate, parts):
    moved = weight.clone()
    height = len(weight) // parts
    for top in range(0, len(weight), height):
        part = slice(top, top + height)
        stretch = math.sqrt(height / weight.shape[1]) if height > weight.shape[1] else 1.0
        moved[part] -= rate * stretch * orthogonal_from_the_right(gradient[part])
    return moved


def muon_by_map(weight, gradient, rate, parts):
    stacked = gradient.view(parts, -1, gradient.shape[1])
    steps = torch.stack([orthogonal_by_singular_values(part) for part in stacked])
    stretch = max(1.0, stacked.shape[1] / stacked.shape[2]) ** 0.5
    return torch.add(weight, steps.view_as(weight), alpha=-rate * stretch)


def muon_with(factor=lambda rows, columns, parts: max(1, rows / columns) ** 0.5, make=None):
    def apart(gradient, parts):
        return torch.cat([orthogonal_by_loop(part) for part in gradient.chunk(parts)])

    def function(weight, gradient, rate, parts):
        rows, columns = len(weight) // parts, weight.shape[1]
        return weight - rate * factor(rows, columns, parts) * (make or apart)(gradient, parts)

    return function


def as_one(gradient, parts):
    return orthogonal_by_loop(gradient)


def split_into(gradient, parts):
    return torch.cat([orthogonal_by_loop(part) for part in gradient.split(parts)])


def every_third(gradient, parts):
    made = torch.empty_like(gradient)
    for first in range(parts):
        made[first::parts] = orthogonal_by_loop(gradient[first::parts])
    return made


def erase_by_mask(images, centres, share):
    side = images.shape[-1]
    middles = torch.arange(side) + 0.5
    near = [(middles - centre[:, None]).abs() <= share * side / 2 for centre in centres.unbind(1)]
    square = near[0][:, None, :, None] & near[1][:, None, None, :]
    return images.masked_fill(square, 127.5)


def erase_by_slices(images, centres, share):
    erased, side = images.clone(), images.shape[-1]
    half = share * side / 2
    for image, centre in zip(erased, centres.tolist(), strict=True):
        (top, bottom), (left, right) = (
            (max(0, math.ceil(place - half - 0.5)), max(0, math.floor(place + half - 0.5) + 1))
            for place in centre
        )
        image[:, top:bottom, left:right] = 127.5
    return erased


def erase_by_where(images, centres, share):
    rows, columns = torch.meshgrid(*[torch.arange(0.5, images.shape[-1])] * 2, indexing="ij")
    found = []
    for image, (row, column) in zip(images, centres, strict=True):
        farthest = torch.maximum((rows - row).abs(), (columns - column).abs())
        found.append(torch.where(farthest <= share * images.shape[-1] / 2, torch.tensor(127.5), image))
    return torch.stack(found)


def erase_with(shape=lambda down, right, half: (down <= half) & (right <= half), value=127.5, middle=0.5):
    """Down and right are distances from the centre, in pixels."""

    def function(images, centres, share):
        side = images.shape[-1]
        places = torch.arange(side) + middle
        down = (places - centres[:, 0, None]).abs()[:, None, :, None]
        right = (places - centres[:, 1, None]).abs()[:, None, None, :]
        return images.masked_fill(shape(down, right, share * side / 2), value)

    return function


def erases_from_the_centre(images, centres, share):
    side = images.shape[-1]
    return erase_by_mask(images, centres + share * side / 2, share)


def erases_with_negative_indices(images, centres, share):
    erased, half = images.clone(), share * images.shape[-1] / 2
    for image, (row, column) in zip(erased, centres.tolist(), strict=True):
        top, left = math.ceil(row - half - 0.5), math.ceil(column - half - 0.5)
        bottom, right = math.floor(row + half - 0.5) + 1, math.floor(column + half - 0.5) + 1
        image[:, top:bottom, left:right] = 127.5
    return erased


def erases_in_place(images, centres, share):
    images.copy_(erase_by_mask(images, centres, share))
    return images


def erases_one_channel(images, centres, share):
    return torch.cat([erase_by_mask(images[:, :1], centres, share), images[:, 1:]], dim=1)


RIGHT = {
    checks.mixup: (
        mixup_by_view,
        mixup_flat,
        mixup_one_by_one,
        mixup_by_matrix,
        torch.no_grad()(mixup_by_view),
    ),
    checks.neighbours: (local_by_rearrange, local_by_shifts, local_by_unfold),
    checks.orthogonalised: (
        orthogonal_by_loop,
        orthogonal_from_the_right,
        orthogonal_by_singular_values,
        orthogonal_with(start=lambda g: g / (g.norm() + 1e-7)),
        orthogonal_with(start=lambda g: g / g.norm().clamp(min=1e-7)),
    ),
    checks.muon_step: (muon_by_chunks, muon_part_by_part, muon_by_map),
    checks.erase: (erase_by_mask, erase_by_slices, erase_by_where),
}

WRONG_ROUNDS = [
    (orthogonal_with(start=lambda g: g), "not divided by its norm"),
    (orthogonal_with(start=lambda g: g / torch.linalg.matrix_norm(g, 2)), "largest singular value"),
    (orthogonal_with(start=lambda g: F.normalize(g, dim=1)), "each row is divided"),
    (orthogonal_with(start=lambda g: F.normalize(g, dim=0)), "each column is divided"),
    (orthogonal_with(start=lambda g: g / g.abs().max()), "divided by its largest value"),
    (orthogonal_with(count=lambda rounds: 1), "always one round"),
    (orthogonal_with(count=lambda rounds: rounds - 1), "one round too few"),
    (orthogonal_with(count=lambda rounds: rounds + 1), "one round too many"),
    (orthogonal_with(count=lambda rounds: 5), "always five rounds"),
    (orthogonal_with_one_gram, "G is computed once"),
    (
        orthogonal_with(lambda x, gram: 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5),
        "value by value; take matrix",
    ),
    (
        orthogonal_with(lambda x, gram: 3.4445 * x + (-4.7750 * gram + 2.0315 * gram**2) @ x),
        "G is squared value",
    ),
    (
        orthogonal_with(lambda x, gram: 3.4445 * x + (-4.7750 * gram + 2.0315 * gram) @ x),
        r"c multiplies G;",
    ),
    (orthogonal_with(lambda x, gram: 3.4445 * x - 4.7750 * gram @ x), "the last term is missing"),
    (
        orthogonal_with(lambda x, gram: 3.4445 * x + (2.0315 * gram - 4.7750 * gram @ gram) @ x),
        "changed places",
    ),
    (orthogonal_with(lambda x, gram: (-4.7750 * gram + 2.0315 * gram @ gram) @ x), "a X is missing"),
    (orthogonal_with(lambda x, gram: 1.5 * x - 0.5 * gram @ x), "Newton and Schulz"),
    (
        orthogonal_with(lambda x, gram: 3.4445 * x + (4.7750 * gram + 2.0315 * gram @ gram) @ x),
        "minus sign of b",
    ),
    (exactly_orthogonal, "the exact U V"),
    (orthogonal_with(count=lambda rounds: 0), "only divided by its norm"),
    (lambda g, rounds=5: g.norm() * orthogonal_by_loop(g, rounds), "multiplied by the norm again"),
    (lambda g, rounds=5: orthogonalise(g[None], rounds)[0], "the package's own"),
]
"""Of Muon, with its usual numbers."""

WRONG = {
    checks.erase: [
        (lambda x, centres, share: erase_by_mask(x, centres, 0.4), "right only where.*share is 0.4"),
        (lambda x, centres, share: erase_by_mask(x, centres, share) / 255, "all are 0.003922 times"),
        (
            lambda x, centres, share: erase_by_mask(x, centres[:1].expand_as(centres), share),
            "the same square",
        ),
        (
            lambda x, centres, share: erase_by_mask(x, centres.flip(1), share),
            r"have changed places: \(row, column\)",
        ),
        (lambda x, centres, share: erase_by_mask(x, centres, 2 * share), "twice too wide"),
        (lambda x, centres, share: erase_by_mask(x, centres, share / 2), "half as wide"),
        (erase_with(lambda down, right, half: (down <= half) | (right <= half)), "a cross is erased"),
        (erase_with(lambda down, right, half: (down <= half).expand_as(down + right)), "only rows"),
        (erase_with(lambda down, right, half: (right <= half).expand_as(down + right)), "only columns"),
        (erase_with(value=0.0), "become 0; they"),
        (erase_with(value=128.0), "become 128"),
        (erase_with(value=0.5), "become 0.5"),
        (erase_with(lambda down, right, half: (down > half) | (right > half)), "all around it erased"),
        (erases_one_channel, "only the first channel"),
        (erase_with(middle=0.0), "its middle lies at i"),
        (erases_from_the_centre, "begins at the centre"),
        (erases_with_negative_indices, "negative ones count from the end"),
        (erase_with(lambda down, right, half: down**2 + right**2 <= half**2), "a circle is erased"),
        (lambda x, centres, share: x, "an input comes back as it was"),
        (erases_in_place, "changes its input"),
    ],
    checks.mixup: [
        (mixup_with(lambda x, y, s, p: (s * x + (1 - s) * y) / 2), "all are 0.5 times as large"),
        (mixup_with(lambda x, y, s, p: (1 - s) * x + s * y), "the shares have changed places"),
        (mixup_with(lambda x, y, s, p: s[0] * x + (1 - s[0]) * y), "share of the first pair"),
        (mixup_with(lambda x, y, s, p: s.mean() * x + (1 - s.mean()) * y), "mean of all shares"),
        (mixup_with(lambda x, y, s, p: s * x + (1 - s) * x.flip(0)), "turned round"),
        (mixup_with(lambda x, y, s, p: s * x + (1 - s) * x.roll(1, 0)), "neighbours in the batch"),
        (mixup_with(lambda x, y, s, p: s * x + (1 - s) * x[p.argsort()]), "the wrong way round"),
        (mixup_with(lambda x, y, s, p: s * x + y), "the partner comes in whole"),
        (mixup_with(lambda x, y, s, p: x + (1 - s) * y), "the value stays whole"),
        (mixup_with(lambda x, y, s, p: s * x + s[p] * y), "with its own share"),
        (mixup_with(lambda x, y, s, p: s * (x + y)), "multiplied by the same share"),
        (lambda values, partners, share: share * values + (1 - share) * values[partners], "RuntimeError"),
        (mixup_in_a_loop, "blended already; read them from `values`"),
        (mixup_with(lambda x, y, s, p: x), "an input comes back as it was"),
        (mixup_with(lambda x, y, s, p: y), "these are the partners"),
        (mixup_with(lambda x, y, s, p: x.mul_(s) + (1 - s) * x[p]), "changes its input"),
    ],
    checks.muon_step: [
        (muon_with(lambda r, c, n: max(1, n * r / c) ** 0.5, as_one), "orthogonal as one; take"),
        (muon_with(lambda r, c, n: 1, as_one), "as one, without the factor"),
        (muon_with(make=as_one), "as one, with a part's factor"),
        (muon_with(lambda r, c, n: 1), "more rows than columns is missing"),
        (muon_with(lambda r, c, n: max(1, n * r / c) ** 0.5), "factor is that of the whole matrix"),
        (muon_with(lambda r, c, n: max(1, r / c)), "the factor lacks its root"),
        (muon_with(lambda r, c, n: max(1, c / r) ** 0.5), "the factor is turned round"),
        (muon_with(lambda r, c, n: (r / c) ** 0.5), "it is at least 1"),
        (lambda w, g, rate, parts: 2 * w - muon_by_chunks(w, g, rate, parts), "the weight climbs"),
        (muon_with(make=lambda g, parts: g), "the gradient is used as it is"),
        (muon_with(make=every_third), "a part takes every so many rows"),
        (muon_with(make=split_into), "its argument is the height of a part\\."),
        (
            muon_with(lambda r, c, n: max(1, n / c) ** 0.5, split_into),
            "height of a part, which the factor needs as well",
        ),
        (
            muon_with(make=lambda g, parts: torch.cat([exactly_orthogonal(part) for part in g.chunk(parts)])),
            "orthogonal exactly",
        ),
        (lambda w, g, rate, parts: w - muon_by_chunks(w, g, rate, parts), "that is the step"),
        (lambda w, g, rate, parts: muon_by_chunks(w, g, rate, parts) - w, "that is the change"),
        (lambda w, g, rate, parts: muon_by_chunks(w, g, 1.0, parts), "the rate is missing"),
        (lambda w, g, rate, parts: w.copy_(muon_by_chunks(w, g, rate, parts)), "changes its input"),
    ],
    checks.neighbours: [
        (lambda *given: local_by_rearrange(*given).mT, "its axes stand in another order"),
        (
            lambda hidden, kernel, bias, rows: local_by_rearrange(
                hidden, kernel, bias, hidden.shape[1] // rows
            ),
            "rows and columns of the grid",
        ),
        (local_with("b (gw gh) m -> b m gh gw", "b m gh gw -> b (gw gh) m"), "column by column"),
        (local_by_view, "reshaped to the grid without moving"),
        (local_by_view_and_back, "to the grid and back without moving"),
        (local_without_moving_back, "hidden values not moved last"),
        (local_with(back="b m gh gw -> b m gh gw"), "the result is still a grid"),
        (
            lambda hidden, kernel, bias, rows: local_by_rearrange(hidden, kernel, None, rows),
            "bias is missing",
        ),
        (lambda hidden, *rest: hidden + local_by_rearrange(hidden, *rest), "what it read is added"),
        (lambda *given: F.gelu(local_by_rearrange(*given)), "a GELU follows"),
        (lambda hidden, kernel, *rest: local_by_rearrange(hidden, kernel.flip(2, 3), *rest), "turned round"),
        (lambda hidden, kernel, *rest: local_by_rearrange(hidden, kernel.mT, *rest), "kernel is transposed"),
        (padded_like("replicate"), "border is repeated"),
        (padded_like("circular"), "joins the other side"),
        (
            local_with(
                convolve=lambda image, kernel, bias, padding, groups: F.conv2d(
                    image, kernel, bias, groups=groups
                )
            ),
            "there is no padding",
        ),
        (
            local_with(
                convolve=lambda image, kernel, bias, padding, groups: F.conv2d(image, kernel, bias, padding=1)
            ),
            "RuntimeError",
        ),
        (
            lambda hidden, kernel, *rest: local_by_rearrange(hidden, kernel[:1].expand_as(kernel), *rest),
            "share the first kernel",
        ),
    ],
    checks.orthogonalised: [
        (lambda g, rounds=5, *_: orthogonal_by_loop(g, rounds), "always Muon's; take those"),
        (lambda g, rounds=10, *numbers: orthogonal_by_loop(g, rounds, *numbers), "of them agree"),
        (lambda g, rounds=6, *numbers: orthogonal_by_loop(g, rounds, *numbers), "one round too many"),
        (lambda g, rounds=5, *numbers: orthogonal_by_loop(g.bfloat16(), rounds, *numbers), "work in float32"),
        (lambda g, *given: orthogonal_by_loop(g.bfloat16(), *given).float(), "work in float32"),
        (lambda g, _=5, *numbers: orthogonal_by_loop(g, 5, *numbers), "there are always five rounds"),
        (lambda g, rounds: orthogonal_by_loop(g, rounds), "cannot be called as orthogonalised"),
        *[(right_with_options(wrong, orthogonal_by_loop, 2), said) for wrong, said in WRONG_ROUNDS],
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
