"""What the fold does to attention is measured as a loop would: rulers, mirror images, symmetry."""

import math

import pytest
import torch
from measure_fold import (
    PARTNERS,
    fold_of,
    mean_attention,
    mirror_images,
    ruler,
    share_of_uniform,
    symmetry,
    to_mirror_image,
)

from vit_classroom.checks.report import randomise
from vit_from_scratch.inspection import layer_attention

GRID = (4, 6)


def partner(patch, axis):
    row, column = divmod(patch, 6)
    return 6 * (3 - row) + column if axis == 0 else 6 * row + 5 - column


@pytest.mark.parametrize("axis", [0, 1])
def test_a_patch_lies_where_the_nearer_of_itself_and_its_mirror_image_does(axis):
    found = ruler(GRID, PARTNERS["left on right" if axis else "top on bottom"])
    for one in range(24):
        for other in range(24):
            places = [divmod(patch, 6) for patch in (other, partner(other, axis))]
            nearer = min(math.dist(divmod(one, 6), place) for place in places)
            assert found[one, other].item() == pytest.approx(nearer, abs=1e-5)


def test_uniform_attention_has_a_share_of_one_by_every_ruler_and_a_head_that_stays_has_none():
    for partner in PARTNERS.values():
        apart = ruler(GRID, partner)
        heads = torch.stack([torch.full((24, 24), 1 / 24), torch.eye(24)])[None]  # (1, 2, N, N)
        assert share_of_uniform(heads, apart)[0] == pytest.approx([1, 0])
    assert ruler(GRID, PARTNERS["half a photo sideways"])[0, :6].tolist() == [0, 1, 2, 0, 1, 2]


def test_the_mean_attention_is_that_of_photos_one_by_one(small_model):
    config = small_model.config
    images = torch.randn(3, config.channels, *config.image_shape)
    count, weights = config.num_patches, [layer_attention(small_model, one[None]) for one in images]
    expected = sum(
        among / among.sum(dim=-1, keepdim=True)
        for among in (torch.stack(layers)[:, 0, :, -count:, -count:] for layers in weights)
    )
    assert torch.allclose(mean_attention(small_model, images), expected / 3, atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_attention_to_mirror_images_is_a_multiple_of_that_to_the_two_places_beside_them(axis):
    attention, step = torch.rand(2, 3, 64, 64), (8, 1)[axis]
    there = beside = 0
    for patch in range(64):
        at = divmod(patch, 8)[axis]
        if at in (1, 2, 5, 6):  # three patches or more from its mirror image, which is not at the border
            other = patch + (7 - 2 * at) * step
            there += attention[..., patch, other]
            beside += attention[..., patch, [other - step, other + step]].mean(dim=-1)
    assert torch.allclose(torch.tensor(to_mirror_image(attention, (8, 8), axis)), there / beside)


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_a_head_that_looks_along_its_row_gives_its_mirror_image_no_more_than_what_lies_beside(spread):
    rows, columns = torch.arange(64) // 8, torch.arange(64) % 8
    apart = (columns[:, None] - columns).abs() / spread
    weights = torch.where(rows[:, None] == rows, (-apart).exp(), 0.0)
    there, beside = ((weights * matrix).sum() for matrix in mirror_images((8, 8), 1))
    assert there <= beside
    mirrored = weights + weights.view(64, 8, 8).flip(2).flatten(1)  # and as much to what is mirrored
    there, beside = ((mirrored * matrix).sum() for matrix in mirror_images((8, 8), 1))
    assert there > 1.2 * beside


def test_a_map_and_its_mirror_image_correlate_along_the_axis_of_its_symmetry():
    half = torch.rand(5, 4, 3, generator=torch.Generator().manual_seed(0))
    maps = torch.cat([half, half.flip(2)], dim=2)  # (5, 4, 6), the same from left and right
    assert symmetry(maps, 1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert symmetry(maps, 0)[0] < 0.9


def test_a_model_folded_left_on_right_is_found_to_be_so_by_every_measure(make_model):
    model = make_model(patch_size=1, dropout=0)
    randomise(model)
    table = model.tokens.position.data[0, 1:].view(8, 8, -1)
    table[:, 4:] = table[:, :4].flip(1)
    attention = mean_attention(model, torch.zeros(2, 1, 8, 8))
    found = fold_of(model, torch.zeros(2, 1, 8, 8))
    assert found["mirror_similarity"]["left-right"] == pytest.approx(1)
    assert found["mirror_similarity"]["top-bottom"] < 0.9
    assert found["rollout_symmetry"]["left on right"][0] == pytest.approx(1, abs=1e-4)
    assert found["rollout_symmetry"]["top on bottom"][0] < 0.9
    for name, axis in (("left on right", 1), ("top on bottom", 0)):
        assert found["to_mirror_image"][name] == to_mirror_image(attention, (8, 8), axis)
    for name, partner in PARTNERS.items():
        assert found["share_of_uniform"][name] == share_of_uniform(attention, ruler((8, 8), partner))
