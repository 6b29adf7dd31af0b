import pytest
import torch

from vit_from_scratch import InputError
from vit_from_scratch.inspection.masking import (
    attention_scores,
    gradient_scores,
    mask_patches,
    masked_accuracy,
    random_scores,
)


def test_the_highest_scored_patches_get_the_images_mean_colour(images):
    scores = torch.arange(24.0).reshape(1, 4, 6).expand(4, 4, 6)
    masked = mask_patches(images, scores, 2, 4)
    mean = images.mean(dim=(2, 3))
    assert torch.equal(masked[:, :, 12:, 16:], mean[:, :, None, None].expand(4, 3, 4, 8))
    assert torch.equal(masked[:, :, :12], images[:, :, :12])
    assert torch.equal(masked[:, :, :, :16], images[:, :, :, :16])


def test_hiding_nothing_and_everything(images):
    scores = torch.rand(4, 4, 6)
    assert torch.equal(mask_patches(images, scores, 0, 4), images)
    assert mask_patches(images, scores, 24, 4).std(dim=(2, 3)).max() < 1e-5
    with pytest.raises(InputError, match="count = 25: expected 0 to 24"):
        mask_patches(images, scores, 25, 4)


def test_gradient_scores_find_the_only_patch_that_counts(model, images):
    """A model whose logit is one patch's brightness."""

    class OnePatch(torch.nn.Module):
        config = model.config

        def forward(self, x):
            return x[:, :, 4:8, 8:12].sum(dim=(1, 2, 3))[:, None]

    scores = gradient_scores(OnePatch(), images)
    assert scores.shape == (4, 4, 6)
    assert (scores.flatten(1).argmax(dim=1) == 1 * 6 + 2).all()
    assert (scores > 0).sum() == 4


def test_gradient_scores_leave_the_models_gradients_alone(model, images):
    model(images).sum().backward()
    before = [parameter.grad.clone() for parameter in model.parameters()]
    gradient_scores(model.train(), images)
    assert all(torch.equal(p.grad, old) for p, old in zip(model.parameters(), before, strict=True))
    assert model.training


def test_measuring_leaves_a_model_in_training(model, images):
    labels = torch.zeros(len(images), dtype=torch.long)
    masked_accuracy(model.train(), images, labels, lambda x: random_scores(x, (4, 6), torch.Generator()), [1])
    assert model.training


def test_scores_have_one_value_a_patch(model, images):
    assert attention_scores(model, images).shape == (4, 4, 6)
    assert random_scores(images, (4, 6), torch.Generator().manual_seed(0)).shape == (4, 4, 6)


def test_accuracy_is_counted_for_every_number_of_hidden_patches(model, images):
    labels = model(images).argmax(dim=1)
    found = masked_accuracy(
        model, images, labels, lambda x: attention_scores(model, x), [0, 24], batch_size=3
    )
    assert found[0] == 1.0
    blank = images.mean(dim=(2, 3), keepdim=True).expand_as(images)
    assert found[1].item() == pytest.approx((model(blank).argmax(dim=1) == labels).float().mean().item())
