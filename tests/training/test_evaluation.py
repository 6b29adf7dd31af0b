"""What is measured: every image with one label, of a class that the model knows."""

import numpy as np
import pytest
import torch
from sklearn.metrics import top_k_accuracy_score
from torch import nn

from vit_from_scratch import InputError
from vit_from_scratch.data import Normalisation
from vit_from_scratch.training import evaluate, predict
from vit_lab.runs.run import FlipAveraged

IMAGES = torch.rand(3, 1, 8, 8)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES, [0, 1, 12], "labels from 0 to 12: expected class numbers from 0 to 9"),
        (IMAGES, [0, -100, 1], "labels from -100 to 1: expected class numbers from 0 to 9"),
        (IMAGES, [0.0, 1.0, 2.0], "type torch.float32 for 3 images"),
        (IMAGES, [[0], [1], [2]], r"labels of shape \(3, 1\)"),
        (IMAGES, [0, 1], r"labels of shape \(2,\) and type .* for 3 images: expected"),
        (IMAGES[:0], [], "no images to measure on: expected at least one"),
        (IMAGES.numpy(), [0, 1, 2], "images of type ndarray: expected a tensor"),
        (None, [0], "images of type NoneType"),
    ],
)
def test_only_images_with_a_label_each_are_measured(make_model, images, labels, message):
    with pytest.raises(InputError, match=message):
        evaluate(make_model(), images, torch.tensor(labels))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_labels_may_be_whole_numbers_of_any_size(make_model, dtype):
    model = make_model()
    nn.init.normal_(model.head.weight)
    labels = predict(model, IMAGES).argmax(dim=1)
    labels[0] = (labels[0] + 1) % 10
    found = evaluate(model, IMAGES, labels.to(dtype))
    assert found.accuracy == pytest.approx(2 / 3)
    assert found == evaluate(model, IMAGES, labels)


def test_a_model_without_parameters_is_measured_where_its_images_are():
    logits = predict(nn.Flatten(), IMAGES)
    assert torch.equal(logits, IMAGES.flatten(1))
    with pytest.raises(InputError, match="images of type ndarray"):
        predict(nn.Flatten(), np.zeros((3, 1, 8, 8)))


def test_measuring_leaves_frozen_layers_frozen(make_model):
    model = make_model().train()
    model.encoder.blocks[0].eval()
    evaluate(model, IMAGES, torch.tensor([0, 1, 2]))
    assert model.training
    assert not model.encoder.blocks[0].training


def test_top_5_is_that_of_scikit_learn_and_only_for_more_than_ten_classes():
    torch.manual_seed(0)
    logits, labels = torch.randn(200, 12), torch.randint(12, (200,))
    measured = evaluate(nn.Flatten(), logits[:, :, None, None], labels)
    assert measured.top5_accuracy == pytest.approx(top_k_accuracy_score(labels, logits, k=5))
    assert measured.accuracy < measured.top5_accuracy < 1
    few = evaluate(nn.Flatten(), logits[:, :10, None, None], labels % 10)
    assert few.top5_accuracy is None


def test_probabilities_of_an_image_and_its_mirror_image_are_meaned(make_model):
    torch.manual_seed(0)
    model, images = make_model(), torch.randn(5, 1, 8, 8)
    nn.init.normal_(model.head.weight)
    views = [predict(model, images), predict(model, torch.from_numpy(images.numpy()[:, :, :, ::-1].copy()))]
    assert not torch.allclose(*views, atol=1e-3), "a model that sees no difference would prove nothing"
    shares = [view.double().exp() / view.double().exp().sum(dim=1, keepdim=True) for view in views]
    both = predict(FlipAveraged(model), images)
    torch.testing.assert_close(both.double().exp(), sum(shares) / 2, atol=1e-6, rtol=0)
    torch.testing.assert_close(both, predict(FlipAveraged(model), images.flip(-1)))


def test_a_mean_of_two_sure_answers_stays_finite():
    far = torch.tensor([[[[200.0, -200.0]]]])  # one image of 1 x 2 pixels, which are its logits
    both = predict(FlipAveraged(nn.Flatten()), far)
    torch.testing.assert_close(both.exp(), torch.tensor([[0.5, 0.5]]))
    loss = evaluate(FlipAveraged(nn.Flatten()), far, torch.tensor([1])).loss
    assert loss == pytest.approx(0.6931, abs=1e-4)


def test_images_from_0_to_1_are_refused_before_a_device_has_them(make_model):
    """On the meta device, as on a GPU, nobody looks at them any more."""
    model = make_model().to("meta")
    with pytest.raises(InputError, match="Multiply those from 0 to 1 by 255"):
        predict(model, IMAGES, Normalisation())
    assert predict(model, 255 * IMAGES, Normalisation()).shape == (3, 10)
