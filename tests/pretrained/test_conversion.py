"""Our model gives other libraries' logits with their weights, layer by layer."""

import pytest
import timm
import torch
import torchvision
from torch import nn

from vit_from_scratch import InputError
from vit_from_scratch.pretrained import from_timm, from_torchvision

TIMM = {
    "class token": {},
    "average pooling, norm after it": {"global_pool": "avg"},
    "average pooling, norm before it": {"global_pool": "avg", "fc_norm": False},
    "average pooling without class token": {"global_pool": "avg", "class_token": False},
    "class token, norm after pooling": {"fc_norm": True},
    "no norm at all": {"final_norm": False},
    "no position for the class token": {"no_embed_class": True},
    "no positions": {"pos_embed": "none"},
    "no qkv bias": {"qkv_bias": False},
    "tanh GELU": {"act_layer": "gelu_tanh"},
    "other eps": {"norm_layer": lambda dim, **dd: nn.LayerNorm(dim, eps=1e-5, **dd)},
    "not square, one channel": {"img_size": (24, 40), "in_chans": 1},
}


def random_weights(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Draw every weight anew, so that no part is zero or one by its initialisation."""
    torch.manual_seed(0)
    model.to(dtype)  # before drawing: float64 then has digits that float32 would lose
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3 if parameter.ndim > 1 else 0.5)
    return model.eval()


def timm_model(dtype=torch.float64, **options):
    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 3, "num_heads": 3, "num_classes": 7}
    return random_weights(timm.models.vision_transformer.VisionTransformer(**sizes | options), dtype)


def compare(ours, theirs, image, theirs_blocks, tolerance):
    """Compare every block's output and the logits."""
    outputs = []
    hooks = [
        block.register_forward_hook(
            lambda _, __, out: outputs.append(out[0] if isinstance(out, tuple) else out)
        )
        for block in theirs_blocks
    ]
    with torch.no_grad():
        expected = theirs(image)
        found, named = ours(image, return_intermediates=True)
    for hook in hooks:
        hook.remove()
    expected = getattr(expected, "logits", expected)
    assert len(named["layers"]) == len(outputs)
    for layer, (mine, other) in enumerate(zip(named["layers"], outputs, strict=True)):
        assert (mine - other).abs().max() < tolerance * max(1, other.abs().max()), f"layer {layer}"
    assert (found - expected).abs().max() < tolerance * max(1, expected.abs().max())


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize("options", TIMM.values(), ids=TIMM)
def test_timm(options, dtype, tolerance):
    theirs = timm_model(dtype, **options)
    ours = from_timm(theirs)
    image = torch.randn(2, ours.config.channels, *ours.config.image_shape, dtype=dtype)
    compare(ours, theirs, image, theirs.blocks, tolerance)


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"reg_tokens": 4}, "register tokens"),
        ({"init_values": 1e-5}, "layer scale"),
        ({"qk_norm": True}, "a norm on queries and keys"),
        ({"pre_norm": True}, "a norm before the blocks"),
        ({"global_pool": "map"}, "'map' pooling"),
        ({"global_pool": "avg", "pool_include_prefix": True}, "pooling over the class token too"),
        ({"num_classes": 0}, r"no head \(model\.reset_classifier\(1\) gives it one\)"),
        ({"patch_size": (8, 16)}, "patches of 8 x 16 pixels"),
        ({"act_layer": "relu"}, "the activation ReLU"),
        ({"scale_mlp_norm": True}, "weights that ours has no place for"),
    ],
)
def test_what_ours_cannot_express_is_refused_by_name(options, difference):
    with pytest.raises(InputError, match=f"this timm model has {difference}.*expected a plain ViT"):
        from_timm(timm_model(**options))


def test_a_model_that_looks_alike_and_works_otherwise_is_refused():
    theirs = timm_model()
    theirs.blocks[1].attn.scale *= 2
    theirs.blocks[1].attn.fused_attn = False
    with pytest.raises(InputError, match=r"parts that look alike but work differently \(logits differ"):
        from_timm(theirs)


def test_rates_for_training_are_taken_over_where_ours_has_them():
    rates = {"drop_path_rate": 0.3, "proj_drop_rate": 0.2}
    other = from_timm(timm_model(**rates, pos_drop_rate=0.4)).config
    assert other.dropout == 0, "timm's has another after the positions"
    ours = from_timm(timm_model(**rates, pos_drop_rate=0.2)).config
    assert (ours.dropout, ours.stochastic_depth) == (0.2, pytest.approx(0.3))


def test_conversion_copies_and_leaves_the_source_as_it_was():
    theirs = timm_model().train()
    before = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    ours = from_timm(theirs)
    for parameter in ours.parameters():
        parameter.data.zero_()
    assert theirs.training
    assert not ours.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in theirs.state_dict().items())


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize("representation", [None, 20])
def test_torchvision(representation, dtype, tolerance):
    theirs = torchvision.models.VisionTransformer(
        32, 8, 3, 3, 24, 48, num_classes=7, representation_size=representation
    )
    theirs = random_weights(theirs, dtype)
    ours = from_torchvision(theirs)
    assert ours.config.representation_size == representation
    compare(ours, theirs, torch.randn(2, 3, 32, 32, dtype=dtype), theirs.encoder.layers, tolerance)


def test_a_torchvision_model_with_a_conv_stem_is_refused():
    from torchvision.models.vision_transformer import ConvStemConfig

    stem = [ConvStemConfig(8, 3, 2), ConvStemConfig(8, 3, 2), ConvStemConfig(8, 3, 2)]
    theirs = torchvision.models.VisionTransformer(32, 8, 3, 3, 24, 48, conv_stem_configs=stem)
    with pytest.raises(InputError, match="this torchvision model has a convolutional stem"):
        from_torchvision(theirs)


@pytest.mark.parametrize("convert", [from_timm, from_torchvision])
def test_any_other_module_is_refused(convert):
    with pytest.raises(InputError, match=r"a Linear: expected"):
        convert(nn.Linear(2, 2))


def timm_hybrid():
    """A small one of timm's hybrids, with its own class of stem."""
    from functools import partial

    from timm.layers import StdConv2dSame
    from timm.models.resnetv2 import ResNetV2
    from timm.models.vision_transformer_hybrid import HybridEmbed

    backbone = ResNetV2(
        layers=(1, 2, 1),
        channels=(256, 512, 1024),
        num_classes=0,
        global_pool="",
        in_chans=3,
        preact=False,
        stem_type="same",
        conv_layer=partial(StdConv2dSame, eps=1e-8),
    )
    return timm.models.vision_transformer.VisionTransformer(
        img_size=64,
        embed_dim=24,
        depth=2,
        num_heads=3,
        num_classes=7,
        patch_size=1,
        embed_layer=partial(HybridEmbed, backbone=backbone),
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_timms_hybrid(dtype, tolerance):
    theirs = random_weights(timm_hybrid(), dtype)
    ours = from_timm(theirs)
    image = torch.randn(2, 3, 64, 64, dtype=dtype)
    with torch.no_grad():
        features = theirs.patch_embed.backbone(image)
        found = ours.patch_embedding.feature_maps(image)[-1]
    features = features[-1] if isinstance(features, (list, tuple)) else features
    assert (found - features).abs().max() < tolerance * features.abs().max()
    compare(ours, theirs, image, theirs.blocks, tolerance)


def test_timms_named_hybrid():
    theirs = timm.create_model("vit_small_r26_s32_224", num_classes=5)
    torch.manual_seed(0)
    theirs = theirs.double().eval()
    ours = from_timm(theirs)
    assert ours.config.stem.layers == (2, 2, 2, 2)
    compare(ours, theirs, torch.randn(1, 3, 224, 224, dtype=torch.float64), theirs.blocks, 1e-9)
