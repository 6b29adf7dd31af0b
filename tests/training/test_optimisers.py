import copy

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


def test_no_norm_decays():
    norms = [nn.LayerNorm(2), nn.GroupNorm(1, 2), nn.RMSNorm(2), nn.SyncBatchNorm(2)]
    norms += [nn.BatchNorm1d(2), nn.BatchNorm2d(2), nn.BatchNorm3d(2), nn.InstanceNorm2d(2, affine=True)]
    linear = nn.Linear(2, 2)
    decaying, spared = decay_groups(nn.Sequential(linear, *norms), 0.1)
    assert [id(one) for one in decaying["params"]] == [id(linear.weight)]
    assert len(spared["params"]) == 1 + 2 * len(norms) - 1, "RMSNorm has no bias"


def torchs(kind: str, model: nn.Module, rate: float) -> list[torch.optim.Optimizer]:
    """torch's own, with the settings of the test below: the weights decay, the biases do not."""
    block, head = model["blocks"][0], model["head"]
    weights = [head.weight] if kind == "muon" else [block.weight, head.weight]
    groups = [{"params": weights, "weight_decay": 0.5}, {"params": [block.bias, head.bias]}]
    if kind == "sgd":
        return [torch.optim.SGD(groups, lr=rate, weight_decay=0.0, momentum=0.6)]
    adam = torch.optim.Adam if kind == "adam" else torch.optim.AdamW
    muon = [torch.optim.Muon([block.weight], lr=0.03, weight_decay=0.5, momentum=0.6)]
    return [adam(groups, lr=rate, weight_decay=0.0, betas=(0.7, 0.95)), *(muon if kind == "muon" else [])]


@pytest.mark.parametrize(
    ("kind", "beside", "rate"),
    [
        ("adamw", 0.0, 0.03),
        ("adam", 0.0, 0.03),
        ("sgd", 0.0, 0.03),
        ("muon", 2e-3, 2e-3),
        ("muon", 0.0, 0.01),
    ],
)
def test_steps_are_those_of_torchs_own(kind, beside, rate):
    ours = nn.ModuleDict({"blocks": nn.ModuleList([nn.Linear(6, 4)]), "head": nn.Linear(4, 3)})
    theirs = copy.deepcopy(ours)
    settings = {"weight_decay": 0.5, "betas": (0.7, 0.95), "momentum": 0.6, "adamw_learning_rate": beside}
    config = TrainConfig(optimiser=kind, learning_rate=0.03, **settings)
    optimisers = [build_optimiser(ours, config, torch.bfloat16), *torchs(kind, theirs, rate)]
    for scale in (1.0, 10.0, 0.1):  # one step would show neither betas nor momentum
        for mine, peer in zip(ours.parameters(), theirs.parameters(), strict=True):
            mine.grad = scale * torch.randn_like(mine)
            peer.grad = mine.grad.clone()
        for optimiser in optimisers:
            optimiser.step()
    for name, found in ours.state_dict().items():
        rounding = 3e-3 if kind == "muon" and name == "blocks.0.weight" else 1e-6  # Muon works in bfloat16
        torch.testing.assert_close(found, theirs.state_dict()[name], atol=rounding, rtol=0)
