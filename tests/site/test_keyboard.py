"""The book without a mouse: folds, search, copying, the colour mode, the next page."""

import re

import pytest
from crawl import RESIZED
from looks import settle

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


def test_an_answer_says_whether_it_is_right_and_why(chapter):
    quiz = chapter.locator(".quiz").first
    assert quiz.locator("details").count() == 4
    for kind, verdict in (("wrong", "No. "), ("right", "Right. ")):
        answer = quiz.locator(f"details.{kind}").first
        said = answer.locator("p")
        assert not said.is_visible()
        answer.locator("summary").focus()
        chapter.keyboard.press("Enter")
        assert said.is_visible()
        assert said.inner_text().startswith(verdict)
        assert len(said.inner_text()) > 20


def test_folds_are_called_after_their_exercise(chapter):
    assert chapter.get_by_role("button", name="Solution, Exercise 1.2", exact=True).count() == 1


def test_a_fold_keeps_its_size_when_it_has_the_focus(chapter):
    box = chapter.locator(".solution").first
    before = box.bounding_box()["height"]
    box.locator(".toggle-button").focus()
    assert box.bounding_box()["height"] == before


def test_code_is_copied(chapter):
    shown = "div.cell:not(.tag_hide-input) div.cell_input"
    box = chapter.locator(f"{shown} div.highlight").first
    code = box.locator("pre").inner_text()
    before = "what was copied before"
    chapter.evaluate("before => navigator.clipboard.writeText(before)", before)
    press(chapter, f"{shown} button.copybtn")
    chapter.wait_for_function("async before => (await navigator.clipboard.readText()) !== before", arg=before)
    assert chapter.evaluate("navigator.clipboard.readText()").strip() == code.strip()


def test_a_fold_of_code_is_called_what_it_shows(chapter):
    fold = chapter.locator("details.hide > summary").first
    for _ in range(3):
        fold.click()
        named = "it => it.getAttribute('aria-label').startsWith(it.innerText.trim())"
        chapter.wait_for_function(named, arg=fold.element_handle())
    names = chapter.locator("summary").evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    assert not [name for name in names if "\\" in name]


def test_the_colour_mode_changes_and_keeps_the_focus(chapter):
    before = chapter.locator("html").get_attribute("data-theme")
    switch = press(chapter, ".theme-switch-button")
    name = switch.get_attribute("aria-label")
    assert re.fullmatch("Colour mode: (light|dark)", name)
    assert chapter.locator("html").get_attribute("data-theme") != before
    assert chapter.evaluate("document.activeElement.className").count("theme-switch-button")
    chapter.keyboard.press("Enter")
    assert switch.get_attribute("aria-label") != name


def test_the_colour_mode_is_there_before_anything_is_drawn(browser, book):
    """That of a dark system, when the page is parsed: no script but the one in it has run."""
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.add_init_script(
        "const theme = () => document.body && document.documentElement.dataset.theme;"
        "new MutationObserver(() => { window.first ??= theme(); })"
        ".observe(document, {childList: true, subtree: true})"
    )
    page.goto(f"{book}{CHAPTER}")
    assert page.evaluate("first") == "dark"
    context.close()


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


@pytest.mark.parametrize(
    ("words", "chapter"),
    [("attention", "03_attention"), ("Patches", "01_patches"), ("fine-tuning", "10_fine_tuning")],
)
def test_a_search_brings_the_chapter_of_that_name_first(page, book, words, chapter):
    page.goto(f"{book}search.html?q={words}")
    results = page.locator("#search-results a")
    results.first.wait_for()
    page.wait_for_timeout(1500)
    assert results.first.evaluate("link => link.pathname").endswith(f"/{chapter}.html")


def test_what_a_result_shows_has_no_markup(page, book):
    page.goto(f"{book}search.html?q=softmax+sqrt")
    shown = page.locator("#search-results p.context")
    shown.nth(1).wait_for()
    page.wait_for_timeout(1500)
    words = shown.all_inner_texts()
    assert len(words) >= 2
    assert not [text for text in words if "\\" in text or "Open in Colab" in text]


def test_a_wide_formula_scrolls_from_the_keyboard(page, book):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(f"{book}notebooks/03_attention.html")
    page.evaluate("MathJax.startup.promise")
    page.locator("div.math[tabindex='0']").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 0")
    assert page.locator("div.math:not([tabindex])").count() >= 1, "others fit and are not tab stops"


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
