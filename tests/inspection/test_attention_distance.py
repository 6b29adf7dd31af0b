import math

import pytest
import torch

from vit_from_scratch import InputError
from vit_from_scratch.inspection import attention_distances, layer_attention, mean_attention_distance
from vit_from_scratch.inspection.inputs import in_float64


def test_identity_attention_reaches_nowhere():
    assert mean_attention_distance(torch.eye(12).expand(2, 3, 12, 12), (3, 4), 16).eq(0).all()


def test_uniform_attention_reaches_the_mean_distance_of_two_patches():
    rows, columns, size = 3, 5, 16
    places = [(r, c) for r in range(rows) for c in range(columns)]
    mean = sum(math.dist(a, b) for a in places for b in places) / len(places) ** 2 * size
    uniform = torch.full((1, 1, 15, 15), 1 / 15)
    assert mean_attention_distance(uniform, (rows, columns), size).item() == pytest.approx(mean, rel=1e-6)


def test_attention_to_the_right_neighbour_reaches_one_patch():
    shift = torch.eye(16).reshape(4, 4, 4, 4).roll(1, dims=3).reshape(1, 1, 16, 16)
    # Three of four columns look one patch away; the last wraps round, three patches away.
    expected = 14 * (3 * 1 + 1 * 3) / 4
    assert mean_attention_distance(shift, (4, 4), 14).item() == pytest.approx(expected)
    wide = torch.eye(15).reshape(3, 5, 3, 5).roll(1, dims=3).reshape(1, 1, 15, 15)
    assert mean_attention_distance(wide, (3, 5), 14).item() == pytest.approx(14 * (4 * 1 + 1 * 4) / 5)
    up = torch.eye(16)
    up[4:] = torch.eye(16)[:-4]  # every row but the first looks at the row above
    assert mean_attention_distance(up[None, None], (4, 4), 14).item() == pytest.approx(14 * 3 / 4)


def test_the_class_token_is_left_out_and_rows_are_scaled():
    inner = torch.randn(2, 3, 6, 6).softmax(-1)
    outer = torch.zeros(2, 3, 7, 7)
    outer[..., 1:, 1:] = 0.25 * inner
    outer[..., 1:, 0] = 0.75
    outer[..., 0, :] = 1 / 7
    expected = mean_attention_distance(inner, (2, 3), 8)
    assert torch.allclose(mean_attention_distance(outer, (2, 3), 8), expected, atol=1e-5)


def test_a_model_is_measured_layer_by_layer(model, images):
    distances = attention_distances(model, images)
    assert distances.shape == (3, 4, 2)
    whole = mean_attention_distance(layer_attention(model, images), (4, 6), 4)
    assert torch.allclose(distances, whole)
    alone = attention_distances(model, images[:1])
    assert torch.allclose(alone[:, 0], distances[:, 0], atol=1e-5)


def test_layers_may_come_as_one_tensor():
    layers = torch.randn(3, 2, 4, 6, 6).softmax(-1)
    found = mean_attention_distance(layers, (2, 3), 8)
    assert torch.equal(found, mean_attention_distance(list(layers), (2, 3), 8))
    assert found.shape == (3, 2, 4)


def test_float64_is_computed_where_there_is_float64():
    """Stands in for a tensor on Apple's graphics card, which has none and which no test machine has."""

    class OnMps:
        device = torch.device("mps")

        def cpu(self):
            return torch.ones(2)

    assert in_float64(OnMps()).dtype == torch.float64
    assert in_float64(torch.ones(2)).dtype == torch.float64


def test_another_grid_is_refused():
    with pytest.raises(InputError, match=r"shape \(12, 12\): expected \(B, h, T, T\)"):
        mean_attention_distance(torch.rand(12, 12), (3, 4), 16)
    with pytest.raises(InputError, match=r"12 tokens: expected 16 for a grid of 4 x 4"):
        mean_attention_distance(torch.rand(1, 1, 12, 12), (4, 4), 16)
