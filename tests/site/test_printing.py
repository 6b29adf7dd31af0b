"""A chapter on paper, from the dark theme."""

import pytest
from looks import settle
from paper import cut_on_paper, prepare, sheets, spoilt_sheets, unfolded

pytestmark = pytest.mark.site

CHAPTER = "notebooks/03_attention.html"


@pytest.fixture
def dark(page, book):
    page.emulate_media(color_scheme="dark")
    page.goto(f"{book}{CHAPTER}", wait_until="networkidle")
    settle(page)
    return page


def test_nothing_is_cut_and_solutions_stay_folded(dark):
    prepare(dark)
    assert cut_on_paper(dark) == []
    assert unfolded(dark) == []


def test_solutions_are_printed_where_the_address_asks_for_them(page, book):
    page.goto(f"{book}{CHAPTER}?solutions")
    settle(page)
    prepare(page)
    assert len(unfolded(page)) == page.locator(".solution").count() >= 4
    assert cut_on_paper(page) == []
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert unfolded(page) == []


def test_equations_keep_their_size_unless_they_are_wider_than_the_sheet(page, book):
    sizes = "all => all.map((one) => one.style.fontSize)"
    page.goto(f"{book}{CHAPTER}", wait_until="networkidle")
    settle(page)
    formulas = page.locator(".bd-article mjx-container[display=true]")
    before = formulas.evaluate_all(sizes)
    assert len(before) > 3
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert formulas.evaluate_all(sizes) == before, "the widest is 655 pixels on screen, less on paper"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    formulas.first.evaluate("one => { one.style.minWidth = '1000px'; }")
    for event, smaller in (("beforeprint", True), ("afterprint", False)):
        page.evaluate("event => dispatchEvent(new Event(event))", event)
        assert (formulas.evaluate_all(sizes)[0] != before[0]) == smaller
    assert formulas.evaluate_all(sizes) == before


def test_sheets_are_light_full_and_within_their_margins(dark):
    pictures = sheets(dark.pdf(format="A4", print_background=True))
    assert 5 < len(pictures) < 30
    assert spoilt_sheets(pictures) == []
    assert dark.locator("html").get_attribute("data-theme") == "dark"
