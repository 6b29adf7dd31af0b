"""Right and wrong answers to the pieces of chapter 17."""

import itertools
import math

import numpy as np
import torch
from scipy import stats
from variations import then, variant

from vit_classroom import checks


def interval(ours, theirs, quantile=0.975, spare=1, spread=torch.std, root=math.sqrt):
    differences = ours - theirs
    count = len(differences)
    margin = stats.t.ppf(quantile, count - spare) * spread(differences) / root(count)
    mean = differences.mean()
    return torch.stack([mean, mean - margin, mean + margin])


def interval_by_scipy(ours, theirs):
    found = stats.ttest_rel(ours, theirs).confidence_interval()
    return torch.tensor([float((ours - theirs).mean()), found.low, found.high], dtype=ours.dtype)


def interval_by_sums(ours, theirs):
    d, n = ours - theirs, ours.numel()
    mean = d.sum() / n
    error = ((d - mean).square().sum() / (n - 1) / n) ** 0.5
    ends = mean + error * torch.tensor(stats.t.interval(0.95, n - 1))
    return torch.cat([mean[None], ends])


def unpaired(ours, theirs):
    n = len(ours)
    error = ((ours.var() + theirs.var()) / n).sqrt()
    margin = stats.t.ppf(0.975, n - 1) * error
    mean = (ours - theirs).mean()
    return torch.stack([mean, mean - margin, mean + margin])


def welch(ours, theirs):
    found = stats.ttest_ind(ours, theirs).confidence_interval()
    return torch.tensor([float((ours - theirs).mean()), found.low, found.high])


def inner(rates, accuracies, choose=torch.argmax, lowest=1, highest=2):
    place = choose(accuracies, dim=-1)
    inside = (place >= lowest) & (place <= len(rates) - highest)
    return torch.where(inside, rates[place], 0.0)


def inner_by_loop(rates, accuracies):
    found = torch.zeros(accuracies.shape[:-1])
    for at in np.ndindex(found.shape):
        order = sorted(range(len(rates)), key=lambda k: accuracies[at][k].item())
        if 0 < order[-1] < len(rates) - 1:
            found[at] = rates[order[-1]]
    return found


def inner_by_mask(rates, accuracies):
    top = accuracies == accuracies.amax(-1, keepdim=True)
    return (top * torch.cat([torch.zeros(1), rates[1:-1], torch.zeros(1)])).sum(-1)


def both_gains(neither, one, other, both):
    return (both - neither) - (one - neither) - (other - neither)


def gains_beside(neither, one, other, both):
    return (both - other) - (one - neither)


def gains_by_matrix(*four):
    return torch.tensor([1.0, -1.0, -1.0, 1.0]) @ torch.stack(four)


def worth_by_orders(accuracy, orders=lambda n: list(itertools.permutations(range(n)))):
    n = accuracy.ndim
    taken = orders(n)
    worth = torch.zeros(n, dtype=accuracy.dtype)
    for order in taken:
        state = [0] * n
        for part in order:
            before = accuracy[tuple(state)]
            state[part] = 1
            worth[part] += (accuracy[tuple(state)] - before) / len(taken)
    return worth


def worth_by_sets(accuracy, weight=lambda size, n: 1 / (n * math.comb(n - 1, size))):
    n = accuracy.ndim
    worth = []
    for part in range(n):
        gains = accuracy.select(part, 1) - accuracy.select(part, 0)
        sizes = [sum(at) for at in itertools.product((0, 1), repeat=n - 1)]
        weights = torch.tensor([weight(size, n) for size in sizes], dtype=accuracy.dtype)
        worth.append((weights * gains.flatten()).sum())
    return torch.stack(worth)


def worth_by_recursion(accuracy):
    """What each brings as the last, and the worth among the others, averaged over who is the last."""
    n = accuracy.ndim
    if n == 0:
        return accuracy.new_zeros(0)
    whole = accuracy[(1,) * n]
    total = accuracy.new_zeros(n)
    for last in range(n):
        rest = accuracy.select(last, 0)
        others = worth_by_recursion(rest)
        total += torch.cat([others[:last], (whole - rest[(1,) * (n - 1)])[None], others[last:]])
    return total / n


def seeds_by_table(spread, margin, quantile=0.975, first=2, spare=1):
    counts = torch.arange(first, 1001).double()
    times = torch.tensor(stats.t.ppf(quantile, counts - spare))
    enough = spread.double()[:, None] * times / counts.sqrt() <= margin
    return counts[enough.int().argmax(1)]


def seeds_without_root(spread, margin):
    counts = torch.arange(2, 1001).double()
    enough = spread[:, None] * torch.tensor(stats.t.ppf(0.975, counts - 1)) / counts <= margin
    return counts[enough.int().argmax(1)]


def seeds_in_one_step(spread, margin):
    first = (1.96 * spread / margin).square().ceil().clamp(min=2)
    quantiles = torch.tensor(stats.t.ppf(0.975, first - 1))
    return (quantiles * spread / margin).square().ceil().clamp(min=2)


def seeds_by_loop(spread, margin):
    def needed(sigma):
        count = 2
        while stats.t.ppf(0.975, count - 1) * sigma / math.sqrt(count) > margin:
            count += 1
        return float(count)

    return torch.tensor([needed(float(sigma)) for sigma in spread])


def seeds_by_halving(spread, margin):
    found = []
    for sigma in spread.tolist():
        low, high = 1, 1000  # too few, enough
        while high - low > 1:
            middle = (low + high) // 2
            enough = stats.t.ppf(0.975, middle - 1) * sigma <= margin * middle**0.5
            low, high = (low, middle) if enough else (middle, high)
        found.append(high)
    return torch.tensor(found).float()


def worth_with(keep, reset=True, over=lambda n: math.factorial(n)):
    """Return the average over orders, of which each step is open to mistakes."""

    def average(accuracy):
        n = accuracy.ndim
        state, worth = [0] * n, torch.zeros(n, dtype=accuracy.dtype)
        for order in itertools.permutations(range(n)):
            state = [0] * n if reset else state
            for turn, part in enumerate(order):
                before = accuracy[tuple(state)]
                state[part] = 1
                at, gain = keep(turn, part, accuracy[tuple(state)], before, accuracy[(0,) * n])
                worth[at] += gain
        return worth / over(n)

    return average


def by_part(turn, part, now, before, nothing):
    return part, now - before


def seeds_going_on(spread, margin):
    count, found = 2, []
    for sigma in spread.tolist():
        while stats.t.ppf(0.975, count - 1) * sigma / math.sqrt(count) > margin:
            count += 1
        found.append(float(count))
    return torch.tensor(found)


def best_inside(rates, accuracies):
    return rates[1:-1][accuracies[..., 1:-1].argmax(-1)]


def inner_of_models(rates, accuracies):
    place = accuracies.argmax(-1)
    return torch.where((place > 0) & (place < accuracies.shape[0] - 1), rates[place], 0.0)


RIGHT = {
    checks.paired_interval: [interval, interval_by_scipy, interval_by_sums],
    checks.inner_best: [inner, inner_by_loop, inner_by_mask],
    checks.interaction: [both_gains, gains_beside, gains_by_matrix],
    checks.average_worth: [worth_by_orders, worth_by_sets, worth_by_recursion],
    checks.seeds_needed: [seeds_by_table, seeds_by_loop, seeds_by_halving],
}

WRONG = {
    checks.paired_interval: [
        (lambda a, b: interval(b, a), "ours is taken from theirs"),
        (unpaired, "not paired: take"),
        (welch, "not paired, and the quantile"),
        (lambda a, b: interval(a, b, quantile=0.95), "left out on one side"),
        (lambda a, b: interval(a, b, spare=0), "S degrees of freedom here"),
        (variant(interval, root=lambda n: 1), "not divided by the root"),
        (variant(interval, root=lambda n: n), "divided by S; divide by its root"),
        (variant(interval, spread=lambda d: d.std(correction=0)), "divides by S; it divides"),
        (variant(interval, spread=torch.var), "take its root"),
        (then(interval, lambda three: three[[1, 0, 2]]), "the order is mean"),
        (then(interval, lambda three: three[[0, 2, 1]]), "the two ends have changed places"),
        (lambda a, b: interval(a, b, quantile=0.025), "the two ends have changed places"),
        (
            then(interval, lambda three: torch.stack([three[0], *(three[1:] - three[0])])),
            "they lie around the mean",
        ),
        (variant(interval, root=lambda n: math.sqrt(n - 1)), "the root of S - 1; divide"),
        (then(interval, lambda three: three[1:]), "the mean comes first"),
        (then(interval, lambda three: three[0]), "expected"),
        (lambda a, b: tuple(interval(a, b)), "a tuple of 3"),
    ],
    checks.inner_best: [
        (variant(inner, lowest=0, highest=1), "a best rate at an end is given"),
        (variant(inner, lowest=0), "the first rate is given"),
        (variant(inner, highest=1), "the last rate is given"),
        (variant(inner, lowest=2, highest=3), "refused as well"),
        (variant(inner, choose=torch.argmin), "the lowest accuracy is taken; "),
        (best_inside, "the best of the inner rates"),
        (inner_of_models, r"take len\(rates\)"),
        (lambda r, a: a.argmax(-1), "these are places, also at an end"),
        (lambda r, a: a.amax(-1), "these are the highest accuracies"),
        (lambda r, a: inner(r, a)[..., None], "its values are right: reshape them"),
        (lambda r, a: inner(r, a) > 0, "whether there is a verdict|returned"),
    ],
    checks.interaction: [
        (lambda n, a, b, ab: ab - a - b, "the model with neither is missing"),
        (lambda n, a, b, ab: ab - a - b - n, "it is to be added"),
        (lambda n, a, b, ab: a + b - n - ab, "the sign is turned"),
        (lambda n, a, b, ab: ab - n, "this is what both bring"),
        (lambda n, a, b, ab: ab - b, "the first brings beside the other"),
        (lambda n, a, b, ab: ab - a, "the other brings beside the first"),
        (lambda n, a, b, ab: (ab - n) - ((a - n) - (b - n)), "minus before the bracket"),
        (lambda n, a, b, ab: -((a - n) - (b - n)), "compared with the first"),
        (lambda n, a, b, ab: a - b, "compared with each other"),
        (lambda n, a, b, ab: both_gains(n, a, b, ab) / 2, "divided by two"),
        (lambda n, a, b, ab: both_gains(n, a, b, ab).mean(), "it is the mean over axis 0"),
    ],
    checks.average_worth: [
        (variant(worth_by_orders, orders=lambda n: [tuple(range(n))]), "one order alone"),
        (variant(worth_by_orders, orders=lambda n: [tuple(reversed(range(n)))]), "the last first"),
        (variant(worth_by_sets, weight=lambda size, n: float(size == 0)), "each is added to nothing"),
        (variant(worth_by_sets, weight=lambda size, n: float(size == n - 1)), "left out of all"),
        (variant(worth_by_sets, weight=lambda size, n: 0.5 ** (n - 1)), "all sets count alike"),
        (lambda a: math.factorial(a.ndim) * worth_by_orders(a), "summed over orders|all are"),
        (worth_with(by_part, reset=False), "back to zeros"),
        (worth_with(lambda turn, part, now, before, nothing: (turn, now - before)), "kept by its turn"),
        (worth_with(lambda turn, part, now, before, nothing: (part, now - nothing)), "over the empty model"),
        (worth_with(by_part, over=lambda n: n), "divided by n; "),
        (lambda a: -worth_by_orders(a), "the sign is turned"),
        (lambda a: worth_by_orders(a).sum(), "it is the sum over axis 0"),
        (lambda a: worth_by_orders(a).flip(0), "in the other order"),
    ],
    checks.seeds_needed: [
        (lambda s, m: (1.96 * s / m).square(), "1.96 is for very many seeds, and"),
        (variant(seeds_by_table, quantile=0.95), "left out on one side"),
        (variant(seeds_by_table, spare=0), "t has S degrees of freedom here"),
        (variant(seeds_by_table, spare=2), "t has S - 2 degrees of freedom here"),
        (variant(seeds_by_table, spare=-math.inf), "1.96 is for very many seeds; take"),
        (variant(seeds_by_table, first=3), "begins with 3 seeds"),
        (seeds_in_one_step, "t is looked up once"),
        (seeds_going_on, "goes on where it ended"),
        (lambda s, m: seeds_without_root(s, m), "without its root"),
        (lambda s, m: seeds_by_table(2 * s, m), "the whole width"),
        (lambda s, m: seeds_by_table(s, 2 * m), "half the margin"),
        (lambda s, m: seeds_by_table(s.square(), m), "squared"),
        (lambda s, m: seeds_by_table(s, m) - 1, "too few"),
        (lambda s, m: seeds_by_table(s, m) + 1, "too many"),
        (lambda s, m: seeds_by_table(s, m) - 2, "begins with 2"),
        (lambda s, m: seeds_by_table(s, m).max(), "one number for all"),
        (lambda s, m: (s / m).square().ceil(), "t is left out"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
