"""Masked autoencoding of pixels: the encoder sees a quarter, the loss is that of the rest."""

import pytest
import torch

from vit_from_scratch import InputError
from vit_from_scratch.model.patches import patchify
from vit_from_scratch.model.tokens import sincos_2d
from vit_from_scratch.training.masked_autoencoding import standardised_patches

IMAGES = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(1)) * 2 - 1


@pytest.fixture
def model(make_task):
    return make_task("masked-pixels").eval()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def changed_at(images: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """Turn the pixels of some patches (B, N) to other ones."""
    pixels = hidden.view(-1, 1, 4, 4).repeat_interleave(4, 2).repeat_interleave(4, 3)
    return torch.where(pixels, -images + 0.1, images)


def test_in_each_image_exactly_three_quarters_are_hidden(model):
    hidden = model.draw(torch.zeros(50, 3, 16, 16), seeded())
    assert hidden.sum(dim=1).tolist() == [12] * 50
    assert len({tuple(row) for row in hidden.tolist()}) > 40, "and not the same ones"


def test_the_encoder_sees_the_class_token_and_a_quarter_of_the_patches(make_task):
    for class_token, tokens in ((True, 1 + 16 // 4), (False, 16 // 4)):
        model = make_task("masked-pixels", class_token=class_token, pool="gap").eval()
        seen = []
        model.vit.encoder.register_forward_pre_hook(lambda module, given, seen=seen: seen.extend(given))
        model(IMAGES, seeded())
        assert [tuple(z.shape) for z in seen] == [(4, tokens, 16)]


def test_visible_patches_keep_their_own_positions(make_task):
    """The encoder's input is what the whole ViT would give it, less the hidden tokens."""
    model = make_task("masked-pixels").eval()
    seen = []
    model.vit.encoder.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    model(IMAGES, seeded())
    hidden = model.draw(IMAGES, seeded())
    z_0 = model.vit.tokens(model.vit.patch_embedding(IMAGES))
    for image in range(4):
        left = [0, *(1 + patch for patch in range(16) if not hidden[image, patch])]
        assert torch.equal(seen[0][image], z_0[image, left])


def test_hidden_patches_influence_nothing(model):
    """No leak: all hidden pixels change, and what is painted stays the same to the bit."""
    hidden = model.draw(IMAGES, seeded())
    other = changed_at(IMAGES, hidden)
    painted = [model.decode(model.see(images, hidden), hidden, (4, 4)) for images in (IMAGES, other)]
    assert not torch.equal(IMAGES, other)
    assert torch.equal(*painted)
    visible = changed_at(IMAGES, ~hidden)
    assert not torch.equal(model.decode(model.see(visible, hidden), hidden, (4, 4)), painted[0])


@pytest.mark.parametrize("grid", [(4, 4), (4, 6)])
def test_the_decoder_gets_each_patch_at_its_place_and_mask_tokens_elsewhere(make_task, grid):
    model = make_task("masked-pixels", image_size=(4 * grid[0], 4 * grid[1])).eval()
    images = torch.rand(4, 3, 4 * grid[0], 4 * grid[1])
    seen = []
    model.decoder.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    hidden = model.draw(images, seeded())
    encoded = model.see(images, hidden)
    model.decode(encoded, hidden, model.grid(images))
    narrow, position = model.to_decoder(encoded), sincos_2d(grid, 8)
    for image in range(4):
        assert torch.equal(seen[0][image, 0], narrow[image, 0]), "the class token has no place in the grid"
        visible = iter(narrow[image, 1:])
        for patch in range(grid[0] * grid[1]):
            standing = model.mask_token if hidden[image, patch] else next(visible)
            assert torch.allclose(seen[0][image, 1 + patch], standing + position[patch])


def test_the_loss_is_the_squared_error_of_hidden_patches_at_mean_0_and_variance_1(model):
    outcome = model(IMAGES, seeded())
    hidden = model.draw(IMAGES, seeded())
    painted = model.decode(model.see(IMAGES, hidden), hidden, (4, 4))
    assert outcome.right is None
    for image in range(4):
        errors = []
        for patch in range(16):
            if not hidden[image, patch]:
                continue
            row, column = 4 * (patch // 4), 4 * (patch % 4)
            true = [
                float(IMAGES[image, channel, row + y, column + x])
                for y in range(4)
                for x in range(4)
                for channel in range(3)
            ]
            mean = sum(true) / 48
            deviation = (sum((value - mean) ** 2 for value in true) / 48 + 1e-6) ** 0.5
            guess = painted[image, patch].tolist()
            errors.append(
                sum((g - (v - mean) / deviation) ** 2 for g, v in zip(guess, true, strict=True)) / 48
            )
        assert len(errors) == 12
        assert outcome.loss[image].item() == pytest.approx(sum(errors) / 12, rel=1e-4)


def test_one_flat_tone_has_a_loss_of_1(model):
    torch.nn.init.zeros_(model.to_pixels.weight)
    assert model(IMAGES).loss.tolist() == pytest.approx([1.0] * 4, abs=1e-4)


def test_patches_of_one_colour_are_zeros_and_not_infinite():
    patches, mean, _ = standardised_patches(torch.full((1, 3, 4, 4), 0.7), 4)
    assert patches.abs().max() < 1e-3
    assert mean.item() == pytest.approx(0.7)


def test_visible_patches_give_no_loss_and_every_other_weight_learns(make_task):
    model = make_task("masked-pixels", dropout=0.0)
    kept = []

    def keep(module, inputs, painted):
        painted.retain_grad()
        kept.append(painted)

    model.to_pixels.register_forward_hook(keep)
    model(IMAGES, seeded()).loss.sum().backward()
    assert torch.equal((kept[0].grad.abs().sum(dim=-1) > 0)[:, -16:], model.draw(IMAGES, seeded()))
    without = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    assert without == {"vit.head.weight", "vit.head.bias"}


def test_a_reconstruction_has_the_true_mean_and_deviation_of_each_patch(model):
    """Undone with what the model does not know, as the figures of He et al. are."""
    torch.nn.init.zeros_(model.to_pixels.weight)
    found = model.predict(IMAGES / 2, seeded())
    true, seen, answer = (patchify(some, 4) for some in ((IMAGES / 2 + 1) / 2, found.seen, found.answer))
    assert torch.equal(found.chosen, model.draw(IMAGES, seeded()))
    flat = true.mean(dim=-1, keepdim=True).expand_as(true)  # zeros painted: one tone, the true mean
    assert torch.allclose(answer[found.chosen], flat[found.chosen], atol=1e-3)
    assert torch.allclose(answer[~found.chosen], true[~found.chosen], atol=1e-6)
    assert torch.allclose(seen[~found.chosen], true[~found.chosen], atol=1e-6)
    assert (seen[found.chosen] == 0.5).all()


@pytest.mark.parametrize("width", [16, 24])
def test_a_decoder_that_paints_the_truth_reconstructs_the_image(make_task, monkeypatch, width):
    model = make_task("masked-pixels", image_size=(16, width)).eval()
    images = 2 * torch.rand(4, 3, 16, width) - 1
    truth, _, _ = standardised_patches(images, 4)
    monkeypatch.setattr(model, "decode", lambda encoded, hidden, grid: truth)
    answer = model.predict(images).answer
    assert answer.shape == images.shape
    assert torch.allclose(answer, (images + 1) / 2, atol=1e-4)
    assert model(images).loss.tolist() == pytest.approx([0.0] * 4, abs=1e-6)


def test_images_of_one_channel_may_be_painted(make_task):
    model = make_task("masked-pixels", channels=1)
    assert model.to_pixels.out_features == 16
    assert model(IMAGES[:, :1]).loss.shape == (4,)


@pytest.mark.parametrize(
    ("fields", "task", "message"),
    [
        ({"mlp": "local"}, {}, "masked pixels with mlp = 'local': expected 'dense'"),
        ({}, {"decoder_dim": 10}, "decoder_dim = 10: expected a multiple of 4 and of decoder_heads = 2"),
        ({}, {"decoder_heads": 3}, "decoder_dim = 8: expected a multiple of 4 and of decoder_heads = 3"),
        ({}, {"decoder_depth": 0}, r"decoder_depth = 0: expected at least 1"),
        ({"patch_size": 8}, {"share": 0.1}, r"share = 0\.1 hides 0 of 4 patches"),
        ({"patch_size": 8}, {"share": 0.9}, r"share = 0\.9 hides 4 of 4 patches"),
    ],
)
def test_what_does_not_fit_is_refused(make_task, fields, task, message):
    small = {"decoder_dim": 8, "decoder_depth": 1, "decoder_heads": 2} | task
    with pytest.raises(InputError, match=message):
        make_task("masked-pixels", task=small, **fields)
