"""Which photos of a folder are looked at."""

import itertools

import pytest

from vit_from_scratch.data.sources import spread


@pytest.mark.parametrize(("there", "count"), [(199, 100), (101, 100), (1000, 100), (7, 3)])
def test_what_is_looked_at_is_spread_over_all(there, count):
    """Photos are listed class by class, so the first ones alone would be of the first classes."""
    found = spread(range(there), count)
    steps = [later - one for one, later in itertools.pairwise(found)]
    assert len(found) == count
    assert max(steps) - min(steps) <= 1
    assert there - found[-1] <= max(steps) + 1


def test_fewer_are_all_looked_at():
    assert list(spread("abc", 5)) == ["a", "b", "c"]
