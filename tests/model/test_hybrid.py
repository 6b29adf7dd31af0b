from dataclasses import replace

import numpy as np
import pytest
import timm
import torch
import torch.nn.functional as F

from vit_from_scratch import InputError, VisionTransformer, ViTConfig, build_model
from vit_from_scratch.model.config import variant_config
from vit_from_scratch.model.cost import count_parameters
from vit_from_scratch.model.hybrid import ResNetStem, StandardisedConv, same_padding
from vit_from_scratch.model.stem_config import ResNetConfig, StemConfig
from vit_from_scratch.training.fine_tuning import adapted

SMALL = ViTConfig(
    32,
    4,
    dim=16,
    depth=1,
    heads=2,
    mlp_dim=32,
    num_classes=5,
    stem=StemConfig("resnet", layers=(1, 1, 1), width=8, root_stride=1),
)


@pytest.mark.parametrize(
    ("name", "peer"),
    [("R50+B/16", "vit_base_r50_s16_224"), ("R50+L/32", "vit_large_r50_s32_224")],
)
def test_the_papers_hybrids_have_as_many_parameters_as_timms(name, peer):
    with torch.device("meta"):
        theirs = timm.create_model(peer, num_classes=1000)
        assert count_parameters(build_model(name, num_classes=1000)) == count_parameters(theirs)


@pytest.mark.parametrize(("stride", "tokens"), [(16, 197), (32, 50)])
def test_the_stride_decides_the_number_of_tokens(stride, tokens):
    assert variant_config(f"R50+B/{stride}").num_tokens == tokens


def test_a_feature_map_has_a_place_for_every_patch():
    config = ViTConfig(
        64, 16, dim=8, depth=1, heads=1, mlp_dim=8, stem=StemConfig("resnet", layers=(1, 1, 1), width=8)
    )
    stem = ResNetStem(config)
    images = torch.randn(2, 3, 64, 64)
    assert stem.feature_maps(images)[-1].shape == (2, 8 * 4 * 4, 4, 4)
    assert stem(images).shape == (2, 16, 8)


def test_the_root_for_small_images_is_one_convolution_without_a_pool():
    stem = ResNetStem(SMALL)
    for parameter in stem.parameters():
        torch.nn.init.normal_(parameter)
    images, flat, norm = torch.randn(2, 3, 32, 32), stem.root.weight.flatten(1), stem.root_norm
    filters = (flat - flat.mean(1, keepdim=True)) / (flat.std(1, correction=0, keepdim=True) + 1e-5)
    root = F.conv2d(images, filters.reshape(8, 3, 3, 3), padding=1)
    features = F.group_norm(root, 8, norm.weight, norm.bias, eps=1e-6).relu()
    assert torch.allclose(stem.feature_maps(images)[0], features, atol=1e-4)
    for stage in stem.stages:
        features = stage(features)
    torch.testing.assert_close(stem(images), stem.projection(features.flatten(2).mT), rtol=1e-3, atol=1e-3)


def test_standardised_filters_have_mean_zero_and_standard_deviation_one():
    layer = StandardisedConv(ResNetConfig(conv_eps=1e-10), 8, 6, 3)
    filters = layer.standardised().flatten(1)
    assert torch.allclose(filters.mean(dim=1), torch.zeros(6), atol=1e-5)
    assert torch.allclose(filters.std(dim=1, correction=0), torch.ones(6), atol=1e-4)


def test_filters_are_drawn_anew_wherever_their_channels_lie_in_memory():
    layer = StandardisedConv(ResNetConfig(), 8, 6, 3)
    drawn = []
    for _ in range(2):
        torch.manual_seed(1)
        layer.reset_parameters()
        drawn.append(layer.weight.detach().clone())
        layer.to(memory_format=torch.channels_last)
    assert torch.equal(*drawn)
    torch.manual_seed(2)
    layer.reset_parameters()
    assert not torch.equal(layer.weight, drawn[0])


def test_a_stem_is_not_given_another_eps_than_it_was_trained_with():
    with pytest.raises(InputError, match=r"weights do not fit model\.stem = .*as in pre-training"):
        adapted(VisionTransformer(SMALL), 32, 3, stem=replace(SMALL.stem, norm_eps=1.0))


def test_the_two_places_of_eps():
    weight = torch.tensor([[[[1.0, -1.0]]]]) * 1e-3
    for on_variance, expected in ((False, 1e-3 / (1e-3 + 1e-2)), (True, 1e-3 / (1e-6 + 1e-2) ** 0.5)):
        config = ResNetConfig(conv_eps=1e-2, eps_on_variance=on_variance)
        layer = StandardisedConv(config, 1, 1, 1)
        layer.weight = torch.nn.Parameter(weight)
        assert layer.standardised().flatten()[0].item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("size", "kernel", "stride"), [(224, 7, 2), (112, 3, 2), (56, 3, 1), (57, 3, 2), (8, 1, 2)]
)
def test_same_padding_gives_as_many_places_as_the_definition(size, kernel, stride):
    padded = same_padding(torch.ones(1, 1, size, size), kernel, stride)
    assert (padded.shape[-1] - kernel) // stride + 1 == -(-size // stride)


def test_an_odd_padding_puts_the_extra_pixel_at_the_end():
    padded = same_padding(torch.ones(1, 1, 224, 224), 7, 2)[0, 0, 100]
    assert (padded == 0).nonzero().flatten().tolist() == [0, 1, 226, 227, 228]


def test_same_padding_of_an_image_that_is_not_square():
    padded = same_padding(torch.ones(1, 1, 6, 9), 3, 2)
    assert padded.shape == (1, 1, 7, 11)  # 3 and 5 places of 3 pixels, two pixels apart
    assert np.array_equal(padded[0, 0, -1].numpy(), np.zeros(padded.shape[-1]))


def test_a_new_unit_begins_as_the_identity():
    unit = ResNetStem(replace(SMALL, stem=replace(SMALL.stem, layers=(2, 1, 1)))).stages[0][1]
    features = torch.rand(2, 32, 6, 6)
    assert torch.equal(unit(features), features)


def test_a_stem_of_another_stride_is_refused():
    with pytest.raises(
        InputError, match=r"patch_size 8: expected 16, the stride of a root of 4 and 3 stages"
    ):
        ViTConfig(64, 8, stem="resnet")


@pytest.mark.parametrize("name", ["R50+B/8", "R50+X/16", "R101+B/16"])
def test_an_unknown_hybrid_is_refused(name):
    with pytest.raises(InputError, match=r"or a hybrid at stride 16 or 32"):
        build_model(name)


@pytest.mark.parametrize("width", [12, 24, 40])
def test_a_width_that_the_groups_cannot_share_is_refused(width):
    with pytest.raises(InputError, match=rf"stem.width = {width} gives a layer of .* a multiple of 32"):
        replace(
            build_model("R50+B/16", dim=16, depth=1, heads=1, mlp_dim=8).config,
            stem={"kind": "resnet", "width": width},
        )


def test_without_blocks_it_is_a_resnet():
    torch.manual_seed(0)
    alone = replace(SMALL, depth=0, class_token=False, pool="gap", position="none")
    model = VisionTransformer(alone).eval()
    images, head = torch.randn(2, 3, 32, 32), model.head
    torch.nn.init.normal_(head.weight)
    features = F.layer_norm(model.patch_embedding(images), (16,), eps=1e-6).mean(1)
    assert torch.allclose(model(images), features @ head.weight.T + head.bias, atol=1e-6)
    assert count_parameters(model) == sum(p.numel() for p in model.parameters())
    assert model(images, return_intermediates=True)[1]["layers"] == []


def test_a_class_token_without_blocks_is_refused():
    with pytest.raises(InputError, match=r"model\.depth = 0: expected at least 1 with pool='cls'"):
        replace(SMALL, depth=0)
