"""The whole model: the paper's sizes, torchvision's logits, healthy gradients, clear refusals."""

import itertools

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from vit_classroom.checks.report import randomise
from vit_from_scratch import InputError, VisionTransformer, ViTConfig, build_model
from vit_from_scratch.model.cost import count_parameters

PARAMETERS = {
    ("B/16", 224): 86_567_656,
    ("B/16", 384): 86_859_496,
    ("B/32", 224): 88_224_232,
    ("L/16", 224): 304_326_632,
    ("L/32", 224): 306_535_400,
    ("H/14", 224): 632_045_800,
}


@pytest.mark.parametrize(("variant", "heads"), [("Ti", 3), ("S", 6), ("B", 12), ("L", 16), ("H", 16)])
def test_heads_are_those_of_table_1_and_of_touvron_which_no_count_of_parameters_shows(variant, heads):
    with torch.device("meta"):
        assert build_model(f"{variant}/{14 if variant == 'H' else 16}").config.heads == heads


@pytest.mark.parametrize(("variant", "size"), PARAMETERS)
def test_parameter_counts(variant, size):
    with torch.device("meta"):
        assert count_parameters(build_model(variant, image_size=size)) == PARAMETERS[variant, size]


def test_an_untrained_model_gives_every_class_the_same_logit():
    model = build_model("Ti/16", image_size=32, num_classes=10)
    assert model(torch.randn(2, 3, 32, 32)).abs().max() == 0


def test_encoder_without_position_ignores_the_order_of_patches_and_with_it_does_not(small_config):
    for position, ignores in (
        ("none", True),
        ("learned", False),
        ("learned_2d", False),
        ("sincos_2d", False),
    ):
        config = ViTConfig.from_dict({**small_config.to_dict(), "position": position})
        model = VisionTransformer(config).double()
        randomise(model)
        patches = torch.randn(2, config.num_patches, 24, dtype=torch.float64)
        order = torch.randperm(config.num_patches)

        def encoded(patches, model=model):
            return model.encoder(model.tokens(patches))[:, 1:]

        assert torch.allclose(encoded(patches)[:, order], encoded(patches[:, order])) is ignores, position


def gradients_that_are_zero(model, images):
    model.train()
    model(images).square().sum().backward()
    return {name for name, p in model.named_parameters() if p.grad is None or p.grad.abs().max() == 0}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pool": "gap"},
        {"pool": "gap", "class_token": False, "norm": "pooled"},
        {"position": "learned_2d"},
        {"representation_size": 12},
        {"norm": "none", "qkv_bias": False},
    ],
)
def test_every_parameter_receives_a_gradient(small_config, options):
    """Key biases shift all scores of a query alike, which a softmax does not see: rounding only."""
    model = VisionTransformer(ViTConfig.from_dict({**small_config.to_dict(), **options})).double()
    randomise(model)
    assert gradients_that_are_zero(model, torch.randn(4, 3, 12, 16, dtype=torch.float64)) == set()
    for block in model.encoder.blocks:
        if block.attention.qkv.bias is not None:
            query, key, value = block.attention.qkv.bias.grad.chunk(3)
            assert key.abs().max() < 1e-10 < min(query.abs().max(), value.abs().max())


def test_the_class_token_or_the_mean_of_the_patches_is_read(small_model):
    encoded = torch.randn(2, 13, 24)
    assert torch.equal(small_model.pool(encoded), encoded[:, 0])
    gap = VisionTransformer(ViTConfig.from_dict({**small_model.config.to_dict(), "pool": "gap"}))
    torch.testing.assert_close(gap.pool(encoded), sum(encoded[:, i] for i in range(1, 13)) / 12)


def test_intermediates_are_named_and_shaped_as_documented(small_model):
    images = torch.randn(2, 3, 12, 16)
    logits, seen = small_model(images, return_intermediates=True)
    torch.testing.assert_close(logits, small_model(images))
    shapes = {
        name: [tuple(v.shape) for v in value] if isinstance(value, list) else tuple(value.shape)
        for name, value in seen.items()
    }
    assert shapes == {
        "patches": (2, 12, 24),
        "tokens": (2, 13, 24),
        "attention": [(2, 3, 13, 13)] * 3,
        "layers": [(2, 13, 24)] * 3,
        "encoded": (2, 13, 24),
        "features": (2, 24),
    }
    torch.testing.assert_close(
        nn.functional.linear(seen["features"], small_model.head.weight, small_model.head.bias), logits
    )


@pytest.mark.parametrize(("size", "patch"), [(8, 1), (8, 2), ((8, 20), 4), (15, 5), (28, 14), (33, 11)])
def test_any_image_size_and_patch_that_divide_work(size, patch):
    config = ViTConfig(image_size=size, patch_size=patch, dim=12, depth=1, heads=2, mlp_dim=12, num_classes=3)
    assert VisionTransformer(config)(torch.randn(2, 3, *config.image_shape)).shape == (2, 3)


def test_bfloat16_runs_by_autocast_and_by_conversion(small_model):
    images = torch.randn(4, 3, 12, 16)
    expected = small_model(images)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = small_model(images)
    pure = small_model.bfloat16()(images.bfloat16())
    for result in (mixed, pure):
        assert result.dtype == torch.bfloat16
        assert torch.corrcoef(torch.stack([result.float().flatten(), expected.flatten()]))[0, 1] > 0.99


DEVICES = ["cpu", "meta", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
def test_the_model_runs_wherever_its_weights_are(small_model, device):
    model = small_model.to(device)
    assert model(torch.zeros(2, 3, 12, 16, device=device)).device.type == device


def test_the_same_seed_builds_the_same_model():
    models = []
    for _ in range(2):
        torch.manual_seed(3)
        models.append(build_model("Ti/16", image_size=32))
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(2, 3, 16, 16), r"shape \(2, 3, 16, 16\): expected \(B, 3, 12, 16\)"),
        (torch.zeros(2, 1, 12, 16), r"shape \(2, 1, 12, 16\): expected \(B, 3, 12, 16\)"),
        (torch.zeros(3, 12, 16), r"shape \(3, 12, 16\): expected \(B, 3, 12, 16\)"),
        (
            torch.zeros(2, 3, 12, 16, dtype=torch.uint8),
            r"torch.uint8: expected torch.float32.*data.normalise",
        ),
        (torch.zeros(2, 3, 12, 16, dtype=torch.float64), r"torch.float64: expected torch.float32"),
    ],
)
def test_images_that_do_not_fit_are_refused(small_model, images, message):
    with pytest.raises(InputError, match=message):
        small_model(images)


@pytest.mark.parametrize(
    "images", [None, [[0.0]], np.zeros((2, 3, 12, 16), dtype=np.float32), Image.new("RGB", (16, 12))]
)
def test_what_is_no_tensor_is_refused(small_model, images):
    with pytest.raises(
        InputError, match=rf"images of type {type(images).__name__}: expected a tensor \(B, 3,"
    ):
        small_model(images)


def test_weights_that_are_offloaded_between_calls_do_not_decide_where_images_lie(small_model):
    small_model.head.to("meta")
    small_model.check_images(torch.zeros(2, 3, 12, 16))


def test_images_on_another_device_than_the_weights_are_refused(small_model):
    with pytest.raises(InputError, match=r"images on meta: expected cpu, where the model's weights are"):
        small_model(torch.zeros(2, 3, 12, 16, device="meta"))


WRONG = [
    (
        {"image_size": 224, "patch_size": 15},
        "patch_size 15 does not divide the image size 224 x 224.*expected one of 1, 2",
    ),
    ({"image_size": 2**16 - 1}, r"expected one of 1, 3, 5, 15, 17, 51, 85, 255, 257, 771, 1285, 3855;"),
    (
        {"dim": 100, "heads": 3},
        "heads=3 does not divide dim=100: expected one of 1, 2, 4, 5, 10, 20, 25, 50, 100,",
    ),
    ({"dim": 2**20 + 1}, "model.dim = 1048577: expected at least 1, at most 1,048,576"),
    ({"image_size": 2**16 + 1}, "model.image_size = 65537: expected at least 1, at most 65,536"),
    ({"representation_size": 2**21}, "model.representation_size = 2097152: expected at least 1, at most"),
    ({"depth": 3_000_000}, "model.depth = 3000000: expected at least 0, at most 1,000"),
    ({"stem": {"kind": "conv", "width": 2**17}}, "model.stem.width = 131072: expected at least 1, at most"),
    (
        {"stem": {"layers": [3] * 12}},
        "model.stem.layers = .*expected 1 to 1,000 units a stage, and at most 11",
    ),
    ({"stem": {"layers": [10**9]}}, "model.stem.layers = .*expected 1 to 1,000 units a stage"),
    ({"pool": "mean"}, "unknown model.pool 'mean': expected one of 'cls', 'gap'"),
    ({"position": "learnt"}, "unknown model.position 'learnt'.*did you mean 'learned'"),
    ({"pool": "cls", "class_token": False}, "set pool='gap' or class_token=True"),
    ({"depth": -1}, "model.depth = -1: expected at least 0"),
    ({"depth": 2.0}, "model.depth = 2.0: expected a whole number"),
    ({"heads": True}, "model.heads = True: expected a whole number"),
    ({"dropout": 1.0}, "model.dropout = 1.0: expected a probability"),
    ({"dropout": "none"}, "model.dropout = 'none': expected a number"),
    ({"qkv_bias": 1}, "model.qkv_bias = 1: expected true or false"),
    ({"layer_norm_eps": 0.0}, "model.layer_norm_eps = 0.0: expected a number above 0"),
    ({"image_size": (224, 0)}, "model.image_size = .*at least 1, at most"),
    ({"image_size": (224,)}, "expected a whole number or a list of 2"),
    ({"image_size": "224"}, "model.image_size = '224': expected a whole number"),
    ({"representation_size": -1}, "model.representation_size = -1: expected at least 1"),
    ({"position": "sincos_2d", "dim": 6, "heads": 2}, "expected a multiple of 4"),
    ({"stem": {"layers": [3, 4, 9, 3]}}, "stem.layers = .* with stem.kind = 'patch', .*kind = 'resnet'"),
    ({"stem": {"kind": "conv", "root_stride": 1}}, "stem.root_stride = 1 with stem.kind = 'conv'"),
    ({"width": 64}, "unknown option of .model. 'width'"),
    ({"dimm": 64}, "unknown option of .model. 'dimm'.*did you mean 'dim'"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_a_wrong_option_is_refused_in_one_sentence(options, message):
    with pytest.raises(InputError, match=message):
        build_model("B/16", **options)


@pytest.mark.parametrize("name", ["X/16", "B16", "B/", "b/16", "/16", "", None, 16])
def test_an_unknown_variant_is_refused(name):
    with pytest.raises(InputError, match=r"unknown variant.*'B/16'"):
        build_model(name)


def test_a_configuration_survives_plain_values():
    for size, pool in itertools.product((32, (16, 32)), ("cls", "gap")):
        config = ViTConfig(image_size=size, patch_size=8, dim=12, heads=2, pool=pool)
        plain = config.to_dict()
        if isinstance(size, tuple):
            plain["image_size"] = list(size)  # as JSON and TOML give it back
        assert ViTConfig.from_dict(plain) == config


def test_two_equal_sides_are_one():
    square = ViTConfig((32, 32), 16, dim=8, depth=1, heads=1, mlp_dim=8, num_classes=3)
    assert square == ViTConfig(32, 16, dim=8, depth=1, heads=1, mlp_dim=8, num_classes=3)
    assert square.image_size == 32


@pytest.mark.parametrize("head", [torch.nn.Identity(), torch.nn.Sequential(torch.nn.Linear(12, 2))], ids=str)
def test_another_head_may_be_put_in_its_place(head):
    model = VisionTransformer(ViTConfig(8, 4, dim=12, depth=1, heads=2, mlp_dim=8))
    model.head = head
    logits, on_the_way = model(torch.rand(2, 3, 8, 8), return_intermediates=True)
    assert torch.equal(logits, head(on_the_way["features"]))
    with pytest.raises(InputError, match=r"torch\.float64: expected torch\.float32"):
        model(torch.rand(2, 3, 8, 8).double())


def test_a_name_in_place_of_a_configuration_is_told_what_takes_names():
    with pytest.raises(InputError, match=r"^config = 'B/16': expected a ViTConfig; build_model"):
        VisionTransformer("B/16")
