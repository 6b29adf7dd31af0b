"""The book as built by `make book`, which must be run first."""

import json
import re
from importlib.metadata import version

import pytest
from bs4 import BeautifulSoup
from project_facts import ROOT, chapters, read_repository, reading_minutes, time_text, writing_minutes
from vit_book.lean_files import COMPANIONS

from vit_lab.experiments.recipes import NOT_RUN, recipe_rows

pytestmark = pytest.mark.built
CHAPTERS = [path.stem for path in chapters(ROOT)]


def read(built, name):
    return (built / f"{name}.html").read_text(encoding="utf-8")


def test_part_two_lists_every_recipe_with_the_number_of_its_run(built):
    page = read(built, "book/part_2_train")
    ran = [row for row in recipe_rows()[1:] if row[2] != NOT_RUN]
    assert ran
    for name, _, reached, *_ in ran:
        rows = re.findall(rf"<tr[^>]*>(?:(?!</tr>).)*>{name}<.*?</tr>", page, flags=re.DOTALL)
        assert [reached in re.sub("<[^>]*>", "", row) for row in rows] == [True], name


def test_every_page_ends_with_its_licence_and_how_to_cite_it(built):
    files = f"{read_repository().url}/blob/main"
    for name in ("book/index", "notebooks/01_patches", "book/api/model"):
        footer = read(built, name).rpartition('class="colophon"')[2]
        assert f'href="{files}/LICENSE"' in footer, name
        assert f'href="{files}/THIRD_PARTY.md"' in footer, name
        assert f'href="{files}/CITATION.cff"' in footer, name


def test_what_is_cut_down_keeps_its_licence_beside_it(built):
    static = built / "_static"
    for name, words in (
        ("mathjax/LICENSE", "Apache License"),
        ("LICENCES.txt", "Copyright (c) 2011-2024 The Bootstrap Authors"),
        *(("LICENCES.txt", f"{name} {version(name)}\n") for name in COMPANIONS),
        ("styles/pydata-sphinx-theme.css.LICENSE.txt", "Bootstrap"),
        ("styles/pydata-sphinx-theme.css.LICENSE.txt", "Font Awesome Free"),
    ):
        assert words in (static / name).read_text(encoding="utf-8")


def test_the_reference_links_chapters_and_shows_no_words_of_an_interpreter(built):
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (built / "book/api").glob("*.html")}
    assert "notebooks/03_attention.html" in pages["checks"].partition("<article")[2]
    for name, page in pages.items():
        assert not re.search("PosixPath|&lt;(factory|function|dataclasses)", page), name


def test_the_landing_page_adds_up_the_hours_of_a_path(built):
    page = BeautifulSoup(read(built, "book/index"), "html.parser")
    (row,) = (row for row in page.select("tr") if "line by line" in row.get_text())
    minutes = [sum(map(count, CHAPTERS[:6])) for count in (reading_minutes, writing_minutes)]
    told = row.select("td")[-1].get_text().replace("¼", ".25").replace("½", ".5").replace("¾", ".75")
    hours = [float(part.removesuffix("\N{NO-BREAK SPACE}h")) for part in told.split(" + ")]
    assert all(0 <= 60 * found - expected < 15 for found, expected in zip(hours, minutes, strict=True))


def test_opening_the_folder_leads_to_the_landing_page(built):
    assert 'url=book/index.html"' in read(built, "index")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_download_is_the_exported_notebook(built, chapter):
    downloaded = built / "_sources" / "notebooks" / f"{chapter}.ipynb"
    assert downloaded.read_bytes() == (ROOT / "notebooks" / f"{chapter}.ipynb").read_bytes()
    assert f"_sources/notebooks/{chapter}.ipynb" in read(built, f"notebooks/{chapter}")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_colab_button_opens_the_exported_notebook(built, chapter):
    assert read_repository().colab_url(f"notebooks/{chapter}.ipynb") in read(built, f"notebooks/{chapter}")


def test_every_picture_of_a_chapter_has_a_number_and_a_caption(built):
    seen = 0
    for chapter in CHAPTERS:
        article = BeautifulSoup(read(built, f"notebooks/{chapter}"), "html.parser").find("article")
        for image in article.select("img"):
            figure = image.find_parent("figure")
            assert figure, (
                f"{chapter}: {image['src']} has no caption: give its cell a figure with name and caption"
            )
            assert figure.select_one("figcaption .caption-number"), f"{chapter}: {image['src']}"
            seen += 1
    assert seen > 40


def test_numbers_of_runs_end_at_the_right(built):
    table = BeautifulSoup(read(built, "book/part_2_train"), "html.parser").select_one(".recipes")
    head, *rows = table.select("tr")
    right = [cell.get_text(strip=True) for cell in head.select("th.text-right")]
    assert right == ["reached", "a repeat should reach", "time of a run"]
    waiting = [name for name, _, reached, *_ in recipe_rows() if reached == NOT_RUN]
    assert [code.get_text() for code in table.select("p code") if not code.find_parent("table")] == waiting
    assert len(rows) + len(waiting) == len(recipe_rows()) - 1


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_says_how_long_it_takes(built, chapter):
    assert time_text(chapter) in read(built, f"notebooks/{chapter}")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_box_opens_its_own_cell_in_colab(built, chapter):
    place = f"exercises/{chapter}.ipynb"
    cells = json.loads((ROOT / place).read_text(encoding="utf-8"))["cells"]
    task_of = {cell["id"]: cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in cells}
    boxes = BeautifulSoup(read(built, f"notebooks/{chapter}"), "html.parser").select(".your-turn")
    assert boxes or chapter == "06_parity"
    for box in boxes:
        (address,) = [link["href"] for link in box.select("a") if "#scrollTo=" in link["href"]]
        notebook, _, cell = address.partition("#scrollTo=")
        assert notebook == read_repository().colab_url(place)
        assert task_of[cell] == box.select_one(".admonition-title code").get_text()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_exercises_have_the_numbers_of_the_notebook(built, chapter):
    notebook = (ROOT / "notebooks" / f"{chapter}.ipynb").read_text(encoding="utf-8")
    exported = re.findall(r"### (Exercise \d+\.\d+)", notebook)
    shown = re.findall(r'class="caption-number">\s*(Exercise \d+\.\d+)', read(built, f"notebooks/{chapter}"))
    shown = shown or re.findall(
        r'admonition-title"><span[^>]*>(Exercise \d+\.\d+)', read(built, f"notebooks/{chapter}")
    )
    assert exported
    assert exported == shown


def test_no_page_carries_scripts_for_live_code(built):
    for page in built.rglob("*.html"):
        assert "thebe" not in page.read_text(encoding="utf-8").lower(), page


def test_the_paper_is_in_the_bibliography(built):
    assert "an image is worth 16x16 words" in re.sub(r"\s+", " ", read(built, "book/bibliography")).lower()


def test_the_reference_documents_every_module_of_the_model(built):
    documented = read(built, "book/api/model")
    for path in (ROOT / "vit_from_scratch" / "model").glob("[!_]*.py"):
        assert f"module-vit_from_scratch.model.{path.stem}" in documented


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_fold_that_promises_a_result_has_one(built, name):
    """A cell under "For the careful reader" prints or draws something; others may be code alone."""
    page = BeautifulSoup(read(built, f"notebooks/{name}"), "html.parser")
    titles = page.select("div.cell details.hide > summary > .collapsed")
    promised = (ROOT / "notebooks" / f"{name}.md").read_text("utf-8").count('code_prompt_show: "')
    assert len(titles) >= promised
    for title in titles:
        if title.get_text().startswith("For the careful reader"):
            shown = title.find_parent("div", class_="cell").select_one(".cell_output")
            assert shown, title.get_text()
            assert shown.get_text(strip=True) or shown.select_one("img"), title.get_text()
