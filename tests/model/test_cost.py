"""Counted parameters and operations are those of torch."""

import functools

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from vit_from_scratch import VisionTransformer, ViTConfig, build_model
from vit_from_scratch.model import attention
from vit_from_scratch.model.config import variant_config
from vit_from_scratch.model.cost import (
    count_parameters,
    forward_flops,
    parameter_table,
    parameters_of,
    training_flops,
)

KINDS = [
    {},
    {"image_size": (32, 48), "class_token": False, "pool": "gap", "norm": "pooled"},
    {"image_size": (32, 48), "position": "learned_2d"},
    {"pool": "gap", "norm": "none"},
    {"position": "sincos_2d", "depth": 1},
    {"position": "none", "representation_size": 20, "qkv_bias": False},
    {"channels": 1, "patch_size": 1, "image_size": 8, "gelu": "tanh", "dropout": 0.1},
    {"initialisation": "mimetic", "stochastic_depth": 0.2},
    {"mlp": "local", "class_token": False, "pool": "gap"},
    {"qk_norm": True},
    {"stem": {"kind": "conv", "width": 4}, "mlp": "local"},
    {"stem": {"kind": "conv", "width": 4}, "patch_size": 1, "image_size": (8, 4)},
    {"stem": {"kind": "resnet", "width": 8, "layers": [1, 2, 1], "root_stride": 1}},
    {"stem": {"kind": "resnet", "width": 8, "layers": [2]}, "image_size": (32, 48)},
    {"stem": {"kind": "resnet", "width": 8, "layers": [2, 1]}, "patch_size": 8, "representation_size": 9},
]
"""An option of every kind that a model has."""


def config_of(options) -> ViTConfig:
    sizes = {"image_size": 32, "patch_size": 4, "dim": 24, "depth": 3, "heads": 3, "mlp_dim": 40}
    return ViTConfig.from_dict(sizes | {"num_classes": 7} | options)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_forward_flops_are_what_torch_counts(options):
    config = config_of(options)
    model = VisionTransformer(config).to("meta")
    with FlopCounterMode(display=False) as counter:
        # Asking for the weights takes the explicit path, whose products are all plain matrix multiplications.
        images = torch.zeros(1, config.channels, *config.image_shape, device="meta")
        model(images, return_intermediates=True)
    assert counter.get_total_flops() == forward_flops(config)


@pytest.mark.parametrize("name", ["Ti/16", "S/32", "B/16", "H/14", "R50+L/16", "R50+B/32"])
def test_forward_flops_of_variants_are_what_torch_counts(name):
    config = variant_config(name, image_size=224)
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        VisionTransformer(config)(torch.zeros(1, 3, 224, 224), return_intermediates=True)
    assert counter.get_total_flops() == forward_flops(config)


# Not the local MLP: torch 2.15 takes the gradient of a depth-wise kernel for that of a dense one.
@pytest.mark.parametrize("options", [kind for kind in KINDS if "mlp" not in kind], ids=str)
def test_a_backward_pass_costs_two_forward_passes(options, monkeypatch):
    monkeypatch.setattr(attention, "fused_is_faster", lambda q: False)
    config = config_of(options)
    model = VisionTransformer(config).to("meta")
    images = torch.zeros(1, config.channels, *config.image_shape, device="meta", requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        model(images).sum().backward()
    assert counter.get_total_flops() == training_flops(config)


def test_checkpointed_blocks_cost_their_forward_pass_once_more(monkeypatch):
    monkeypatch.setattr(attention, "fused_is_faster", lambda q: False)
    config = config_of({})
    model = VisionTransformer(config).to("meta")
    for block in model.encoder.blocks:
        # Early stopping would leave out the last product, whose result nobody needs.
        run = functools.partial(checkpoint, block.forward, use_reentrant=False, early_stop=False)
        block.forward = run
    images = torch.zeros(1, 3, 32, 32, device="meta", requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        model(images).sum().backward()
    assert counter.get_total_flops() == training_flops(config, checkpointing=True)


def test_the_parameter_table_adds_up():
    model = build_model("Ti/16", image_size=32, num_classes=10)
    rows = [line.split() for line in parameter_table(model).splitlines() if not line.startswith("-")]
    counts = {name: int(count.replace(",", "")) for name, count in rows}
    total = counts.pop("total")
    assert (
        total
        == sum(counts.values())
        == count_parameters(model)
        == sum(v.numel() for v in model.state_dict().values())
    )
    assert counts["tokens.position"] == 5 * 192  # raw parameters are not forgotten


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_parameters_are_counted_without_building_the_model(options):
    config = config_of(options)
    assert parameters_of(config) == count_parameters(VisionTransformer(config))


def test_a_conv_stem_costs_what_its_convolutions_do_and_spares_the_patches_layer():
    plain, stem = config_of({}), config_of({"stem": {"kind": "conv", "width": 4}})
    convolutions = [(3, 4, 32), (4, 8, 16), (8, 16, 8)]  # channels in and out, side of the result
    flops = sum(2 * 9 * before * after * side**2 for before, after, side in convolutions) + 2 * 16 * 24 * 8**2
    weights = sum(9 * before * after + 2 * after for before, after, _ in convolutions) + 16 * 24 + 24
    assert forward_flops(stem) - forward_flops(plain) == flops - 2 * 48 * 24 * 8**2
    assert parameters_of(stem) - parameters_of(plain) == weights - (48 * 24 + 24)


def test_sizes_that_no_memory_holds_are_counted_exactly():
    config = variant_config("B/16", image_size=65_536)
    places = 4096**2
    assert parameters_of(config) == 86_567_656 + (places - 14 * 14) * 768
    assert parameters_of(variant_config("B/16", depth=1000)) == 86_567_656 + 988 * 7_087_872
    tokens = places + 1
    block = 2 * (tokens * 768 * (4 * 768 + 2 * 3072) + 2 * tokens**2 * 768)
    assert forward_flops(config) == 12 * block + 2 * (places * 768 * 768 + 768 * 1000)


def test_the_table_of_a_model_without_parameters_is_empty():
    assert parameter_table(torch.nn.ReLU()).split() == ["-" * 20, "total", "0"]
