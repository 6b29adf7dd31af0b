"""Muon against torch's own, part by part, and what a step looks like."""

import copy

import pytest
import torch
from torch import nn

from vit_from_scratch.training import TrainConfig, build_optimiser
from vit_from_scratch.training.muon import Muon, block_matrices, orthogonalise


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("shape", [(24, 8), (24, 24), (24, 96)])
def test_steps_are_those_of_torchs_muon_on_each_part(parts, shape):
    torch.manual_seed(0)
    ours = [nn.Parameter(torch.randn(shape)) for _ in range(2)]
    theirs = [[nn.Parameter(part.detach().clone()) for part in weight.chunk(parts)] for weight in ours]
    settings = {"lr": 0.02, "weight_decay": 0.1, "momentum": 0.9}
    muon = Muon(dict.fromkeys(ours, parts), **settings, dtype=torch.bfloat16)
    peer = torch.optim.Muon([part for weight in theirs for part in weight], **settings)
    for step in range(4):
        for scale, (weight, pieces) in enumerate(zip(ours, theirs, strict=True)):
            weight.grad = torch.randn(shape) * 10.0 ** (step - 3 * scale)
            for piece, gradient in zip(pieces, weight.grad.chunk(parts), strict=True):
                piece.grad = gradient.clone()
        muon.step()
        peer.step()
    for weight, pieces in zip(ours, theirs, strict=True):
        assert torch.allclose(weight, torch.cat(pieces), atol=2e-3)  # both round to bfloat16 on the way
        assert not torch.allclose(weight, torch.cat(pieces) + 0.01, atol=2e-3)


def test_weights_without_a_gradient_stay(make_model):
    model = make_model()
    weights = block_matrices(model)
    before = [weight.detach().clone() for weight in weights]
    still = next(iter(weights))
    for weight in list(weights)[1:]:
        weight.grad = torch.randn_like(weight)
    Muon(weights, lr=0.1, weight_decay=0.5).step()
    assert torch.equal(still, before[0])
    assert not any(torch.equal(*pair) for pair in list(zip(weights, before, strict=True))[1:])


def test_orthogonalising_brings_singular_values_near_one_and_keeps_the_vectors():
    torch.manual_seed(0)
    left, _, right = torch.linalg.svd(torch.randn(4, 16, 40), full_matrices=False)
    sizes = torch.logspace(0, -1.5, 16)
    result = orthogonalise(left * sizes @ right).float()
    seen = left.mT @ result @ right.mT  # diagonal, if the vectors are kept
    diagonal = seen.diagonal(dim1=-2, dim2=-1)
    assert 0.6 < diagonal.min() <= diagonal.max() < 1.25
    assert (seen - torch.diag_embed(diagonal)).abs().max() < 0.05


def test_queries_keys_and_values_get_steps_of_one_size_whatever_their_gradients(make_model):
    model = make_model()
    config = TrainConfig(optimiser="muon", learning_rate=0.02, weight_decay=0.0)
    optimiser = build_optimiser(model, config)
    before = copy.deepcopy(model)
    for scale, parameter in enumerate(model.parameters(), 1):
        parameter.grad = torch.randn_like(parameter) * 10.0 ** -(scale % 5)
    for block in model.encoder.blocks:
        queries, keys, _ = block.attention.qkv.weight.grad.chunk(3)  # as measured at the start of a run:
        queries.mul_(0.05)  # values have by far the largest gradients
        keys.mul_(0.05)
    optimiser.step()
    weights, old = block_matrices(model), block_matrices(before)
    assert sorted(weights.values()) == [1, 1, 1, 1, 1, 1, 3, 3]
    for (new, parts), was in zip(weights.items(), old, strict=True):
        for step in (was - new).detach().chunk(parts):
            taller = max(1, step.shape[0] / step.shape[1]) ** 0.5  # the rate is larger for tall matrices
            singular = torch.linalg.svdvals(step) / (0.02 * taller)
            assert 0.5 < singular.min() <= singular.max() < 1.5


@pytest.mark.parametrize("units", [False, True])
def test_it_works_in_the_type_that_the_device_is_fast_in(monkeypatch, units):
    monkeypatch.setattr("vit_from_scratch.training.muon.has_bfloat16_units", lambda device: units)
    steps = []
    for dtype in (None, torch.bfloat16 if units else torch.float32):
        torch.manual_seed(0)
        weight = torch.randn(6, 5)
        weight.grad = torch.randn(6, 5)
        Muon({weight: 1}, lr=1.0, dtype=dtype).step()
        steps.append(weight)
    assert torch.equal(*steps)
