"""A page that was loaded wide and made narrow is what a phone shows: the crawl loads each page only once."""

import pytest
from crawl import HEIGHT, PHONE, RESIZED, WIDTHS
from looks import STILL, settle

pytestmark = pytest.mark.site

# A page of each make: plots and formulas, something to play with, tables, cards, entries of a module.
PAGES = (
    "notebooks/03_attention.html",
    "notebooks/13_attention_maps.html",
    "book/notation.html",
    "book/index.html",
    "book/api/plots.html",
)
# What is shown, where, and what is said of it to those who listen.
SHOWN = """() => [...document.querySelectorAll("body *:not(mjx-container *)")]
    .filter((element) => element.checkVisibility({visibilityProperty: true, opacityProperty: true}))
    .map((element) => {
        const box = element.getBoundingClientRect();
        const said = ["id", "role", "aria-label", "data-cut"].map((name) => element.getAttribute(name));
        const place = [box.x, box.y + scrollY, box.width, box.height].map(Math.round);
        return [element.tagName, ...said, element.tabIndex, ...place].join(" ");
    })"""


def on_a_phone(page, address, loaded_at):
    """Load a page at this width and say what a phone's shows then."""
    page.set_viewport_size({"width": loaded_at, "height": HEIGHT})
    page.goto(address)
    page.add_style_tag(content=STILL)
    settle(page)
    page.set_viewport_size({"width": PHONE, "height": HEIGHT})
    page.evaluate(RESIZED)
    settle(page)
    return page.evaluate(SHOWN)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_made_narrow_is_that_of_a_phone(page, book, name):
    shown = on_a_phone(page, f"{book}{name}", WIDTHS[0])
    assert len(shown) > 100
    assert shown == on_a_phone(page, f"{book}{name}", PHONE)
