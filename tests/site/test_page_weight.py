"""Bytes that a page makes a browser fetch, compressed; tools/measure_pages.py prints them and the seconds."""

import pytest
from check_links import BUILT
from crawl import page_names
from measure_pages import weigh

pytestmark = pytest.mark.site

CHAPTER_LIMIT = 700_000
CHAPTERS = (
    [name for name in page_names(BUILT) if name.startswith("notebooks/")] if BUILT.exists() else ["none"]
)
OTHERS = ("book/index.html", "book/api/index.html", "search.html")


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_stays_below_700_kilobytes(browser, book, name):
    """With every picture, not only those that a reader sees first."""
    opened, whole = weigh(browser, f"{book}{name}")
    assert whole.total() <= CHAPTER_LIMIT, dict(whole)
    assert opened["Script"] < 230_000
    assert opened["Stylesheet"] < 60_000


@pytest.mark.parametrize("name", OTHERS)
def test_pages_without_formulas_fetch_no_mathjax(page, book, name):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{book}{name}", wait_until="networkidle")
    assert not [url for url in asked if "mathjax" in url]


def test_formulas_are_set_spoken_and_no_tab_stops(page, book):
    page.goto(f"{book}notebooks/03_attention.html", wait_until="networkidle")
    page.evaluate("MathJax.startup.promise")
    formulas = page.locator("mjx-container")
    assert formulas.count() == page.locator("mjx-container mjx-assistive-mml math").count() > 20
    assert page.locator("mjx-container[tabindex], mjx-merror").count() == 0


def test_icons_are_drawn(page, book):
    """From the cut-down web fonts: each icon of the page has a glyph there, so it is as wide as its type."""
    page.goto(f"{book}notebooks/03_attention.html", wait_until="networkidle")
    page.evaluate("document.fonts.ready")
    drawn = page.evaluate(
        """() => [...document.querySelectorAll("[class*=fa-]")].filter((it) => it.checkVisibility())
            .map((icon) => {
            const style = getComputedStyle(icon, "::before");
            const canvas = document.createElement("canvas").getContext("2d");
            canvas.font = `${style.fontWeight} 100px ${style.fontFamily}`;
            const glyph = style.content.replaceAll('"', "");
            const missing = canvas.measureText("\\uf8fe").width;
            return [icon.className, glyph.length, canvas.measureText(glyph).width !== missing];
        })"""
    )
    assert len(drawn) > 5
    assert [name for name, length, there in drawn if length != 1 or not there] == []


def test_pictures_say_their_size_and_wait(page, book):
    page.goto(f"{book}notebooks/07_first_training_run.html")
    pictures = page.locator("article img")
    assert pictures.count() >= 6
    sizes = pictures.evaluate_all(
        "all => all.map(it => [it.width > 0 && it.hasAttribute('height'), it.loading])"
    )
    assert [fine for fine, _ in sizes] == [True] * len(sizes)
    assert [loading for _, loading in sizes][1:] == ["lazy"] * (len(sizes) - 1)
