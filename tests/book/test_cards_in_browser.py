"""Cards and side notes as a reader meets them, in the built book without a server. Needs Chromium."""

import pytest
from browser import open_browser
from project_facts import ROOT, chapters

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.built
TERM = "a.glossary-term"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
# Heights with and without the card, in one go: between two questions a late image may move the page.
LENGTHENS = """() => {
  const card = document.getElementById('hover-card');
  const shown = document.documentElement.scrollHeight;
  card.hidden = true;
  const without = document.documentElement.scrollHeight;
  card.hidden = false;
  return shown - without;
}"""
OVERLAPS = """() => {
  const notes = [...document.querySelectorAll('aside.margin')].map((note) => note.getBoundingClientRect());
  const text = '.bd-article pre, .bd-article img, .bd-article p:not(aside p)';
  const others = [...document.querySelectorAll(text)].filter((element) => element.checkVisibility());
  const crossing = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return notes.filter((note, place) =>
    notes.some((other, number) => number < place && crossing(note, other)) ||
    others.some((other) => crossing(note, other.getBoundingClientRect())) ||
    note.right > document.documentElement.clientWidth || note.left < 0).length;
}"""


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture
def visit(browser, built):
    """Open a page of the book; touch and scripts as wanted."""
    contexts = []

    def open_page(name, size=WIDE, **options):
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        page = context.new_page()
        page.goto((built / f"{name}.html").as_uri(), wait_until="load")
        page.evaluate("async () => { await window.MathJax?.startup?.promise; await document.fonts.ready; }")
        return page

    yield open_page
    for context in contexts:
        context.close()


def card(page):
    return page.locator("#hover-card")


def inside_window(page):
    return page.evaluate(
        "() => { const box = document.getElementById('hover-card').getBoundingClientRect();"
        "return box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight }"
    )


@pytest.mark.parametrize("size", [WIDE, PHONE, {"width": 390, "height": 300}])
def test_each_term_shows_its_definition_on_focus_and_never_cut(visit, size):
    page = visit("notebooks/09_small_data", size)
    links = page.locator(TERM)
    assert links.count() > 5
    for place in range(links.count()):
        links.nth(place).focus()
        assert card(page).is_visible()
        assert len(card(page).inner_text()) > 40
        assert inside_window(page)
        assert page.evaluate(LENGTHENS) == 0
        assert links.nth(place).get_attribute("aria-describedby") == "hover-card"
        page.keyboard.press("Escape")
        assert not card(page).is_visible()
        assert links.nth(place).get_attribute("aria-describedby") is None


@pytest.fixture
def pointed_at(visit):
    """A page with the card of its first term, at which the pointer is, and that term."""
    page = visit("notebooks/09_small_data")
    link = page.locator(TERM).first
    link.scroll_into_view_if_needed()
    link.hover()
    card(page).wait_for(state="visible")
    return page, link


def test_the_pointer_can_move_onto_the_card_and_away(pointed_at):
    page, _ = pointed_at
    box = card(page).bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 10)
    page.wait_for_timeout(600)
    assert card(page).is_visible()
    page.mouse.move(5, 5)
    card(page).wait_for(state="hidden")


def test_a_card_goes_with_the_pointer_after_a_click_too(pointed_at):
    page, link = pointed_at
    with page.context.expect_page():
        link.click(modifiers=["ControlOrMeta"])
    page.mouse.move(5, 5)
    card(page).wait_for(state="hidden")


def test_a_first_tap_shows_and_a_second_goes(visit):
    page = visit("notebooks/09_small_data", PHONE, has_touch=True)
    link = page.locator(TERM).first
    link.scroll_into_view_if_needed()
    link.tap()
    card(page).wait_for(state="visible")
    assert "09_small_data" in page.url
    page.wait_for_timeout(400)
    assert card(page).is_visible()
    link.tap()
    page.wait_for_url("**/glossary.html#term-*")


def test_a_reference_shows_its_title_once(visit):
    page = visit("notebooks/09_small_data")
    link = page.locator("a[data-reference]").first
    assert link.get_attribute("title") is None
    link.focus()
    assert "2009" in card(page).inner_text()


@pytest.mark.parametrize(
    ("name", "link"),
    [("notebooks/04_encoder", "a.paper-equation"), ("notebooks/13_attention_maps", "a.paper-equation"),
     ("notebooks/07_hybrid", 'a.reference[href="#equation-eq-standardise"]')],
)  # fmt: skip
def test_an_equation_is_drawn_from_this_page_and_from_another(visit, name, link):
    page = visit(name)
    page.wait_for_selector("mjx-container", state="attached")
    page.evaluate(
        "document.querySelectorAll('.toggle-hidden').forEach((it) => it.classList.remove('toggle-hidden'))"
    )
    page.locator(link).first.focus()
    page.wait_for_selector("#hover-card mjx-container")
    assert inside_window(page)
    assert "\\" not in card(page).inner_text()


def test_a_letter_shows_its_meaning_with_its_formulas_drawn(visit):
    page = visit("notebooks/03_attention")
    page.wait_for_selector("a.notation-letter mjx-container", state="attached")
    links = page.locator("a.notation-letter")
    assert links.count() > 3
    for place in range(links.count()):
        links.nth(place).focus()
        page.wait_for_selector("#hover-card .name mjx-container")
        assert "\\" not in card(page).inner_text()
        assert page.locator("#hover-card [tabindex]").count() == 0
        assert inside_window(page)
        page.keyboard.press("Escape")


def test_without_scripts_a_term_is_a_link(visit):
    page = visit("notebooks/09_small_data", java_script_enabled=False)
    assert page.locator("#hover-card").count() == 0
    assert "glossary.html#term-" in page.locator(TERM).first.get_attribute("href")


NOTED = [path.stem for path in chapters(ROOT) if ":::{margin}" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("chapter", NOTED)
def test_side_notes_lie_beside_the_text_and_cover_nothing(visit, chapter):
    page = visit(f"notebooks/{chapter}")
    assert page.locator("aside.margin").count() >= 1
    assert page.evaluate(OVERLAPS) == 0
    for width in (1200, 1199, 992, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate(OVERLAPS) == 0, width
    note, before = (page.locator(f".with-side-note > {part}").first.bounding_box() for part in ("aside", "p"))
    assert note["y"] >= before["y"] + before["height"]
