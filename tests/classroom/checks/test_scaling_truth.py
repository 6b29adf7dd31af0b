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


@pytest.mark.parametrize(("dim", "mlp_dim"), [(48, 160), (40, 97)])
def test_the_pairs_take_over_where_it_is_said(dim, mlp_dim):
    config = ViTConfig(dim=dim, heads=4, mlp_dim=mlp_dim)
    side = bank_scaling.side_by_root(dim, mlp_dim, 16)
    more = []
    for pixels in (side - 16, side):
        projections, pairs, mlp = counted((pixels // 16) ** 2 + 1, config)
        more.append(pairs > projections + mlp)
    assert more == [False, True]
