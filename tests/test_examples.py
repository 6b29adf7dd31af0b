import pytest
import torch
from skimage import data
from skimage.transform import resize

from vit_from_scratch import InputError, examples


@pytest.mark.parametrize("name", examples.PHOTOS)
def test_a_photo_is_the_square_that_scikit_image_would_cut_and_shrink(name):
    opened, (row, column), side = examples.PHOTOS[name]
    square = opened()[row : row + side, column : column + side]
    expected = torch.from_numpy(resize(square, (64, 64), anti_aliasing=True)).permute(2, 0, 1).float()
    found = examples.photo(64, name)[0]
    assert found.shape == (3, 64, 64)
    assert (found - expected).abs().mean() < 0.02


def test_the_square_can_begin_elsewhere():
    left = examples.photo(400, "coffee", (0, 0))[0]
    assert torch.equal((255 * left).round().byte(), torch.from_numpy(data.coffee()[:, :400]).permute(2, 0, 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((64, "dog"), "unknown photo 'dog': expected one of 'cat', 'coffee'"),
        ((0, "cat"), "size = 0: expected a side in pixels"),
        ((64, "cat", (0, 152)), r"corner = \(0, 152\): expected a row from 0 to 0 and a column"),
    ],
)
def test_what_there_is_not_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        examples.photo(*arguments)
