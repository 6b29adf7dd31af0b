"""Bytes that a page makes a browser fetch, compressed."""

import pytest
from check_book import BUILT
from crawl import page_names
from weighing import weigh

pytestmark = pytest.mark.site

CHAPTER_LIMIT = 700_000
CHAPTERS = (
    [name for name in page_names(BUILT) if name.startswith("notebooks/")] if BUILT.exists() else ["none"]
)
OTHERS = ("book/index.html", "book/api/index.html", "search.html")


@pytest.mark.parametrize("name", [*CHAPTERS, "book/playground.html"])
def test_a_chapter_stays_below_700_kilobytes(browser, book, name):
    """With every picture, not only those that a reader sees first."""
    opened, whole = weigh(browser, f"{book}{name}")
    assert whole.total() <= CHAPTER_LIMIT, dict(whole)
    assert opened["Script"] < 240_000
    assert opened["Stylesheet"] < 60_000


def asked_for(page, address, word):
    """What a page asks for as it opens, of the addresses that have this word."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address, wait_until="networkidle")
    return [url for url in asked if word in url]


@pytest.mark.parametrize("name", OTHERS)
def test_pages_without_formulas_fetch_no_mathjax(page, book, name):
    assert asked_for(page, f"{book}{name}", "mathjax") == []


def test_the_search_index_comes_on_first_use(page, book):
    assert asked_for(page, f"{book}notebooks/01_patches.html", "searchindex") == []


def test_formulas_are_set_spoken_and_not_tab_stops(page, book):
    page.goto(f"{book}notebooks/03_attention.html", wait_until="networkidle")
    page.evaluate("MathJax.startup.promise")
    assert page.locator("mjx-container").count() > 20
    unspoken = "mjx-container:not(:has(mjx-assistive-mml math)), mjx-container[tabindex], mjx-merror"
    assert page.locator(unspoken).count() == 0


def missing_icons(page):
    """Icons without a glyph in their font: as wide as one that no font has; and how many icons there are."""
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
    return [name for name, length, there in drawn if length != 1 or not there], len(drawn)


def test_icons_are_drawn(page, book):
    """From the cut-down web fonts: each icon of the page has a glyph there, so it is as wide as its type."""
    page.goto(f"{book}notebooks/03_attention.html", wait_until="networkidle")
    page.evaluate("document.fonts.ready")
    missing, count = missing_icons(page)
    assert count > 5
    assert missing == []


def test_pictures_say_their_size_and_all_but_the_first_wait(page, book):
    page.goto(f"{book}notebooks/08_first_training_run.html")
    pictures = page.locator("article img")
    assert pictures.count() >= 6
    hasty = """all => all.filter((it, place) => !(it.width > 0 && it.hasAttribute("height")) ||
        (place && it.loading !== "lazy")).length"""
    assert pictures.evaluate_all(hasty) == 0
