"""What the visible neighbours of a patch say of its colour is what a loop finds."""

import pytest
import torch
from measure_masked import interval, neighbour_colours, of_colours


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


def test_what_the_model_says_of_four_patches_by_hand():
    found = {
        "target": [1, 1, 2, 3],
        "model": [1, 0, 2, 0],
        "neighbours": [0, 1, 0, 0],
        "photo": [0, 0, 1, 1],
        "fate": [0, 1, 2, 0],
        "visible": [0, 1, 8, 8],
        "loss": [1.0] * 4,
        "model_off": [1.0] * 4,
        "neighbours_off": [0.0] * 4,
    }
    said = of_colours({name: torch.tensor(values) for name, values in found.items()})
    assert [said["accuracy"][name][0] for name in ("model", "neighbours", "most frequent")] == [
        0.5,
        0.25,
        0.5,
    ]
    assert said["model_less_neighbours"][0] == pytest.approx(0.25)
    by_fate = [said["by_fate"][fate]["accuracy"] for fate in ("masked", "replaced", "kept")]
    assert by_fate == [0.5, 0, 1]


def test_an_interval_draws_photos_and_not_patches():
    """With two photos, one all wrong and one all right, a draw may hold either one twice."""
    right, photo = torch.tensor([0.0] * 50 + [1.0] * 50), torch.tensor([0] * 50 + [1] * 50)
    assert interval(right, photo) == [0.5, 0, 1]
