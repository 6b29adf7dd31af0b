"""Chapter 11's patches to hide, and the model that names their colours."""

import re

import numpy as np
import pytest
import torch
from export_page_model import MASKED, unpacked
from measure_masked import neighbour_colours
from playwright.sync_api import expect
from widgets import FOLDER, SOON, come_near, swipe

from vit_from_scratch.data.photos import load_photo
from vit_from_scratch.training.masked_patches import BIN, colour_numbers, colours_of_numbers, mean_colours

pytestmark = pytest.mark.site

COUNTS = (
    r"Of (\d+) hidden patches, right among 512 colours: the model (\d+), the mean of the neighbours (\d+)\."
)
PATCH = (
    r"row (\d), column (\d), red green blue: "
    r"the model says (.+) \((.+) %\), the neighbours (.+); it is ([\d ]+)\. Of 32 hidden"
)


@pytest.fixture
def widget(page, book):
    return come_near(page, book, "masked")


def hide(widget, name):
    """Press one of the buttons, and return the three numbers that are said then."""
    widget.whole.get_by_role("button", name=name, exact=True).press("Enter")
    return counts(widget)


def counts(widget):
    expect(widget.whole).not_to_have_attribute("aria-busy", "true", timeout=SOON)
    return tuple(map(int, re.search(f"{COUNTS}$", widget.said()).groups()))


def test_a_drag_that_began_elsewhere_hides_nothing(page, widget):
    """Such as one that selects the text above."""
    before, box = hidden(widget), widget.whole.locator(".vit-grid").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] - 10, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 10, middle, steps=9)
    page.mouse.up()
    assert hidden(widget) == before


def hidden(widget):
    """Which patches are dark on the left."""
    classes = "all => all.map((one) => one.className === 'hidden')"
    cells = widget.whole.locator(".vit-grid").first.locator(".cells i").evaluate_all(classes)
    return [place for place, dark in enumerate(cells) if dark]


@torch.no_grad()
def known(name, places):
    """The colours of a photo's hidden patches by number: the model's, the neighbours' and the true ones."""
    model = unpacked((FOLDER / f"{MASKED}.bin").read_bytes())[0]
    pixels = load_photo(FOLDER / f"photos/{name}.jpg", (64, 64))[None]
    embedded = model.patch_embedding(2 * pixels - 1)  # (1, 64, D)
    embedded[:, places] = model.get_buffer("tokens.mask")
    means = mean_colours(255 * pixels, 8)  # (1, 64, 3)
    visible = torch.ones(1, 64, dtype=torch.bool)
    visible[:, places] = False
    guess = colour_numbers(neighbour_colours(means, visible, (8, 8)))
    answer = model.head(model.encoder(model.tokens(embedded))[:, 1:]).argmax(dim=-1)
    return [numbers[0, places] for numbers in (answer, guess, colour_numbers(means))]


def painted(widget):
    """The colour in the middle of each patch on the right, as numbers from 0 to 255, (64, 3)."""
    canvas = widget.whole.locator("canvas").nth(1)
    pixels = canvas.evaluate("it => [...it.getContext('2d').getImageData(0, 0, 64, 64).data]")
    return torch.tensor(np.reshape(pixels, (64, 64, 4))[4::8, 4::8, :3].reshape(64, 3))


def test_colours_and_neighbours_are_the_packages(page, book):
    widget = come_near(page, book, "masked")
    page.evaluate("{ let last = 1; Math.random = () => (last = last * 16807 % 2147483647) / 2147483647; }")
    for name, which in (("cat", "the upper half"), ("rocket", "half, at random"), ("coffee", "every second")):
        chosen = widget.whole.get_by_role("button", name=name, exact=True)
        chosen.press("Enter")
        expect(chosen).to_have_attribute("aria-pressed", "true", timeout=SOON)
        said = hide(widget, which)
        places, colours = hidden(widget), []
        assert said[0] == len(places) == 32
        shown = (
            "as the model says",
            "as the mean of its visible neighbours",
            "as it truly is, on the average",
        )
        for choice, some in zip(shown, known(name, places), strict=True):
            widget.whole.get_by_role("radio", name=choice).check()
            colours.append(painted(widget)[places])
            apart = (colours[-1] - colours_of_numbers(some)).abs().amax(dim=1)
            assert (apart == 0).sum() >= 28, "a browser's pixels are not quite the package's"
            assert choice == shown[0] or apart.max() <= BIN, "a mean at an edge falls into the next bin"
        assert said[1:] == tuple((some == colours[2]).all(dim=1).sum().item() for some in colours[:2])
        widget.whole.get_by_role("radio", name=shown[0]).check()


def test_a_patch_under_the_pointer_is_told(page, widget):
    page.mouse.move(*widget.middle(3, 2))
    row, column, model, share, guess, true = re.match(PATCH, widget.said()).groups()
    place = 8 * (int(row) - 1) + int(column) - 1
    assert place == 17
    numbers = known("cat", hidden(widget))
    at = hidden(widget).index(place)
    wanted = [" ".join(str(int(value)) for value in colours_of_numbers(some[at])) for some in numbers]
    assert [model, guess, true] == wanted
    assert 0 < float(share) < 100
    page.mouse.move(*widget.middle(3, 3, grid=1))
    assert widget.said().startswith("row 3, column 3 is in plain view. Of 32 hidden patches, ")


def test_what_chapter_11_says_of_it(page, widget):
    assert counts(widget) == (32, 18, 11)
    assert hide(widget, "the upper half") == (32, 4, 11)
    assert hide(widget, "all")[0] == 64
    greys = painted(widget).unique(dim=0)
    assert len(greys) == 2
    assert (greys.amax(dim=1) == greys.amin(dim=1)).all()
    widget.whole.get_by_role("button", name="none", exact=True).press("Enter")
    expect(widget.whole.locator(".vit-status")).to_have_text("Nothing is hidden.")
    eye = [(row, column) for row in (3, 4) for column in (2, 3, 4)]
    for row, column in eye:
        page.mouse.click(*widget.middle(row, column))
    page.mouse.move(0, 0)
    assert counts(widget)[0] == 6
    assert widget.said().startswith("row 4, column 4, red green blue: "), "the last that was hidden"
    fur = painted(widget)[[8 * (row - 1) + column - 1 for row, column in eye]]
    assert {tuple(colour) for colour in fur.tolist()} == {(144, 112, 80), (176, 112, 80)}


def test_a_stroke_hides_or_shows_as_its_first_patch(page, widget):
    hide(widget, "the upper half")
    for row, left in ((1, 32 - 7), (6, 25 + 7), (6, 32 - 7), (1, 25 + 7)):  # from where the cursor is, first
        page.mouse.move(*widget.middle(row, 1))
        page.mouse.down()
        page.mouse.move(*widget.middle(row, 7), steps=14)
        page.mouse.up()
        assert len(hidden(widget)) == left
    page.mouse.click(*widget.middle(2, 7, grid=1))
    assert 14 not in hidden(widget)


def test_keys_go_about_and_hide_one(page, widget):
    widget.grids.first.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert len(hidden(widget)) == 32
    assert widget.said().startswith("row 2, column 3")
    for count in (31, 32) if 10 in hidden(widget) else (33, 32):
        page.keyboard.press("Enter")
        assert len(hidden(widget)) == count


def test_a_finger_hides_one_and_draws_over_several(phone, book):
    widget = come_near(phone, book, "masked")
    before = hidden(widget)
    phone.touchscreen.tap(*widget.middle(1, 1))
    assert hidden(widget) == sorted({0, *before})
    swipe(phone, widget.middle(5, 1), widget.middle(5, 8))
    assert {*range(32, 40)} <= {*hidden(widget)}


def test_the_still_picture_is_what_the_live_one_shows_first(page, book):
    page.goto(f"{book}notebooks/11_masked_patches.html")
    squares = page.locator("#vit-masked path").evaluate_all(
        "all => all.map((one) => [one.getAttribute('d').slice(1).split('h')[0], one.getAttribute('fill')])"
    )
    still = {}
    for corner, fill in squares:
        across, down = map(int, corner.split())
        if fill:
            still[down // 32 * 8 + (across - 284) // 32] = list(bytes.fromhex(fill[1:]))
    widget = come_near(page, book, "masked")
    assert sorted(still) == hidden(widget)
    assert painted(widget)[sorted(still)].tolist() == [still[place] for place in sorted(still)]
