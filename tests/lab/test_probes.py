"""`vit probe`: classifiers on frozen features, and what it refuses before it computes anything."""

import re
from pathlib import Path

import pytest
import torch
from complaints import done, failed
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from vit_from_scratch import InputError
from vit_lab.cli import main
from vit_lab.features.feature_files import Features, Origin, read_features, write_features
from vit_lab.features.probes import linear_probe, neighbours_accuracy

ORIGIN = {
    "model_sha256": 64 * "0",
    "model": "mine",
    "data": "pets",
    "image_size": (8, 8),
    "layer": None,
    "token": "class",
    "class_names": ("cat", "dog", "owl"),
}


@pytest.fixture
def features_file(tmp_path):
    """A function that writes the features of some pets, six of a kind unless told otherwise."""

    def write(part, labels=(0, 1, 2) * 6, **origin):
        path = tmp_path / f"{part}.safetensors"
        values = torch.randn(len(labels), 4)
        write_features(path, Features(values, torch.tensor(labels), Origin(part=part, **ORIGIN | origin)))
        return str(path)

    return write


def test_probes_equal_scikit_learns_own(digits):
    parts = {
        part: (getattr(digits, f"{part}_images").flatten(1).float(), getattr(digits, f"{part}_labels"))
        for part in ("train", "validation", "test")
    }
    (inputs, labels), (others, answers) = parts["train"], parts["test"]
    accuracy, strength = linear_probe(parts["train"], parts["validation"], parts["test"])
    scale = StandardScaler().fit(inputs.numpy())
    theirs = LogisticRegression(C=strength, max_iter=300).fit(scale.transform(inputs.numpy()), labels.numpy())
    assert accuracy == pytest.approx(theirs.score(scale.transform(others.numpy()), answers.numpy()), abs=3e-3)
    assert accuracy > 0.95
    unit = [values / values.norm(dim=1, keepdim=True) for values in (inputs, others)]
    near = KNeighborsClassifier(5, weights="distance", algorithm="brute").fit(unit[0].numpy(), labels.numpy())
    expected = near.score(unit[1].numpy(), answers.numpy())
    assert neighbours_accuracy(parts["train"], parts["test"], 5) == pytest.approx(expected, abs=6e-3)


@pytest.mark.parametrize(
    ("change", "said", "differing"),
    [
        ({"model_sha256": 64 * "1", "model": "runs/x"}, "model", "'runs/x 11111111', 'mine 00000000'"),
        ({"image_size": (16, 24)}, "image size", "'16 x 24', '8 x 8'"),
        ({"layer": 0}, "layer", "0, 'the normalised last'"),
        ({"token": "mean"}, "token", "'mean', 'class'"),
        ({"class_names": ("a", "b", "c")}, "set of classes", "'a, b, c', 'cat, dog, owl'"),
    ],
)
def test_features_that_cannot_be_compared_are_refused(features_file, change, said, differing, capsys):
    train, test = features_file("train"), features_file("test", **change)
    err = failed(capsys, "probe", "--train", train, "--test", test)
    assert f"{test} has features of another {said} than {train} ({differing}): expected the same in" in err


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--shots", "500"], "shots = 500: expected 1 to 6, the images of "),
        (["--shots", "1", "7"], "shots = 7: expected 1 to 6"),
        (["--draws", "0"], "draws = 0: expected at least 1"),
        (["--neighbours", "19"], "neighbours = 19: expected 1 to 18"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is(features_file, asked, message, capsys):
    parts = ("train", "validation", "test")
    files = [word for part in parts for word in (f"--{part}", features_file(part))]
    assert message in failed(capsys, "probe", *files, "--neighbours", "3", *asked)
    assert main(["probe", *files, "--neighbours", "3"]) == 0


@pytest.mark.parametrize(("absent", "name"), [(1, "dog"), (2, "owl")])
def test_a_class_that_the_file_has_no_images_of_is_named(features_file, absent, name, capsys):
    train = features_file("train", [label for label in (0, 1, 2) * 6 if label != absent])
    asked = ["probe", "--train", train, "--test", features_file("test"), "--neighbours", "3"]
    said = f"images of {name} to draw from = 0: expected some of each class"
    assert said in failed(capsys, *asked)
    assert main([*asked, "--methods", "neighbours"]) == 0


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda values: values[:0], "features of shape (0, 4) and type torch.float32"),
        (lambda values: values.int(), "and type torch.int32: expected (N, D) in float32"),
        (lambda values: values > 0, "and type torch.bool"),
        (lambda values: values.bfloat16(), "and type torch.bfloat16"),
        (lambda values: values.index_fill(0, torch.tensor(3), torch.nan), "features that are not finite"),
        (lambda values: values * 1e37, "features that are not finite, or beyond 1e+18"),
    ],
)
def test_features_that_nothing_can_be_fitted_to_are_refused(
    features_file, damage, message, capsys, monkeypatch
):
    train, test = features_file("train"), Path(features_file("test"))
    whole = read_features(test)
    values = damage(whole.values)
    spoilt = Features(values, whole.labels[: len(values)], whole.origin)
    with pytest.raises(InputError, match=f"^what mine makes of pets: .*{re.escape(message)}"):
        write_features(test, spoilt)
    with monkeypatch.context() as patch:
        patch.setattr("vit_lab.features.feature_files._check", lambda features, where: None)
        write_features(test, spoilt)
    said = failed(capsys, "probe", "--train", train, "--test", test)
    assert f"{test}: " in said
    assert message in said


def test_one_draw_has_no_interval(features_file, capsys):
    files = ["--train", features_file("train"), "--test", features_file("test")]
    said = done(capsys, "probe", *files, "--methods", "few-shot", "--draws", "1")
    assert "(one draw, so no interval)" in said
