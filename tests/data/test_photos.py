import os

import numpy as np
import pytest
import torch
from PIL import Image

from vit_from_scratch import InputError
from vit_from_scratch.data.photos import load_photo


def saved(tmp_path, picture: Image.Image, name: str = "a.png", **options):
    picture.save(tmp_path / name, **options)
    return tmp_path / name


def halves(mode: str = "RGB") -> Image.Image:
    """Left half red, right half blue, 60 x 40."""
    pixels = np.zeros((40, 60, 3), dtype=np.uint8)
    pixels[:, :30, 0], pixels[:, 30:, 2] = 255, 255
    return Image.fromarray(pixels).convert(mode)


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp", "a.bmp", "a.gif"])
def test_every_usual_format_is_read(tmp_path, name):
    photo = load_photo(saved(tmp_path, halves(), name), (16, 24))
    assert photo.shape == (3, 16, 24)
    assert photo[0, 8, 3] > 0.9
    assert photo[2, 8, 20] > 0.9


def test_the_middle_is_kept_and_nothing_is_stretched(tmp_path):
    circle = Image.new("L", (200, 100))
    yes, x = np.indices((100, 200))
    circle = Image.fromarray((((yes - 50) ** 2 + (x - 100) ** 2 < 30**2) * 255).astype(np.uint8))
    photo = load_photo(saved(tmp_path, circle), (50, 50))[0]
    inside = photo > 0.5
    assert inside.any(0).sum() == pytest.approx(inside.any(1).sum().item(), abs=1)
    assert inside.any(1).sum() == pytest.approx(30, abs=2)


@pytest.mark.parametrize("mode", ["L", "P", "1", "CMYK"])
def test_grey_and_palettes_become_three_channels(tmp_path, mode):
    name = "a.jpg" if mode == "CMYK" else "a.png"
    assert load_photo(saved(tmp_path, halves(mode), name), (8, 8)).shape == (3, 8, 8)


def test_transparency_becomes_white(tmp_path):
    clear = Image.new("RGBA", (10, 10), (255, 0, 0, 0))
    picture = Image.new("P", (10, 10), 3)
    picture.putpalette([0, 0, 0] * 256)
    for path in (saved(tmp_path, clear), saved(tmp_path, picture, "b.png", transparency=3)):
        assert load_photo(path, (4, 4)).min() == 1


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.pgm"])
def test_sixteen_bits_of_grey_are_those_of_white(tmp_path, name):
    deep = Image.fromarray(np.linspace(0, 65535, 400).reshape(20, 20).astype(np.uint16))
    photo = load_photo(saved(tmp_path, deep, name), (20, 20))
    assert torch.allclose(photo[0].flatten(), torch.linspace(0, 1, 400), atol=0.003)


def test_grey_of_an_unknown_scale_is_refused(tmp_path):
    strange = Image.fromarray(np.tile(np.array([-3.0, 7.0], dtype=np.float32), (2, 1)))
    with pytest.raises(InputError, match=r"a\.tif has greys of 32 bits, and nothing says which is white"):
        load_photo(saved(tmp_path, strange, "a.tif"), (2, 2))


def test_a_file_that_would_start_another_program_is_no_picture(tmp_path, monkeypatch):
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *given, **options: pytest.fail("started"))
    path = saved(tmp_path, halves(), "a.eps").rename(tmp_path / "cat.jpg")
    with pytest.raises(InputError, match="is not a picture that can be read"):
        load_photo(path, (8, 8))


def test_a_photo_turned_by_exif_is_turned_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held a quarter turn to the left
    path = saved(tmp_path, halves(), "a.jpg", exif=exif)
    photo = load_photo(path, (24, 16))
    assert photo[0, 3].mean() > 0.9, "red is on top now"
    assert photo[2, 20].mean() > 0.9


@pytest.mark.parametrize("size", [(1, 1), (3, 900), (40_000, 2)])
def test_tiny_and_long_pictures_are_read(tmp_path, size):
    photo = load_photo(saved(tmp_path, Image.new("RGB", size, (9, 9, 9))), (32, 32))
    assert photo.shape == (3, 32, 32)
    assert torch.allclose(photo, torch.tensor(9 / 255))


def test_a_picture_becomes_grey_for_a_model_of_one_channel(tmp_path):
    photo = load_photo(saved(tmp_path, halves()), (8, 8), channels=1)
    assert photo.shape == (1, 8, 8)
    assert photo[0, 4, 1].item() == pytest.approx(0.299, abs=0.01)  # the weight of red in ITU-R 601
    assert photo[0, 4, 6].item() == pytest.approx(0.114, abs=0.01)  # of blue
    with pytest.raises(InputError, match=r"channels = 4: expected 3 \(colour\) or 1"):
        load_photo(tmp_path / "a.png", (8, 8), channels=4)


def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path, monkeypatch):
    whole = saved(tmp_path, halves()).read_bytes()
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    os.mkfifo(tmp_path / "pipe.png")
    for name, message in (
        ("none.png", "no picture at"),
        ("text.png", "is not a picture that can be read"),
        ("empty.png", "is not a picture that can be read"),
        ("cut.png", r"cannot be read \("),
        ("", "it is not a file"),
        ("pipe.png", "it is not a file"),
        ("n" * 300, r"cannot be opened \(File name too long\)"),
        ("a\0b", "cannot be opened"),
    ):
        with pytest.raises(InputError, match=message):
            load_photo(tmp_path / name, (8, 8))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(InputError, match="too large to be opened safely"):
        load_photo(tmp_path / "a.png", (8, 8))
