from dataclasses import replace

import numpy as np
import pytest
import scipy.ndimage
import torch

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.model.attention import MultiHeadSelfAttention
from vit_from_scratch.model.stem_config import StemConfig
from vit_from_scratch.model.tokens import resize_positions
from vit_from_scratch.model.variants import ConvStem, LocalMlp, VariantBlock, mimetic_

CONFIG = ViTConfig(16, 4, dim=16, depth=3, heads=2, mlp_dim=24, num_classes=5)


def built(**changes) -> VisionTransformer:
    torch.manual_seed(0)
    model = VisionTransformer(replace(CONFIG, **changes)).eval()
    torch.nn.init.normal_(model.head.weight)
    return model


def test_a_local_mlp_mixes_each_patch_with_its_eight_neighbours_and_no_others():
    mlp = LocalMlp(CONFIG).eval()
    tokens = torch.randn(1, 17, 16)
    changed = tokens.clone()
    changed[0, 1 + 5] += 1.0  # row 1, column 1 of the 4 x 4 grid
    moved = (mlp(changed) - mlp(tokens)).abs().amax(dim=-1)[0] > 1e-6  # (T,)
    near = {4 * row + column for row in (0, 1, 2) for column in (0, 1, 2)}
    assert not moved[0], "the class token passes by"
    assert set(moved[1:].nonzero().flatten().tolist()) == near


def test_a_local_mlp_is_the_dense_one_plus_a_convolution_by_hand():
    mlp = LocalMlp(replace(CONFIG, class_token=False, pool="gap")).eval()
    tokens = torch.randn(2, 16, 16)
    hidden = mlp.gelu(mlp.hidden(tokens)).reshape(2, 4, 4, 24)
    padded = torch.nn.functional.pad(hidden, (0, 0, 1, 1, 1, 1))
    local = mlp.neighbours.bias + sum(
        padded[:, dy : dy + 4, dx : dx + 4] * mlp.neighbours.weight[:, 0, dy, dx]
        for dy in range(3)
        for dx in range(3)
    )
    expected = mlp.output((hidden + mlp.gelu(local)).reshape(2, 16, 24))
    assert torch.allclose(mlp(tokens), expected, atol=1e-6)


@pytest.mark.parametrize("patch_size", [2, 4, 8])
def test_a_conv_stem_gives_as_many_tokens_as_patches(patch_size):
    config = replace(CONFIG, patch_size=patch_size, stem=StemConfig("conv", width=4))
    assert ConvStem(config)(torch.randn(2, 3, 16, 16)).shape == (2, config.num_patches, 16)


def test_a_conv_stem_moves_its_tokens_with_the_image():
    stem = ConvStem(replace(CONFIG, image_size=32, stem=StemConfig("conv", width=4))).eval()
    images = torch.randn(1, 3, 32, 32)
    tokens, moved = (stem(x).reshape(8, 8, 16) for x in (images, images.roll(4, dims=-1)))
    assert torch.allclose(tokens[2:6, 2:5], moved[2:6, 3:6], atol=1e-5)


def test_a_conv_stem_halves_only_by_powers_of_two():
    with pytest.raises(InputError, match=r"stem='conv' with patch_size 3: expected a power of two"):
        ViTConfig(9, 3, stem="conv")


def test_stochastic_depth_skips_whole_images_and_keeps_the_mean():
    branch = torch.ones(4000, 3, 2)
    out = VariantBlock(replace(CONFIG, stochastic_depth=0.25), layer=2).skip.train()(branch)
    values = out[:, 0, 0].unique().tolist()
    assert values == pytest.approx([0, 1 / 0.75])
    assert (out == out[:, :1, :1]).all(), "an image's branch is dropped as one"
    assert out.mean().item() == pytest.approx(1.0, abs=0.05)


def test_stochastic_depth_grows_from_block_to_block_and_rests_in_evaluation():
    model = built(stochastic_depth=0.4, depth=3)
    assert [getattr(block.skip, "p", 0.0) for block in model.encoder.blocks] == pytest.approx([0, 0.2, 0.4])
    images = torch.randn(2, 3, 16, 16)
    assert torch.equal(model(images), built(depth=3)(images))


@pytest.mark.parametrize("new_grid", [(3, 3), (8, 8), (6, 10)])
@pytest.mark.parametrize("extra", [0, 1])
def test_positions_are_resized_as_the_reference_code_zooms_them(new_grid, extra):
    position = torch.randn(1, extra + 20, 6, dtype=torch.float64)
    resized = resize_positions(position, (4, 5), new_grid)
    grid = position[0, extra:].reshape(4, 5, 6).numpy()
    zoomed = scipy.ndimage.zoom(grid, (new_grid[0] / 4, new_grid[1] / 5, 1), order=1)
    assert np.allclose(resized[0, extra:].reshape(*new_grid, 6).numpy(), zoomed, atol=1e-12)
    assert torch.equal(resized[:, :extra], position[:, :extra])


def test_positions_of_another_grid_are_refused():
    with pytest.raises(InputError, match=r"expected 16 for a grid of 4 x 4, or one more"):
        resize_positions(torch.randn(1, 20, 6), (4, 4), (8, 8))


@pytest.mark.parametrize("changes", [{}, {"mlp": "local"}, {"position": "learned_2d"}, {"stem": "conv"}])
def test_a_resized_input_gives_what_a_model_with_resized_positions_gives(changes):
    model = built(**changes)
    images = torch.randn(2, 3, 8, 8)
    small = VisionTransformer(replace(model.config, image_size=8)).eval()
    weights = model.state_dict()
    if "tokens.position" in weights:
        weights["tokens.position"] = resize_positions(weights["tokens.position"], (4, 4), (2, 2))
    for name in ("tokens.row_position", "tokens.column_position"):
        if name in weights:  # between the corners, 4 places to 2: the first and the last
            weights[name] = weights[name][[0, 3]]
    small.load_state_dict(weights)
    model.resize_input(8)
    assert torch.allclose(model(images), small(images), atol=1e-5)
    model.resize_input(16)
    assert model(torch.randn(2, 3, 16, 16)).shape == (2, 5)


@pytest.mark.parametrize(
    ("size", "message"),
    [(10, "does not divide"), ((8, 16), "expected the proportions"), ((4, 16), "expected the proportions")],
)
def test_a_size_that_does_not_fit_is_refused_and_changes_nothing(size, message):
    model = built()
    with pytest.raises(InputError, match=message):
        model.resize_input(size)
    assert model.image_shape == (16, 16)


def test_mimetic_attention_begins_near_the_identity_and_its_values_near_minus_it():
    torch.manual_seed(0)
    attention = MultiHeadSelfAttention(64, 1)
    mimetic_(attention)
    query, key, value = attention.qkv.weight.detach().chunk(3)
    queries_times_keys = query.T @ key  # U_q U_k^T in the paper's layout, (D, D)
    values_times_output = value.T @ attention.projection.weight.detach().T
    for product, diagonal, noise in ((queries_times_keys, 0.7, 0.7), (values_times_output, -0.4, 0.4)):
        rest = product - diagonal * torch.eye(64)
        assert abs(rest.mean()) < 0.02
        torch.testing.assert_close(rest.std(), torch.tensor(noise / 8), rtol=0.05, atol=0)  # N(0, 1 / D)


def test_each_mimetic_head_is_the_best_approximation_of_its_rank():
    torch.manual_seed(0)
    attention = MultiHeadSelfAttention(12, 3)
    torch.manual_seed(1)
    mimetic_(attention)
    torch.manual_seed(1)
    for head in range(3):
        full = 0.7 * torch.randn(12, 12) / 12**0.5 + 0.7 * torch.eye(12)
        u, s, v = torch.linalg.svd(full)
        best = (u[:, :4] * s[:4]) @ v[:4]
        query, key, _ = (part[4 * head : 4 * head + 4] for part in attention.qkv.weight.detach().chunk(3))
        torch.testing.assert_close(query.T @ key, best, rtol=1e-4, atol=1e-5)


def test_tokens_begin_by_looking_at_tokens_like_themselves():
    sizes = {"image_size": 32, "patch_size": 4, "dim": 64, "depth": 1, "heads": 2, "mlp_dim": 64}
    images = torch.randn(4, 3, 32, 32)

    def own_share(initialisation):
        torch.manual_seed(0)
        model = VisionTransformer(ViTConfig(**sizes, initialisation=initialisation)).eval()
        weights = model(images, return_intermediates=True)[1]["attention"][0]
        return weights.diagonal(dim1=-2, dim2=-1).mean()

    assert own_share("mimetic") > 2 * own_share("xavier")
