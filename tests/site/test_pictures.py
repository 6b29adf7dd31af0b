"""What is seen in pictures of pages and in figures: the focus, and colours on both grounds."""

import pytest
from check_book import BUILT
from figures import faint_on_pages, figures_of_pages
from known import check, unused
from looks import invisible_focus, settle, switch_theme
from PIL import ImageColor

pytestmark = pytest.mark.site

CHAPTER = "notebooks/05_vision_transformer.html"
CONTROLS = (
    "book/index.html",
    CHAPTER,
    "notebooks/13_attention_maps.html",
    "search.html",
    "book/api/plots.html",
    "book/recipes_log.html",
    "book/notation.html",
    "book/for_instructors.html",
    "genindex.html",
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_control_shows_that_it_has_the_focus(page, book, theme):
    page.emulate_media(color_scheme=theme)
    findings = {}
    for name in CONTROLS:
        page.goto(f"{book}{name}")
        settle(page)
        findings[name] = invisible_focus(page)
    check(findings, "focus")


@pytest.mark.parametrize(
    "opener",
    [
        "",
        "button.search-button-field, button.search-button",
        "button.primary-toggle",
        "button.secondary-toggle",
    ],
)
def test_on_a_phone_controls_and_what_they_open_show_the_focus(page, book, opener):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{book}{CHAPTER}")
    settle(page)
    if opener:
        page.locator(opener).locator("visible=true").first.click()
        page.locator("dialog[open]").wait_for()
    check({CHAPTER: invisible_focus(page)}, "focus")


def test_figures_stand_out_from_both_themes(page, book):
    grounds = {}
    page.goto(f"{book}{CHAPTER}")
    for theme in ("light", "dark"):
        switch_theme(page, theme)
        colour = page.evaluate(
            "getComputedStyle(document.documentElement).getPropertyValue('--pst-color-background')"
        )
        grounds[theme] = ImageColor.getrgb(colour.strip())
    assert grounds["light"] != grounds["dark"]
    assert len({path for paths in figures_of_pages(BUILT).values() for path in paths}) > 40
    check(faint_on_pages(BUILT, grounds), "figures")


def test_no_such_finding_is_waived_that_is_not_there():
    """Runs last in this file, as its like in test_all_pages.py."""
    assert unused({"focus", "figures"}) == []
