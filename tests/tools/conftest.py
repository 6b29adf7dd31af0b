"""Chapters that hold every construct, and a small project that the tools may change."""

from pathlib import Path

import pytest
from chapter_export.catalogue import read_catalogue
from project_facts import ROOT

DATA = Path(__file__).parent / "data"
STILL = ("book/widgets/run.html", "book/widgets/run.png", "book/_static/drawings.css")


@pytest.fixture(scope="session")
def catalogue():
    """Labels of the real chapters, and of the two that hold every construct."""
    return read_catalogue(ROOT, extra=tuple(sorted(DATA.glob("*.md"))))


@pytest.fixture
def copied_project(tmp_path):
    """A small project with what the tools read and write, free to be changed."""
    for name in ("_config.yml", "pyproject.toml", "CITATION.cff", "book/references.bib", "Makefile", *STILL):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    for name in ("tools/project_facts.py", "vit_from_scratch/__init__.py", "book/_static/logo.svg"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    (tmp_path / "notebooks").mkdir()
    for chapter in DATA.glob("*.md"):
        (tmp_path / "notebooks" / chapter.name).write_bytes(chapter.read_bytes())
    return tmp_path
