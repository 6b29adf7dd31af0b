"""Right and wrong answers to the pieces of chapter 6."""

import torch
import torch.nn.functional as F
from einops import rearrange
from variations import then

from vit_classroom import checks


def qkv_by_rearrange(query, key, value):
    return rearrange([query, key, value], "qkv d h dh -> (qkv h dh) d")


def qkv_by_transposing(query, key, value):
    return torch.cat([kernel.flatten(1).T for kernel in (query, key, value)])


def qkv_by_columns(query, key, value):
    return torch.cat([query, key, value], dim=1).flatten(1).mT.contiguous()


def qkv_by_einsum(query, key, value):
    identity = torch.eye(len(query))
    return torch.cat(
        [torch.einsum("dhk,de->hke", one, identity).flatten(0, 1) for one in (query, key, value)]
    )


def packed(pattern):
    return lambda query, key, value: rearrange([query, key, value], f"qkv d h dh -> {pattern}")


def stretched_by_hand(table, count):
    places = torch.arange(count) * (len(table) - 1) / (count - 1)
    left = places.long().clamp(max=len(table) - 2)
    share = (places - left)[:, None]
    return (1 - share) * table[left] + share * table[left + 1]


def stretched_by_matrix(table, count):
    places = torch.linspace(0, len(table) - 1, count)
    hats = (1 - (places[:, None] - torch.arange(len(table))).abs()).clamp(min=0)
    return hats @ table


def stretched_by_interpolate(table, count):
    return F.interpolate(table.T[None], size=count, mode="linear", align_corners=True)[0].T


def stretched_in_a_loop(table, count):
    rows = []
    for i in range(count):
        numerator = i * (len(table) - 1)
        left, rest = divmod(numerator, count - 1)
        right = min(left + 1, len(table) - 1)
        rows.append(torch.lerp(table[left], table[right], rest / (count - 1)))
    return torch.stack(rows)


def stretched_at(place, shared=lambda share: share, inside=True):
    def stretch(table, count):
        n = len(table)
        places = place(torch.arange(count), n, count)
        places = places.clamp(0, n - 1) if inside else places
        left = places.long().clamp(max=n - 2)
        share = shared((places - left)[:, None])
        return (1 - share) * table[left] + share * table[left + 1]

    return stretch


def stretched_with(shared, neighbour=lambda places, last: (places.long() + 1).clamp(max=last)):
    """A place at an end has one neighbour, itself."""

    def stretch(table, count):
        places = at_corners(torch.arange(count), len(table), count)
        left, share = places.long(), shared(places.frac()[:, None])
        return (1 - share) * table[left] + share * table[neighbour(places, len(table) - 1)]

    return stretch


def swapped(share):
    return 1 - share


def half(share):
    return 0.5


def right_by_ceil(places, last):
    return places.ceil().long()


def upside_down(i, n, count):
    return i * (count - 1) / (n - 1)


def at_corners(i, n, count):
    return i * (n - 1) / (count - 1)


RIGHT = {
    checks.qkv_from_jax: (
        qkv_by_rearrange,
        qkv_by_transposing,
        qkv_by_columns,
        qkv_by_einsum,
        torch.no_grad()(qkv_by_columns),
    ),
    checks.stretch_positions: (
        stretched_by_hand,
        stretched_by_matrix,
        stretched_by_interpolate,
        stretched_in_a_loop,
    ),
}

WRONG = {
    checks.qkv_from_jax: [
        (lambda q, k, v: qkv_by_transposing(q, k, v) / len(q) ** 0.5, "all are off by one factor"),
        (lambda q, k, v: qkv_by_transposing(q, k, v)[: 2 * len(q)], "expected"),
        (lambda q, k, v: torch.cat([one.flatten(1) for one in (q, k, v)]), "are not transposed: JAX has"),
        (lambda q, k, v: torch.cat([one.reshape(len(one), -1) for one in (q, k, v)]), "are not transposed"),
        (lambda q, k, v: torch.cat([one.flatten(1) for one in (q, k, v)], dim=1), "the result is transposed"),
        (
            lambda q, k, v: torch.cat([one.flatten(1) for one in (q, k, v)], dim=1).reshape(-1, len(q)),
            "puts that straight in shape only",
        ),
        (packed("d (qkv h dh)"), "the result is transposed"),
        (packed("(qkv dh h) d"), "the heads are interleaved"),
        (packed("(h qkv dh) d"), "interleaved head by head"),
        (packed("(h dh qkv) d"), "interleaved row by row"),
        (packed("qkv (h dh) d"), "its values are right: reshape them"),
        (lambda q, k, v: qkv_by_transposing(k, q, v), "the keys come first"),
        (lambda q, k, v: qkv_by_transposing(q, v, k), "the values come before the keys"),
        (lambda q, k, v: qkv_by_transposing(v, k, q), "turned round"),
        (lambda q, k, v: qkv_by_transposing(q, q, q), "stand in all three places"),
        (lambda q, k, v: q.flatten(1).T, "returned shape"),
    ],
    checks.stretch_positions: [
        (then(stretched_by_matrix, lambda x: x[:-1]), "the last of axis 0 is missing"),
        (then(stretched_by_matrix, lambda x: x.roll(1, 0)), "one place beside"),
        (then(stretched_by_matrix, lambda x: x[None]), "its values are right: reshape"),
        (
            then(stretched_by_matrix, lambda x: F.normalize(x, dim=-1)),
            "off by factors, one for each place along axis 0",
        ),
        (
            lambda table, count: F.interpolate(table.T[None], size=count, mode="linear")[0].T,
            "the areas lie on each other",
        ),
        (stretched_at(lambda i, n, count: (i + 0.5) * n / count - 0.5), "the areas lie on each other"),
        (stretched_at(lambda i, n, count: i * n / count), "a step is n / count long"),
        (stretched_at(lambda i, n, count: i * (n - 1) / count), "never reaches the last place"),
        (stretched_at(lambda i, n, count: i * n / (count - 1)), r"a step is n / \(count - 1\) long"),
        (stretched_at(lambda i, n, count: at_corners(i, n, count).round()), "its nearest neighbour; mix"),
        (
            lambda table, count: F.interpolate(table.T[None], size=count)[0].T,
            "nearest neighbour, area on area",
        ),
        (stretched_at(lambda i, n, count: at_corners(i, n, count).floor()), "left neighbour alone"),
        *[
            (stretched(change), said)
            for change, said in (
                (swapped, "two shares have changed places"),
                (half, "both neighbours have a half"),
            )
            for stretched in (
                lambda change: stretched_at(at_corners, change),
                stretched_with,
                lambda change: stretched_with(change, right_by_ceil),
            )
        ],
        (stretched_at(upside_down), r"upside down, \(count - 1\) / \(n - 1\); between the corners"),
        (stretched_at(upside_down, inside=False), "upside down.* goes on in a line"),
        (lambda table, count: table[upside_down(torch.arange(count), len(table), count).long()], "IndexErr"),
        (then(stretched_by_matrix, lambda x: x.flip(0)), "turned round"),
        (then(stretched_by_matrix, lambda x: x.T), "returned shape"),
        (lambda table, count: table, "returned shape"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
