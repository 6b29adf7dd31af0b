"""The budget is quick unless VIT_BUDGET says full, and nothing else is understood."""

import pytest

from vit_from_scratch import InputError
from vit_from_scratch.budget import budget, by_budget


@pytest.mark.parametrize(("value", "expected"), [(None, "quick"), ("quick", "quick"), ("full", "full")])
def test_the_budget_is_read_from_the_environment(monkeypatch, value, expected):
    monkeypatch.delenv("VIT_BUDGET", raising=False)
    if value is not None:
        monkeypatch.setenv("VIT_BUDGET", value)
    assert budget() == expected
    assert by_budget(quick="quick", full="full") == expected


def test_an_unknown_budget_is_refused(monkeypatch):
    monkeypatch.setenv("VIT_BUDGET", "ful")
    with pytest.raises(InputError, match=r"unknown VIT_BUDGET 'ful'.*did you mean 'full'"):
        budget()
