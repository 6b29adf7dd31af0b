"""How parameters begin, beside the closed forms of the reference code."""

import pytest
import torch

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.training.pretraining import TASKS

SMALL_RESNET = {"kind": "resnet", "width": 8, "layers": [1, 1, 1], "root_stride": 1}


def started(**options) -> VisionTransformer:
    torch.manual_seed(0)
    return VisionTransformer(ViTConfig(32, 4, dim=96, depth=2, heads=2, mlp_dim=384, **options))


def has(values, deviation):
    assert values.std().item() == pytest.approx(deviation, rel=0.2)
    assert values.mean().abs() < 0.3 * deviation


@pytest.mark.parametrize(
    ("position", "names"),
    [
        ("learned", ["tokens.position"]),
        ("learned_2d", ["tokens.row_position", "tokens.column_position"]),
        ("relative", ["encoder.blocks.1.attention.relative_position"]),
    ],
)
def test_positions_are_normal_of_two_hundredths(position, names):
    model = started(position=position)
    for name in names:
        has(model.get_parameter(name), 0.02)


@pytest.mark.parametrize("objective", ["masked-patches", "masked-pixels"])
def test_so_is_the_mask_token(objective):
    has(TASKS[objective](started()).mask_token, 0.02)


@pytest.mark.parametrize("qk_norm", [False, True])
def test_matrices_of_a_block_are_xavier_uniform_and_biases_zero_or_a_millionth(qk_norm):
    block = started(qk_norm=qk_norm).encoder.blocks[1]
    for layers, bound in (
        ([*block.attention.qkv.weight.chunk(3), block.attention.projection.weight], (6 / 192) ** 0.5),
        ([block.mlp.hidden.weight, block.mlp.output.weight], (6 / 480) ** 0.5),
    ):
        for weight in layers:
            assert weight.abs().max().item() == pytest.approx(bound, rel=0.01)
    assert not block.attention.qkv.bias.any()
    assert not block.attention.projection.bias.any()
    has(block.mlp.hidden.bias, 1e-6)
    has(block.mlp.output.bias, 1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("patch_embedding.projection", {}),
        ("patch_embedding.projection", {"stem": SMALL_RESNET}),
        ("representation.0", {"representation_size": 256}),
    ],
    ids=["patches", "hybrid", "representation"],
)
def test_layers_outside_of_the_blocks_keep_the_variance_of_their_inputs(name, options):
    layer = started(**options).get_submodule(name)
    has(layer.weight, layer.in_features**-0.5)
    assert not layer.bias.any()
