import numpy as np
import pytest
import torch

from vit_from_scratch import InputError
from vit_from_scratch.inspection.masking import (
    contrast_scores,
    gradient_scores,
    mask_patches,
    rollout_scores,
)


def test_the_highest_scored_patches_get_the_images_mean_colour(images):
    scores = torch.arange(24.0).reshape(1, 4, 6).expand(4, 4, 6)
    masked = mask_patches(images, scores, 2, 4)
    mean = images.mean(dim=(2, 3))
    assert torch.equal(masked[:, :, 12:, 16:], mean[:, :, None, None].expand(4, 3, 4, 8))
    assert torch.equal(masked[:, :, :12], images[:, :, :12])
    assert torch.equal(masked[:, :, :, :16], images[:, :, :, :16])
    scores = torch.rand(4, 4, 6)  # each image goes by its own
    alone = [mask_patches(*one, 3, 4) for one in zip(images.split(1), scores.split(1), strict=True)]
    assert torch.equal(mask_patches(images, scores, 3, 4), torch.cat(alone))


def test_hiding_nothing_and_everything(images):
    scores = torch.rand(4, 4, 6)
    assert torch.equal(mask_patches(images, scores, 0, 4), images)
    assert mask_patches(images, scores, 24, 4).std(dim=(2, 3)).max() < 1e-5
    with pytest.raises(InputError, match="count = 25: expected 0 to 24"):
        mask_patches(images, scores, 25, 4)


def test_gradient_scores_are_what_hiding_a_patch_takes_from_a_linear_logit(model, images):
    """To first order is exact where there is no second order."""
    torch.manual_seed(1)
    weights = torch.randn(2, *images.shape[1:], dtype=images.dtype)

    class Linear(torch.nn.Module):
        config = model.config

        def forward(self, x):
            return torch.einsum("bchw,kchw->bk", x, weights)

    linear = Linear()
    scores = gradient_scores(linear, images)
    assert scores.shape == (4, 4, 6)
    winner = linear(images).argmax(dim=1)
    for place in range(24):
        only = torch.eye(24)[place].view(1, 4, 6).expand(4, 4, 6)
        hidden = mask_patches(images, only, 1, 4)
        fall = (linear(images) - linear(hidden))[torch.arange(4), winner]
        assert torch.allclose(scores.flatten(1)[:, place], fall, atol=1e-3)
    assert (scores < 0).any()  # some patches speak against the answer


def test_contrast_asks_no_model(images):
    contrast = contrast_scores(images, 4)
    mean = images.mean(dim=(2, 3), keepdim=True)
    expected = (images - mean)[1, :, 4:8, 8:12].abs().sum()
    assert contrast[1, 1, 2].item() == pytest.approx(expected.item(), rel=1e-4)


def test_gradient_scores_leave_the_models_gradients_alone(model, images):
    model(images).sum().backward()
    before = [parameter.grad.clone() for parameter in model.parameters()]
    gradient_scores(model.train(), images)
    assert all(torch.equal(p.grad, old) for p, old in zip(model.parameters(), before, strict=True))
    assert model.training


def test_rollout_scores_are_the_rollout_of_what_the_head_reads_multiplied_by_hand(model, images):
    rollout = np.eye(model.config.num_tokens)
    for weights in model(images, return_intermediates=True)[1]["attention"]:  # (4, h, T, T)
        step = 0.5 * weights.detach().numpy().mean(axis=1) + 0.5 * np.eye(model.config.num_tokens)
        rollout = step @ rollout
    read = rollout[:, 0] if model.config.pool == "cls" else rollout[:, -24:].mean(axis=1)
    expected = read[:, -24:].reshape(4, 4, 6)
    assert np.allclose(rollout_scores(model, images).detach().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("images", "scores"),
    [
        (torch.randn(2, 3, 16, 24), torch.rand(3, 4, 6)),
        (torch.randn(2, 3, 16, 24), torch.rand(2, 6, 4)),
        (torch.randn(2, 3, 16, 24), torch.rand(2, 24)),
        (torch.randn(3, 16, 24), torch.rand(2, 4, 6)),
    ],
)
def test_only_a_score_for_each_patch_says_what_to_hide(images, scores):
    with pytest.raises(InputError, match="expected a score for each patch of 4 x 4 pixels"):
        mask_patches(images, scores, 1, 4)


@pytest.mark.parametrize("images", [None, [[0.0]], "cat.jpg"])
def test_what_is_no_tensor_has_no_scores_and_no_patches(model, images):
    with pytest.raises(InputError, match="images of type"):
        gradient_scores(model, images)
    with pytest.raises(InputError, match="images of type"):
        mask_patches(images, torch.rand(1, 4, 6), 1, 4)


def test_scores_keep_the_digits_of_a_model_and_half_of_them_become_whole(model, images):
    for given, expected in ((torch.float64, torch.float64), (torch.bfloat16, torch.float32)):
        assert rollout_scores(model.to(given), images.to(given)).dtype == expected
