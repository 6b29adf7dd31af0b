"""`vit probe`: a frozen model's features, classifiers on them, and what is refused before they are fitted."""

import numpy as np
import pytest
import torch
from complaints import done, failed
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vit_from_scratch import InputError
from vit_from_scratch.model.checkpoints import load_checkpoint, save_checkpoint
from vit_from_scratch.training.features import extract_features, image_features
from vit_from_scratch.training.few_shot import few_shot_accuracy
from vit_lab import probes
from vit_lab.probes import STRENGTHS, Frozen, linear_probe, neighbours_accuracy
from vit_lab.runs.trained_models import TrainedModel

QUICK = ("--methods", "few-shot", "--draws", "1")


@pytest.fixture
def weights(make_model, tmp_path):
    model = make_model(dropout=0.0)
    torch.nn.init.normal_(model.tokens.class_token)
    save_checkpoint(tmp_path / "start.safetensors", model)
    return str(tmp_path / "start.safetensors")


@pytest.fixture
def pets(save_photo, make_model, tmp_path):
    """A model and a folder of photos: twelve pets of two kinds in each part."""
    for part in ("train", "val", "test"):
        for one in range(6):
            save_photo(tmp_path / "photos" / part / "cat" / f"{one}.png", seed=one)
            save_photo(tmp_path / "photos" / part / "dog" / f"{one}.png", seed=6 + one)
    save_checkpoint(tmp_path / "pets.safetensors", make_model(dropout=0.0, channels=3))
    return ["--weights", str(tmp_path / "pets.safetensors"), "--data", f"folder:{tmp_path / 'photos'}"]


@pytest.mark.parametrize("strength", STRENGTHS)
def test_the_linear_probe_is_scikit_learns_with_the_penalty_that_held_out_images_favour(strength):
    labels = torch.arange(1060) % 3
    features = torch.randn(1060, 30) + torch.randn(30) + 0.8 * torch.eye(30)[labels]
    train, test = (features[:60], labels[:60]), (features[60:360], labels[60:360])
    theirs = make_pipeline(StandardScaler(), LogisticRegression(C=strength)).fit(*map(np.asarray, train))
    named = torch.from_numpy(theirs.predict(features[360:].numpy()))  # as only this penalty has it
    accuracy, chosen = linear_probe(train, (features[360:], named), test)
    assert chosen == strength
    assert accuracy == pytest.approx(theirs.score(*map(np.asarray, test)), abs=1e-2)


def test_the_nearest_by_cosine_vote_the_nearer_with_more_weight():
    labels = torch.arange(500) % 3
    features = torch.randn(500, 4, dtype=torch.float64) + torch.eye(4, dtype=torch.float64)[labels]
    unit = torch.nn.functional.normalize(features)
    near = (1 - unit[200:] @ unit[:200].T).topk(180, largest=False)  # (300, 180)
    votes = torch.zeros(300, 3).double().scatter_add_(1, labels[near.indices], 1 / near.values)
    expected = (votes.argmax(dim=1) == labels[200:]).double().mean().item()
    found = neighbours_accuracy((features[:200], labels[:200]), (features[200:], labels[200:]), 180)
    assert found == pytest.approx(expected, abs=4e-3)  # one image may be rounded to another class


def test_features_are_those_of_the_model(make_model, digits):
    model = make_model(dropout=0.0).eval()
    trained = TrainedModel("mine", model, tuple("0123456789"), None)
    frozen = Frozen(trained, "digits")
    for part, labels in (("train", digits.train_labels), ("test", digits.test_labels)):
        found, own = frozen.features(part)
        expected, _ = extract_features(model, digits.batches(part))
        assert torch.allclose(found, expected, atol=1e-6)
        assert torch.equal(own, labels)
    larger, _ = Frozen(trained, "digits", image_size=16).features("test")
    assert not torch.allclose(larger, found, atol=1e-2)
    images, _ = next(digits.batches("validation"))
    lower, _ = Frozen(trained, "digits", layer=1, token="mean").features("validation")
    assert torch.allclose(lower, image_features(model, images, 1, "mean"), atol=1e-6)


def test_the_command_prints_what_the_classifiers_reach(weights, digits, capsys):
    said = done(
        capsys, "probe", "--weights", weights, "--data", "digits", "--shots", "1", "10", "--draws", "3"
    )
    assert said.startswith(f"{len(digits.train_labels):,} training and 360 test images, 16 values each\n")
    model = load_checkpoint(weights)
    train, held_out, test = (
        extract_features(model, digits.batches(part)) for part in ("train", "validation", "test")
    )
    assert f"20 nearest neighbours: {neighbours_accuracy(train, test):.4f}\n" in said
    for shots in (1, 10):
        assert f"{shots}-shot: {few_shot_accuracy(train, test, shots, 3).mean:.4f} (95 % interval" in said
    assert f"linear probe: {linear_probe(train, held_out, test)[0]:.4f} (C = " in said


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--shots", "500"], "shots = 500: expected 1 to 6, the images of "),
        (["--shots", "1", "7"], "shots = 7: expected 1 to 6"),
        (["--draws", "0"], "draws = 0: expected at least 1"),
        (["--neighbours", "13"], "neighbours = 13: expected 1 to 12"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is(pets, asked, message, capsys):
    assert message in failed(capsys, "probe", *pets, "--neighbours", "3", *asked)


def test_without_held_out_images_no_penalty_can_be_chosen(pets, save_photo, tmp_path, capsys):
    for name in ("train/cat/0.png", "train/cat/1.png", "train/dog/2.png", "test/cat/3.png", "test/dog/4.png"):
        save_photo(tmp_path / "few" / name)
    asked = ["probe", *pets[:3], f"folder:{tmp_path / 'few'}", "--neighbours", "3", "--shots", "1"]
    said = failed(capsys, *asked, "--methods", "linear")
    assert "the linear probe chooses its penalty on held-out images, and folder:" in said
    assert "linear probe" not in done(capsys, *asked)


def test_one_draw_has_no_interval(pets, capsys):
    assert "(one draw, so no interval)" in done(capsys, "probe", *pets, *QUICK)


@pytest.mark.parametrize("scale", [float("nan"), 1e37])
def test_features_that_nothing_can_be_fitted_to_are_refused(make_model, monkeypatch, scale):
    def spoilt(*arguments):
        values, labels = extract_features(*arguments)
        return values * scale, labels

    monkeypatch.setattr(probes, "extract_features", spoilt)
    trained = TrainedModel("mine", make_model(dropout=0.0), tuple("0123456789"), None)
    with pytest.raises(InputError, match=r"^features of digits by mine are not finite, or bey"):
        Frozen(trained, "digits").features("test")


@pytest.mark.parametrize("kind", ["in memory", "photos"])
def test_images_are_enlarged_and_scaled_on_the_device(kind, save_photo, make_model, tmp_path, monkeypatch):
    for name in ("train/cat/0.png", "train/dog/1.png", "test/cat/2.png", "test/dog/3.png"):
        save_photo(tmp_path / name)
    seen = []

    def watched(model, batches, *_):
        for images, labels in batches:
            seen.append((images.device.type, labels.device.type, tuple(images.shape[-2:])))
        return torch.zeros(1, 16), torch.zeros(1).long()

    monkeypatch.setattr(probes, "extract_features", watched)
    data, channels = ("digits", 1) if kind == "in memory" else (f"folder:{tmp_path}", 3)
    trained = TrainedModel("mine", make_model(channels=channels), ("a", "b"), None)
    Frozen(trained, data, image_size=16, device="meta").features("test")
    assert seen == [("meta", "meta", (16, 16))]
