"""Leads of frozen features are paired by seed, in the order that the claim names."""

from math import sqrt

import pytest
from measure_frozen import against_one, compared
from scipy.stats import t


def test_a_lead_is_paired_by_seed_and_closes_from_the_first_amount_to_the_last():
    reached = {
        "few": {"ViT": [0.1, 0.2, 0.3], "ResNet": [0.2, 0.31, 0.42]},
        "more": {"ViT": [0.5, 0.6, 0.7], "ResNet": [0.4, 0.5, 0.6]},
        "many": {"ViT": [0.3, 0.2, 0.4], "ResNet": [0.35, 0.25, 0.45]},
    }
    found = compared(reached)
    half = t.ppf(0.975, 2) * 0.01 / sqrt(3)
    assert list(found) == ["ResNet over ViT"]
    assert found["ResNet over ViT"]["few"] == pytest.approx((0.11, 0.11 - half, 0.11 + half))
    assert found["ResNet over ViT"]["more"] == pytest.approx((-0.1, -0.1, -0.1))
    assert found["ResNet over ViT"]["closes"] == pytest.approx((0.06, 0.06 - half, 0.06 + half))


def test_every_form_of_positions_is_compared_with_one():
    reached = {"1-D": [0.5, 0.6], "none": [0.4, 0.5], "2-D": [0.5, 0.62], "relative": [0.45, 0.55]}
    found = against_one(reached, "1-D", "none")
    assert list(found) == ["1-D over none", "2-D over 1-D", "relative over 1-D"]
    half = t.ppf(0.975, 1) * 0.01
    assert found["1-D over none"] == pytest.approx((0.1, 0.1, 0.1))
    assert found["2-D over 1-D"] == pytest.approx((0.01, 0.01 - half, 0.01 + half))
    assert found["relative over 1-D"] == pytest.approx((-0.05, -0.05, -0.05))
