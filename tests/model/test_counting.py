"""Operations counted while a model runs, against arithmetic."""

import dataclasses

import pytest
import torch

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.model.cost import forward_flops
from vit_from_scratch.model.counting import counted_flops, padding_flops
from vit_from_scratch.model.hybrid import ResNetStem, StandardisedConv
from vit_from_scratch.model.resnet import EvenlyPaddedConv, build_resnet
from vit_from_scratch.model.stem_config import StemConfig


def test_a_resnet_50_takes_the_well_known_four_billion_multiply_adds():
    with torch.device("meta"):
        model = build_resnet("50x1")
    assert counted_flops(model, (3, 224, 224)) / 2 == pytest.approx(4.09e9, rel=0.005)


def test_a_hybrids_stem_costs_the_same_by_count_and_by_arithmetic():
    stem = StemConfig("resnet", width=8, layers=(1, 2, 1), root_stride=1)
    plain = ViTConfig(16, 4, dim=24, depth=1, heads=1, mlp_dim=8, num_classes=5)
    hybrid = dataclasses.replace(plain, stem=stem)
    patches = 2 * 16 * (4 * 4 * 3) * 24  # a plain ViT's stem: 16 patches to the width 24
    counted = counted_flops(ResNetStem(hybrid), (3, 16, 16))
    assert counted == forward_flops(hybrid) - forward_flops(plain) + patches


def products_on_zeros(side: int, kernel: int, stride: int, before: int) -> int:
    """Places of all windows along one side that lie outside, one by one."""
    windows = -(-side // stride)
    outside = [
        not 0 <= window * stride - before + place < side
        for window in range(windows)
        for place in range(kernel)
    ]
    return sum(outside)


@pytest.mark.parametrize(
    ("kind", "kernel", "stride", "before"),
    [
        (EvenlyPaddedConv, 1, 1, 0),
        (EvenlyPaddedConv, 3, 1, 1),
        (EvenlyPaddedConv, 3, 2, 1),
        (EvenlyPaddedConv, 7, 2, 3),
        (StandardisedConv, 3, 1, 1),
        (StandardisedConv, 3, 2, 0),
        (StandardisedConv, 7, 2, 2),
    ],
)
def test_products_with_the_zeros_around_are_counted_one_by_one(kind, kernel, stride, before):
    layer = kind(5, 7, kernel, stride, eps=1e-5, eps_on_variance=False)
    height, width = 8, 12
    inside = [
        -(-side // stride) * kernel - products_on_zeros(side, kernel, stride, before)
        for side in (height, width)
    ]
    everything = counted_flops(layer, (5, height, width))
    assert padding_flops(layer, (5, height, width)) == everything - 2 * 5 * 7 * inside[0] * inside[1]


def test_a_3_x_3_filter_with_a_border_of_zeros():
    layer = EvenlyPaddedConv(1, 1, 3, 1, eps=1e-5, eps_on_variance=False)
    # On 7 x 7 places, 21 x 21 products, of which the border's windows lose one row or column at each end.
    assert padding_flops(layer, (1, 7, 7)) == 2 * (21**2 - 19**2)


def test_looking_leaves_nothing_behind():
    layer = EvenlyPaddedConv(1, 1, 3, 1, eps=1e-5, eps_on_variance=False)
    padding_flops(layer, (1, 7, 7))
    assert not layer._forward_pre_hooks


def test_counting_leaves_the_averages_of_a_batch_norm_and_the_mode():
    config = ViTConfig(
        8, 8, dim=8, depth=1, heads=2, mlp_dim=8, num_classes=3, stem=StemConfig("conv", width=4)
    )
    model = VisionTransformer(config).train()  # a single patch, and one image: no deviation to divide by
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert counted_flops(model, (3, 8, 8)) > 0
    assert padding_flops(model, (3, 8, 8)) == 0
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_plain_vit_has_no_zeros_around():
    config = ViTConfig(16, 4, dim=16, depth=1, heads=1, mlp_dim=8, num_classes=5)
    assert padding_flops(VisionTransformer(config), (3, 16, 16)) == 0
