"""How two sides of a comparison are told apart (chapter 17): an interval by seed, a rate with neighbours."""

from collections.abc import Sequence
from math import sqrt

import torch
from scipy import stats
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_lab.experiments.records import Row


def seed_by_seed(*rows: Row) -> list[list[float]]:
    """Return the number that counts of each row, in the order of the seeds that all of them have.

    A seed that one of them lacks, such as one with which its training diverged, is left out of all.

    Raises:
        InputError: they have fewer than two seeds in common.
    """
    reached = [dict(zip((run.seed for run in row.runs), row.values(), strict=True)) for row in rows]
    shared = [seed for seed in reached[0] if all(seed in one for one in reached)]
    if len(shared) < 2:
        seeds = " and ".join(str(list(one)) for one in reached)
        raise InputError(
            f"rows with the seeds {seeds}: expected two seeds or more that all of them have, to be compared "
            "seed by seed. Run them with the same seeds."
        )
    return [[one[seed] for seed in shared] for one in reached]


def paired_interval(
    ours: Sequence[float] | Tensor, theirs: Sequence[float] | Tensor
) -> tuple[float, float, float]:
    """Return the mean of the differences of two sides, seed by seed, and the ends of its 95 % interval.

    Student's t with S - 1 degrees of freedom, for S >= 2 seeds. Everything is in the unit of what is given.
    The sides are to have their seeds in the same order, as `seed_by_seed` returns those of rows.

    Raises:
        ValueError: the sides have unequal numbers of seeds.
    """
    pairs = zip(map(float, ours), map(float, theirs), strict=True)
    differences = torch.tensor([our - their for our, their in pairs], dtype=torch.float64)
    count, mean = len(differences), float(differences.mean())
    margin = float(stats.t.ppf(0.975, count - 1)) * float(differences.std()) / sqrt(count)
    return mean, mean - margin, mean + margin


def inner_best(rates: Tensor, accuracies: Tensor) -> Tensor:
    """Return for each model the rate with the highest accuracy, 0 where that lies at an end.

    Args:
        rates: (K,), from low to high.
        accuracies: (..., K), of each model at each rate.

    Returns:
        (...)
    """
    place = accuracies.argmax(dim=-1)
    return torch.where((place > 0) & (place < len(rates) - 1), rates[place], 0.0)
