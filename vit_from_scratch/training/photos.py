"""Any picture file as what a model takes: grey, with a palette, transparent, turned by EXIF."""

import os
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from vit_from_scratch.errors import InputError


def load_photo(path: str | os.PathLike[str], size: tuple[int, int], channels: int = 3) -> Tensor:
    """Read a picture, turn it upright, and bring its middle to a size.

    Transparent parts become white. The short side is resized to fit and the long one cropped around its
    middle, so nothing is stretched.

    Args:
        path: a file that Pillow can read.
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
    scale = max(size[0] / height, size[1] / width)
    around = [max(size[0], round(height * scale)), max(size[1], round(width * scale))]
    resized = v2.functional.resize(pixels, around, antialias=True)
    return v2.functional.center_crop(resized, list(size)).float() / 255


def open_photo(path: str | os.PathLike[str]) -> Image.Image:
    """Open a picture as RGB of 8 bits, upright, with transparent parts white.

    Raises:
        InputError: no such file, no picture, a damaged one, or one too large to be opened safely.
    """
    path = Path(path)
    try:
        with Image.open(path) as file:
            return _eight_bit(ImageOps.exif_transpose(file))
    except FileNotFoundError:
        raise InputError(
            f"no picture at {path}: expected a JPEG, PNG or WebP file; check the path."
        ) from None
    except UnidentifiedImageError:
        raise InputError(
            f"{path} is no picture that can be read: expected JPEG, PNG or WebP; convert it."
        ) from None
    except Image.DecompressionBombError as error:
        raise InputError(f"{path} is too large to be opened safely ({error}): shrink it first.") from None
    except (OSError, SyntaxError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path} cannot be read ({reason}): expected a whole picture file; fetch it again."
        ) from None


def _eight_bit(picture: Image.Image) -> Image.Image:
    """Return an RGB picture of 8 bits, transparency laid over white."""
    if picture.mode.startswith(("I", "F")):  # 16 or 32 bits of grey: stretched, since the scale is unknown
        values = np.asarray(picture, dtype=np.float64)
        spread = float(values.max() - values.min()) or 1.0
        picture = Image.fromarray(((values - values.min()) / spread * 255).astype(np.uint8))
    if "A" in picture.getbands() or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, (255, 255, 255, 255))
        picture = Image.alpha_composite(white, picture)
    return picture.convert("RGB")
