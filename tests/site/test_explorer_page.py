"""The photo of `vit inspect` that shows where each patch looks: by pointer, by keyboard, without scripts."""

import re

import pytest
from looks import settle

from vit_from_scratch.examples import photo
from vit_from_scratch.inspection import layer_attention
from vit_from_scratch.pretrained import input_scaling, load_pretrained
from vit_lab.explorer import explorer_page

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where the page is that a command would write of the cup."""
    cup, model = photo(64, "coffee"), load_pretrained("tiny-imagenet")
    attentions = layer_attention(model, input_scaling("tiny-imagenet")(255 * cup))
    path = tmp_path_factory.mktemp("explorer") / "where_patches_look.html"
    path.write_text(explorer_page(cup[0], attentions, model.config.grid), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def explorer(page, address):
    page.goto(address)
    settle(page)
    found = page.locator(".attention-explorer")
    found.scroll_into_view_if_needed()
    return found


def said(explorer):
    return explorer.locator("p").inner_text()


def darkness(explorer):
    return explorer.locator(".cells i").evaluate_all("cells => cells.map((cell) => cell.style.opacity)")


def middle(explorer, row, column):
    """Where a patch is on the screen, counted from 1."""
    box = explorer.locator(".photo").bounding_box()
    return box["x"] + box["width"] * (column - 0.5) / 8, box["y"] + box["height"] * (row - 0.5) / 8


def test_the_patch_under_the_pointer_looks(page, explorer):
    assert "where the class token looks" in said(explorer)
    before = darkness(explorer)
    page.mouse.move(*middle(explorer, 7, 3))
    assert "where the patch in row 7, column 3 looks" in said(explorer)
    assert darkness(explorer) != before
    row, column = re.search(r"most at row (\d), column (\d)", said(explorer)).groups()
    brightest = 8 * int(row) + int(column) - 9
    assert [place for place, dark in enumerate(darkness(explorer)) if dark == "0"] == [brightest]
    outline, box = (explorer.locator(name).bounding_box() for name in (".looks", ".photo"))
    assert outline["x"] == pytest.approx(box["x"] + box["width"] * 2 / 8, abs=1)
    assert outline["y"] == pytest.approx(box["y"] + box["height"] * 6 / 8, abs=1)
    page.mouse.move(0, 0, steps=5)
    assert darkness(explorer) == before, "nothing was chosen"


def test_a_patch_that_was_clicked_stays_while_the_pointer_goes_to_a_slider(page, explorer):
    page.mouse.click(*middle(explorer, 3, 5))
    slider = explorer.get_by_role("slider", name="layer").bounding_box()
    page.mouse.move(slider["x"] + 5, slider["y"] + slider["height"] / 2, steps=30)
    page.mouse.down()
    page.mouse.up()
    assert "Layer 1" in said(explorer)
    assert "where the patch in row 3, column 5 looks" in said(explorer)
    button = explorer.get_by_role("button", name="class token")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    assert "where the class token looks" in said(explorer)
    assert button.get_attribute("aria-pressed") == "true"


def test_a_patch_that_was_clicked_is_held_within_the_photo_until_it_is_clicked_again(page, explorer):
    page.mouse.click(*middle(explorer, 3, 5))
    page.mouse.move(*middle(explorer, 6, 2), steps=5)
    assert "where the patch in row 3, column 5 looks" in said(explorer)
    page.mouse.click(*middle(explorer, 3, 5))
    page.mouse.move(*middle(explorer, 6, 2), steps=5)
    assert "where the patch in row 6, column 2 looks" in said(explorer)
    page.mouse.click(*middle(explorer, 6, 2))
    explorer.get_by_role("button", name="class token").click()
    page.mouse.move(*middle(explorer, 7, 3), steps=5)
    assert "where the patch in row 7, column 3 looks" in said(explorer)


def test_a_finger_chooses_a_patch(phone, address):
    phone.goto(address)
    explorer = phone.locator(".attention-explorer")
    phone.touchscreen.tap(*middle(explorer, 2, 8))
    assert "where the patch in row 2, column 8 looks" in said(explorer)


def test_the_keyboard_does_all_of_it(page, explorer):
    photo = explorer.get_by_role("application")
    photo.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
    assert "where the patch in row 1, column 2 looks" in said(explorer)
    assert explorer.locator("p").get_attribute("aria-live") == "polite"
    maps = set()
    for name, key in (("layer", "Home"), ("head", "End")):
        control = explorer.get_by_role("slider", name=name)
        control.focus()
        page.keyboard.press(key)
        maps.add(tuple(darkness(explorer)))
    assert "Layer 1, head 6" in said(explorer)
    assert len(maps) == 2


def test_on_paper_the_map_is_there_and_the_controls_are_not(page, explorer):
    page.emulate_media(media="print")
    assert explorer.locator(".controls").is_hidden()
    assert (
        explorer.locator(".cells i").first.evaluate("one => getComputedStyle(one).printColorAdjust")
        == "exact"
    )


def test_without_scripts_it_is_one_map(browser, address):
    page = browser.new_page(java_script_enabled=False)
    page.goto(address)
    explorer = page.locator(".attention-explorer")
    assert not explorer.locator(".controls").is_visible()
    assert len({*darkness(explorer)}) > 3
    assert said(explorer).endswith("where the class token looks.")
    page.close()
