"""Two sides are compared as scipy does it, and a rate at an end gives no verdict."""

import numpy as np
import pytest
import torch
from scipy import stats

from vit_lab.experiments.comparing import inner_best, paired_interval


@pytest.mark.parametrize("count", [2, 3, 9])
def test_the_interval_is_that_of_a_paired_t_test(count):
    rng = np.random.default_rng(count)
    ours, theirs = rng.normal(size=(2, count))
    expected = stats.ttest_rel(ours, theirs).confidence_interval()
    found = paired_interval(list(ours), torch.tensor(theirs))
    assert found == pytest.approx(((ours - theirs).mean(), expected.low, expected.high))


def test_sides_with_unequal_seeds_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        paired_interval([1.0, 2.0, 3.0], [1.0, 2.0])


def test_a_best_rate_needs_a_neighbour_on_both_sides():
    rates = torch.tensor([0.1, 0.2, 0.4])
    reached = torch.tensor([[[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], [[1.0, 2.0, 3.0], [2.0, 2.5, 2.4]]])
    assert torch.equal(inner_best(rates, reached), torch.tensor([[0.0, 0.2], [0.0, 0.2]]))
