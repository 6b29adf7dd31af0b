"""Figures as small files: WebP, with a palette or at a photo's quality, where the eye sees no difference."""

import io
import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
from PIL import Image

SAME_TO_THE_EYE = 42.0  # decibels of signal over what the palette changes, on white and on black
PHOTO_QUALITY = 82  # of WebP with losses, 0 to 100
WORTH_IT = 0.9  # a lighter file has at most this share of the bytes
METHOD = 3  # counts up when this file makes other pictures of the same input


def likeness(picture: Image.Image, other: Image.Image) -> float:
    """How alike two pictures look, in decibels: the peak signal-to-noise ratio on the worse ground."""
    ratios = []
    for ground in (0, 255):
        errors = _on(picture, ground) - _on(other, ground)
        ratios.append(10 * np.log10(255**2 / max(float(np.square(errors).mean()), 1e-9)))
    return min(ratios)


def _on(picture: Image.Image, ground: int) -> np.ndarray:
    pixels = np.asarray(picture.convert("RGBA"), dtype=np.float32)
    opacity = pixels[..., 3:] / 255
    return pixels[..., :3] * opacity + ground * (1 - opacity)


def lighter(png: bytes) -> tuple[str, bytes]:
    """The ending and the bytes of a lighter file with the same picture, or the given ones.

    A drawing of few colours keeps 256 of them, without a further loss. Else the smaller of two: every pixel
    as it is, or what a photo may lose.
    """
    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    drawn = picture.quantize(256, method=Image.Quantize.FASTOCTREE).convert("RGBA")
    if likeness(picture, drawn) >= SAME_TO_THE_EYE:
        small = _webp(drawn, lossless=True)
    else:
        small = min(_webp(picture, lossless=True), _webp(picture, quality=PHOTO_QUALITY), key=len)
    return (".webp", small) if len(small) <= WORTH_IT * len(png) else (".png", png)


def _webp(picture: Image.Image, **how: float) -> bytes:
    file = io.BytesIO()
    picture.save(file, format="WEBP", method=5, **how)
    return file.getvalue()


def lighten_pictures(site: Path, cache: Path) -> list[str]:
    """Put lighter files in the place of the figures in `_images`; name the PNG files that became WebP.

    Args:
        site: the folder of the built book.
        cache: a folder in which results are kept from build to build; made where it is missing.
    """
    cache.mkdir(parents=True, exist_ok=True)
    renamed = []
    for path in sorted((site / "_images").glob("*.png")):
        png = path.read_bytes()
        key = f"{sha256(png).hexdigest()[:32]}-{METHOD}"
        made = next(cache.glob(f"{key}.*"), None)
        if made is None:
            ending, content = lighter(png)
            made = cache / f"{key}{ending}"
            made.write_bytes(content)
            (cache / f"{sha256(content).hexdigest()[:32]}-{METHOD}{ending}").write_bytes(content)
        shutil.copyfile(made, path.with_suffix(made.suffix))
        if made.suffix != ".png":
            path.unlink()
            renamed.append(path.name)
    return renamed
