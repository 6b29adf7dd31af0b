"""Calibration, spread of attention and steadiness are what their definitions say."""

import pytest
import torch
from measure_smoothing import EARLY, attended, calibration, unsteadiness

from vit_from_scratch.training import StepLog, train
from vit_lab.experiments.recipes import load_recipe


def test_confidence_and_calibration_where_they_are_known():
    # two classes, probabilities 0.9 (four images, three right) and 0.6 (one image, right)
    odds = torch.tensor([0.9, 0.9, 0.9, 0.9, 0.6])
    logits = torch.stack([odds.log(), (1 - odds).log()], dim=1)
    found = calibration(logits, torch.tensor([0, 0, 0, 1, 0]))
    assert found["overconfidence"] == pytest.approx(4.2 / 5 - 4 / 5)
    assert found["calibration_error"] == pytest.approx((4 * 0.15 + 0.4) / 5)


def test_sure_of_everything_and_always_right_is_calibrated():
    found = calibration(torch.eye(3) * 200, torch.arange(3))
    assert found == pytest.approx({"overconfidence": 0, "calibration_error": 0})


@pytest.mark.parametrize("count", [1, 2, 8])
def test_weights_spread_evenly_attend_to_as_many_tokens_as_they_name(count):
    weights = torch.zeros(2, 3, 8, 8)
    weights[..., :count] = 1 / count
    assert attended(weights).item() == pytest.approx(count / 8)


def test_only_the_first_steps_are_trained_and_they_are_those_of_a_whole_run(digits):
    recipe = load_recipe("digits", {"train": {"epochs": 9}})
    log = StepLog()
    train(recipe.seeded(digits), digits, recipe.train, [log])
    assert len(log.steps) > EARLY
    norms = torch.tensor([step.gradient_norm for step in log.steps[:EARLY]], dtype=torch.float64)
    assert unsteadiness(recipe, digits) == pytest.approx((norms.std() / norms.mean()).item(), rel=1e-6)
