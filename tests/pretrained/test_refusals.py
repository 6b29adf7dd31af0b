"""Models that no converter can take are refused in a sentence that names them."""

from functools import partial

import numpy as np
import pytest
import timm
import torch
import torchvision
from timm.models import vision_transformer
from torch import nn

from vit_from_scratch import InputError
from vit_from_scratch.pretrained import (
    class_names,
    from_timm,
    from_torchvision,
    input_scaling,
    load_pretrained,
)

FAMILIES = (
    "beit_base_patch16_224",
    "cait_xxs24_224",
    "convit_tiny",
    "crossvit_tiny_240",
    "eva02_tiny_patch14_224",
    "samvit_base_patch16",
    "vit_base_patch16_18x2_224",
    "vit_relpos_small_patch16_224",
    "vitamin_small_224",
    "xcit_nano_12_p16_224",
)


@pytest.mark.parametrize("name", FAMILIES)
def test_timms_other_families_are_refused_by_name(name):
    with torch.device("meta"):
        theirs = timm.create_model(name)
    message = (
        rf"a {type(theirs).__name__} \({name}\): expected a plain VisionTransformer of timm.*this one lacks"
    )
    with pytest.raises(InputError, match=message):
        from_timm(theirs)


class Prelu(nn.PReLU):
    """An activation with a weight of its own."""

    def __init__(self, **_):
        super().__init__()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"block_fn": vision_transformer.ParallelScalingBlock},
            "'ParallelScalingBlock' object has no attri",
        ),
        ({"mlp_layer": timm.layers.SwiGLU}, "'SwiGLU' object has no attribute 'fc1'"),
        ({"mlp_layer": timm.layers.GluMlp}, r"the weights do not fit .*another shape: .*mlp\.output\.weight"),
        ({"depth": 0}, "this one lacks a part of it"),
        ({"act_layer": Prelu}, "the activation Prelu"),
        ({"norm_layer": partial(timm.layers.RmsNorm)}, r"missing: encoder\.blocks\.0\.attention_norm\.bias"),
    ],
)
def test_other_parts_in_timms_model_are_refused_by_name(options, message):
    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "num_classes": 7}
    with pytest.raises(InputError, match=message):
        from_timm(vision_transformer.VisionTransformer(**sizes | options))


def torchvision_model(**options):
    return torchvision.models.VisionTransformer(32, 8, 2, 3, 24, 48, num_classes=7, **options)


HEADS = {
    "a layer": lambda: {"heads": nn.Linear(24, 3)},
    "a layer in a sequence": lambda: {"heads": nn.Sequential(nn.Linear(24, 3))},
    "a layer in its place": lambda: {"heads.head": nn.Linear(24, 3)},
    "after dropout": lambda: {"heads": nn.Sequential(nn.Dropout(0.5), nn.Linear(24, 3))},
    "after dropout in its place": lambda: {"heads.head": nn.Sequential(nn.Dropout(0.5), nn.Linear(24, 3))},
}


def with_parts(model, parts):
    for path, part in parts.items():
        *place, name = path.split(".")
        setattr(model.get_submodule(".".join(place)), name, part)
    return model


@pytest.mark.parametrize("parts", HEADS.values(), ids=HEADS)
def test_torchvisions_model_with_a_linear_head_of_the_users_own_is_converted(parts):
    theirs = with_parts(torchvision_model(), parts()).train()
    ours = from_torchvision(theirs)
    images = torch.randn(2, 3, 32, 32)
    assert ours.config.num_classes == 3
    assert theirs.training
    torch.testing.assert_close(ours(images), theirs.eval()(images))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"heads": nn.Identity()}, "a head of nothing in place of one Linear"),
        (
            {"heads": nn.Sequential(nn.Linear(24, 9), nn.GELU(), nn.Linear(9, 3))},
            "a head of Linear, GELU, Linear",
        ),
        ({"heads": nn.Linear(24, 3, bias=False)}, r"missing: head\.bias"),
        ({"heads": nn.Linear(12, 3)}, r"of another shape: head\.weight \(3, 12\) for \(3, 24\)"),
        ({"encoder.layers": nn.Sequential()}, "this one lacks a part of it"),
    ],
)
def test_other_heads_and_no_blocks_in_torchvisions_model_are_refused(parts, message):
    with pytest.raises(InputError, match=message):
        from_torchvision(with_parts(torchvision_model(), parts))


@pytest.mark.parametrize("function", [load_pretrained, input_scaling, class_names])
@pytest.mark.parametrize("name", [[], {}, None, 3, np.zeros(2), ""])
def test_what_is_no_name_is_no_pretrained_model(function, name):
    with pytest.raises(InputError, match=r"unknown pretrained model .*expected one of 'cifar10'"):
        function(name)
