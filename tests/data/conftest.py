"""Small photos for the tests of data sets."""

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def save_photo():
    """A function that writes a photo of random pixels, or of one colour, and returns its path."""

    def save(path, size=(12, 10), seed=None, mode="RGB", colour=(90, 60, 30)):
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = Image.new("RGB", size, colour)
        if seed is not None:
            pixels = np.random.default_rng(seed).integers(256, size=(size[1], size[0], 3), dtype=np.uint8)
            picture = Image.fromarray(pixels)
        picture.convert(mode).save(path)
        return path

    return save
