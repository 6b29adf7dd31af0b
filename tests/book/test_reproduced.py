"""The page "Reproduce it" leaves out no result that measured test images, and no deviation of a chapter."""

import json

import pytest
from bs4 import BeautifulSoup
from project_facts import ROOT
from vit_book import reproduced

from vit_lab import load_result


def test_every_result_that_measured_test_images_is_counted():
    told = {line.split("`")[1]: line for line in reproduced.tested_text() if "`" in line}
    files = ROOT.glob("vit_lab/results/*.json")
    measured = {file.stem for file in files if '"test_accuracy"' in file.read_text(encoding="utf-8")}
    features = {name for name in measured if name.startswith("features")}  # classifiers, not models
    assert set(told) == measured - features
    assert "| 3 |" in told["cifar10-half-hour-conv"]
    assert json.dumps(load_result("cifar10_resolution")).count('"test_accuracy":') == 6
    assert "| 6 |" in told["cifar10_resolution"]


def test_every_deviation_of_a_chapter_is_told():
    sources = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("notebooks/*.md"))
    assert len(reproduced.deviations_text()) == sources.count(":class: deviation") > 10


def test_links_of_a_chapter_still_lead_there(tmp_path):
    (tmp_path / "notebooks").mkdir()
    text = (
        ":::{admonition} Deviation\n:class: deviation\nSee {doc}`06_parity` and\n{doc}`../book/speed`.\n:::\n"
    )
    (tmp_path / "notebooks/04_encoder.md").write_text(text, encoding="utf-8")
    (line,) = reproduced.deviations_text(tmp_path)
    assert line == "- {doc}`../notebooks/04_encoder`: See {doc}`../notebooks/06_parity` and {doc}`speed`."


@pytest.mark.built
def test_the_page_shows_the_deviations_and_the_table(built):
    page = BeautifulSoup((built / "book/reproduce.html").read_text(encoding="utf-8"), "html.parser")
    shown = page.select(".recipes li")
    assert len(shown) == len(reproduced.deviations_text())
    assert all(line.a for line in shown)  # each leads to its chapter
    tested, table_6 = page.select(".recipes table")
    assert len(tested.select("tr")) == len(reproduced.tested_text()) - 1
    assert table_6.select("tr")[2].get_text(" ", strip=True).startswith("ViT-B/16 7 84.15 88.85")
