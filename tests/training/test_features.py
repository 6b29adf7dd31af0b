import pytest
import torch

from vit_classroom.checks.report import randomise
from vit_from_scratch import InputError
from vit_from_scratch.training.features import extract_features, image_features


@pytest.fixture
def images():
    return torch.randn(5, 3, 12, 16)


def on_the_way(model, images):
    return model.eval()(images, return_intermediates=True)[1]


@pytest.mark.parametrize("layer", [0, 1, 3])
def test_features_of_a_layer_are_its_class_token_or_the_mean_of_its_patches(small_model, images, layer):
    seen = on_the_way(small_model, images)
    tokens = seen["tokens"] if layer == 0 else seen["layers"][layer - 1]
    assert torch.allclose(image_features(small_model, images, layer, "class"), tokens[:, 0], atol=1e-6)
    mean = tokens[:, 1:].mean(dim=1)
    assert torch.allclose(image_features(small_model, images, layer, "mean"), mean, atol=1e-6)


@pytest.mark.parametrize("norm", ["final", "pooled", "none"])
@pytest.mark.parametrize("pool", ["cls", "gap"])
def test_without_a_layer_they_are_what_the_head_reads(make_model, pool, norm):
    model = make_model(channels=3, image_size=(8, 12), pool=pool, norm=norm)
    randomise(model)
    images = torch.randn(3, 3, 8, 12)
    model.train()
    assert torch.allclose(image_features(model, images), on_the_way(model, images)["features"], atol=1e-6)


def test_a_layer_is_not_normalised_where_the_head_reads_normalised_means(make_model):
    model = make_model(pool="gap", norm="pooled")
    images = torch.randn(3, 1, 8, 8)
    mean = on_the_way(model, images)["layers"][-1][:, 1:].mean(dim=1)
    assert torch.allclose(image_features(model, images, layer=2), mean, atol=1e-6)


def test_the_model_stays_in_its_mode_and_later_layers_are_not_computed(small_model, images, monkeypatch):
    small_model.train()
    monkeypatch.setattr(small_model.encoder.blocks[2], "forward", lambda *a, **k: pytest.fail("computed"))
    image_features(small_model, images, layer=2)
    assert small_model.training


def test_a_stream_gives_every_image_and_label_in_order(small_model, images):
    labels = torch.tensor([4, 0, 2, 2, 1])
    batches = zip(images.split(2), labels.split(2), strict=True)
    features, found = extract_features(small_model, batches, layer=1)
    assert torch.allclose(features, image_features(small_model, images, layer=1), atol=1e-6)
    assert torch.equal(found, labels)


@pytest.mark.parametrize(
    ("layer", "token", "message"),
    [
        (4, None, r"layer 4: expected 0 to 3"),
        (-1, None, r"layer -1: expected 0 to 3"),
        (None, "last", r"token 'last': expected 'class' or 'mean'"),
    ],
)
def test_what_the_model_does_not_have_is_refused(small_model, images, layer, token, message):
    with pytest.raises(InputError, match=message):
        image_features(small_model, images, layer, token)


def test_a_model_without_a_class_token_has_none(make_model):
    model = make_model(class_token=False, pool="gap")
    with pytest.raises(InputError, match="expected 'mean', since the model has no class token"):
        image_features(model, torch.zeros(1, 1, 8, 8), token="class")
