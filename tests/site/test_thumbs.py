"""What a reader does by thumb: scroll past a slider or a plot, open a menu, draw and read at once."""

import pytest
from playwright.sync_api import expect
from widgets import SOON, come_near, swipe

pytestmark = pytest.mark.site


def within(page, place):
    """The middle of an element, which is brought to the middle of the window."""
    place.evaluate("it => it.scrollIntoView({ block: 'center' })")
    page.wait_for_timeout(300)
    box = place.bounding_box()
    return box["x"] + 0.7 * box["width"], box["y"] + box["height"] / 2


def scroll_past(page, place):
    """Scroll the page with a finger that begins on an element."""
    (x, y), before = within(page, place), page.evaluate("scrollY")
    swipe(page, (x, y), (x, y - 250))
    assert page.evaluate("scrollY") > before + 100


def test_scrolling_past_a_slider_leaves_it_as_it_was(phone, book):
    widget = come_near(phone, book, "attention")
    slider, said = widget.whole.get_by_role("slider", name="scores times"), widget.said()
    scroll_past(phone, slider)
    assert (slider.input_value(), widget.said()) == ("1", said)


def test_a_finger_slides_along_the_row_of_numbers_and_over_the_patches(phone, book):
    widget = come_near(phone, book, "patches")
    x, y = within(phone, widget.whole.locator(".vit-strip"))
    swipe(phone, (x, y), (x - 150, y))
    at = int(widget.whole.get_by_role("slider", name="place in the row").input_value())
    assert 150 < at < 400, "from 70 % to 28 % of 768 numbers"
    x, y = widget.middle(8, 3, 14)
    swipe(phone, (x, y), widget.middle(8, 12, 14))
    assert "patch of row 7, column 11" in widget.said()


def test_scrolling_past_a_plot_guesses_nothing_and_a_stroke_across_does(phone, book):
    widget = come_near(phone, book, "guess-photos")
    plot, guesses = widget.whole.locator("svg"), widget.whole.locator("output")
    scroll_past(phone, plot)
    assert {*guesses.all_inner_texts()} == {"none"}
    phone.touchscreen.tap(*within(phone, plot))
    assert {*guesses.all_inner_texts()} != {"none"}


def test_scrolling_past_the_sliders_of_a_guess_guesses_nothing(phone, book):
    widget = come_near(phone, book, "guess-photos")
    scroll_past(phone, widget.whole.get_by_role("slider").nth(2))
    assert {*widget.whole.locator("output").all_inner_texts()} == {"none"}


@pytest.mark.parametrize("guessed", [True, False])
def test_scrolling_past_what_came_out_leaves_it_and_the_guess(guessed, phone, book):
    widget = come_near(phone, book, "guess-photos")
    plot, guesses, button = (widget.whole.locator(it) for it in ("svg", "output", "button"))
    if guessed:
        phone.touchscreen.tap(*within(phone, plot))
    before = guesses.all_inner_texts()
    button.click()
    scroll_past(phone, plot)
    assert ("You were" in widget.said()) == guessed
    button.click()
    assert guesses.all_inner_texts() == before
    expect(button).to_have_text("Show what came out")


def test_the_pad_and_what_it_reads_fit_one_screen(phone, book):
    phone.goto(f"{book}book/playground.html")
    phone.locator(".vit-digit").scroll_into_view_if_needed()
    expect(phone.locator(".vit-digit .vit-pad")).to_be_visible(timeout=SOON)
    pad, reads = (phone.locator(f".vit-digit {it}").bounding_box() for it in (".vit-pad", ".vit-reads"))
    assert 0 < reads["y"] + reads["height"] - pad["y"] < 844 - 64, "below the header"


def test_the_photo_stays_in_sight_while_it_is_broken(phone, book):
    phone.goto(f"{book}book/playground.html")
    shuffle = phone.locator(".vit-photo .breaks").get_by_text("patches shuffled")
    expect(shuffle).to_be_visible(timeout=SOON)
    within(phone, shuffle)
    assert phone.locator(".vit-photo .pictures canvas").first.bounding_box()["y"] >= 0
    box = shuffle.bounding_box()
    on_top = "([x, y]) => document.elementFromPoint(x, y).textContent"
    assert phone.evaluate(on_top, [box["x"] + 5, box["y"] + box["height"] / 2]) == "patches shuffled"


def test_back_leads_from_the_photo_to_what_there_is_to_try(phone, book):
    phone.goto(f"{book}book/playground.html")
    last = phone.locator(".vit-try").last
    expect(last).to_be_visible(timeout=SOON)
    last.tap()
    expect(phone.locator("#vit-photo")).to_be_in_viewport(timeout=SOON)
    phone.wait_for_timeout(1000)  # it goes there smoothly
    phone.go_back()
    expect(last).to_be_in_viewport(timeout=SOON)


def test_the_menu_opens_where_one_is_and_the_contents_close_behind_a_choice(phone, book):
    phone.goto(f"{book}notebooks/13_attention_maps.html")
    phone.locator(".primary-toggle").click()
    expect(phone.locator("dialog[open] .current > a").last).to_be_in_viewport()
    phone.keyboard.press("Escape")
    phone.locator(".secondary-toggle").first.click()
    phone.locator("dialog[open] a[href='#rollout']").click()
    expect(phone.locator("dialog[open]")).to_have_count(0)
    assert phone.locator("#rollout h2").bounding_box()["y"] < 200


def test_a_widget_that_grows_above_does_not_move_what_is_read(phone, book):
    """As on a browser that does not anchor the page itself, such as Safari."""
    phone.add_init_script("CSS.supports = () => false")
    off = "document.documentElement.style.overflowAnchor = 'none'"
    phone.add_init_script(f"addEventListener('DOMContentLoaded', () => {{ {off} }})")
    phone.goto(f"{book}notebooks/16_embedding_filters.html#principal-components-by-hand")
    phone.wait_for_timeout(4000)
    assert abs(phone.locator("#principal-components-by-hand h2").bounding_box()["y"]) < 250
