import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from vit_from_scratch import InputError
from vit_from_scratch.training.few_shot import (
    PENALTIES,
    FewShot,
    chosen_penalty,
    draw_shots,
    few_shot_accuracy,
    ridge_classifier,
    standardised,
)


@pytest.fixture(params=[(40, 7), (6, 30)], ids=["more images", "more features"])
def task(request):
    count, width = request.param
    features = 3 * torch.randn(count, width) + torch.randn(width)
    return features, torch.arange(count) % 3


@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_it_equals_scikit_learns_ridge(task, penalty):
    features, labels = task
    weight, offset = ridge_classifier(features, labels, 3, penalty)
    targets = np.where(labels.numpy()[:, None] == np.arange(3), 1.0, -1.0)
    theirs = Ridge(alpha=penalty, solver="svd").fit(features.double().numpy(), targets)
    assert np.allclose(weight.T.numpy(), theirs.coef_, atol=1e-9)
    assert np.allclose(offset.numpy(), theirs.intercept_, atol=1e-9)


def test_the_chosen_penalty_has_the_least_error_on_images_left_out_one_by_one(task):
    features, labels = task
    targets = torch.where(labels[:, None] == torch.arange(3), 1.0, -1.0).double()

    def left_out(penalty):
        error = 0.0
        for out in range(len(features)):
            rest = torch.arange(len(features)) != out
            weight, offset = ridge_classifier(features[rest], labels[rest], 3, penalty)
            error += (features[out].double() @ weight + offset - targets[out]).square().sum().item()
        return error

    for penalties in (PENALTIES, (0.5, 5.0, 20.0, 50.0), (3.0, 30.0)):
        assert chosen_penalty(features, labels, 3, penalties) == min(penalties, key=left_out)


def test_a_penalty_is_chosen_where_none_is_given():
    torch.manual_seed(1)
    labels = torch.arange(400) % 2
    features = torch.randn(400, 40)
    features[:, 0] += labels  # all else is noise, and 40 images have as many features
    train, test = (features[:200], labels[:200]), (features[200:], labels[200:])
    chosen = few_shot_accuracy(train, test, 20).mean
    assert chosen > few_shot_accuracy(train, test, 20, penalty=1e-3).mean + 0.03


def test_a_draw_has_k_of_each_class_and_none_twice():
    labels = torch.tensor([0] * 5 + [2] * 9 + [1] * 4)[torch.randperm(18)]
    generator = torch.Generator().manual_seed(0)
    draws = [draw_shots(labels, 3, generator) for _ in range(200)]
    for drawn in draws:
        assert torch.equal(labels[drawn].bincount(), torch.tensor([3, 3, 3]))
        assert len(drawn.unique()) == 9
    often = torch.cat(draws).bincount(minlength=18) / 200
    expected = torch.tensor([3 / 5, 3 / 4, 3 / 9])[labels]
    assert (often - expected).abs().max() < 0.15, "each image of a class is as likely"


def test_classes_far_apart_are_told_from_one_image_each_and_noise_is_not():
    labels = torch.arange(300) % 10
    apart = 20 * torch.eye(10)[labels] + torch.randn(300, 10)
    train, test = (apart[:200], labels[:200]), (apart[200:], labels[200:])
    assert few_shot_accuracy(train, test, shots=1).mean == 1
    noise = torch.randn(300, 10)
    found = few_shot_accuracy((noise[:200], labels[:200]), (noise[200:], labels[200:]), shots=5)
    assert abs(found.mean - 0.1) < 0.06


def test_draws_follow_the_seed_and_scales_do_not_matter():
    labels = torch.arange(60) % 3
    features = torch.randn(60, 4) + labels[:, None]
    train, test = (features[:30], labels[:30]), (features[30:], labels[30:])
    first = few_shot_accuracy(train, test, 2, draws=5)
    assert first == few_shot_accuracy(train, test, 2, draws=5)
    assert first != few_shot_accuracy(train, test, 2, draws=5, seed=1)
    scale = torch.tensor([1e-3, 1.0, 1e3, 8.0])
    scaled = few_shot_accuracy((train[0] * scale, train[1]), (test[0] * scale, test[1]), 2, draws=5)
    assert scaled.accuracies == pytest.approx(first.accuracies)


def test_a_feature_that_never_changes_does_no_harm():
    labels = torch.arange(30) % 3
    features = torch.cat([torch.eye(3)[labels], torch.ones(30, 1)], dim=1)
    assert few_shot_accuracy((features, labels), (features, labels), 1, draws=2).mean == 1


@pytest.mark.parametrize("kind", [torch.int32, torch.uint8])
def test_labels_may_be_whole_numbers_of_any_size(kind):
    features, labels = torch.randn(24, 6, generator=torch.Generator().manual_seed(5)), torch.arange(24) % 3
    expected, found = (
        few_shot_accuracy((features, given), (features, given), shots=2)
        for given in (labels, labels.to(kind))
    )
    assert found == expected


def test_the_interval_is_students():
    accuracies = (0.5, 0.6, 0.8)
    low, high = FewShot(5, accuracies).interval
    expected = stats.t.interval(0.95, 2, loc=np.mean(accuracies), scale=stats.sem(accuracies))
    assert (low, high) == pytest.approx(expected)
    assert all(map(math.isnan, FewShot(5, (0.5,)).interval))


@pytest.mark.parametrize(
    ("labels", "names", "said"),
    [
        ([0, 0, 2, 2], None, "class 1"),
        ([0, 0, 2, 2], ("cat", "dog", "owl"), "dog"),
        ([0, 0, 1, 1], ("cat", "dog", "owl"), "owl"),
    ],
)
def test_a_class_without_images_is_named(labels, names, said):
    part = (torch.randn(4, 6), torch.tensor(labels))
    with pytest.raises(InputError, match=rf"images of {said} to draw from = 0: expected some of each class"):
        few_shot_accuracy(part, part, 1, class_names=names)


def test_the_names_say_how_many_classes_there_are():
    part = (torch.randn(6, 6), torch.arange(6) % 3)
    assert few_shot_accuracy(part, part, 1, class_names="abc") == few_shot_accuracy(part, part, 1)
    with pytest.raises(InputError, match=r"training labels from 0 to 2: expected class numbers from 0 to 1"):
        few_shot_accuracy(part, part, 1, class_names="ab")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shots": 5}, r"shots = 5: expected 1 to 4, the images of class 0, the smallest class"),
        ({"shots": 0}, r"shots = 0: expected 1 to 4"),
        ({"draws": 0}, r"draws = 0: expected at least 1"),
        ({"train": (torch.zeros(2, 6), [0, 1])}, r"training labels of type list: expected a tensor"),
        ({"penalty": 0.0}, r"penalty = 0.0: expected a number above 0"),
        ({"test": (torch.zeros(3, 9), torch.zeros(3).long())}, r"features of 6 and of 9 values"),
        ({"test": (torch.zeros(3, 6), torch.zeros(2).long())}, r"test labels of shape \(2,\).*for 3 images"),
        (
            {"test": (torch.zeros(1, 6), torch.tensor([3]))},
            r"test labels from 3 to 3: expected class numbers from 0 to 2",
        ),
    ],
)
def test_wrong_input_is_refused(change, message):
    part = (torch.randn(12, 6), torch.arange(12) % 3)
    given = {"train": part, "test": part, "shots": 1} | change
    with pytest.raises(InputError, match=message):
        few_shot_accuracy(**given)


@pytest.mark.parametrize("value", [0.1, 0.3, 1e6, 0.0])
def test_a_feature_that_is_constant_but_for_rounding_becomes_zero(value):
    found = standardised(torch.full((1000, 1), value), torch.tensor([[value + 1e-3]]))
    assert not torch.cat(found).any()


def test_all_features_are_standardised_by_the_training_features_as_scikit_learn_does(task):
    train, other = task[0].double(), 5 + 2 * torch.randn(8, task[0].shape[1], dtype=torch.float64)
    scaler, count = StandardScaler().fit(train.numpy()), len(train)
    for found, given in zip(standardised(train, other), (train, other), strict=True):
        expected = scaler.transform(given.numpy()) * ((count - 1) / count) ** 0.5  # theirs divides by N
        assert np.allclose(found.numpy(), expected)
