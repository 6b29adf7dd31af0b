"""The class token stands first, and every position form adds what it says."""

import math

import pytest
import torch

from vit_from_scratch import ViTConfig
from vit_from_scratch.model.tokens import TokenSequence, sincos_2d


def sequence(**options):
    config = ViTConfig(
        image_size=(4, 6), patch_size=2, channels=1, dim=8, depth=1, heads=2, mlp_dim=8, **options
    )
    return TokenSequence(config)


def test_the_tokens_are_class_token_then_patches_plus_positions():
    tokens = sequence()
    tokens.class_token.data.normal_()
    embeddings = torch.randn(3, 6, 8)
    z0 = tokens(embeddings)
    assert z0.shape == (3, 7, 8)
    for image in range(3):
        assert torch.equal(z0[image, 0], tokens.class_token[0, 0] + tokens.position[0, 0])
        for patch in range(6):
            assert torch.equal(z0[image, patch + 1], embeddings[image, patch] + tokens.position[0, patch + 1])


def test_the_class_token_starts_at_zero_and_positions_near_two_hundredths():
    tokens = TokenSequence(ViTConfig())
    assert tokens.class_token.abs().max() == 0
    assert tokens.position.std().item() == pytest.approx(0.02, rel=0.02)


def test_without_class_token_the_sequence_is_the_patches():
    tokens = sequence(class_token=False, pool="gap")
    embeddings = torch.randn(2, 6, 8)
    assert torch.equal(tokens(embeddings), embeddings + tokens.position)


def test_without_position_only_the_class_token_is_added():
    tokens = sequence(position="none")
    embeddings = torch.randn(2, 6, 8)
    assert tokens.position_embedding() is None
    assert torch.equal(tokens(embeddings)[:, 1:], embeddings)


def test_learned_2d_positions_are_a_row_plus_a_column():
    tokens = sequence(position="learned_2d")
    position = tokens.position_embedding()
    assert position[0, 0].abs().max() == 0  # the class token has no place in the grid
    for row in range(2):
        for column in range(3):
            expected = tokens.row_position[row] + tokens.column_position[column]
            assert torch.equal(position[0, 1 + 3 * row + column], expected)


def test_sincos_similarity_depends_on_the_offset_alone_and_has_its_closed_form():
    dim, (rows, columns) = 16, (5, 4)
    position = sincos_2d((rows, columns), dim).double()
    frequencies = [10_000 ** (-i / (dim // 4 - 1)) for i in range(dim // 4)]
    for first in range(rows * columns):
        for second in range(rows * columns):
            down = first // columns - second // columns
            across = first % columns - second % columns
            expected = sum(math.cos(f * down) + math.cos(f * across) for f in frequencies)
            assert (position[first] @ position[second]).item() == pytest.approx(expected, abs=1e-5)


def test_sincos_positions_are_not_trained_and_not_saved():
    tokens = sequence(position="sincos_2d")
    assert [name for name, _ in tokens.named_parameters()] == ["class_token"]
    assert list(tokens.state_dict()) == ["class_token"]
