"""Evaluation for a while leaves no trace."""

import pytest
import torch
from torch import nn

from vit_from_scratch.model.modes import evaluating


@pytest.fixture
def partly_frozen():
    """A model in training whose normalisation layer stays in evaluation, as fine-tuning often wants it."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Sequential(nn.Dropout()))
    model.train()
    model[1].eval()
    return model


def test_every_module_is_evaluated_and_comes_back_into_its_own_mode(partly_frozen):
    before = [module.training for module in partly_frozen.modules()]
    with evaluating(partly_frozen):
        assert not any(module.training for module in partly_frozen.modules())
    assert (
        [module.training for module in partly_frozen.modules()] == before == [True, True, False, True, True]
    )


def test_the_modes_come_back_after_an_error(partly_frozen):
    with pytest.raises(RuntimeError), evaluating(partly_frozen):
        partly_frozen(torch.zeros(1, 3))
    assert partly_frozen.training
    assert not partly_frozen[1].training
