import math

import pytest
import torch

from vit_from_scratch import InputError
from vit_from_scratch.inspection import position_similarity
from vit_from_scratch.model.tokens import sincos_2d


def test_similarity_is_symmetric_with_a_unit_diagonal():
    similarity = position_similarity(torch.randn(1, 12, 8, dtype=torch.float64), (3, 4)).reshape(12, 12)
    assert torch.allclose(similarity, similarity.T)
    assert torch.allclose(similarity.diagonal(), torch.ones(12, dtype=torch.float64))
    assert similarity.abs().max() <= 1 + 1e-12


def test_sinusoidal_positions_have_their_closed_form():
    """cos a cos b + sin a sin b = cos(a - b): the mean over frequencies of the cosines of the distances."""
    grid, dim = (4, 5), 16
    similarity = position_similarity(sincos_2d(grid, dim).double(), grid)
    frequencies = [10_000.0 ** -(i / (dim // 4 - 1)) for i in range(dim // 4)]
    for row, column, other_row, other_column in [(0, 0, 3, 4), (1, 2, 2, 0), (3, 1, 3, 1)]:
        cosines = [
            math.cos(f * (row - other_row)) + math.cos(f * (column - other_column)) for f in frequencies
        ]
        expected = sum(cosines) / (2 * len(frequencies))
        assert similarity[row, column, other_row, other_column].item() == pytest.approx(expected, abs=1e-6)


def test_the_class_tokens_row_is_left_out():
    position = torch.randn(1, 13, 8)
    assert torch.equal(position_similarity(position, (3, 4)), position_similarity(position[:, 1:], (3, 4)))


def test_another_grid_is_refused():
    with pytest.raises(InputError, match="expected 9 for a grid of 3 x 3"):
        position_similarity(torch.randn(1, 12, 8), (3, 3))


def test_a_model_without_positions_has_none_to_compare():
    with pytest.raises(InputError, match="positions of type NoneType"):
        position_similarity(None, (3, 3))
