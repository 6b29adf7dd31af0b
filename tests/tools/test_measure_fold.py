"""What the fold does to attention is measured as a loop would: rulers, mirror images, symmetry."""

import math

import pytest
import torch
from measure_fold import mirror_images, ruler, symmetry

GRID = (4, 6)


def partner(patch, axis):
    row, column = divmod(patch, 6)
    return 6 * (3 - row) + column if axis == 0 else 6 * row + 5 - column


@pytest.mark.parametrize("axis", [0, 1])
def test_a_patch_lies_where_the_nearer_of_itself_and_its_mirror_image_does(axis):
    found = ruler(GRID, (axis,))
    for one in range(24):
        for other in range(24):
            places = [divmod(patch, 6) for patch in (other, partner(other, axis))]
            nearer = min(math.dist(divmod(one, 6), place) for place in places)
            assert found[one, other].item() == pytest.approx(nearer, abs=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_uniform_attention_to_mirror_images_counts_as_one(axis):
    matrix = mirror_images(GRID, axis)
    assert (matrix / 24 / 24).sum().item() == pytest.approx(1)
    for one, other in matrix.nonzero().tolist():
        assert other == partner(one, axis)
        assert math.dist(divmod(one, 6), divmod(other, 6)) >= 3


def test_a_map_and_its_mirror_image_correlate_along_the_axis_of_its_symmetry():
    half = torch.rand(5, 4, 3, generator=torch.Generator().manual_seed(0))
    maps = torch.cat([half, half.flip(2)], dim=2)  # (5, 4, 6), the same from left and right
    assert symmetry(maps, 1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert symmetry(maps, 0)[0] < 0.9
