"""Pictures that know what they were drawn from, so that a check can tell whether they are stale."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

KEY = "drawn from"


def fingerprint(sources: Iterable[Path]) -> str:
    """A short name for the contents of the files that a picture depends on."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def is_fresh(picture: Path, sources: Iterable[Path]) -> bool:
    """Whether the picture was drawn from these files as they are now."""
    return picture.exists() and Image.open(picture).info.get(KEY) == fingerprint(sources)


def save(figure: Figure, picture: Path, sources: Iterable[Path], dpi: int) -> None:
    """Write the figure as a PNG that carries the fingerprint; the same figure gives the same bytes."""
    figure.savefig(picture, dpi=dpi, metadata={KEY: fingerprint(sources), "Software": None})
