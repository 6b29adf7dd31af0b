"""The slides of the built book: every section and figure is on one, and no solution."""

import re

import make_slides
import pytest
from chapter_export.catalogue import read_catalogue
from project_facts import ROOT, chapters

pytestmark = pytest.mark.built


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_chapter_becomes_a_lecture(path, built):
    page = make_slides.slides_of(path, read_catalogue(ROOT))
    text = path.read_text(encoding="utf-8")
    sections = [title for title in re.findall(r"^## (.+)$", text, re.MULTILINE) if title != "Exercises"]
    headings = re.findall(r"<h2[^>]*>(.*?)<a", page, re.DOTALL)
    assert len(headings) == len(sections) + 1  # the exercises come last, with their titles
    titles = re.findall(r"^```\{exercise\} (.+)$", text, re.MULTILINE)
    assert page.count("<li>Exercise ") == len(titles)
    cells = make_slides.with_outputs(path, ROOT).cells
    end = next(place for place, cell in enumerate(cells) if "## Exercises" in cell.source)
    outputs = [output for cell in cells[:end] for output in cell.get("outputs", [])]
    drawn = sum("image/png" in output.get("data", {}) for output in outputs)
    assert page.count('src="data:image/png') >= drawn
    assert "Rubric" not in page


def test_a_book_that_is_not_built_is_one_sentence(tmp_path, capsys):
    for name in ("_config.yml", "pyproject.toml", "book/references.bib"):
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "03_attention.md").write_bytes(
        (ROOT / "notebooks/03_attention.md").read_bytes()
    )
    assert make_slides.main([], tmp_path) == 1
    assert "03_attention.md is not in the built book: run `make book` first" in capsys.readouterr().err
    assert make_slides.main(["99"], tmp_path) == 2
    assert "no chapter begins with 99" in capsys.readouterr().err
