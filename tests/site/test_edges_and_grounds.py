"""How large formulas are, where they and tables begin, and what output stands on in the dark."""

import pytest
from crawl import HEIGHT, PHONE
from looks import settle, switch_theme

pytestmark = pytest.mark.site

# Pixels between the left end of a box and that of the formula that is too wide for it.
BLANK = """() => [...document.querySelectorAll("article div.math")]
    .filter((box) => box.scrollWidth > box.clientWidth + 1)
    .map((box) => {
        box.scrollLeft = 0;
        const start = box.querySelector("mjx-math").getBoundingClientRect().left;
        return Math.abs(start - box.getBoundingClientRect().left);
    })"""
TABLES = """() => [...document.querySelectorAll("article table.table")]
    .map((table) => table.getBoundingClientRect().left)"""
# How bright what is behind is, from 0 to 765: of all code, and of all that it prints.
GROUNDS = """() => ["div.cell_input pre", "div.cell_output .output.stream pre"].map((kind) =>
    [...document.querySelectorAll(`article ${kind}`)].map((element) => {
        let at = element;
        while (/, 0\\)|transparent/.test(getComputedStyle(at).backgroundColor)) at = at.parentElement;
        return getComputedStyle(at).backgroundColor.match(/[\\d.]+/g).slice(0, 3).reduce((a, b) => a + +b, 0);
    }))"""


# The height of a small x of the text over that of a formula on it: 1 where the two fit.
HEIGHTS = """() => {
    const canvas = document.createElement("canvas").getContext("2d");
    const height = (font) => {
        canvas.font = font;
        return canvas.measureText("x").actualBoundingBoxAscent;
    };
    return [...document.querySelectorAll("article p mjx-container")].map((formula) => {
        const [text, own] = [formula.parentElement, formula].map((it) => getComputedStyle(it));
        return height(`${text.fontSize} ${text.fontFamily}`) / height(`${own.fontSize} MJXTEX-I`);
    });
}"""


def test_a_wide_formula_begins_where_its_box_does(page, book):
    page.set_viewport_size({"width": PHONE, "height": HEIGHT})
    page.goto(f"{book}notebooks/01_patches.html")
    settle(page)
    found = page.evaluate(BLANK)
    assert found
    assert max(found) < 16


@pytest.mark.parametrize("late", [False, True])
def test_formulas_fit_the_letters_around_them_even_if_these_come_late(page, book, late):
    if late:
        page.route("**/literata*.woff2", lambda route: (page.wait_for_timeout(1500), route.continue_()))
    page.goto(f"{book}notebooks/03_attention.html")
    settle(page)
    found = page.evaluate(HEIGHTS)
    assert len(found) > 20
    assert all(0.97 < height < 1.03 for height in found)


def test_tables_begin_on_one_line(page, book):
    page.goto(f"{book}book/notation.html")
    left = page.evaluate(TABLES)
    assert len(left) >= 2
    assert max(left) - min(left) < 1


def test_output_is_no_brighter_than_code_in_the_dark(page, book):
    page.goto(f"{book}notebooks/01_patches.html")
    switch_theme(page, "dark")
    code, printed = page.evaluate(GROUNDS)
    assert min(len(code), len(printed)) > 5
    assert max(printed) <= min(code)
