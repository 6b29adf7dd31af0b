"""Counted operations are those that torch counts, and those that the paper's Table 6 reports."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from vit_from_scratch import VisionTransformer, ViTConfig, build_model
from vit_from_scratch.model.config import variant_config
from vit_from_scratch.model.cost import (
    count_parameters,
    forward_flops,
    parameter_table,
    parameters_of,
    pretraining_exaflops,
)

#: Pre-training costs in exaFLOPs, Table 6 of the paper (reported as whole numbers).
TABLE_6 = {
    ("B/32", 7): 55,
    ("B/16", 7): 224,
    ("L/32", 7): 196,
    ("L/16", 7): 783,
    ("L/16", 14): 1567,
    ("H/14", 14): 4262,
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"image_size": (32, 48), "patch_size": 8},
        {"pool": "gap", "class_token": False},
        {"representation_size": 20},
    ],
)
def test_forward_flops_are_what_torch_counts(options):
    config = ViTConfig.from_dict(
        {
            "image_size": 32,
            "patch_size": 4,
            "dim": 24,
            "depth": 3,
            "heads": 3,
            "mlp_dim": 40,
            "num_classes": 7,
        }
        | options
    )
    model = VisionTransformer(config).to("meta")
    with FlopCounterMode(display=False) as counter:
        # Asking for the weights takes the explicit path, whose products are all plain matrix multiplications.
        model(torch.zeros(1, 3, *config.image_shape, device="meta"), return_intermediates=True)
    assert counter.get_total_flops() == forward_flops(config)


@pytest.mark.parametrize(("variant", "epochs"), TABLE_6)
def test_pretraining_cost_is_that_of_table_6(variant, epochs):
    assert pretraining_exaflops(variant, epochs) == pytest.approx(TABLE_6[variant, epochs], rel=0.025)


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


KINDS = [
    {},
    {"image_size": (32, 48), "class_token": False, "pool": "gap", "norm": "pooled"},
    {"image_size": (32, 48), "position": "learned_2d"},
    {"position": "sincos_2d", "depth": 1},
    {"position": "none", "representation_size": 20, "qkv_bias": False},
    {"stem": "conv", "stem_width": 4, "mlp": "local"},
    {"stem": "resnet", "stem_width": 8, "stem_layers": [1, 2, 1], "stem_root_stride": 1},
    {"stem": "resnet", "stem_width": 8, "stem_layers": [2]},
]


@pytest.mark.parametrize("options", KINDS)
def test_parameters_are_counted_without_building_the_model(options):
    sizes = {"image_size": 32, "patch_size": 4, "dim": 24, "depth": 3, "heads": 3, "mlp_dim": 40}
    config = ViTConfig.from_dict(sizes | {"num_classes": 7} | options)
    assert parameters_of(config) == count_parameters(VisionTransformer(config))


def test_sizes_that_no_memory_holds_are_counted_exactly():
    config = variant_config("B/16", image_size=65_536)
    places = 4096**2
    assert parameters_of(config) == 86_567_656 + (places - 14 * 14) * 768
    assert parameters_of(variant_config("B/16", depth=1000)) == 86_567_656 + 988 * 7_087_872
    tokens = places + 1
    block = 2 * (tokens * 768 * (4 * 768 + 2 * 3072) + 2 * tokens**2 * 768)
    assert forward_flops(config) == 12 * block + 2 * (places * 768 * 768 + 768 * 1000)


@pytest.mark.parametrize("layers", [(1,), (2, 1), (3, 4, 9), (1, 2, 3, 1)])
@pytest.mark.parametrize("root_stride", [1, 4])
def test_operations_of_a_hybrid_are_what_torch_counts(layers, root_stride):
    stride = root_stride * 2 ** (len(layers) - 1)
    stem = {"stem": "resnet", "stem_width": 8, "stem_layers": layers, "stem_root_stride": root_stride}
    sizes = {"image_size": 2 * stride, "patch_size": stride, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 8}
    config = ViTConfig.from_dict(sizes | stem)
    model = VisionTransformer(config).to("meta")
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(1, 3, *config.image_shape, device="meta"), return_intermediates=True)
    assert counter.get_total_flops() == forward_flops(config)


def test_the_table_of_a_model_without_parameters_is_empty():
    assert parameter_table(torch.nn.ReLU()).split() == ["-" * 20, "total", "0"]
