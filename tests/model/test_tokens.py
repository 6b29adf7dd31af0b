"""The class token stands first, and every position form adds what it says."""

import math

import pytest
import torch
import torch.nn.functional as F

from vit_from_scratch import InputError, ViTConfig
from vit_from_scratch.model.tokens import TokenSequence, grid_of_same_shape, resize_positions, sincos_2d


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


def test_dropout_comes_after_the_positions():
    tokens, embeddings = sequence(dropout=0.5), torch.randn(3, 6, 8)
    torch.manual_seed(1)
    found = tokens.train()(embeddings)
    torch.manual_seed(1)
    assert torch.equal(found, F.dropout(tokens.eval()(embeddings), 0.5))


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


def test_sincos_positions_hold_sines_and_cosines_of_the_row_then_of_the_column():
    """Row 2, column 1 of a grid of 5 x 4, with four frequencies from 1 to 1 / 10,000."""
    frequencies = [10_000 ** (-i / 3) for i in range(4)]
    expected = [wave(place * f) for place in (2, 1) for wave in (math.sin, math.cos) for f in frequencies]
    assert sincos_2d((5, 4), 16)[2 * 4 + 1].tolist() == pytest.approx(expected, abs=1e-6)


def test_sincos_positions_are_not_trained_and_not_saved():
    tokens = sequence(position="sincos_2d")
    assert [name for name, _ in tokens.named_parameters()] == ["class_token"]
    assert list(tokens.state_dict()) == ["class_token"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("options", [{}, {"class_token": False, "pool": "gap"}], ids=str)
def test_sincos_positions_of_a_model_that_was_built_without_memory_are_right(options, dtype):
    trained = sequence(position="sincos_2d", **options).to(dtype)
    with torch.device("meta"):
        assigned, copied = (sequence(position="sincos_2d", **options).to(dtype) for _ in range(2))
    copied = copied.to_empty(device="cpu")
    for tokens in (copied, assigned):
        tokens.load_state_dict(trained.state_dict(), assign=tokens is assigned)
        embeddings = torch.randn(2, 6, 8, dtype=dtype)
        assert torch.equal(tokens(embeddings)[:, -6:], embeddings + sincos_2d((2, 3), 8).to(dtype))


@pytest.mark.parametrize("dim", [0, 2, 6])
def test_sincos_positions_of_a_width_that_is_no_multiple_of_four_are_refused(dim):
    with pytest.raises(InputError, match=rf"dim = {dim}: expected a multiple of 4"):
        sincos_2d((2, 3), dim)


@pytest.mark.parametrize("count", [0, -4, 8, 10**18 + 1])
def test_patches_that_fill_no_grid_of_the_same_shape_are_refused(count):
    with pytest.raises(InputError, match=f"{count} patches: expected a grid of the proportions 4 : 4"):
        grid_of_same_shape((4, 4), count)


def test_a_grid_of_the_same_shape_is_exact_at_any_size():
    assert grid_of_same_shape((4, 4), 9) == (3, 3)
    assert grid_of_same_shape((2, 6), 27) == (3, 9)
    assert grid_of_same_shape((3, 4), 12 * 10**24) == (3 * 10**12, 4 * 10**12)


@pytest.mark.parametrize("position", [None, torch.zeros(16, 8), torch.zeros(2, 16, 8)])
def test_what_is_no_table_of_positions_cannot_be_resized(position):
    with pytest.raises(InputError, match=r"^positions of .*expected (a tensor )?\(1, T, D\)"):
        resize_positions(position, (4, 4), (2, 2))
