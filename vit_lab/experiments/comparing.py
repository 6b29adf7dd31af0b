"""How two sides of a comparison are told apart (chapter 17): an interval by seed, a rate with neighbours."""

from collections.abc import Sequence
from math import sqrt

import torch
from scipy import stats
from torch import Tensor


def paired_interval(
    ours: Sequence[float] | Tensor, theirs: Sequence[float] | Tensor
) -> tuple[float, float, float]:
    """Return the mean of the differences of two sides, seed by seed, and the ends of its 95 % interval.

    Student's t with S - 1 degrees of freedom, for S >= 2 seeds. Everything is in the unit of what is given.

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
