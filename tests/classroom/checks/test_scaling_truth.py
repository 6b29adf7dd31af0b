"""What the checks of chapter 12 take for right is what torch counts."""

import bank_scaling
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from vit_from_scratch import ViTConfig
from vit_from_scratch.model import Block, cost


def counted(tokens, config):
    """Operations of a block by torch: projections, pairs, MLP."""
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        Block(config)(torch.zeros(1, tokens, config.dim), return_weights=True)
    part = {name: sum(kinds.values()) for name, kinds in counter.get_flop_counts().items()}
    projections = part["Block.attention.qkv"] + part["Block.attention.projection"]
    return projections, part["Block.attention"] - projections, part["Block.mlp"]


@pytest.mark.parametrize(("dim", "mlp_dim"), [(48, 192), (64, 80)])
def test_a_block_costs_what_torch_counts(dim, mlp_dim):
    config = ViTConfig(dim=dim, heads=4, mlp_dim=mlp_dim)
    lengths = torch.tensor([5, 50, 197])
    ours = bank_scaling.flops_by_formula(lengths, dim, mlp_dim)
    assert ours.T.tolist() == [list(counted(length, config)) for length in lengths.tolist()]
    assert ours[:, 2].sum() == cost.block_flops(config)  # 197 tokens are those of the default image


@pytest.mark.parametrize(("inputs", "outputs", "ridge"), [(96, 160, 25), (160, 96, 12), (80, 240, 20)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_layer_reaches_the_ridge_with_as_many_tokens_as_it_is_said(inputs, outputs, ridge, dtype):
    tokens = bank_scaling.layer_tokens(inputs, outputs, ridge, dtype.itemsize)
    enough = []
    for count in (tokens - 1, tokens):
        values, weights = (torch.zeros(n, inputs, dtype=dtype, device="meta") for n in (count, outputs))
        with FlopCounterMode(display=False) as counter:
            result = torch.nn.functional.linear(values, weights)
        moved = values.nbytes + weights.nbytes + result.nbytes
        enough.append(counter.get_total_flops() >= ridge * moved)
    assert enough == [False, True]
