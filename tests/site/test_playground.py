"""The playground: a photo, its patches, and the model that answers in the page. What the page says holds."""

import json
import re

import pytest
import torch
from check_book import BUILT
from looks import settle
from PIL import Image
from playwright.sync_api import expect
from project_facts import ROOT
from serve import served
from widgets import SOON, Widget

from vit_from_scratch.data.photos import load_photo
from vit_from_scratch.examples import PHOTOS as EXAMPLES
from vit_from_scratch.examples import photo
from vit_from_scratch.inspection import attention_rollout, mean_attention_distance
from vit_lab.runs.trained_models import open_model

pytestmark = pytest.mark.site

PAGE = "book/playground.html"
CATS = {"tabby", "Egyptian cat", "Persian cat"}
PHOTOS = ROOT / "book/_static/vit/photos"
TRIES = (ROOT / "book/playground.md").read_text(encoding="utf-8").partition("## Draw a digit")[0]
THINGS = re.findall(r"^\*\*(.+?)\*\*", TRIES, re.MULTILINE)


class Playground(Widget):
    """The photo, its map and what the model says of it."""

    def __init__(self, page):
        super().__init__(page, ".vit-photo")
        self.map = self.grids.nth(1)

    def likely(self):
        """The likeliest classes with their shares in per cent, once the newest answer has come."""
        expect(self.whole).not_to_have_attribute("aria-busy", "true", timeout=SOON)
        pairs = [text.split("\n") for text in self.whole.locator(".vit-bars li").all_inner_texts()]
        return {name: float(share.removesuffix(" %")) for name, share in pairs}

    def first(self):
        return next(iter(self.likely()))

    def dimmed(self):
        return self.map.locator(".cells i").evaluate_all("all => all.map((one) => +one.style.opacity)")

    def pick(self, name):
        """Press a photo's name, and wait until it is the one that is shown."""
        self.press(name)
        expect(self.whole.get_by_role("button", name=name, exact=True)).to_have_attribute(
            "aria-pressed", "true", timeout=SOON
        )

    def middle(self, row, column):
        return super().middle(row, column, grid=1)


def opened(page, book):
    page.goto(f"{book}{PAGE}")
    settle(page)
    page.wait_for_selector(".vit-bars li")
    return Playground(page)


@pytest.fixture
def playground(page, book):
    return opened(page, book)


@torch.no_grad()
@pytest.mark.parametrize("name", ["cat", "coffee", "rocket"])
def test_it_answers_as_the_package_does(name, playground):
    """Up to the weights in a byte each, and a picture that the package makes smaller in whole numbers."""
    playground.pick(name)
    found = playground.likely()
    trained = open_model("tiny-imagenet")
    pixels = load_photo(PHOTOS / f"{name}.jpg", (64, 64))[None]
    shares = trained.model(trained.scaling(255 * pixels)).softmax(dim=1)[0]
    for label, share in list(found.items())[:2]:
        assert 100 * shares[trained.class_names.index(label)] == pytest.approx(share, abs=2)


def test_rollout_and_distances_are_the_packages(page):
    """Of the same attention; a mistake in either changes what Part III's chapters would say of a photo."""
    with served(PHOTOS.parent.parent) as root:
        page.goto(f"{root}vit/photos/cat.jpg")
        weights, rolled, far = page.evaluate(
            """async () => {
                const { load } = await import("/vit/vit.js");
                const { meanDistance, rollout } = await import("/vit/looking.js");
                const model = await load("/vit/tiny-imagenet.bin"), heads = [0, 1, 2, 3, 4, 5];
                const pixels = new Float32Array(64 * 64 * 3).map((_, i) => Math.abs(Math.sin(i * i)));
                const { attention } = model.forward(pixels);
                const far = attention.map((one) => heads.map((h) => meanDistance(one, h, model.config)));
                return [attention.map((one) => [...one]), [...rollout(attention, 6)], far];
            }"""
        )
    attention = torch.tensor(weights, dtype=torch.float64).view(8, 1, 6, 65, 65)
    expected = attention_rollout(attention)[0]
    torch.testing.assert_close(torch.tensor(rolled).double().view(65, 65), expected, atol=1e-6, rtol=0)
    expected = mean_attention_distance(attention, (8, 8), 8)[:, 0]
    torch.testing.assert_close(torch.tensor(far).double(), expected, atol=1e-4, rtol=0)


def test_rollout_goes_through_a_layer_that_is_left_out_as_if_it_were_not_there(page):
    with served(PHOTOS.parent.parent) as root:
        page.goto(f"{root}vit/photos/cat.jpg")
        rolled = page.evaluate(
            """async () => {
                const { rollout } = await import("/vit/looking.js");
                const first = new Float32Array([0.5, 0.5, 0, 1]);
                const last = new Float32Array([0.25, 0.75, 0.5, 0.5]);
                return [[first, new Float32Array(4), last], [first, last]].map((all) => [...rollout(all, 1)]);
            }"""
        )
    assert rolled[0] == rolled[1]
    assert rolled[0][0] + rolled[0][1] == 1


HIDDEN = "all => [...all.keys()].filter((place) => all[place].classList.contains('hidden'))"
GREY = """(canvas) => new Set(
    canvas.getContext("2d").getImageData(8, 16, 8, 8).data.filter((_, place) => place % 4 === 0)
).size"""


def test_of_shuffled_patches_a_click_hides_the_one_that_is_there(page, playground):
    playground.whole.get_by_label("patches shuffled").check()
    playground.likely()
    playground.whole.get_by_label("hides it, or shows it again").check()
    canvas = playground.map.locator("canvas")
    assert canvas.evaluate(GREY) > 1
    page.mouse.click(*playground.middle(3, 2))
    playground.likely()
    in_photo, seen = (grid.locator(".cells i").evaluate_all(HIDDEN) for grid in playground.grids.all()[:2])
    assert canvas.evaluate(GREY) == 1
    assert seen == [2 * 8 + 1]
    page.mouse.click(*Widget.middle(playground, in_photo[0] // 8 + 1, in_photo[0] % 8 + 1))
    playground.likely()
    assert playground.map.locator(".cells i").evaluate_all(HIDDEN) == []
    assert canvas.evaluate(GREY) > 1


def test_a_layer_that_is_left_out_looks_nowhere(playground):
    playground.slide("layer", 2)
    playground.whole.get_by_label("leave out this layer").check()
    playground.likely()
    assert playground.said() == "Layer 2 is left out: nothing looks anywhere in it."


def test_what_is_transparent_in_a_photo_is_white(page, playground, tmp_path):
    Image.new("RGBA", (80, 80), (0, 0, 0, 0)).save(tmp_path / "glass.png")
    for _ in range(2):  # the same file again, after another photo
        playground.pick("cat")
        playground.whole.locator("input[type=file]").set_input_files(tmp_path / "glass.png")
        expect(playground.whole.get_by_role("button", name="cat", exact=True)).to_have_attribute(
            "aria-pressed", "false", timeout=SOON
        )
        playground.likely()
        pixel = "(canvas) => [...canvas.getContext('2d').getImageData(5, 5, 1, 1).data]"
        assert playground.map.locator("canvas").evaluate(pixel) == [255] * 4


def test_what_the_page_says_of_its_photos(playground):
    """Each "What to notice" of the page that names an outcome."""
    assert playground.first() in CATS
    playground.whole.get_by_text("What each layer would answer").click()
    answers = [text.split(",")[0] for text in playground.whole.locator(".vit-lens li").all_inner_texts()]
    assert {*answers[:6]} == {"tarantula", "centipede"}
    assert {*answers[6:]} <= CATS
    playground.pick("rocket")
    found = playground.likely()
    assert next(iter(found)) == "obelisk"
    assert 60 < found["obelisk"] < 70


def test_of_two_photos_pressed_in_haste_the_later_is_shown(page, playground):
    page.route("**/coffee.jpg", lambda route: (page.wait_for_timeout(1000), route.continue_()))
    playground.press("coffee")
    playground.pick("rocket")
    page.wait_for_timeout(2000)  # the coffee has come
    assert playground.first() == "obelisk"


def test_of_a_try_pressed_twice_in_haste_its_patches_are_hidden(page, playground):
    page.locator(".vit-try").first.evaluate("button => { button.click(); button.click(); }")
    expect(playground.map.locator(".cells i.hidden")).to_have_count(3, timeout=SOON)
    page.wait_for_timeout(1000)
    assert playground.first() == "potpie"
    assert playground.map.locator(".cells i.hidden").count() == 3


def test_another_square_waits_for_its_own_map(page, playground):
    """Nothing of the old answer is drawn over it, whatever is pressed meanwhile."""
    wrong = []
    page.on("pageerror", lambda error: wrong.append(error))
    playground.whole.get_by_text("Cut another square").click()
    before = playground.said()
    sliders = [playground.whole.get_by_role("slider", name=name) for name in ("size of", "layer")]
    meanwhile = page.evaluate(
        """(sliders) => {
            for (const slider of sliders) {
                slider.value = slider.min;
                slider.dispatchEvent(new Event("input", { bubbles: true }));
            }
            return document.querySelector(".vit-photo .vit-status").innerText;
        }""",
        [slider.element_handle() for slider in sliders],
    )
    assert meanwhile == before
    playground.likely()
    assert playground.said().startswith("Layer 1, all heads: ")
    assert not wrong


def test_a_held_key_chooses_once(page, playground):
    playground.whole.get_by_label("hides it, or shows it again").check()
    playground.map.focus()
    page.keyboard.down("Enter")
    page.keyboard.down("Enter")  # as a key that is held repeats
    page.keyboard.up("Enter")
    expect(playground.map.locator(".cells i.hidden")).to_have_count(1, timeout=SOON)


def test_a_worker_that_dies_is_one_sentence(page, book):
    page.add_init_script(
        """const Made = Worker;
        window.Worker = class extends Made {
            constructor(...what) { super(...what); window.made = this; }
        };"""
    )
    playground = opened(page, book)
    playground.likely()
    page.evaluate("made.dispatchEvent(new ErrorEvent('error'))")
    playground.whole.get_by_label("without positions").check()
    expect(playground.whole.locator(".vit-note")).to_contain_text("load the page again", timeout=SOON)
    expect(playground.whole).not_to_have_attribute("aria-busy", "true")


def test_the_answer_is_read_aloud(playground):
    first = playground.first()
    assert playground.whole.locator(".vit-reads").get_attribute("role") == "status"
    assert playground.whole.locator(".vit-reads").inner_text().startswith(f"Likeliest: {first}, ")


def test_breaking_it_does_what_the_page_says(playground):
    without = playground.whole.get_by_label("without positions")
    shuffled = playground.whole.get_by_label("patches shuffled")
    whole = playground.likely()
    without.check()
    bag = playground.likely()
    shuffled.check()
    assert playground.likely() == bag, "a bag has no order"
    without.uncheck()
    assert playground.likely() not in (bag, whole)
    playground.press("Put everything back")
    assert playground.likely() == whole
    assert not shuffled.is_checked()
    for scale in (0, 4):
        playground.slide("scores times", scale)
        assert playground.first() not in CATS
    playground.press("Put everything back")
    lost = []
    for layer in range(1, 9):
        playground.slide("layer", layer)
        playground.whole.get_by_label("leave out this layer").check()
        if playground.first() not in CATS:
            lost.append(layer)
        playground.whole.get_by_label("leave out this layer").uncheck()
    assert 1 in lost
    assert len(lost) <= 2


def test_do_it_does_what_there_is_to_try_and_opens_what_to_notice(page, playground):
    """Each with the cat, whatever was done before; and what the page says of it is so."""
    playground.pick("astronaut")
    playground.whole.get_by_text("Cut another square").click()
    playground.slide("size of the square", 0.5)
    found = {}
    for button in page.locator(".vit-try").all():
        words = button.locator("..").locator("strong").inner_text()
        playground.whole.get_by_label("tokens after the layer").check()
        button.click()
        shown = "rocket" if "does not know" in words else "cat"
        chosen = playground.whole.get_by_role("button", name=shown, exact=True)
        expect(chosen).to_have_attribute("aria-pressed", "true", timeout=SOON)
        found[words] = playground.likely()
        expect(button.locator("..").locator("+ details")).to_have_attribute("open", "")
        if words.startswith("Follow"):
            assert "Layer 2, head 1: the patch in row 4, column 3 looks most" in playground.said()
        if words.startswith("Hide"):
            assert playground.map.locator(".cells i.hidden").count() == 3
        if words.startswith("Ask"):
            expect(playground.whole.locator(".vit-lens")).to_be_visible()
    firsts = [next(iter(shares)) for shares in found.values()]
    assert list(found) == THINGS
    assert [first in CATS for first in firsts] == [False, True, False, False, False, True, False, True, False]
    assert (firsts[0], firsts[-1]) == ("potpie", "obelisk")
    assert max(found["Let the patches answer."].values()) <= 2


def test_a_page_from_a_file_says_how_it_can_be_touched(page):
    page.goto((BUILT / PAGE).as_uri())
    note = page.locator(".vit-photo figcaption")
    expect(note).to_have_text("To touch this, serve the book: make serve.", timeout=SOON)


def test_no_single_head_takes_the_cat_away(page, book, playground):
    playground.slide("head", 6)
    playground.slide("layer", 7)
    before = playground.likely()
    playground.whole.get_by_label("leave out this head").check()
    assert playground.likely() != before
    answers = page.evaluate(
        """async () => {
            const { load } = await import("../_static/vit/vit.js");
            const { cutSquare, openPicture, pixelsOf } = await import("../_static/vit/looking.js");
            const model = await load("../_static/vit/tiny-imagenet.bin");
            const pixels = pixelsOf(cutSquare(await openPicture("../_static/vit/photos/cat.jpg")), 64);
            return Array.from({ length: 48 }, (_, i) => {
                const { logits } = model.forward(pixels, { without: [[Math.floor(i / 6), i % 6]] });
                return model.classes[logits.indexOf(Math.max(...logits))];
            });
        }"""
    )
    assert len(answers) == 48
    assert {*answers} <= CATS


def test_the_page_says_how_often_its_models_are_right(page, book):
    page.goto(f"{book}{PAGE}")
    for name in ("tiny-imagenet", "mnist"):
        told = json.loads((PHOTOS.parent / f"{name}.json").read_text(encoding="utf-8"))
        there, full = (f"{100 * told[part]['accuracy']:.2f}" for part in ("page", "full_precision"))
        text = f"{there}\xa0% of 10,000 test images right (in full precision {full}\xa0%)"
        assert text in page.locator("article").inner_text()


def test_the_patches_mean_says_what_the_page_says(playground):
    mean = playground.whole.get_by_label("read the mean of the patches")
    whole = playground.likely()
    mean.check()
    for name in ("cat", "coffee", "rocket", "astronaut"):
        playground.pick(name)
        assert max(playground.likely().values()) <= 2, name
    playground.pick("cat")
    playground.press("Put everything back")
    assert playground.likely() == whole
    assert not mean.is_checked()


def test_distances_are_a_chart_whose_dots_choose_a_head(page, playground):
    playground.likely()
    playground.whole.get_by_text("How far each head looks").click()
    dots, cells = playground.whole.locator(".plot i"), playground.whole.locator(".vit-values td")
    values = [float(text) for text in cells.all_inner_texts()]
    values = [value for place, value in enumerate(values) if place % 7]  # the first of a row is the layer
    heights = dots.evaluate_all("all => all.map((it) => parseFloat(it.style.bottom))")
    assert heights == pytest.approx([value * heights[0] / values[0] for value in values], rel=0.01)
    dot = dots.nth(6 * 7 + values[42:].index(max(values[42:])))
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert f"Layer 8, head {values[42:].index(max(values[42:])) + 1}" in playground.said()
    assert "chosen" in dot.get_attribute("class")


def test_a_pointer_reads_the_map_and_hides_patches(page, playground):
    row, column, share = re.search(r"row (\d), column (\d), ([\d.]+) %", playground.said()).groups()
    brightest = 8 * int(row) + int(column) - 9
    assert [place for place, dim in enumerate(playground.dimmed()) if dim == 0] == [brightest]
    assert max(playground.dimmed()) < 0.7, "the photo is seen everywhere"
    page.mouse.move(*playground.middle(int(row), int(column)))
    assert playground.said() == f"row {row}, column {column}, {share} %"
    before = playground.dimmed()
    page.mouse.click(*playground.middle(7, 3))
    page.mouse.move(0, 0, steps=3)
    assert "the patch in row 7, column 3 looks most" in playground.said()
    assert playground.dimmed() != before
    playground.press("Class token")
    assert playground.dimmed() == before
    whole = playground.likely()
    playground.whole.get_by_label("hides it, or shows it again").check()
    for _ in range(2):
        page.mouse.click(*playground.middle(3, 2))
        now = playground.likely()
        hidden = playground.map.locator(".cells i.hidden").count()
        assert (now == whole) == (hidden == 0)
        assert playground.whole.locator(".vit-reads").inner_text().endswith("Patches hidden: 1.") == (
            hidden == 1
        )


def test_the_keyboard_does_all_of_it(page, playground):
    playground.map.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert playground.said().startswith("row 3, column 2, ")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert "the patch in row 3, column 2 looks most" in playground.said()
    playground.slide("head", 6)
    assert "Layer 8, head 6" in playground.said()
    playground.whole.get_by_label("rollout").check()
    assert playground.said().startswith("Through all layers")
    playground.whole.get_by_label("tokens after the layer").check()
    colours = playground.map.locator(".cells i").evaluate_all("all => all.map((it) => it.style.background)")
    assert len({*colours}) > 30


def test_a_photo_of_ones_own_is_cut_and_goes_nowhere(page, playground, save_photo, tmp_path):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    path = save_photo(tmp_path / "own.png", size=(300, 200), seed=1)
    playground.whole.locator("input[type=file]").set_input_files(path)
    first = playground.likely()
    playground.whole.get_by_text("Cut another square").click()
    playground.slide("size of the square", 0.3)
    assert playground.likely() != first
    assert asked == []
    (tmp_path / "no.png").write_text("no picture")
    playground.whole.locator("input[type=file]").set_input_files(tmp_path / "no.png")
    page.wait_for_function("document.querySelector('.vit-refused').textContent.includes('cannot be read')")


def test_a_finger_chooses_a_patch(browser, book):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    playground = opened(context.new_page(), book)
    playground.page.touchscreen.tap(*playground.middle(2, 8))
    assert "the patch in row 2, column 8 looks most" in playground.said()
    context.close()


def test_without_scripts_there_is_the_photo(browser, book):
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{book}{PAGE}")
    assert page.locator(".vit-photo img").is_visible()
    assert "needs JavaScript" in page.locator(".vit-photo figcaption").inner_text()
    page.close()


def test_a_model_that_does_not_come_is_one_sentence(page, book):
    page.route("**/tiny-imagenet.bin", lambda route: route.abort())
    page.goto(f"{book}{PAGE}")
    page.wait_for_function("document.querySelector('.vit-note')?.textContent.includes('cannot be fetched')")
    assert page.locator(".vit-photo img").is_visible()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_photos_are_those_of_the_chapters(name):
    """`photo(256, name)`, as far as JPEG keeps it."""
    difference = load_photo(PHOTOS / f"{name}.jpg", (256, 256)) - photo(256, name)[0]
    assert difference.abs().mean() < 4 / 255
