"""The book without a mouse: folds, search, copying, the colour mode, the next page."""

import re

import pytest
from crawl import RESIZED
from looks import changed, settle
from playwright.sync_api import TimeoutError as NothingHappened

pytestmark = pytest.mark.site

CHAPTER = "notebooks/01_patches.html"


@pytest.fixture
def chapter(page, book):
    page.goto(f"{book}{CHAPTER}")
    return page


def press(page, selector, key="Enter"):
    """Put the focus on the first control of this kind and press a key."""
    control = page.locator(selector).first
    control.focus()
    page.keyboard.press(key)
    return control


def test_solutions_unfold_and_fold(chapter):
    body = chapter.locator(".solution > :not(.admonition-title)").first
    assert not body.is_visible()
    button = press(chapter, ".solution .toggle-button")
    assert body.is_visible()
    assert button.get_attribute("aria-expanded") == "true"
    press(chapter, ".solution .toggle-button", "Space")
    assert not body.is_visible()
    assert button.get_attribute("aria-expanded") == "false"


def test_code_unfolds(chapter):
    body = chapter.locator("article details pre").first
    assert not body.is_visible()
    press(chapter, "article details > summary")
    assert body.is_visible()


def test_folds_are_called_after_their_exercise(chapter):
    assert chapter.get_by_role("button", name="Solution, Exercise 1.2", exact=True).count() == 1


def test_a_fold_keeps_its_size_when_it_has_the_focus(chapter):
    box = chapter.locator(".solution").first
    before = box.bounding_box()["height"]
    box.locator(".toggle-button").focus()
    assert box.bounding_box()["height"] == before


def test_code_is_copied(chapter):
    box = chapter.locator("div.cell_input div.highlight").first
    code = box.locator("pre").inner_text()
    before = "what was copied before"
    chapter.evaluate("before => navigator.clipboard.writeText(before)", before)
    press(chapter, "div.cell_input button.copybtn")
    chapter.wait_for_function("async before => (await navigator.clipboard.readText()) !== before", arg=before)
    assert chapter.evaluate("navigator.clipboard.readText()").strip() == code.strip()


def test_the_colour_mode_changes_and_keeps_the_focus(chapter):
    before = chapter.locator("html").get_attribute("data-theme")
    switch = press(chapter, ".theme-switch-button")
    name = switch.get_attribute("aria-label")
    assert re.fullmatch("Colour mode: (light|dark)", name)
    assert chapter.locator("html").get_attribute("data-theme") != before
    assert chapter.evaluate("document.activeElement.className").count("theme-switch-button")
    chapter.keyboard.press("Enter")
    assert switch.get_attribute("aria-label") != name


def first_colour_mode(browser, address, change=None):
    """The colour mode of a dark system when a page is parsed: no script but the one in it has run."""
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    if change:
        changed(page, address, change)
    page.add_init_script(
        "const theme = () => document.body && document.documentElement.dataset.theme;"
        "new MutationObserver(() => { window.first ??= theme(); })"
        ".observe(document, {childList: true, subtree: true})"
    )
    page.goto(address)
    first = page.evaluate("first")
    context.close()
    return first


def test_the_colour_mode_is_there_before_anything_is_drawn(browser, book):
    assert first_colour_mode(browser, f"{book}{CHAPTER}") == "dark"


def test_a_colour_mode_that_comes_late_is_found(browser, book):
    def late(text):
        start = text.index('<script data-cfasync="false">')
        return text[:start] + text[text.index("</script>", start) :]

    assert first_colour_mode(browser, f"{book}{CHAPTER}", late) != "dark"


def test_next_and_previous_lead_there_and_back(chapter, book):
    press(chapter, ".prev-next-footer a.right-next")
    chapter.wait_for_url(f"{book}notebooks/02_tokens.html")
    press(chapter, ".prev-next-footer a.left-prev")
    chapter.wait_for_url(f"{book}{CHAPTER}")


def test_search_finds_the_chapter(chapter):
    chapter.keyboard.press("Control+k")
    chapter.keyboard.type("class token")
    chapter.keyboard.press("Enter")
    chapter.wait_for_url(re.compile("search.html"))
    results = chapter.locator("#search-results a")
    results.first.wait_for()
    chapter.wait_for_timeout(1500)
    addresses = results.evaluate_all("all => all.map(link => link.pathname)")
    found = [address.rsplit("/", 1)[-1] for address in addresses]
    assert found[0] == "02_tokens.html"


def excerpts(page, book, among=""):
    """What the results of a search show of their pages, once these words are there and others, too."""
    page.goto(f"{book}search.html?q=softmax+sqrt")
    shown = page.locator("#search-results p.context")
    shown.filter(has_text=among).first.wait_for()
    shown.nth(1).wait_for()
    page.wait_for_timeout(1500)
    return shown.all_inner_texts()


def with_markup(words):
    """Those that show TeX or a button."""
    return [text for text in words if "\\" in text or "Open in Colab" in text]


def test_what_a_result_shows_has_no_markup(page, book):
    words = excerpts(page, book)
    assert len(words) >= 2
    assert with_markup(words) == []


SCROLLED = "document.activeElement.scrollLeft > 0"


def press_on_a_wide_formula(page, book):
    """Press an arrow on the first wide formula of chapter 3, on a phone."""
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(f"{book}notebooks/03_attention.html")
    page.evaluate("MathJax.startup.promise")
    page.locator("div.math[tabindex='0']").first.focus()
    page.keyboard.press("ArrowRight")


def test_a_wide_formula_scrolls_from_the_keyboard(page, book):
    press_on_a_wide_formula(page, book)
    page.wait_for_function(SCROLLED)
    assert page.locator("div.math:not([tabindex])").count() >= 1, "others fit and are no tab stops"


def test_a_wide_formula_that_hears_no_key_stays(page, book):
    page.add_init_script(DEAD_KEYS)
    press_on_a_wide_formula(page, book)
    with pytest.raises(NothingHappened):
        page.wait_for_function(SCROLLED, timeout=2000)


# Boxes that scroll sideways without being a tab stop of that name, and those that are one and do not scroll.
BOXES = "article :is(pre, .output, div.math, table)"
MISNAMED = f"""() => [...document.querySelectorAll("{BOXES}")].filter((box) => {{
    const scrolls = box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible";
    const said = box.tabIndex === 0 && box.role === "group" && /, scrolls sideways$/.test(box.ariaLabel);
    return scrolls !== said;
}}).length"""


def test_what_scrolls_sideways_is_a_tab_stop_that_says_so(page, book):
    for width in (390, 1440):  # on a phone many do, and when the window is wide again they are none any more
        page.set_viewport_size({"width": width, "height": 900})
        if width == 390:
            page.goto(f"{book}notebooks/03_attention.html")
        settle(page)
        page.evaluate(RESIZED)
        assert page.evaluate(MISNAMED) == 0
    page.evaluate("document.querySelector('article [data-cut]').removeAttribute('aria-label')")  # planted
    assert page.evaluate(MISNAMED) == 1


# ---- planted faults ---------------------------------------------------------------------------------

DEAD_KEYS = """
for (const kind of ["keydown", "keyup", "keypress"]) {
    addEventListener(kind, (event) => { event.preventDefault(); event.stopImmediatePropagation(); }, true);
}"""


@pytest.mark.parametrize(
    ("works", "control", "also"),
    [
        (test_solutions_unfold_and_fold, ".solution .toggle-button", ()),
        (test_code_unfolds, "article details > summary", ()),
        (test_code_is_copied, "div.cell_input button.copybtn", ()),
        (test_the_colour_mode_changes_and_keeps_the_focus, ".theme-switch-button", ()),
        (test_next_and_previous_lead_there_and_back, ".prev-next-footer a.right-next", ("book",)),
        (test_search_finds_the_chapter, "button.search-button-field", ()),
    ],
)
def test_a_page_that_hears_no_key_fails(page, book, works, control, also, request):
    page.add_init_script(DEAD_KEYS)
    page.goto(f"{book}{CHAPTER}")
    page.locator(control).first.wait_for(state="attached")  # what is missing is the key alone
    page.set_default_timeout(2000)  # nothing will come of the keys; the page itself has the time it needs
    with pytest.raises((AssertionError, NothingHappened)):
        works(page, *map(request.getfixturevalue, also))


def test_a_fold_that_grows_with_the_focus_fails(chapter):
    chapter.add_style_tag(content=".solution:focus-within { padding-bottom: 30px !important }")
    with pytest.raises(AssertionError):
        test_a_fold_keeps_its_size_when_it_has_the_focus(chapter)


def test_a_fold_without_its_exercise_in_its_name_fails(chapter):
    chapter.evaluate(
        "for (const button of document.querySelectorAll('.solution .toggle-button'))"
        " button.setAttribute('aria-label', 'Solution')"
    )
    with pytest.raises(AssertionError):
        test_folds_are_called_after_their_exercise(chapter)


def test_markup_in_what_a_result_shows_is_found(page, book):
    planted = "<p>softmax of \\sqrt, in TeX: "
    changed(page, re.compile("/notebooks/"), lambda text: text.replace("<p>", planted))
    assert with_markup(excerpts(page, book, among="in TeX"))
    page.unroute_all(behavior="ignoreErrors")  # some pages may still be asked for
