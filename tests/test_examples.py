import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data

from vit_from_scratch import InputError, examples


@pytest.mark.parametrize("name", examples.PHOTOS)
def test_a_photo_is_the_square_that_pillow_would_cut_and_shrink(name):
    opened, (row, column), side = examples.PHOTOS[name]
    square = Image.fromarray(opened()).crop((column, row, column + side, row + side))
    expected = np.asarray(square.resize((64, 64), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    found = 255 * examples.photo(64, name)[0].numpy()
    assert np.abs(found - expected).max() < 1.01, "Pillow rounds twice, across and down"


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
