"""BiT's ResNets: the same results as timm's with the same weights, and as many parameters."""

from functools import partial

import pytest
import timm
import torch
from timm.layers import GroupNormAct, StdConv2d
from timm.models.resnetv2 import ResNetV2

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.model.cost import count_parameters, counted_flops
from vit_from_scratch.model.hybrid import StandardisedConv
from vit_from_scratch.model.stem_config import ResNetConfig, StemConfig
from vit_lab.experiments.resnet import (
    DEPTHS,
    EvenlyPaddedConv,
    PreActivationBottleneck,
    ResNet,
    build_resnet,
    padding_flops,
)

SMALL = ResNetConfig(width=32, layers=(2, 1, 3, 1), norm_eps=1e-5, conv_eps=1e-8, eps_on_variance=True)


def timms_small() -> ResNetV2:
    """A miniature of `resnetv2_50x1_bit`: every layer's kind is that of the large one."""
    return ResNetV2(
        SMALL.layers,
        channels=(128, 256, 512, 1024),
        stem_chs=32,
        num_classes=7,
        stem_type="fixed",
        conv_layer=partial(StdConv2d, eps=1e-8),
        norm_layer=partial(GroupNormAct, num_groups=32),
        zero_init_last=False,
    )


def in_our_names(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """timm's weights with our names; its head is a 1 x 1 convolution."""
    changes = (
        ("stem.conv.", "root."),
        (".blocks.", "."),
        ("downsample.conv.", "shortcut."),
        ("head.fc.", "head."),
    )
    ours = {}
    for name, tensor in weights.items():
        for old, new in changes:
            name = name.replace(old, new)
        ours[name] = tensor.flatten(1) if name == "head.weight" else tensor
    return ours


@pytest.fixture
def pair() -> tuple[ResNetV2, ResNet]:
    """timm's miniature, with no weight as it is drawn or zeroed, and ours with the same weights."""
    torch.manual_seed(0)
    peer = timms_small().double().eval()
    with torch.no_grad():
        for parameter in peer.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    ours = ResNet(SMALL, num_classes=7).double()
    ours.load_state_dict(in_our_names(peer.state_dict()))
    return peer, ours


@pytest.mark.parametrize("size", [(64, 64), (96, 64), (65, 71)])
def test_same_weights_same_logits_as_timms(pair, size):
    peer, ours = pair
    images = torch.randn(2, 3, *size, dtype=torch.float64)
    with torch.no_grad():
        expected, found = peer(images), ours(images)
    assert expected.std() > 0.1
    assert torch.allclose(found, expected, rtol=0, atol=1e-10)


def test_same_weights_same_gradients_as_timms(pair):
    peer, ours = pair
    images = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    for model in pair:
        model(images).square().sum().backward()
    theirs = in_our_names({name: p.grad for name, p in peer.named_parameters()})
    for name, parameter in ours.named_parameters():
        scale = theirs[name].abs().max()
        assert torch.allclose(parameter.grad, theirs[name], rtol=0, atol=1e-10 * scale), name


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("50x1", "resnetv2_50x1_bit"),
        ("ResNet50x3", "resnetv2_50x3_bit"),
        ("R101x1", "resnetv2_101x1_bit"),
        ("ResNet152x2", "resnetv2_152x2_bit"),
    ],
)
def test_the_papers_resnets_have_as_many_parameters_as_timms(name, peer):
    with torch.device("meta"):
        theirs = timm.create_model(peer, num_classes=1000)
        assert count_parameters(build_resnet(name)) == sum(p.numel() for p in theirs.parameters())


def test_a_depth_counts_three_convolutions_a_unit_the_root_and_the_head():
    assert {depth: 1 + 3 * sum(units) + 1 for depth, units in DEPTHS.items()} == {d: d for d in DEPTHS}


def test_nothing_follows_the_sum():
    unit = PreActivationBottleneck(SMALL, 128, 32, 1)
    torch.nn.init.zeros_(unit.conv3.weight)
    features = torch.randn(2, 128, 5, 5)
    assert torch.equal(unit(features), features), "negative values pass by"


def test_an_untrained_resnet_has_no_opinion():
    logits = ResNet(SMALL, num_classes=7)(torch.randn(2, 3, 64, 64))
    assert torch.equal(logits, torch.zeros(2, 7))


@pytest.mark.parametrize("name", ["50", "51x1", "50x0", "50x17", "ViT50x1", "50x1 ", None])
def test_an_unknown_resnet_is_refused(name):
    with pytest.raises(InputError, match=r"unknown ResNet .*: expected 50, 101, 152, 200 layers"):
        build_resnet(name)


def test_a_resnet_50_takes_the_well_known_four_billion_multiply_adds():
    with torch.device("meta"):
        model = build_resnet("50x1")
    assert counted_flops(model, (3, 224, 224)) / 2 == pytest.approx(4.09e9, rel=0.005)


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
    layer = kind(ResNetConfig(), 5, 7, kernel, stride)
    height, width = 8, 12
    inside = [
        -(-side // stride) * kernel - products_on_zeros(side, kernel, stride, before)
        for side in (height, width)
    ]
    everything = counted_flops(layer, (5, height, width))
    assert padding_flops(layer, (5, height, width)) == everything - 2 * 5 * 7 * inside[0] * inside[1]


def test_a_3_x_3_filter_with_a_border_of_zeros():
    layer = EvenlyPaddedConv(ResNetConfig(), 1, 1, 3)
    # On 7 x 7 places, 21 x 21 products, of which the border's windows lose one row or column at each end.
    assert padding_flops(layer, (1, 7, 7)) == 2 * (21**2 - 19**2)
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
