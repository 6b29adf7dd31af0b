"""`vit features`: files of frozen features, from which `vit probe` measures what belongs together."""

import os
import shutil
import signal

import pytest
import torch
from complaints import done, failed
from PIL import Image

from vit_from_scratch import InputError
from vit_from_scratch.model.checkpoints import load_checkpoint, save_checkpoint
from vit_from_scratch.training.features import extract_features, image_features
from vit_lab.cli import main
from vit_lab.features import extraction
from vit_lab.features.extraction import features_of
from vit_lab.features.feature_files import read_features
from vit_lab.runs.trained_models import TrainedModel


@pytest.fixture
def weights(make_model, tmp_path):
    model = make_model(dropout=0.0)
    torch.nn.init.normal_(model.tokens.class_token)
    save_checkpoint(tmp_path / "start.safetensors", model)
    return str(tmp_path / "start.safetensors")


def written(weights, folder, part, *more):
    path = folder / f"{part}.safetensors"
    asked = ["--weights", weights, "--data", "digits", "--part", part, "--out", str(path), *more]
    assert main(["features", *asked]) == 0
    return path


def test_a_file_holds_the_features_of_the_part_and_where_they_came_from(weights, digits, tmp_path, capsys):
    features = read_features(written(weights, tmp_path, "validation", "--layer", "1", "--token", "mean"))
    assert "237 images, 16 values each" in capsys.readouterr().out
    images, labels = next(digits.batches("validation"))
    expected = image_features(load_checkpoint(weights), images, 1, "mean")
    assert torch.allclose(features.values, expected, atol=1e-6)
    assert torch.equal(features.labels, labels)
    origin = features.origin
    assert (origin.data, origin.part, origin.layer, origin.token) == ("digits", "validation", 1, "mean")
    assert origin.class_names == digits.class_names


def test_features_are_those_of_the_model(make_model, digits):
    model = make_model(dropout=0.0).eval()
    trained = TrainedModel("mine", model, tuple("0123456789"), None)
    for part, labels in (("train", digits.train_labels), ("test", digits.test_labels)):
        found = features_of(trained, "digits", part)
        expected, _ = extract_features(model, digits.batches(part))
        assert torch.allclose(found.values, expected, atol=1e-6)
        assert torch.equal(found.labels, labels)
    larger = features_of(trained, "digits", "test", image_size=16)
    assert larger.origin.image_size == (16, 16)
    assert not torch.allclose(larger.values, found.values, atol=1e-2)


def test_probes_run_from_the_command_line(weights, tmp_path, capsys):
    files = {part: str(written(weights, tmp_path, part)) for part in ("train", "validation", "test")}
    options = [item for part, file in files.items() for item in (f"--{part}", file)]
    said = done(capsys, "probe", *options, "--shots", "1", "10", "--draws", "3")
    for start in ("linear probe: 0.", "20 nearest neighbours: 0.", "1-shot: 0.", "10-shot: 0."):
        assert start in said
    assert "linear probe" not in done(capsys, "probe", "--train", files["train"], "--test", files["test"])


def test_features_of_a_model_that_was_trained_anew_are_not_compared(weights, make_model, tmp_path, capsys):
    train = written(weights, tmp_path, "train")
    save_checkpoint(weights, make_model(seed=5))
    test = written(weights, tmp_path, "test")
    first, second = (read_features(path).origin.model_sha256[:8] for path in (train, test))
    said = failed(capsys, "probe", "--train", train, "--test", test)
    assert f"of another model than {train} (" in said
    assert first != second


def test_a_classifier_is_not_measured_on_the_images_that_it_was_fitted_to(weights, tmp_path, capsys):
    train, test = (written(weights, tmp_path, part) for part in ("train", "test"))
    copy = shutil.copy(test, tmp_path / "copy.safetensors")
    capsys.readouterr()
    asked = ["probe", "--train", str(train), "--methods", "neighbours"]
    for first, other, part, more in (
        (train, train, "train", ["--test", str(train)]),
        (copy, test, "test", ["--validation", str(copy), "--test", str(test)]),
    ):
        err = failed(capsys, *asked, *more)
        assert f"{other} has features of the same images as {first} (the {part} part of digits): exp" in err
    assert main([*asked, "--test", str(test)]) == 0


def test_a_worker_that_is_killed_is_one_sentence(save_photo, make_model, tmp_path, monkeypatch):
    def killed(*arguments, **options):
        if os.getpid() != own:
            os.kill(os.getpid(), signal.SIGKILL)
        return opened(*arguments, **options)

    for seed, name in enumerate(("cat/0.png", "dog/1.png", "cat/2.png", "dog/3.png")):
        for part in ("train", "test"):
            save_photo(tmp_path / part / name, seed=seed)
    model = make_model(dropout=0.0, channels=3).eval()
    trained = TrainedModel("mine", model, ("a", "b"), None)
    own, opened = os.getpid(), Image.open
    monkeypatch.setattr(Image, "open", killed)
    with pytest.raises(InputError, match=r"a process that reads photos has failed .*: expected room for it"):
        features_of(trained, f"folder:{tmp_path}", "test")


@pytest.mark.parametrize("kind", ["in memory", "photos"])
def test_images_are_enlarged_and_scaled_on_the_device(kind, save_photo, make_model, tmp_path, monkeypatch):
    for name in ("train/cat/0.png", "train/dog/1.png", "test/cat/2.png", "test/dog/3.png"):
        save_photo(tmp_path / name)
    seen = []

    def watched(model, batches, *_):
        for images, labels in batches:
            seen.append((images.device.type, labels.device.type, tuple(images.shape[-2:])))
        return torch.zeros(1, 16), torch.zeros(1).long()

    monkeypatch.setattr(extraction, "extract_features", watched)
    data, channels = ("digits", 1) if kind == "in memory" else (f"folder:{tmp_path}", 3)
    trained = TrainedModel("mine", make_model(channels=channels), ("a", "b"), None)
    features_of(trained, data, "test", image_size=16, device="meta")
    assert seen == [("meta", "meta", (16, 16))]


def test_a_file_that_holds_no_features_is_refused(weights, tmp_path):
    with pytest.raises(InputError, match="does not hold features: expected features as `vit features`"):
        read_features(type(tmp_path)(weights))
    with pytest.raises(InputError, match="no file at"):
        read_features(tmp_path / "nothing.safetensors")
