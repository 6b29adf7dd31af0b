"""Counted operations are those that torch counts, and those that the paper's Table 6 reports."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from vit_from_scratch import VisionTransformer, ViTConfig, build_model
from vit_from_scratch.model.cost import count_parameters, forward_flops, parameter_table, pretraining_exaflops

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
