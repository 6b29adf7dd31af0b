"""An image is cut into patches without loss, and their projection is a strided convolution."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from vit_from_scratch import InputError
from vit_from_scratch.model.patches import (
    PatchEmbedding,
    patchify,
    unpatchify,
)

SHAPES = [((1, 1, 4, 4), 2), ((2, 3, 8, 8), 8), ((2, 3, 6, 10), 2), ((1, 4, 9, 15), 3), ((2, 3, 5, 7), 1)]


@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_patches_are_the_slices_that_a_loop_cuts(shape, size):
    images = torch.randn(shape)
    by_loop = [
        images[:, :, row : row + size, column : column + size].permute(0, 2, 3, 1).flatten(1)
        for row in range(0, shape[2], size)
        for column in range(0, shape[3], size)
    ]
    assert torch.equal(patchify(images, size), torch.stack(by_loop, dim=1))


@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_unpatchify_inverts_patchify(shape, size):
    images = torch.randn(shape)
    grid = shape[2] // size, shape[3] // size
    assert torch.equal(unpatchify(patchify(images, size), size, grid), images)


@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_unfold_and_project_equals_the_strided_convolution(shape, size):
    images = torch.randn(shape, dtype=torch.float64)
    embedding = PatchEmbedding(size, shape[1], 10).double()
    kernel = embedding.as_convolution_weight()
    convolved = F.conv2d(images, kernel, embedding.projection.bias, stride=size)
    torch.testing.assert_close(embedding(images), convolved.flatten(2).transpose(1, 2))


def test_the_embedding_starts_with_variance_one_over_its_inputs():
    weight = PatchEmbedding(16, 3, 768).projection.weight
    assert weight.var().item() == pytest.approx(1 / 768, rel=0.02)
    assert weight.abs().max() < 2 / 0.87 * (1 / 768) ** 0.5 * 1.02  # cut at two standard deviations


@pytest.mark.parametrize("size", [3, 5, 0, -2])
def test_a_patch_that_does_not_divide_the_image_is_refused(size):
    with pytest.raises(InputError, match=rf"patch_size {size} does not divide the image size 8 x 4"):
        patchify(torch.zeros(1, 3, 8, 4), size)


def test_an_image_without_a_batch_is_refused():
    with pytest.raises(InputError, match=r"expected four axes \(B, C, H, W\)"):
        patchify(torch.zeros(3, 8, 8), 4)


def test_patches_that_do_not_fill_the_grid_are_refused():
    with pytest.raises(InputError, match=r"expected \(B, 6, 4 C\)"):
        unpatchify(torch.zeros(1, 5, 12), 2, (2, 3))
    with pytest.raises(InputError, match="and patch_size 0; check grid"):
        unpatchify(torch.zeros(1, 6, 12), 0, (2, 3))


@pytest.mark.parametrize("images", [None, [[1.0]], np.zeros((1, 3, 8, 8)), Image.new("RGB", (8, 8))])
def test_what_is_no_tensor_is_refused(images):
    with pytest.raises(
        InputError, match=rf"images of type {type(images).__name__}: expected a tensor \(B, C, H, W\)"
    ):
        patchify(images, 4)
    with pytest.raises(InputError, match=rf"patches of type {type(images).__name__}: expected a tensor"):
        unpatchify(images, 4, (2, 2))
