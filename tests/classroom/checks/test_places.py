"""What a message says to read again is there to be read."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from vit_classroom import checks
from vit_classroom.checks.report import Piece

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"
MODULES = [
    importlib.import_module(f"{checks.__name__}.{module.name}")
    for module in pkgutil.iter_modules(checks.__path__)
]
PIECES = {
    id(value): value for module in MODULES for value in vars(module).values() if isinstance(value, Piece)
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=lambda piece: piece.name)
def test_a_piece_names_a_heading_or_an_exercise_of_its_chapter(piece):
    place = re.fullmatch(r'chapter (\d+), (exercise )?"(.+)"', piece.where)
    assert place
    (chapter,) = NOTEBOOKS.glob(f"{int(place[1]):02}_*.md")
    start = "```{exercise}" if place[2] else "##+"
    assert re.search(
        rf"^{start} {re.escape(place[3])}$", chapter.read_text(encoding="utf-8"), re.MULTILINE
    ), f"{chapter.name} has no such place: {piece.where}"
