"""Any picture file as what a model takes; nothing needs PyTorch until a picture becomes a tensor."""

import io
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.paths import stat_of

if TYPE_CHECKING:
    from torch import Tensor

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "MPO", "PPM", "JPEG2000", "AVIF", "ICO", "TGA")
"""The formats that are opened, by Pillow's names; Pillow would hand EPS to Ghostscript."""

LONG = 20
"""How many times the short side a picture's long side may be; the rest is cut off on opening."""


class InFile(Protocol):
    """A photo inside a larger file; `str` of it says where, for messages."""

    def read(self) -> bytes:
        """Return the bytes that a file of its own would have."""
        ...

    def described(self) -> str:
        """Return a line that tells the photo from others."""
        ...


PhotoFile = str | os.PathLike[str] | InFile
"""Where a photo is."""


def load_photo(path: str | os.PathLike[str], size: tuple[int, int], channels: int = 3) -> "Tensor":
    """Read a picture, turn it upright, and bring its middle to a size.

    Transparent parts become white; 16 bits of grey become 8. The short side is resized to fit and the long
    one cropped around its middle, so nothing is stretched.

    Args:
        path: a JPEG, PNG or WebP file, or one of the other `FORMATS`.
        size: (H, W) in pixels; (C, H, W) floats in [0, 1] come back; normalise 255 times them.
        channels: C, 3 for colour or 1 for grey.

    Raises:
        InputError: as for `open_photo`, or another number of channels was asked for.
    """
    import torch
    import torch.nn.functional as F

    if channels not in (1, 3):
        raise InputError(f"channels = {channels}: expected 3 (colour) or 1 (grey) for a picture from a file.")
    upright = open_photo(path).convert("RGB" if channels == 3 else "L")
    pixels = torch.tensor(np.asarray(upright)).view(upright.height, upright.width, channels)  # uint8
    scale = max(size[0] / upright.height, size[1] / upright.width)
    around = [max(side, round(long * scale)) for side, long in zip(size, pixels.shape[:2], strict=True)]
    resized = F.interpolate(pixels.permute(2, 0, 1)[None], around, mode="bilinear", antialias=True)[0]
    top, left = (round((long - side) / 2) for side, long in zip(size, around, strict=True))
    return resized[:, top : top + size[0], left : left + size[1]].float() / 255


def open_photo(photo: PhotoFile) -> Image.Image:
    """Open a picture as 8-bit RGB, upright, with transparent parts white; of a very long one the middle.

    Raises:
        InputError: no such file, or not a picture, a damaged one, or one too large to be opened safely.
    """
    try:
        Image.init()
        known = [name for name in FORMATS if name in Image.OPEN]  # Pillow must not be asked for others
        with Image.open(_file(photo), formats=known) as picture:
            upright = _shortened(ImageOps.exif_transpose(picture))
            return _eight_bit(upright, picture.format, photo)
    except InputError:
        raise
    except UnidentifiedImageError:
        wrong = "is not a picture that can be read: expected JPEG, PNG or WebP; convert it."
    except Image.DecompressionBombError as error:
        wrong = f"is too large to be opened safely ({error}): shrink it first."
    except (OSError, SyntaxError, ValueError) as error:
        wrong = f"cannot be read ({reason(error)}): expected a whole picture file; fetch it again."
    raise InputError(f"{photo} {wrong}")


def picture_size(photo: PhotoFile) -> tuple[int, int] | None:
    """Return width and height as a picture file's header says; None if it cannot be read."""
    try:
        with Image.open(_file(photo)) as file:
            return file.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None


def regular_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file; an `InputError` if nothing is there, or a folder, a pipe or a device."""
    found = stat_of(path := Path(path))
    if found is None:
        raise InputError(f"no picture at {path}: expected a JPEG, PNG or WebP file; check the path.")
    if not stat.S_ISREG(found.st_mode):  # a pipe would be waited for
        raise InputError(f"{path} cannot be read (it is not a file): expected a picture; name its file.")
    return path


def _file(photo: PhotoFile) -> Path | io.BytesIO:
    """Return what Pillow opens."""
    return regular_file(photo) if isinstance(photo, str | os.PathLike) else io.BytesIO(photo.read())


def _shortened(picture: Image.Image) -> Image.Image:
    """Return the middle of what is more than `LONG` times as long as wide: enlarged, it would fill memory."""
    short = min(picture.size)
    left, top = (max(0, side - LONG * short) // 2 for side in picture.size)
    return picture.crop((left, top, picture.width - left, picture.height - top)) if left or top else picture


def _eight_bit(picture: Image.Image, kind: str | None, photo: PhotoFile) -> Image.Image:
    """Return an RGB picture of 8 bits, transparency laid over white."""
    if picture.mode.startswith(("I", "F")):
        if not (picture.mode.startswith("I;16") or (picture.mode == "I" and kind in ("PNG", "PPM"))):
            raise InputError(
                f"{photo} has greys of 32 bits, and nothing says which is white: expected 8 or 16 bits; "
                "convert it."
            )
        grey = np.asarray(picture, dtype=np.float64) / 65535 * 255  # (H, W)
        picture = Image.fromarray(grey.round().clip(0, 255).astype(np.uint8))
    if "A" in picture.getbands() or "transparency" in picture.info:
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture.convert("RGBA"))
    return picture.convert("RGB")
