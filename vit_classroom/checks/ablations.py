"""Checks of chapter 17: intervals by seed, fair rates, and parts that lean on each other."""

import itertools
from math import sqrt

import torch
from scipy import stats
from torch import Tensor

from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case


def _paired_interval(ours: Tensor, theirs: Tensor) -> Tensor:
    return _interval(ours - theirs)


def _interval(differences: Tensor, quantile: float = 0.975, spare: int = 1) -> Tensor:
    count, mean = len(differences), differences.mean()
    times = float(stats.t.ppf(quantile, count - spare))
    return _around(mean, times * differences.std() / sqrt(count))


def _around(mean: Tensor, margin: Tensor | float) -> Tensor:
    return torch.stack([mean, mean - margin, mean + margin])


@function_check(
    "(3,): mean, lower and upper end",
    'chapter 17, "Is a gain luck?"',
    _paired_interval,
    [3, 4, 7],
    gradients=False,
)
def paired_interval(count: int) -> Case:
    """Check a function ``(ours, theirs)``, each (S,): the mean difference and its interval, (3,)."""
    luck = 8 * torch.randn(count, dtype=torch.float64)  # that both sides share
    ours, theirs = (50 + luck + torch.randn(count, dtype=torch.float64) for _ in range(2))
    ours += 3 * torch.rand(()).double() + 1
    differences = ours - theirs
    right, spread, mean = _paired_interval(ours, theirs), differences.std(), differences.mean()
    times = float(stats.t.ppf(0.975, count - 1))
    apart = ((ours.var() + theirs.var()) / count).sqrt()
    mistakes = {
        "ours is taken from theirs; take theirs from ours": _paired_interval(theirs, ours),
        "the seeds are not paired: take differences first, then their spread": _around(mean, times * apart),
        "the seeds are not paired, and the quantile is that of 2 S - 2; take the differences first": _around(
            mean, float(stats.t.ppf(0.975, 2 * count - 2)) * apart
        ),
        "1.96 is for very many seeds; take Student's t": _around(mean, 1.96 * spread / sqrt(count)),
        "5 % are left out on one side; leave 2.5 % out on each, 0.975": _interval(differences, quantile=0.95),
        "there are S degrees of freedom here; there are S - 1": _interval(differences, spare=0),
        "the spread is not divided by the root of S": _around(mean, times * spread),
        "the spread is divided by S; divide by its root": _around(mean, times * spread / count),
        "the standard deviation divides by S; it divides by S - 1": _around(
            mean, times * differences.std(correction=0) / sqrt(count)
        ),
        "the variance is taken; take its root": _around(mean, times * spread.square() / sqrt(count)),
        "the order is mean, lower end, upper end": right[[1, 0, 2]],
        "the two ends have changed places; the lower one subtracts": right[[0, 2, 1]],
        "the ends are counted from 0; they lie around the mean": torch.stack([mean, *(right[1:] - mean)]),
        "the standard deviation has its S - 1 already, and is divided by the root of S - 1; divide by "
        "the root of S": _around(mean, times * spread / sqrt(count - 1)),
        "the ends are returned; the mean comes first": right[1:],
    }
    return Case((ours, theirs), right, mistakes)


def _inner_best(rates: Tensor, accuracies: Tensor) -> Tensor:
    return _inside(rates, accuracies.argmax(-1))


def _inside(rates: Tensor, place: Tensor) -> Tensor:
    return torch.where((place > 0) & (place < len(rates) - 1), rates[place], 0.0)


@function_check(
    "(...), one rate for each model",
    'chapter 17, "Did both have a fair chance?"',
    _inner_best,
    [(6, 4), (2, 4, 5), (7, 3)],
    exact=True,
    gradients=False,
)
def inner_best(shape: tuple[int, ...]) -> Case:
    """Check a function that chooses a learning rate, if one can be chosen.

    It is called as ``function(rates, accuracies)``, (K,) from low to high and (..., K); it returns (...), for
    each model its best rate, or 0 where that is the first or the last.
    """
    count = shape[-1]
    rates = torch.rand(count).cumsum(0) * 0.01 + 0.001
    accuracies = 50 + 10 * torch.rand(shape)
    place = (
        torch.arange(accuracies[..., 0].numel()).reshape(shape[:-1]) % count
    )  # each place is the best once
    accuracies.scatter_(-1, place[..., None], 70.0)
    right, worst = _inner_best(rates, accuracies), accuracies.argmin(-1)
    best, top = rates[place], accuracies.amax(-1)
    mistakes = {
        "a best rate at an end is given; return 0 there": best,
        "the first rate is given where it is best; return 0 there": torch.where(place < count - 1, best, 0.0),
        "the last rate is given where it is best; return 0 at both ends": torch.where(place > 0, best, 0.0),
        "this is the best of the inner rates; return 0 where an end is best": rates[1:-1][
            accuracies[..., 1:-1].argmax(-1)
        ],
        "K is taken from the first axis of the accuracies, which may be models; take len(rates)": torch.where(
            (place > 0) & (place < len(accuracies) - 1), best, 0.0
        ),
        "the rates next to the ends are refused as well; only the ends are": torch.where(
            (place > 1) & (place < count - 2), best, 0.0
        ),
        "the lowest accuracy is taken; take the highest": _inside(rates, worst),
        "these are places; return the rates": torch.where(right == 0, 0, place),
        "these are places, also at an end; return the rates": place,
        "these are the highest accuracies; return the rates": top,
        "this says whether there is a verdict; return the rate": right > 0,
    }
    if len(shape) > 1:
        rest = tuple(range(len(shape) - 1))
        mistakes["all models share one rate here; each has its own"] = _inside(
            rates, accuracies.mean(rest).argmax(-1)
        ).expand(shape[:-1])
    return Case((rates, accuracies), right, mistakes)


def _interaction(neither: Tensor, one: Tensor, other: Tensor, both: Tensor) -> Tensor:
    return both - one - other + neither


@function_check("(S,)", 'chapter 17, "Parts lean on each other"', _interaction, [(3,), (5,)], gradients=False)
def interaction(shape: tuple[int, ...]) -> Case:
    """Check a function ``(neither, one, other, both)``, each (S,): the interaction of two parts, (S,)."""
    neither, one, other, both = (50 + 20 * torch.rand(shape) for _ in range(4))
    right = _interaction(neither, one, other, both)
    mistakes = {
        "the model with neither is missing: it is in all three gains": both - one - other,
        "the model with neither is taken away twice; it is to be added": right - 2 * neither,
        "the sign is turned: both less the two alone": -right,
        "this is what both bring; what each brings alone goes away from it": both - neither,
        "this is what the first brings beside the other; take away what it brings alone": both - other,
        "this is what the other brings beside the first; what it brings alone goes away from it": both - one,
        "the two parts are compared with each other; ask what they bring together": one - other,
        "the second part is compared with the first; ask what they bring together": other - one,
        "what the second part brings is added; take it away as well: mind the minus before the bracket": (
            both - one + other - neither
        ),
        "it is divided by two": right / 2,
        "the two that have one part are taken for none and both": one - neither - both + other,
    }
    return Case((neither, one, other, both), right, mistakes)


def _average_worth(accuracy: Tensor) -> Tensor:
    count = accuracy.ndim
    orders = list(itertools.permutations(range(count)))
    return torch.stack([_on_a_ladder(accuracy, order) for order in orders]).mean(0)


def _on_a_ladder(accuracy: Tensor, order: tuple[int, ...]) -> Tensor:
    """What each remedy brings where they are added in this order, (n,)."""
    state, gains = [0] * accuracy.ndim, torch.zeros(accuracy.ndim, dtype=accuracy.dtype)
    for part in order:
        before = accuracy[tuple(state)]
        state[part] = 1
        gains[part] = accuracy[tuple(state)] - before
    return gains


@function_check(
    "(n,), one worth for each remedy",
    'chapter 17, exercise "The average over all orders"',
    _average_worth,
    [2, 3, 4],
    gradients=False,
)
def average_worth(count: int) -> Case:
    """Check a function that averages what a remedy brings over all orders in which they are added.

    It is called as ``function(accuracy)``, a tensor with n axes of length 2; it returns (n,).
    """
    accuracy = 50 + 30 * torch.rand((2,) * count).double()
    right, parts = _average_worth(accuracy), range(count)
    none, whole = (0,) * count, (1,) * count
    top, bottom = accuracy[whole], accuracy[none]
    alone = torch.stack([accuracy[tuple(int(p == part) for p in parts)] - bottom for part in parts])
    beside = torch.stack([top - accuracy[tuple(int(p != part) for p in parts)] for part in parts])
    orders = list(itertools.permutations(parts))
    ladders = torch.stack([_on_a_ladder(accuracy, order) for order in orders])  # (n!, n)
    by_turn = ladders.gather(1, torch.tensor(orders))
    over_nothing = torch.zeros_like(ladders).scatter(1, torch.tensor(orders), by_turn.cumsum(1))
    along = torch.stack([accuracy.select(p, 1).mean() - accuracy.select(p, 0).mean() for p in parts])
    mistakes = {
        "the remedies are added in one order alone; take all orders": _on_a_ladder(accuracy, tuple(parts)),
        "they are added in one order, the last first": _on_a_ladder(accuracy, tuple(reversed(parts))),
        "each is added to nothing; it also comes after others": alone,
        "each is left out of all; it also comes before others": beside,
        "the worth is summed over orders; take the mean": right * len(orders),
        "the sum over orders is divided by n; there are n! orders": right * len(orders) / count,
        "only the first order brings gains; set `state` back to zeros before each": ladders[0] / len(orders),
        "each gain is kept by its turn; keep it by the remedy that has the turn": by_turn.mean(0),
        "each gain is that over the empty model; take the one over the step before": over_nothing.mean(0),
        "the remedies come in the other order": right.flip(0),
        "the sign is turned: take what was there before from what is there after": -right,
    }
    if count > 2:  # of two the three are the same
        mistakes["all sets count alike; a set counts as often as orders pass through it"] = along
    return Case((accuracy,), right, mistakes)


def _seeds_needed(spread: Tensor, margin: float) -> Tensor:
    return _first_enough(spread, margin)


def _first_enough(
    spread: Tensor, margin: float, quantile: float = 0.975, spare: float = 1, power: float = 0.5
) -> Tensor:
    counts = torch.arange(2, 1001).double()
    times = torch.tensor(stats.t.ppf(quantile, (counts - spare).numpy()))
    enough = spread.double()[:, None] * times / counts**power <= margin
    return counts[enough.int().argmax(1)]


@function_check(
    "(n,), whole numbers as floats",
    'chapter 17, exercise "How many seeds?"',
    _seeds_needed,
    [(4, False), (6, True), (5, False), (5, True)],
    gradients=False,
)
def seeds_needed(count: int, few: bool) -> Case:
    """Check a function that says how many seeds an interval of a given width takes.

    It is called as ``function(spread, margin)``, standard deviations (n,) and a number; it returns (n,), for
    each the smallest S, from 2 on, whose interval is at most the margin to each side.
    """
    spread = 2 + 4 * torch.rand(count).double()
    margin = 0.5 + 0.5 * float(torch.rand(()))
    if few:  # 2 seeds, 3, where the degrees of freedom tell most, and up to 12
        low, high = torch.full((2, count), 0.4).double()
        low[:2], high[:2], high[2:] = torch.tensor([0.05, 0.15]), torch.tensor([0.1, 0.3]), 1.5
        spread = margin * (low + (high - low) * torch.rand(count).double())[torch.randperm(count)]
    right = _seeds_needed(spread, margin)
    guess = (1.96 * spread / margin).square().ceil().clamp(min=2)
    once = (torch.tensor(stats.t.ppf(0.975, guess - 1)) * spread / margin).square().ceil().clamp(min=2)
    mistakes = {
        "1.96 is for very many seeds; take Student's t": _first_enough(spread, margin, spare=-torch.inf),
        "t has S degrees of freedom here; it has S - 1": _first_enough(spread, margin, spare=0),
        "t has S - 2 degrees of freedom here; it has S - 1": _first_enough(spread, margin, spare=2),
        "t is looked up once; it changes with S, so try 2, 3, 4, ...": once,
        "the search begins with 3 seeds; 2 may be enough": right.clamp(min=3),
        "1.96 is for very many seeds, and no whole number comes out": (1.96 * spread / margin).square(),
        "5 % are left out on one side; leave out 2.5 % on each": _first_enough(spread, margin, quantile=0.95),
        "the whole width is held to the margin; it is that to each side": _first_enough(2 * spread, margin),
        "half the margin is enough here; the margin is to each side": _first_enough(spread / 2, margin),
        "S stands without its root; divide by the root of S": _first_enough(spread, margin, power=1),
        "the search goes on where it ended for the spread before; begin each with 2": right.cummax(0).values,
        "the spread is squared": _first_enough(spread.square(), margin),
        "this is one seed too few: the first for which it is enough": right - 1,
        "this is one seed too many: the first for which it is enough": right + 1,
        "these are places in the list of counts, which begins with 2": right - 2,
        "one number for all: return one for each spread": right.max(),
        "t is left out: multiply by its quantile": (spread / margin).square().ceil(),
    }
    return Case((spread, margin), right, mistakes)
