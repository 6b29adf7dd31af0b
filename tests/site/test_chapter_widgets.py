"""What one can touch in chapters: by mouse, finger, keys; without scripts, on paper; what the text says."""

import re

import pytest
import torch
from looks import STILL, axe, find, invisible_focus, listening, settle, switch_theme
from paper import cut_on_paper, prepare
from playwright.sync_api import expect
from project_facts import ROOT

from vit_from_scratch.data.photos import load_photo
from vit_from_scratch.model import patchify
from vit_lab.runs.trained_models import open_model

pytestmark = pytest.mark.site

FOLDER = ROOT / "book/_static/vit"
PAGES = {
    "patches": "notebooks/01_patches.html",
    "positions": "notebooks/02_tokens.html",
    "attention": "notebooks/03_attention.html",
}
WITH_A_MODEL = ["positions", "attention"]
SOON = 30_000  # milliseconds, on a busy machine
PHONE = {"width": 390, "height": 844}


class Widget:
    """A widget as a reader has it before them."""

    def __init__(self, page, name):
        self.page, self.whole = page, page.locator(f"#vit-{name}")
        self.grids = self.whole.get_by_role("application")

    def said(self):
        return self.whole.locator(".vit-status").inner_text()

    def slide(self, name, value):
        self.whole.get_by_role("slider", name=name).fill(str(value))

    def dimmed(self):
        """How dark each patch is."""
        return self.whole.locator(".cells i").evaluate_all("all => all.map((one) => +one.style.opacity)")

    def middle(self, row, column, rows=8, grid=0):
        """Where a patch is on the screen, counted from 1."""
        self.grids.nth(grid).scroll_into_view_if_needed()
        box = self.grids.nth(grid).bounding_box()
        return box["x"] + box["width"] * (column - 0.5) / rows, box["y"] + box["height"] * (row - 0.5) / rows


def come_near(page, book, name):
    """The widget once a reader has scrolled to it and it has answered."""
    page.goto(f"{book}{PAGES[name]}")
    settle(page)
    page.locator(f"#vit-{name}").scroll_into_view_if_needed()
    expect(page.locator(f"#vit-{name} .vit-status")).to_have_text(re.compile(r"\w"), timeout=SOON)
    return Widget(page, name)


@pytest.fixture
def phone(browser):
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    yield context.new_page()
    context.close()


# ---- Every widget
@pytest.mark.parametrize("name", PAGES)
def test_live_it_has_no_findings_on_a_phone_and_in_the_dark(name, page, book, axe_source):
    page.set_viewport_size(PHONE)
    with listening(page) as heard:
        come_near(page, book, name)
        page.add_style_tag(content=STILL)
        assert find(page, "sideways") == []
        for theme in ("light", "dark"):
            switch_theme(page, theme)
            assert axe(page, axe_source) == []
        assert {kind: found for kind, found in heard.items() if found} == {}
    assert [control for control in invisible_focus(page) if "vit-" in control or "range" in control] == []


@pytest.mark.parametrize("name", PAGES)
def test_without_scripts_there_is_a_figure_that_says_so(name, browser, book):
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{book}{PAGES[name]}")
    assert page.locator(f"#vit-{name} [role=img]").is_visible()
    assert "JavaScript" in page.locator(f"#vit-{name} figcaption").inner_text()
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_on_paper_it_is_a_picture_with_its_values(name, page, book):
    widget = come_near(page, book, name)
    prepare(page)
    assert widget.whole.locator("canvas").first.is_visible()
    assert widget.whole.locator(".vit-status").is_visible()
    assert not widget.whole.locator(".vit-help").is_visible()
    assert cut_on_paper(page) == []


@pytest.mark.parametrize("name", WITH_A_MODEL)
def test_the_model_comes_when_a_reader_comes_near_and_once(name, browser, book):
    context = browser.new_context()
    page, asked = context.new_page(), []
    context.on("request", lambda request: asked.append(request.url))
    page.goto(f"{book}{PAGES[name]}", wait_until="networkidle")
    assert [url for url in asked if url.endswith(".bin")] == []
    come_near(page, book, name)
    assert len([url for url in asked if url.endswith(".bin")]) == 1
    context.close()


def test_patches_need_no_model(page, book):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    come_near(page, book, "patches")
    assert [url for url in asked if url.endswith(".bin")] == []


@pytest.mark.parametrize("name", WITH_A_MODEL)
def test_a_model_that_does_not_come_leaves_the_figure(name, page, book):
    page.route("**/*.bin", lambda route: route.abort())
    page.goto(f"{book}{PAGES[name]}")
    page.locator(f"#vit-{name}").scroll_into_view_if_needed()
    expect(page.locator(f"#vit-{name} .vit-note")).to_contain_text("cannot be fetched", timeout=SOON)
    assert page.locator(f"#vit-{name} [role=img]").is_visible()


@pytest.mark.parametrize("name", PAGES)
def test_its_own_code_is_light(name):
    assert (FOLDER / f"{name}.js").stat().st_size < 8_000


# ---- Chapter 1: patches of any size
COUNTS = {4: (3136, 48), 16: (196, 768), 32: (49, 3072), 112: (4, 37632)}
SIZES = [4, 7, 8, 14, 16, 28, 32, 56, 112]


@pytest.mark.parametrize("size", COUNTS)
def test_numbers_stand_where_patchify_puts_them(size, page, book):
    widget = come_near(page, book, "patches")
    widget.slide("patch size P", SIZES.index(size))
    counts, numbers = COUNTS[size]
    said = widget.whole.locator(".vit-title").inner_text()
    assert f" = {counts:,} patches of " in said
    assert said.endswith(f" = {numbers:,} numbers")
    pixels = load_photo(FOLDER / "photos/cat.jpg", (224, 224))[None]
    rows = patchify(pixels, size)[0]  # (N, P²C)
    patch = int(re.search(r"patches\[(\d+), 0\]", widget.said())[1])
    for place in range(0, numbers, numbers // 24 + 1):
        widget.slide("place in the row", place)
        value = re.match(rf"patches\[{patch}, {place}\] = ([\d.]+),", widget.said())[1]
        assert float(value) == pytest.approx(rows[patch, place].item(), abs=0.03)


def test_a_pixel_and_its_place_in_the_row_point_at_each_other(page, book):
    widget = come_near(page, book, "patches")
    page.mouse.click(*widget.middle(1, 14, 14))
    page.mouse.move(*widget.middle(4, 6, 16, grid=1))
    assert widget.said().startswith("patches[13, 159] = ")  # 3 (16 · 3 + 5)
    assert "stand at 159, 160 and 161" in widget.said()
    page.mouse.move(*widget.middle(4, 7, 16, grid=1))
    assert widget.said().startswith("patches[13, 162] = ")  # a column on: 3 further
    page.mouse.move(*widget.middle(5, 6, 16, grid=1))
    assert widget.said().startswith("patches[13, 207] = ")  # a row on: 3 P further
    box = widget.whole.locator(".vit-strip").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 37.5 / 256, box["y"] + 5)
    assert widget.said().startswith("patches[13, 111] = ")
    assert "the red of row 2, column 5 in the patch of row 0, column 13" in widget.said()
    cursor = widget.whole.locator(".vit-grid b").nth(1)
    assert cursor.evaluate("it => [it.style.top, it.style.left]") == ["12.5%", "31.25%"]


def test_keys_choose_a_patch_a_pixel_and_a_place(page, book):
    widget = come_near(page, book, "patches")
    widget.grids.nth(0).focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert widget.said().startswith("patches[74, 0] = ")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert widget.said().startswith("patches[74, 48] = ")
    widget.whole.get_by_role("slider", name="place in the row").press("ArrowRight")
    assert widget.said().startswith("patches[74, 49] = ")
    assert "the green of row 1, column 0" in widget.said()


def test_a_finger_chooses_a_patch_a_pixel_and_a_place(phone, book):
    widget = come_near(phone, book, "patches")
    phone.touchscreen.tap(*widget.middle(14, 2, 14))
    assert widget.said().startswith("patches[183, 0] = ")
    phone.touchscreen.tap(*widget.middle(2, 1, 16, grid=1))
    assert widget.said().startswith("patches[183, 48] = ")
    box = widget.whole.locator(".vit-strip").bounding_box()
    phone.touchscreen.tap(box["x"] + box["width"] - 1, box["y"] + 5)
    assert widget.said().startswith("patches[183, 765] = ")


# ---- Chapter 2: positions
def answer(widget, said):
    """The bars, once the status begins with this."""
    expect(widget.whole.locator(".vit-status")).to_contain_text(said, timeout=SOON)
    return widget.whole.locator(".vit-bars li").all_inner_texts()


def shuffle_anew(widget):
    """Shuffle, by the keyboard, and wait until the picture shows it."""
    picture = widget.whole.locator("canvas")
    before = picture.evaluate("it => it.toDataURL()")
    widget.whole.get_by_role("button", name="Shuffle anew").press("Enter")
    widget.page.wait_for_function(
        "before => document.querySelector('.vit-picture').toDataURL() !== before", arg=before
    )


def test_what_chapter_2_says_of_positions(page, book):
    widget = come_near(page, book, "positions")
    whole = answer(widget, "With positions, patches in order: ")
    seen = [whole]
    for _ in range(3):
        shuffle_anew(widget)
        seen.append(answer(widget, "With positions, patches shuffled: "))
        assert seen[-1] not in seen[:-1]
    widget.whole.get_by_role("checkbox", name="without positions").check()
    bag = answer(widget, "With no positions, patches shuffled: ")
    assert bag not in seen
    for _ in range(2):
        shuffle_anew(widget)
        assert answer(widget, "With no positions, patches shuffled: ") == bag
    widget.whole.get_by_role("checkbox", name="patches shuffled").uncheck()
    assert answer(widget, "With no positions, patches in order: ") == bag
    widget.whole.get_by_role("checkbox", name="without positions").uncheck()
    assert answer(widget, "With positions, patches in order: ") == whole
    assert widget.whole.locator(".vit-bars .moved").count() == 0


def test_the_answer_in_order_is_the_packages(page, book):
    first = answer(come_near(page, book, "positions"), "With positions, patches in order: ")[0].split("\n")
    trained = open_model("tiny-imagenet")
    pixels = load_photo(FOLDER / "photos/cat.jpg", (64, 64))[None]
    with torch.no_grad():
        shares = trained.model(trained.scaling(255 * pixels)).softmax(dim=1)[0]
    place = shares.argmax().item()
    assert first[0] == trained.class_names[place]
    assert float(first[1].removesuffix(" %")) == pytest.approx(100 * shares[place].item(), abs=2)


def test_a_finger_shuffles(phone, book):
    widget = come_near(phone, book, "positions")
    widget.whole.get_by_role("checkbox", name="patches shuffled").tap()
    answer(widget, "With positions, patches shuffled: ")


# ---- Chapter 3: one head
@pytest.fixture(scope="module")
@torch.no_grad()
def weights():
    """How much each token looks at each, of the photo, as PyTorch says: (L, h, T, T)."""
    trained = open_model("tiny-imagenet")
    pixels = load_photo(FOLDER / "photos/cat.jpg", (64, 64))[None]
    found = trained.model(trained.scaling(255 * pixels), return_intermediates=True)[1]
    return torch.cat(found["attention"])


def shares(said):
    return [float(number) for number in re.findall(r"([\d.]+) %", said)]


def test_a_head_looks_as_the_packages_does_at_any_scale(page, book, weights):
    head = come_near(page, book, "attention")
    tries = ((2, 1, 4, 3, 1), (8, 2, 4, 7, 2), (5, 6, 1, 8, 0.5), (3, 4, 8, 1, 0))
    for layer, number, row, column, scale in tries:
        head.slide("layer", layer)
        head.slide("head", number)
        head.slide("scores times", scale)
        page.mouse.click(*head.middle(row, column))
        row_of_a = weights[layer - 1, number - 1, 8 * (row - 1) + column].pow(scale)  # (T,)
        row_of_a /= row_of_a.sum()
        page.mouse.move(*head.middle(3, 5))
        assert head.said().startswith("row 3, column 5: ")
        assert shares(head.said()) == [pytest.approx(100 * row_of_a[21].item(), abs=0.3)]
        page.mouse.move(0, 0)
        expect(head.whole.locator(".vit-status")).to_contain_text(f"From row {row}, column {column}: ")
        attended = float(re.search(r"([\d.]+) of 65 tokens", head.said())[1])
        assert attended == pytest.approx(torch.special.entr(row_of_a).sum().exp().item(), rel=0.02)
        dim = 0.66 * (1 - row_of_a[1:] / row_of_a[1:].max())
        assert head.dimmed() == pytest.approx(dim.tolist(), abs=0.03)


def test_what_chapter_3_says_of_its_head(page, book):
    head = come_near(page, book, "attention")
    assert head.said().startswith("From row 4, column 3: most at row 4, column 7, ")
    bright = sorted(range(64), key=head.dimmed().__getitem__)[:3]
    for scale, attended in ((0, 65), (0.4, 52), (1, 24), (4, 3)):
        head.slide("scores times", scale)
        assert f"{attended}" == f"{float(re.search('([0-9.]+) of 65', head.said())[1]):.0f}"
        assert scale == 0 or sorted(range(64), key=head.dimmed().__getitem__)[:3] == bright
    head.slide("scores times", 0)
    assert "every token alike, 1.5 %" in head.said()


def test_the_still_head_is_what_the_live_one_shows_first(page, book):
    page.goto(f"{book}{PAGES['attention']}")
    drawn = "all => all.map((one) => +one.getAttribute('fill-opacity'))"
    still = page.locator("#vit-attention path[fill-opacity]").evaluate_all(drawn)
    assert come_near(page, book, "attention").dimmed() == pytest.approx(still, abs=0.02)


def test_keys_choose_a_patch_and_read_shares(page, book):
    head = come_near(page, book, "attention")
    head.grids.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert head.said().startswith("row 3, column 2: ")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert head.said().startswith("From row 3, column 2: ")
    page.keyboard.press("ArrowRight")  # the slider of layers
    assert head.whole.get_by_role("slider", name="layer").get_attribute("aria-valuetext") == "3"


def test_a_finger_chooses_a_patch_and_a_resting_one_reads(phone, book):
    head = come_near(phone, book, "attention")
    x, y = head.middle(2, 8)
    phone.touchscreen.tap(x, y)
    assert head.said().startswith("From row 2, column 8: ")
    session = phone.context.new_cdp_session(phone)
    x, y = head.middle(5, 5)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    assert head.said().startswith("row 5, column 5: ")
    session.send("Input.dispatchTouchEvent", {"type": "touchCancel", "touchPoints": []})
    assert head.said().startswith("From row 2, column 8: ")
