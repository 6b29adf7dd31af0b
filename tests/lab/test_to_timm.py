"""Our models as timm's: the same logits, timm's own names, and one sentence for what timm does not have."""

import dataclasses

import pytest
import timm
import torch

from vit_classroom.checks.report import randomise
from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.pretrained import from_timm
from vit_lab.export.to_timm import timm_arguments, to_timm

PLAIN = ViTConfig(image_size=16, patch_size=4, dim=24, depth=2, heads=3, mlp_dim=40, num_classes=7)
KINDS = {
    "class token": {},
    "average pooling": {"pool": "gap"},
    "average pooling, norm after it": {"pool": "gap", "norm": "pooled"},
    "average pooling without class token or norm": {"pool": "gap", "norm": "none", "class_token": False},
    "class token, norm after pooling": {"norm": "pooled"},
    "no norm": {"norm": "none"},
    "no positions": {"position": "none"},
    "no qkv bias, tanh GELU, other eps": {"qkv_bias": False, "gelu": "tanh", "layer_norm_eps": 1e-3},
    "not square, one channel": {"image_size": (8, 20), "channels": 1},
    "a width that division rounds": {"dim": 27, "mlp_dim": 61},
    "dropout, stochastic depth, mimetic start": {
        "dropout": 0.2,
        "stochastic_depth": 0.1,
        "initialisation": "mimetic",
    },
}


def model_of(dtype=torch.float64, **changes) -> VisionTransformer:
    return randomise(VisionTransformer(dataclasses.replace(PLAIN, **changes)).to(dtype))


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_timms_model_gives_the_same_logits(changes):
    ours = model_of(**changes).train()
    theirs = to_timm(ours)
    assert type(theirs) is timm.models.vision_transformer.VisionTransformer
    assert ours.training
    assert not theirs.training
    images = torch.randn(3, ours.config.channels, *ours.config.image_shape, dtype=torch.float64)
    expected = ours.eval()(images)
    assert expected.std() > 0.1
    torch.testing.assert_close(theirs(images), expected, rtol=0, atol=1e-9 * expected.abs().max().item())


def test_in_float32_the_logits_are_the_same_to_five_digits():
    ours = model_of(torch.float32)
    images = torch.randn(8, 3, 16, 16)
    assert (to_timm(ours)(images) - ours(images)).abs().max() < 1e-5 * ours(images).abs().max()


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_there_and_back_again_changes_nothing(changes):
    ours = model_of(**changes)
    back = from_timm(to_timm(ours))
    forgotten = {"initialisation": "xavier"}  # which no logit shows
    assert back.config == dataclasses.replace(ours.config, **forgotten, image_size=ours.config.image_shape)
    for name, tensor in ours.state_dict().items():
        assert torch.equal(back.state_dict()[name], tensor), name


@pytest.mark.parametrize("position", ["sincos_2d", "learned_2d"])
def test_whatever_is_added_once_becomes_a_table(position):
    ours = model_of(position=position)
    images = torch.randn(3, 3, 16, 16, dtype=torch.float64)
    theirs = to_timm(ours)
    torch.testing.assert_close(theirs(images), ours(images), rtol=0, atol=1e-9)
    assert torch.equal(theirs.pos_embed, ours.tokens.position_embedding())


def test_weights_are_copied():
    ours = model_of()
    before = ours.head.weight.clone()
    for parameter in to_timm(ours).parameters():
        parameter.data.zero_()
    assert torch.equal(ours.head.weight, before)
    assert ours.patch_embedding.projection.weight.abs().min() > 0


def test_the_paper_s_names_give_timms_own_models():
    from vit_from_scratch.model.config import variant_config

    with torch.device("meta"):
        theirs = timm.create_model("vit_small_patch32_224", num_classes=11)
        same = timm.models.vision_transformer.VisionTransformer(
            **timm_arguments(variant_config("S/32", num_classes=11))
        )
    shapes = [{name: tensor.shape for name, tensor in m.state_dict().items()} for m in (theirs, same)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"stem": {"kind": "conv", "width": 4}}, "a 'conv' stem"),
        ({"stem": {"kind": "resnet", "width": 8, "layers": (1, 1, 1), "root_stride": 1}}, "a 'resnet' stem"),
        ({"mlp": "local"}, "local MLPs"),
        ({"position": "relative", "mlp": "local"}, "local MLPs and relative positions"),
        ({"representation_size": 9}, r"a hidden layer before the head \(representation_size\)"),
    ],
)
def test_what_timm_does_not_have_is_named(changes, difference):
    ours = VisionTransformer(ViTConfig.from_dict(PLAIN.to_dict() | changes))
    with pytest.raises(InputError, match=f"^this model has {difference}: expected plain patches"):
        to_timm(ours)


def test_without_timm_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr("vit_lab.export.formats.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs timm; not installed here: timm\. Run: pip install timm$"):
        to_timm(model_of())
