import math
from itertools import pairwise

import pytest

from vit_from_scratch import InputError
from vit_from_scratch.training import schedule_factor


def factors(**options):
    return [schedule_factor(step, 100, **options) for step in range(100)]


def test_warmup_climbs_in_equal_parts_to_the_base_rate():
    assert factors(warmup_steps=4)[:4] == [0.25, 0.5, 0.75, 1.0]


def test_without_warmup_the_first_step_has_the_base_rate():
    assert factors()[0] == 1.0


@pytest.mark.parametrize("decay", ["cosine", "linear"])
def test_decay_falls_from_one_towards_zero(decay):
    after = factors(warmup_steps=10, decay=decay)[10:]
    assert after[0] == 1.0
    assert all(later < earlier for earlier, later in pairwise(after))
    assert schedule_factor(100, 100, 10, decay) == pytest.approx(0)


def test_halfway_both_decays_are_at_one_half():
    assert schedule_factor(55, 100, 10, "cosine") == pytest.approx(0.5)
    assert schedule_factor(55, 100, 10, "linear") == pytest.approx(0.5)


def test_a_quarter_of_the_way_a_cosine_is_that_of_an_eighth_of_a_turn():
    assert schedule_factor(25, 100, 0, "cosine") == pytest.approx((1 + math.sqrt(0.5)) / 2)


def test_cosine_stays_above_the_line_in_the_first_half():
    assert schedule_factor(25, 100, 0, "cosine") > schedule_factor(25, 100, 0, "linear")


@pytest.mark.parametrize("decay", ["cosine", "linear"])
def test_beyond_the_last_step_the_rate_stays_at_zero(decay):
    assert schedule_factor(150, 100, 10, decay) == pytest.approx(0)


def test_constant_does_not_decay():
    assert set(factors(warmup_steps=10, decay="constant")[9:]) == {1.0}


def test_an_unknown_decay_is_refused():
    with pytest.raises(InputError, match=r"unknown decay 'cosin'.*did you mean 'cosine'"):
        schedule_factor(0, 10, decay="cosin")
