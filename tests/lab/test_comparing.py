"""Two sides are compared as scipy does it, and a rate at an end gives no verdict."""

import numpy as np
import pytest
import torch
from scipy import stats

from vit_from_scratch import InputError
from vit_lab.experiments.comparing import inner_best, paired_interval, seed_by_seed
from vit_lab.experiments.records import Row, SeedRun


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


def row_of(**reached):
    """A row that reached so much with each seed, named s0, s1, ..."""
    runs = [SeedRun(int(seed[1:]), {"test_accuracy": here}, 1.0, {}, []) for seed, here in reached.items()]
    return Row(runs=runs, config={})


def test_rows_are_paired_by_their_seeds_whatever_the_order_and_those_of_one_alone_are_left_out():
    ours, theirs = row_of(s0=0.5, s1=0.6, s2=0.7), row_of(s2=0.4, s3=0.9, s0=0.1)
    assert seed_by_seed(ours, theirs) == [[0.5, 0.7], [0.1, 0.4]]
    assert seed_by_seed(theirs, ours) == [[0.4, 0.1], [0.7, 0.5]]


def test_rows_without_two_seeds_in_common_are_refused():
    with pytest.raises(InputError, match=r"seeds \[0, 1\] and \[1, 2\]: expected two seeds or more that all"):
        seed_by_seed(row_of(s0=0.5, s1=0.6), row_of(s1=0.4, s2=0.9))


def test_a_best_rate_needs_a_neighbour_on_both_sides():
    rates = torch.tensor([0.1, 0.2, 0.4])
    reached = torch.tensor([[[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], [[1.0, 2.0, 3.0], [2.0, 2.5, 2.4]]])
    assert torch.equal(inner_best(rates, reached), torch.tensor([[0.0, 0.2], [0.0, 0.2]]))
