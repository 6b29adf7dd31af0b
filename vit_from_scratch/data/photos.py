"""Any picture file as what a model takes: grey, with a palette, transparent, turned by EXIF."""

import contextlib
import functools
import io
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.paths import stat_of

FORMATS = (
    "JPEG",
    "PNG",
    "WEBP",
    "GIF",
    "BMP",
    "TIFF",
    "MPO",
    "PPM",
    "JPEG2000",
    "AVIF",
    "ICO",
    "TGA",
)
"""What a picture's file may hold, by Pillow's names: pixels, and nothing that starts another program.

Pillow hands EPS, whatever the file is called, to Ghostscript.
"""

LONG = 100
"""How many times the part that is kept a side may be; beyond, the rest is cut off before resizing."""


def load_photo(path: str | os.PathLike[str], size: tuple[int, int], channels: int = 3) -> Tensor:
    """Read a picture, turn it upright, and bring its middle to a size.

    Transparent parts become white; 16 bits of grey become 8. The short side is resized to fit and the long
    one cropped around its middle, so nothing is stretched.

    Args:
        path: a JPEG, PNG or WebP file, or one of the other `FORMATS`.
        size: (H, W) in pixels.
        channels: C, 3 for colour or 1 for grey.

    Returns:
        (C, H, W) floats in [0, 1].

    Raises:
        InputError: no such file, no picture, a damaged one, one too large to be opened safely, or another
            number of channels.
    """
    from torchvision.transforms import v2  # imported here: it takes seconds

    if channels not in (1, 3):
        raise InputError(f"channels = {channels}: expected 3 (colour) or 1 (grey) for a picture from a file.")
    upright = open_photo(path).convert("RGB" if channels == 3 else "L")
    pixels = v2.functional.pil_to_tensor(upright)  # (C, h, w) uint8
    height, width = pixels.shape[1:]
    most = [math.ceil(LONG * width * size[0] / size[1]), math.ceil(LONG * height * size[1] / size[0])]
    if height > most[0] or width > most[1]:  # resized whole, a line of pixels would fill the memory
        pixels = v2.functional.center_crop(pixels, [min(height, most[0]), min(width, most[1])])
        height, width = pixels.shape[1:]
    scale = max(size[0] / height, size[1] / width)
    around = [max(size[0], round(height * scale)), max(size[1], round(width * scale))]
    resized = v2.functional.resize(pixels, around, antialias=True)
    return v2.functional.center_crop(resized, list(size)).float() / 255


def open_photo(path: str | os.PathLike[str]) -> Image.Image:
    """Open a picture as RGB of 8 bits, upright, with transparent parts white.

    Raises:
        InputError: no such file, no picture, a damaged one, or one too large to be opened safely.
    """
    path = _regular(path)
    return decode_photo(path, path)


def decode_photo(file: Path | BinaryIO, name: object) -> Image.Image:
    """Decode a picture as `open_photo` does.

    Args:
        file: its path, or a stream of its bytes.
        name: what it is called in messages.

    Raises:
        InputError: no picture, a damaged one, or one too large to be opened safely.
    """
    with _explained(name), Image.open(file, formats=_formats()) as picture:
        return _eight_bit(ImageOps.exif_transpose(picture), picture.format)


def check_photo(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a picture's file if it is whole.

    All of it is decoded, a JPEG to a small picture, which is faster and misses nothing.

    Raises:
        InputError: as `open_photo`.
    """
    path = _regular(path)
    with _explained(path):
        content = path.read_bytes()
        with Image.open(io.BytesIO(content), formats=_formats()) as picture:
            if picture.format == "JPEG":
                picture.draft(None, (1, 1))
                picture.load()
            else:
                _eight_bit(ImageOps.exif_transpose(picture), picture.format)
    return content


def _regular(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file.

    Raises:
        InputError: there is none, or something else.
    """
    path = Path(path)
    found = stat_of(path)
    if found is None:
        raise InputError(f"no picture at {path}: expected a JPEG, PNG or WebP file; check the path.")
    if not stat.S_ISREG(found.st_mode):  # a pipe would be waited for
        raise InputError(f"{path} cannot be read (it is no file): expected a picture; name its file.")
    return path


@contextlib.contextmanager
def _explained(name: object) -> Iterator[None]:
    """Turn what Pillow says of a picture that it cannot read into one sentence."""
    try:
        yield
    except UnidentifiedImageError:
        raise InputError(
            f"{name} is no picture that can be read: expected JPEG, PNG or WebP; convert it."
        ) from None
    except Image.DecompressionBombError as error:
        raise InputError(f"{name} is too large to be opened safely ({error}): shrink it first.") from None
    except InputError:
        raise
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(
            f"{name} cannot be read ({reason(error)}): expected a whole picture file; fetch it again."
        ) from None


@functools.cache
def _formats() -> list[str]:
    """Return those of `FORMATS` that this build of Pillow has; it must not be asked for others."""
    Image.init()
    return [name for name in FORMATS if name in Image.OPEN]


def _eight_bit(picture: Image.Image, kind: str | None) -> Image.Image:
    """Return an RGB picture of 8 bits, transparency laid over white."""
    if picture.mode.startswith(("I", "F")):
        sixteen = picture.mode.startswith("I;16") or (picture.mode == "I" and kind in ("PNG", "PPM"))
        values = np.asarray(picture, dtype=np.float64)
        picture = Image.fromarray(_bytes(values, 65535 if sixteen else None))
    if "A" in picture.getbands() or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, (255, 255, 255, 255))
        picture = Image.alpha_composite(white, picture)
    return picture.convert("RGB")


def _bytes(values: np.ndarray, white: float | None) -> np.ndarray:
    """Bring grey of more than 8 bits, or of fractions, to bytes.

    Args:
        values: (H, W).
        white: what stands for white, if the file's format says it. Without, as in a TIFF of 32 bits, the
            darkest value becomes black and the lightest white. Where all are one value, it is taken for a
            share of 1, of 255 or of 65,535, the first that holds it; what none of them holds becomes a
            middle grey.
    """
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(high - low):
        raise ValueError("it holds values that are no finite numbers")
    if white is None:
        if high > low:
            values, white = values - low, high - low
        else:
            white = next((most for most in (1.0, 255.0, 65535.0) if 0 <= high <= most), 2 * high or 1.0)
    return (values / white * 255).round().clip(0, 255).astype(np.uint8)
