import dataclasses

import pytest
import torch

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.inspection import (
    attention_distances,
    attention_rollout,
    class_token_maps,
    layer_attention,
    layer_tokens,
    object_share,
    rollout_maps,
)
from vit_from_scratch.inspection.masking import gradient_scores, rollout_scores


def random_attention(heads=2):
    torch.manual_seed(0)
    return list(torch.randn(3, 2, heads, 7, 7, dtype=torch.float64).softmax(-1))


def test_the_weights_of_every_layer_are_those_that_the_model_returns(model, images):
    expected = model(images, return_intermediates=True)[1]["attention"]
    for found, wanted in zip(layer_attention(model, images), expected, strict=True):
        assert torch.allclose(found, wanted, atol=1e-6)


def test_a_reduction_keeps_one_layer_at_a_time(model, images):
    alive = []

    def reduce(weights):
        alive.append(weights.shape)
        return weights.mean(dim=(0, 2))

    reduced = layer_attention(model, images, reduce)
    whole = layer_attention(model, images)
    assert len(alive) == len(reduced) == 3
    for found, weights in zip(reduced, whole, strict=True):
        assert torch.allclose(found, weights.mean(dim=(0, 2)))


def test_of_a_reduction_that_is_a_view_only_the_view_is_kept(model, images):
    for found in layer_attention(model, images, lambda weights: weights[:, :, 0, 1:]):
        assert found.untyped_storage().nbytes() == found.nbytes


@pytest.mark.parametrize("inspect", [layer_attention, layer_tokens, rollout_scores, gradient_scores])
def test_a_model_in_training_is_measured_in_evaluation_and_left_in_training(model, images, inspect):
    model.tokens.dropout.p = 0.5
    expected = inspect(model, images)
    model.train()
    found = inspect(model, images)
    assert model.training
    assert torch.equal(found[-1], expected[-1])


def test_a_rollout_of_identities_is_the_identity():
    eye = torch.eye(5).expand(2, 3, 5, 5)
    assert torch.equal(attention_rollout([eye] * 4), torch.eye(5).expand(2, 5, 5))


def test_a_rollout_of_two_layers_by_hand():
    first = torch.tensor([[[[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [1.0, 0.0]]]])
    second = torch.tensor([[[[1.0, 0.0], [0.25, 0.75]], [[0.0, 1.0], [0.75, 0.25]]]])
    # Heads averaged: [[.5, .5], [.5, .5]] twice. With the identity, halved: [[.75, .25], [.25, .75]].
    # Squared: [[.625, .375], [.375, .625]].
    expected = torch.tensor([[[0.625, 0.375], [0.375, 0.625]]])
    assert torch.allclose(attention_rollout([first, second]), expected)


def test_the_first_layer_acts_first():
    to_second = torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]]])
    stay = torch.eye(2).reshape(1, 1, 2, 2)
    swap_then_stay = attention_rollout([to_second, stay])
    both = attention_rollout([to_second, to_second.flip(-1)])
    assert torch.allclose(swap_then_stay[0, 0], torch.tensor([0.5, 0.5]))
    # By hand: [[1, 0], [.5, .5]] @ [[.5, .5], [0, 1]] = [[.5, .5], [.25, .75]].
    assert torch.allclose(both, torch.tensor([[[0.5, 0.5], [0.25, 0.75]]]))


def test_a_batch_and_a_single_image_agree(model, images):
    together = attention_rollout(layer_attention(model, images))
    for index, image in enumerate(images):
        alone = attention_rollout(layer_attention(model, image[None]))
        assert torch.allclose(alone[0], together[index], atol=1e-6)


def test_rollout_maps_lie_on_the_grid(model, images):
    rollout = attention_rollout(layer_attention(model, images))
    maps = rollout_maps(rollout, model.config.grid)
    assert maps.shape == (4, 4, 6)
    if model.config.class_token:
        assert maps[1, 2, 3] == rollout[1, 0, 1 + 2 * 6 + 3]
    else:
        assert torch.allclose(maps.sum(dim=(1, 2)), torch.ones(4), atol=1e-5)


def test_class_token_maps_are_its_row_of_the_weights(model, images):
    attentions = layer_attention(model, images)
    if not model.config.class_token:
        with pytest.raises(InputError, match=r"24 tokens: expected 25, the class token and a grid"):
            class_token_maps(attentions, (4, 6))
        return
    maps = class_token_maps(attentions, (4, 6))
    assert maps.shape == (3, 4, 2, 4, 6)
    assert maps[1, 2, 0, 3, 5] == attentions[1][2, 0, 0, 24]


@pytest.mark.parametrize(
    ("attentions", "message"),
    [
        ([], "no layers"),
        ([torch.rand(2, 3, 3)], r"shape \(2, 3, 3\): expected \(B, h, T, T\)"),
        (torch.empty(0, 2, 2, 3, 3), "no layers"),
        (None, "no layers"),
        ([None], r"attention of type NoneType: expected a tensor \(B, h, T, T\)"),
        ([torch.rand(2, 3, 3, 3).numpy()], "attention of type ndarray"),
        ([torch.rand(2, 3, 4, 5)], r"shape \(2, 3, 4, 5\): expected \(B, h, T, T\)"),
        ([torch.rand(1, 2, 3, 3), torch.rand(4, 2, 3, 3)], "expected the same images and tokens"),
        ([torch.rand(1, 2, 3, 3), torch.rand(1, 2, 4, 4)], "expected the same images and tokens"),
        (torch.rand(2, 3, 3, 3), r"shape \(3, 3, 3\): expected \(B, h, T, T\)"),
    ],
)
def test_wrong_input_to_a_rollout_is_refused(attentions, message):
    with pytest.raises(InputError, match=message):
        attention_rollout(attentions)


def test_layers_may_come_as_one_tensor():
    layers = random_attention()
    assert torch.equal(attention_rollout(torch.stack(layers)), attention_rollout(layers))
    assert torch.equal(class_token_maps(torch.stack(layers), (2, 3)), class_token_maps(layers, (2, 3)))


def test_a_rollout_does_not_mind_layers_of_other_numbers_of_heads_and_maps_of_heads_do():
    layers = [random_attention(heads=2)[0], random_attention(heads=3)[0]]
    assert attention_rollout(layers).shape == (2, 7, 7)
    with pytest.raises(InputError, match=r"layers of shapes \(2, 2, 7, 7\), \(2, 3, 7, 7\)"):
        class_token_maps(layers, (2, 3))


def test_a_head_that_reads_the_patches_mean_has_the_mean_of_their_rows(small_config):
    model = VisionTransformer(dataclasses.replace(small_config, pool="gap"))
    images = torch.randn(2, small_config.channels, *small_config.image_shape)
    rows, columns = small_config.grid
    rollout = attention_rollout(layer_attention(model, images))
    assert rollout.shape[1] == 1 + rows * columns, "it has a class token, and its head does not read it"
    expected = sum(rollout[:, row, 1:] for row in range(1, 1 + rows * columns)) / (rows * columns)
    assert torch.allclose(rollout_scores(model, images).flatten(1), expected, atol=1e-6)
    assert not torch.allclose(rollout_maps(rollout, (rows, columns)).flatten(1), expected, atol=1e-3)
    with pytest.raises(InputError, match="unknown pool 'mean': expected one of 'cls', 'gap'"):
        rollout_maps(rollout, (rows, columns), "mean")


@pytest.mark.parametrize("rollout", [None, torch.rand(7, 7), torch.rand(1, 7, 6), torch.rand(3, 1, 7, 7)])
def test_what_is_no_rollout_has_no_maps(rollout):
    with pytest.raises(InputError, match=r"^rollout of .*expected (a tensor )?\(B, T, T\)"):
        rollout_maps(rollout, (2, 3))


@pytest.mark.parametrize("inspect", [layer_attention, attention_distances, layer_tokens, rollout_scores])
def test_a_model_whose_input_was_resized_is_inspected_on_its_new_grid(model, inspect):
    model.resize_input((32, 48))
    found = inspect(model, torch.randn(2, 3, 32, 48))
    tokens = 8 * 12 + int(model.config.class_token)
    expected = {
        layer_attention: [(2, 2, tokens, tokens)] * 3,
        attention_distances: [(2, 2)] * 3,
        layer_tokens: [(2, 8, 12, 16)] * 4,
        rollout_scores: [(8, 12)] * 2,
    }
    assert [tuple(one.shape) for one in found] == expected[inspect]


def test_a_rollout_of_another_grid_is_refused():
    with pytest.raises(InputError, match="expected 4 for a grid of 2 x 2, or one more"):
        rollout_maps(torch.rand(1, 7, 7), (2, 2))


def test_uniform_attention_has_the_share_of_the_image_that_the_object_covers() -> None:
    mask = torch.rand(3, 8, 12)
    share = object_share(torch.full((3, 4, 6), 0.2), mask)
    torch.testing.assert_close(share, mask.mean(dim=(1, 2)))


def test_attention_on_one_patch_has_the_share_of_that_patch_that_the_object_covers() -> None:
    maps, mask = torch.zeros(1, 2, 2), torch.zeros(1, 4, 4)
    maps[0, 1, 0] = 3.0
    mask[0, 2:, 0] = 1.0  # two of the patch's four pixels
    assert object_share(maps, mask).item() == 0.5


@pytest.mark.parametrize("mask", [torch.zeros(2, 8, 8), torch.zeros(1, 7, 8), torch.zeros(1, 1, 8, 8)])
def test_a_mask_that_does_not_fit_the_maps_is_refused(mask: torch.Tensor) -> None:
    with pytest.raises(InputError, match="whole patches"):
        object_share(torch.ones(1, 4, 4), mask)


def test_a_mask_of_bytes_is_refused():
    with pytest.raises(InputError, match=r"values from 0 to 255.*divide bytes by 255"):
        object_share(torch.ones(1, 4, 4), torch.tensor([0.0, 255.0]).repeat(1, 8, 4))


def test_a_rollout_of_half_the_bits_still_sums_to_one():
    layers = [layer.bfloat16() for layer in random_attention()]
    rollout = attention_rollout(layers)
    assert rollout.dtype == torch.float32
    torch.testing.assert_close(rollout, attention_rollout([layer.float() for layer in layers]))


def test_a_model_without_layers_has_no_attention():
    config = ViTConfig(8, 4, dim=8, depth=0, heads=2, mlp_dim=8, class_token=False, pool="gap")
    with pytest.raises(InputError, match=r"model\.depth = 0: expected at least one layer"):
        layer_attention(VisionTransformer(config), torch.rand(1, 3, 8, 8))


def test_attention_that_returns_no_weights_is_said(small_model):
    block = small_model.encoder.blocks[1]
    block.register_forward_hook(lambda module, given, result: (result[0], None))
    with pytest.raises(InputError, match=r"weights = None: expected those of a block's attention"):
        layer_attention(small_model, torch.randn(1, 3, 12, 16))
