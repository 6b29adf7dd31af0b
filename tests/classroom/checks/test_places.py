"""What a message says to read again is there to be read."""

import re
from pathlib import Path

import pytest

from vit_classroom import checks

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"


@pytest.mark.parametrize("name", [name for name in checks.__all__ if name != "CheckFailed"])
def test_a_piece_names_a_heading_or_an_exercise_of_its_chapter(name):
    piece = getattr(checks, name).piece
    place = re.fullmatch(r'chapter (\d+), (exercise )?"(.+)"', piece.where)
    assert place
    (chapter,) = NOTEBOOKS.glob(f"{int(place[1]):02}_*.md")
    start = "```{exercise}" if place[2] else "##+"
    assert re.search(
        rf"^{start} {re.escape(place[3])}$", chapter.read_text(encoding="utf-8"), re.MULTILINE
    ), f"{chapter.name} has no such place: {piece.where}"
