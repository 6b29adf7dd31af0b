"""What the visible neighbours of a patch say of its colour is what a loop finds."""

import pytest
import torch
from measure_masked import neighbour_colours


def test_neighbours_are_those_of_a_loop():
    generator = torch.Generator().manual_seed(0)
    means = 255 * torch.rand(3, 20, 3, generator=generator)
    visible = torch.rand(3, 20, generator=generator) < 0.4
    visible[1] = False
    visible[1, 19] = True  # the patches far from the corner have no visible neighbour
    visible[2] = False
    found = neighbour_colours(means, visible, (4, 5))
    for image in range(3):
        for patch in range(20):
            row, column = divmod(patch, 5)
            around = [
                means[image, 5 * y + x]
                for y in range(max(row - 1, 0), min(row + 2, 4))
                for x in range(max(column - 1, 0), min(column + 2, 5))
                if (y, x) != (row, column) and visible[image, 5 * y + x]
            ]
            around = around or list(means[image, visible[image]]) or [torch.full((3,), 128.0)]
            expected = torch.stack(around).mean(dim=0)
            assert found[image, patch].tolist() == pytest.approx(expected.tolist(), abs=1e-3)
