"""Masked patch prediction (appendix B.1.2): what is corrupted, what is asked, and what is not seen."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.data.normalisation import NORMALISATIONS
from vit_from_scratch.model.patches import patchify
from vit_from_scratch.training import MaskedPatchPrediction, colours_of_numbers, mean_colours
from vit_from_scratch.training.masked_patches import colour_numbers, draw_corruption

IMAGES = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(1)) * 2 - 1


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def colour_targets(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    return colour_numbers(mean_colours(images, patch_size))


@pytest.mark.parametrize(("patches", "share"), [(16, 0.5), (64, 0.5), (9, 0.3), (7, 0.9)])
def test_in_each_image_exactly_the_share_of_patches_is_chosen(patches, share):
    chosen = draw_corruption(300, patches, share, seeded()).chosen
    assert set(chosen.sum(dim=1).tolist()) == {round(share * patches)}
    expected = round(share * patches) / patches  # every place is chosen as often
    spread = math.sqrt(expected * (1 - expected) / 300)
    assert (chosen.float().mean(dim=0) - expected).abs().max() < 5 * spread


def test_of_the_chosen_eight_in_ten_are_masked_one_is_replaced_and_one_stays():
    corruption = draw_corruption(1000, 64, 0.5, seeded())
    chosen, masked, source = corruption.chosen, corruption.masked, corruption.source
    replaced = source != torch.arange(64_000).view(1000, 64)
    assert not (masked & replaced).any()
    assert not ((masked | replaced) & ~chosen).any(), "what was not chosen stays as it is"
    chosen = chosen.sum()  # 32,000: five standard deviations of a share are 0.011 and 0.0084
    assert masked.sum() / chosen == pytest.approx(0.8, abs=0.0112)
    assert replaced.sum() / chosen == pytest.approx(0.1, abs=0.0084)


def test_another_patch_is_never_the_patch_itself():
    """Of two patches the other is known, and there must be two."""
    embeddings = torch.arange(2.0).view(1, 2, 1)
    for seed in range(300):
        corruption = draw_corruption(1, 2, 0.5, seeded(seed))
        corrupted = corruption.apply(embeddings, torch.tensor([7.0]))
        stays = (~corruption.chosen | (corruption.source == torch.arange(2)))[..., None]
        expected = torch.where(stays, embeddings, 1 - embeddings)
        expected = expected.masked_fill(corruption.masked[..., None], 7.0)
        assert torch.equal(corrupted, expected)
    with pytest.raises(InputError, match="patches of the batch = 1: expected at least 2"):
        draw_corruption(1, 1)


def test_another_patch_is_any_other_of_the_batch_as_often():
    generator, counts = seeded(), torch.zeros(4)
    for _ in range(4000):
        source = draw_corruption(2, 2, 0.5, generator).source.flatten()
        further = (source - torch.arange(4)) % 4
        counts += further.bincount(minlength=4)
    drawn = counts[1:].sum()
    spread = math.sqrt(1 / 3 * 2 / 3 / drawn)
    assert drawn > 600
    assert (counts[1:] / drawn - 1 / 3).abs().max() < 4 * spread


def test_corrupted_embeddings_are_those_of_a_loop():
    embeddings, token = torch.randn(3, 16, 4), torch.randn(4)
    corruption = draw_corruption(3, 16, 0.5, seeded(3))
    corrupted = corruption.apply(embeddings, token)
    for image in range(3):
        for patch in range(16):
            number = int(corruption.source[image, patch])
            standing = embeddings[number // 16, number % 16]
            expected = token if corruption.masked[image, patch] else standing
            assert torch.equal(corrupted[image, patch], expected)


def test_gradient_reaches_the_mask_token_and_the_vit_through_the_model(make_task):
    model = make_task()
    model(IMAGES, seeded()).loss.mean().backward()
    without = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    # The class token begins at zero but learns; the classifier's head has no part in it.
    assert without == {"vit.head.weight", "vit.head.bias"}


def test_the_loss_is_the_cross_entropy_of_the_corrupted_patches_alone(make_task):
    model = make_task().eval()
    corruption = model.draw(IMAGES, seeded())
    answers, targets = model.logits(IMAGES, corruption).detach(), model.targets(IMAGES)
    outcome = model(IMAGES, seeded())
    for image in range(4):
        losses, right = [], []
        for patch in range(16):
            if corruption.chosen[image, patch]:
                logits, target = answers[image, patch], targets[image, patch]
                losses.append(float(logits.logsumexp(0) - logits[target]))
                right.append(float(logits.argmax() == target))
        assert len(losses) == 8
        assert outcome.loss[image].item() == pytest.approx(sum(losses) / 8, rel=1e-5)
        assert outcome.right[image].item() == pytest.approx(sum(right) / 8)


def test_patches_that_were_not_corrupted_give_no_loss(make_task):
    model = make_task().eval()
    kept = []

    def keep(module, inputs, logits):
        logits.retain_grad()
        kept.append(logits)

    model.head.register_forward_hook(keep)
    model(IMAGES, seeded()).loss.sum().backward()
    chosen = draw_corruption(4, 16, 0.5, seeded()).chosen
    assert torch.equal(kept[0].grad.abs().sum(dim=-1) > 0, chosen)


@pytest.mark.parametrize("name", ["half", "imagenet"])
def test_targets_are_those_of_the_bytes_whatever_the_scaling(make_task, name):
    """Edges included: 32 is in the second bin, also after scaling and back."""
    normalise = NORMALISATIONS[name]
    bytes_ = torch.randint(8, (6, 3, 16, 16)) * 32
    bytes_[0] = 255
    bytes_[1] = torch.arange(16).view(4, 4).repeat_interleave(4, 0).repeat_interleave(4, 1) * 16
    model = make_task(task={"normalise": normalise})
    assert torch.equal(model.targets(normalise(bytes_)), colour_targets(bytes_, 4))


def test_a_masked_patch_has_no_influence_on_its_own_logits(make_task):
    """No leak: its pixels change, and what the model says of it stays the same to the bit."""
    model = make_task().eval()
    corruption = draw_corruption(4, 16, 0.5, seeded())
    lent = set(corruption.source[corruption.source != torch.arange(64).view(4, 16)].tolist())
    hidden = [n for n in corruption.masked.flatten().nonzero()[:, 0].tolist() if n not in lent]
    assert len(hidden) > 10
    before = model.logits(IMAGES, corruption)
    for number in hidden:
        image, row, column = number // 16, 4 * (number % 16 // 4), 4 * (number % 4)
        changed = IMAGES.clone()
        changed[image, :, row : row + 4, column : column + 4] *= -1
        assert torch.equal(model.logits(changed, corruption), before), "nor on any other's"


def test_a_patch_that_is_left_has_influence(make_task):
    model = make_task().eval()
    corruption = draw_corruption(4, 16, 0.5, seeded())
    number = int((~corruption.chosen).flatten().nonzero()[0])
    row, column = 4 * (number // 4), 4 * (number % 4)
    changed = IMAGES.clone()
    changed[0, :, row : row + 4, column : column + 4] *= -1
    assert not torch.equal(model.logits(changed, corruption), model.logits(IMAGES, corruption))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"class_token": False, "pool": "gap", "position": "sincos_2d"},
        {"pool": "gap", "norm": "pooled", "mlp": "local", "initialisation": "mimetic"},
        {"norm": "none", "position": "learned_2d", "representation_size": 12},
    ],
)
def test_it_works_with_any_plain_stem_and_reads_what_the_vit_encodes(make_task, fields):
    model = make_task(**fields).eval()
    corruption = draw_corruption(4, 16, 0.5, seeded())
    nothing = replace(corruption, masked=corruption.masked & False, source=torch.arange(64).view(4, 16))
    _, inside = model.vit(IMAGES, return_intermediates=True)
    patches = inside["encoded"][:, -16:]  # (B, N, D), class token left out
    if fields.get("norm") == "pooled":
        patches = F.layer_norm(patches, (16,), eps=1e-6)
    assert torch.allclose(model.logits(IMAGES, nothing), model.head(patches), atol=1e-5)


@pytest.mark.parametrize("width", [16, 24])
def test_a_prediction_shows_what_the_model_saw(make_task, width):
    model = make_task(image_size=(16, width)).eval()
    images = 2 * torch.rand(4, 3, 16, width) - 1
    answered = model.predict(images, seeded())
    corruption = draw_corruption(4, width, 0.5, seeded())  # as many patches as pixels a row
    pictures = (images + 1) / 2
    assert answered.answer.shape == images.shape
    true, seen, answer = (patchify(some, 4) for some in (pictures, answered.seen, answered.answer))
    assert (seen[corruption.masked] == 0.5).all()
    standing = true.flatten(0, 1)[corruption.source]
    assert torch.allclose(seen[~corruption.masked], standing[~corruption.masked], atol=0.5 / 255 + 1e-6)
    likeliest = model.logits(images, corruption).argmax(dim=-1)
    assert torch.equal(colour_targets(255 * answered.answer, 4), likeliest)
    assert torch.equal(answered.right, likeliest == model.targets(images))
    assert (answer.view(4, width, 16, 3).std(dim=2) < 1e-6).all(), "one colour a patch"


def test_predicting_leaves_the_mode_and_repeats_itself(make_task):
    model = make_task().train()
    assert torch.equal(model.predict(IMAGES).answer, model.predict(IMAGES).answer)
    assert model.training


def vit(**fields) -> VisionTransformer:
    sizes = {"image_size": 16, "patch_size": 4, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}
    return VisionTransformer(ViTConfig.from_dict(sizes | {"num_classes": 2} | fields))


@pytest.mark.parametrize(
    ("fields", "share", "message"),
    [
        ({"channels": 1}, 0.5, "images with 1 channels: expected 3"),
        ({"stem": {"kind": "conv", "width": 4}}, 0.5, "stem 'conv': expected a VisionTransformer with stem"),
        ({}, 0.0, r"share = 0\.0: expected a share between 0 and 1"),
        ({}, 1.0, r"share = 1\.0: expected a share between 0 and 1"),
        ({}, 0.01, r"share = 0\.01 hides 0 of 16 patches"),
        ({"patch_size": 16}, 0.6, r"share = 0\.6 hides 1 of 1 patches"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(fields, share, message):
    with pytest.raises(InputError, match=message):
        MaskedPatchPrediction(vit(**fields), share=share)


def test_another_module_and_other_images_are_refused(make_task):
    with pytest.raises(InputError, match="for a model with Linear: expected a VisionTransformer"):
        MaskedPatchPrediction(nn.Linear(2, 2))
    with pytest.raises(InputError, match=r"images of shape \(1, 3, 8, 8\): expected \(B, 3, 16, 16\)"):
        make_task()(torch.zeros(1, 3, 8, 8))


def test_mean_colours_and_targets_are_those_of_a_loop():
    images = torch.randint(256, (2, 3, 6, 9), dtype=torch.uint8)
    means, targets = mean_colours(images, 3), colour_targets(images, 3)
    assert (means.shape, targets.shape, targets.dtype) == ((2, 6, 3), (2, 6), torch.int64)
    for image in range(2):
        for patch in range(6):
            row, column = 3 * (patch // 3), 3 * (patch % 3)
            sums = [0, 0, 0]
            for y in range(row, row + 3):
                for x in range(column, column + 3):
                    for channel in range(3):
                        sums[channel] += int(images[image, channel, y, x])
            assert means[image, patch].tolist() == pytest.approx([s / 9 for s in sums], abs=1e-4)
            red, green, blue = (s // 9 // 32 for s in sums)
            assert targets[image, patch] == 64 * red + 8 * green + blue


def flat(*colour: int) -> torch.Tensor:
    return torch.tensor(colour).view(1, 3, 1, 1).expand(1, 3, 4, 4)


@pytest.mark.parametrize(
    ("colour", "target"),
    [
        ((0, 0, 0), 0),
        ((255, 255, 255), 511),
        ((31, 32, 63), 0 * 64 + 1 * 8 + 1),
        ((64, 95, 96), 2 * 64 + 2 * 8 + 3),
        ((223, 224, 0), 6 * 64 + 7 * 8),
    ],
)
def test_bins_begin_at_multiples_of_32(colour, target):
    assert colour_targets(flat(*colour), 4).tolist() == [[target]]


def test_a_mean_just_below_an_edge_stays_below():
    image = flat(32, 32, 32).clone()
    image[0, 0, 0, 0] = 31  # a mean of 31.9375
    assert colour_targets(image, 4).tolist() == [[8 + 1]]


def test_every_target_is_the_target_of_its_own_colour():
    targets = torch.arange(512)
    colours = colours_of_numbers(targets)  # (512, 3)
    assert colours.min() == 16
    assert colours.max() == 240
    assert torch.equal(colour_targets(colours.view(512, 3, 1, 1), 1)[:, 0], targets)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(1, 1, 8, 8), r"shape \(1, 1, 8, 8\): expected \(B, 3, H, W\)"),
        (torch.zeros(3, 8, 8), r"shape \(3, 8, 8\): expected four axes"),
        (torch.zeros(1, 3, 9, 8), "patch_size 4 does not divide"),
        ([[1]], "images of type list: expected a tensor"),
    ],
)
def test_images_of_another_shape_are_refused(images, message):
    with pytest.raises(InputError, match=message):
        mean_colours(images, 4)
