"""The mean colours that masked patch prediction asks for, against a loop over every pixel."""

import pytest
import torch

from vit_from_scratch import InputError
from vit_from_scratch.training import colour_targets, mean_colours, neighbour_colours, target_colours


def test_mean_colours_and_targets_are_those_of_a_loop():
    images = torch.randint(256, (2, 3, 6, 9), dtype=torch.uint8)
    means, targets = mean_colours(images, 3), colour_targets(images, 3)
    assert (means.shape, targets.shape, targets.dtype) == ((2, 6, 3), (2, 6), torch.int64)
    for image in range(2):
        for patch in range(6):
            row, column = 3 * (patch // 3), 3 * (patch % 3)
            sums = [0, 0, 0]
            for y in range(row, row + 3):
                for x in range(column, column + 3):
                    for channel in range(3):
                        sums[channel] += int(images[image, channel, y, x])
            assert means[image, patch].tolist() == pytest.approx([s / 9 for s in sums], abs=1e-4)
            red, green, blue = (s // 9 // 32 for s in sums)
            assert targets[image, patch] == 64 * red + 8 * green + blue


def flat(*colour: int) -> torch.Tensor:
    return torch.tensor(colour).view(1, 3, 1, 1).expand(1, 3, 4, 4)


@pytest.mark.parametrize(
    ("colour", "target"),
    [
        ((0, 0, 0), 0),
        ((255, 255, 255), 511),
        ((31, 32, 63), 0 * 64 + 1 * 8 + 1),
        ((64, 95, 96), 2 * 64 + 2 * 8 + 3),
        ((223, 224, 0), 6 * 64 + 7 * 8),
    ],
)
def test_bins_begin_at_multiples_of_32(colour, target):
    assert colour_targets(flat(*colour), 4).tolist() == [[target]]


def test_a_mean_just_below_an_edge_stays_below():
    image = flat(32, 32, 32).clone()
    image[0, 0, 0, 0] = 31  # a mean of 31.9375
    assert colour_targets(image, 4).tolist() == [[8 + 1]]


def test_every_target_is_the_target_of_its_own_colour():
    targets = torch.arange(512)
    colours = target_colours(targets)  # (512, 3)
    assert colours.min() == 16
    assert colours.max() == 240
    assert torch.equal(colour_targets(colours.view(512, 3, 1, 1), 1)[:, 0], targets)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(1, 1, 8, 8), r"shape \(1, 1, 8, 8\): expected \(B, 3, H, W\)"),
        (torch.zeros(3, 8, 8), r"shape \(3, 8, 8\): expected four axes"),
        (torch.zeros(1, 3, 9, 8), "patch_size 4 does not divide"),
        (torch.full((1, 3, 8, 8), -0.5), r"images from -0\.5 to -0\.5: expected the range of bytes"),
        (torch.full((1, 3, 8, 8), 256.0), r"images from 256 to 256"),
        ([[1]], "images of type list: expected a tensor"),
    ],
)
def test_images_of_another_shape_or_range_are_refused(images, message):
    with pytest.raises(InputError, match=message):
        colour_targets(images, 4)


@pytest.mark.parametrize("targets", [torch.tensor([512]), torch.tensor([-1]), torch.tensor([1.0])])
def test_a_number_that_is_no_colour_is_refused(targets):
    with pytest.raises(InputError, match="not all from 0 to 511: expected whole numbers"):
        target_colours(targets)


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


@pytest.mark.parametrize(
    ("means", "visible", "grid"),
    [((2, 6, 3), (2, 6), (2, 2)), ((2, 6, 3), (2, 5), (2, 3)), ((6, 3), (6,), (2, 3))],
)
def test_neighbours_of_shapes_that_do_not_fit_are_refused(means, visible, grid):
    with pytest.raises(InputError, match=r"expected \(B, N, 3\), \(B, N\) and N = gh gw"):
        neighbour_colours(torch.zeros(means), torch.ones(visible) > 0, grid)
