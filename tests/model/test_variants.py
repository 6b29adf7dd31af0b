import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.ndimage
import torch
import torch.nn.functional as F
from torchvision.ops import Conv2dNormActivation, stochastic_depth

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.model.attention import MultiHeadSelfAttention
from vit_from_scratch.model.cost import counted_flops, forward_flops
from vit_from_scratch.model.encoder import Block
from vit_from_scratch.model.patches import PatchEmbedding
from vit_from_scratch.model.stem_config import StemConfig
from vit_from_scratch.model.tokens import TokenSequence, resize_positions
from vit_from_scratch.model.variants import (
    ConvStem,
    LocalMlp,
    RelativeAttention,
    VariantBlock,
    mimetic_,
    whiten_,
)
from vit_from_scratch.training.fine_tuning import adapted

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
    mlp = LocalMlp(replace(CONFIG, class_token=False, pool="gap", dropout=0.3)).train()
    tokens = torch.randn(2, 16, 16)
    hidden = mlp.gelu(mlp.hidden(tokens)).reshape(2, 4, 4, 24)
    padded = torch.nn.functional.pad(hidden, (0, 0, 1, 1, 1, 1))
    local = mlp.neighbours.bias + sum(
        padded[:, dy : dy + 4, dx : dx + 4] * mlp.neighbours.weight[:, 0, dy, dx]
        for dy in range(3)
        for dx in range(3)
    )
    torch.manual_seed(1)
    hidden = F.dropout((hidden + mlp.gelu(local)).reshape(2, 16, 24), 0.3)
    expected = F.dropout(mlp.output(hidden), 0.3)
    torch.manual_seed(1)
    assert torch.allclose(mlp(tokens), expected, atol=1e-6)


@pytest.mark.parametrize("patch_size", [2, 4, 8])
def test_a_conv_stem_is_torchvisions_convolutions_and_a_token_for_each_patch(patch_size):
    stem = ConvStem(replace(CONFIG, patch_size=patch_size, stem=StemConfig("conv", width=4)))
    for parameter in stem.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    widths = [3, 4, 8, 16, 32][: patch_size.bit_length() + 1]
    layers = [Conv2dNormActivation(a, b, 3, 1 if a == 3 else 2) for a, b in itertools.pairwise(widths)]
    theirs = torch.nn.Sequential(*layers, torch.nn.Conv2d(widths[-1], 16, 1), torch.nn.Flatten(2))
    theirs.load_state_dict(dict(zip(theirs.state_dict(), stem.state_dict().values(), strict=True)))
    images = torch.randn(2, 3, 16, 16)
    for training in (True, False):
        found, expected = (layers.train(training)(images) for layers in (stem, theirs))
        torch.testing.assert_close(found, expected.mT, rtol=1e-4, atol=1e-4)


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
    out = VariantBlock(replace(CONFIG, stochastic_depth=0.25), 2, TokenSequence(CONFIG)).skip.train()(branch)
    values = out[:, 0, 0].unique().tolist()
    assert values == pytest.approx([0, 1 / 0.75])
    assert (out == out[:, :1, :1]).all(), "an image's branch is dropped as one"
    assert out.mean().item() == pytest.approx(1.0, abs=0.05)


def test_stochastic_depth_skips_both_branches_of_a_block():
    block = VariantBlock(replace(CONFIG, stochastic_depth=0.5), 2, TokenSequence(CONFIG)).train()
    tokens = torch.randn(8, 17, 16)
    torch.manual_seed(1)
    found, _ = block(tokens)
    torch.manual_seed(1)
    middle = tokens + stochastic_depth(block.attention(block.attention_norm(tokens))[0], 0.5, "row")
    expected = middle + stochastic_depth(block.mlp(block.mlp_norm(middle)), 0.5, "row")
    torch.testing.assert_close(found, expected)
    assert not torch.equal(middle, tokens)


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


SMALL = ViTConfig(8, 4, dim=8, depth=3, heads=2, mlp_dim=8, num_classes=3)


def stirred(config):
    """A model in evaluation mode whose weights are all drawn anew, so that none is 0."""
    torch.manual_seed(0)
    model = VisionTransformer(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("position", ["learned", "learned_2d"])
def test_shared_positions_are_added_before_every_layer(position):
    model = stirred(replace(SMALL, position=position, position_at="every_layer_shared"))
    plain = stirred(replace(SMALL, position=position))
    assert model.state_dict().keys() == plain.state_dict().keys()
    images = torch.randn(2, 3, 8, 8)
    tokens = plain.tokens(plain.patch_embedding(images))
    for block in plain.encoder.blocks:
        tokens, _ = block(tokens)
        if block is not plain.encoder.blocks[-1]:
            tokens = tokens + plain.tokens.position_embedding()
    expected = plain.head(plain.encoder.norm(tokens)[:, 0])
    torch.testing.assert_close(model(images), expected)
    again = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in again.tokens.parameters():
            parameter.zero_()
    assert not torch.allclose(again(images), model(images))  # the copy's layers share the copy's positions


def test_every_layer_but_the_first_has_positions_of_its_own():
    model = stirred(replace(SMALL, position_at="every_layer"))
    tables = [name for name, _ in model.named_parameters() if name.endswith("positions.position")]
    assert tables == [f"encoder.blocks.{layer}.positions.position" for layer in (1, 2)]
    images = torch.randn(2, 3, 8, 8)
    tokens = model.tokens(model.patch_embedding(images))
    for block in model.encoder.blocks:
        if block.positions is not None:
            tokens = tokens + block.positions.position
        tokens, _ = Block.forward(block, tokens)
    torch.testing.assert_close(model(images), model.head(model.encoder.norm(tokens)[:, 0]))


def test_relative_attention_is_what_its_formula_says():
    torch.manual_seed(0)
    attention = RelativeAttention(SMALL)
    torch.nn.init.normal_(attention.relative_position)
    tokens = torch.randn(2, 5, 8)
    out, weights = attention(tokens, return_weights=True)
    q, k, v = attention.qkv(tokens).view(2, 5, 3, 2, 4).unbind(dim=2)  # (B, T, h, Dh)
    for image, head, i in itertools.product(range(2), range(2), range(5)):
        scores = torch.stack(
            [
                q[image, i, head] @ (k[image, j, head] + attention.relative_position[j - i + 4])
                for j in range(5)
            ]
        )
        expected = (scores / 4**0.5).softmax(dim=0)
        torch.testing.assert_close(weights[image, head, i], expected)
    gathered = torch.einsum("bhts,bshd->bthd", weights, v).flatten(2)
    torch.testing.assert_close(out, attention.projection(gathered))


def test_relative_positions_tell_places_apart_and_refuse_another_size():
    model = stirred(replace(SMALL, position="relative", image_size=12))
    images = torch.randn(1, 3, 12, 12)
    assert not torch.allclose(model(images), model(images.flip(-1)))
    assert not torch.allclose(model(images), stirred(replace(SMALL, position="none", image_size=12))(images))
    with pytest.raises(InputError, match="image_size 8 with relative positions: expected 12"):
        model.resize_input(8)
    assert model.image_shape == (12, 12)
    with pytest.raises(InputError, match="5 tokens: expected 10, since relative positions"):
        model.encoder(torch.randn(1, 5, 8))


def test_operations_of_relative_attention_are_counted():
    config = replace(SMALL, position="relative")
    assert forward_flops(config) == counted_flops(VisionTransformer(config), (3, 8, 8))


def test_only_learned_positions_can_be_added_again():
    with pytest.raises(InputError, match="position_at = 'every_layer': expected 'stem' with position='none'"):
        replace(SMALL, position="none", position_at="every_layer")


def test_positions_of_every_layer_grow_with_the_image():
    model = stirred(replace(SMALL, position_at="every_layer"))
    larger = adapted(model, image_size=16, num_classes=5)
    for name, table in model.state_dict().items():
        if name.endswith("position"):
            expected = resize_positions(table, (2, 2), (4, 4))
            torch.testing.assert_close(larger.state_dict()[name], expected)


def test_normalised_queries_and_keys_compare_as_timms_do():
    from timm.layers import Attention, RmsNorm

    torch.manual_seed(0)
    ours = built(qk_norm=True).encoder.blocks[1].attention
    theirs = Attention(16, num_heads=2, qkv_bias=True, qk_norm=True, norm_layer=RmsNorm).eval()
    theirs.qkv.load_state_dict(ours.qkv.state_dict())
    theirs.proj.load_state_dict(ours.projection.state_dict())
    tokens = 3 * torch.randn(2, 17, 16)
    gathered, weights = ours(tokens, return_weights=True)
    assert torch.allclose(ours(tokens)[0], theirs(tokens), atol=1e-5)
    assert torch.allclose(gathered, theirs(tokens), atol=1e-5)
    assert weights.sum(-1).allclose(torch.ones(2, 2, 17))


def test_normalised_queries_do_not_care_how_large_the_weights_are():
    attention = built(qk_norm=True, qkv_bias=False).encoder.blocks[0].attention
    tokens = torch.randn(2, 17, 16)
    before = attention(tokens, return_weights=True)[1]
    with torch.no_grad():
        attention.qkv.weight[:32] *= 50  # queries and keys
    assert torch.allclose(attention(tokens, return_weights=True)[1], before, atol=1e-4)
    assert not torch.allclose(built().encoder.blocks[0].attention(tokens, return_weights=True)[1], before)


@pytest.mark.parametrize("dim", [16, 60])  # fewer values than a patch has, and more
def test_a_whitened_embeddings_outputs_vary_alike_but_for_a_hundredth(dim):
    """With the hundredth of S added, they have D / min(D, P^2 C) in each direction and nothing in others."""
    torch.manual_seed(0)
    noise = torch.randn(200, 3, 16, 16)
    smooth = torch.nn.functional.avg_pool2d(noise, 5, 1, 2) + 0.05 * noise + 1  # neighbours are alike
    embedding, rank = PatchEmbedding(4, 3, dim), min(dim, 48)
    whiten_(embedding, smooth)
    outputs = embedding(smooth).flatten(0, 1).detach().double().numpy()  # (B N, D)
    weight = embedding.projection.weight.detach().double().numpy()
    hundredth = 0.01 * smooth.reshape(200, 3, 4, 4, 4, 4).var(dim=(0, 2, 4)).mean().item()
    sizes = np.linalg.eigvalsh(np.cov(outputs.T) + hundredth * weight @ weight.T)
    assert np.allclose(sizes, [0.0] * (dim - rank) + [dim / rank] * rank, atol=1e-3)
    assert np.abs(outputs.mean(axis=0)).max() < 1e-4
