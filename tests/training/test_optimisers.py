import pytest
import torch
from torch import nn

from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.training import TrainConfig, build_optimiser, decay_groups


def names_in(model: nn.Module, parameters: list[nn.Parameter]) -> set[str]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {names[id(parameter)] for parameter in parameters}


@pytest.mark.parametrize("position", ["learned", "learned_2d"])
def test_only_weight_matrices_decay(position):
    model = VisionTransformer(
        ViTConfig(
            8,
            4,
            dim=16,
            depth=2,
            heads=2,
            mlp_dim=32,
            num_classes=3,
            position=position,
            representation_size=8,
        )
    )
    decayed, spared = (names_in(model, group["params"]) for group in decay_groups(model, 0.1))
    assert decayed == {n for n, p in model.named_parameters() if n.endswith("weight") and "norm" not in n}
    assert decayed | spared == {name for name, _ in model.named_parameters()}
    assert not decayed & spared
    assert {"tokens.class_token", "head.bias"} <= spared


def test_a_frozen_parameter_is_in_no_group(make_model):
    model = make_model()
    model.head.weight.requires_grad_(False)
    named = set().union(*(names_in(model, group["params"]) for group in decay_groups(model, 0.1)))
    assert "head.weight" not in named
    assert "head.bias" in named


def one_step(optimiser: str, gradient: float) -> float:
    """Take a step on a weight of 2 with decay 0.1 and return the weight."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, 2.0)
    config = TrainConfig(optimiser=optimiser, learning_rate=0.01, weight_decay=0.1)
    layer.weight.grad = torch.full_like(layer.weight, gradient)
    build_optimiser(layer, config).step()
    return layer.weight.item()


def test_no_norm_decays():
    norms = [nn.LayerNorm(2), nn.GroupNorm(1, 2), nn.RMSNorm(2), nn.SyncBatchNorm(2)]
    norms += [nn.BatchNorm1d(2), nn.BatchNorm2d(2), nn.BatchNorm3d(2), nn.InstanceNorm2d(2, affine=True)]
    linear = nn.Linear(2, 2)
    decaying, spared = decay_groups(nn.Sequential(linear, *norms), 0.1)
    assert [id(one) for one in decaying["params"]] == [id(linear.weight)]
    assert len(spared["params"]) == 1 + 2 * len(norms) - 1, "RMSNorm has no bias"


def test_adamw_decays_apart_from_the_gradient():
    # Decay takes 0.01 * 0.1 * 2, and Adam's first step is the learning rate, whatever the gradient's size.
    assert one_step("adamw", 5.0) == pytest.approx(2 - 0.002 - 0.01, abs=1e-6)
    assert one_step("adamw", 50.0) == pytest.approx(2 - 0.002 - 0.01, abs=1e-6)


def test_adam_loses_its_penalty_in_the_gradients_scale():
    assert one_step("adam", 5.0) == pytest.approx(2 - 0.01, abs=1e-6)


def test_sgd_adds_the_penalty_to_the_gradient():
    assert one_step("sgd", 5.0) == pytest.approx(2 - 0.01 * (5 + 0.1 * 2), abs=1e-6)
