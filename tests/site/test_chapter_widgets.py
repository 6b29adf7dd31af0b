"""What one can touch in chapters: by mouse, finger, keys; without scripts, on paper; what the text says."""

import itertools
import json
import re

import pytest
import torch
from looks import STILL, axe, find, invisible_focus, listening, switch_theme
from paper import cut_on_paper, prepare
from playwright.sync_api import expect
from torch import nn
from widgets import FOLDER, PAGES, PHONE, SOON, WITH_A_MODEL, brought_near, come_near

from vit_from_scratch import ViTConfig
from vit_from_scratch.data import load_dataset
from vit_from_scratch.data.photos import load_photo
from vit_from_scratch.model import Block, StemConfig, patchify
from vit_from_scratch.model.hybrid import Bottleneck, ResNetStem
from vit_from_scratch.model.tokens import sincos_2d
from vit_lab.runs.trained_models import open_model

pytestmark = pytest.mark.site


# ---- Every widget
@pytest.mark.parametrize("name", PAGES)
def test_live_it_has_no_findings_on_a_phone_in_the_dark_and_on_paper(name, page, book, axe_source):
    """Its model comes when a reader comes near, and once."""
    models = []
    page.on("request", lambda request: request.url.endswith(".bin") and models.append(request.url))
    page.set_viewport_size(PHONE)
    with listening(page) as heard:
        page.goto(f"{book}{PAGES[name]}", wait_until="networkidle")
        caption = page.locator(f"#vit-{name} figcaption").inner_text()
        assert models == []
        widget = brought_near(page, name)
        others = page.locator(f"[data-model]:not(#vit-{name} *, #vit-{name})").count()  # of the same page
        assert len(models) == (name in WITH_A_MODEL) or (others and name not in WITH_A_MODEL)
        page.add_style_tag(content=STILL)
        assert find(page, "sideways") == []
        for theme in ("dark", "light"):
            switch_theme(page, theme)
            assert axe(page, axe_source) == []
        assert {kind: found for kind, found in heard.items() if found} == {}
    assert [control for control in invisible_focus(page) if "vit-" in control or "range" in control] == []
    said = widget.whole.locator(".vit-caption")
    expect(said).to_have_count(1)
    expect(said).to_be_hidden()
    prepare(page)
    expect(said).to_be_visible()
    assert caption.startswith(said.inner_text().removeprefix("At first: "))
    assert "JavaScript" not in said.inner_text()
    assert widget.whole.locator("canvas, .vit-lines svg, .vit-parts").first.is_visible()
    assert widget.whole.locator(".vit-status").is_visible()
    assert not widget.whole.locator(".vit-help").is_visible()
    assert cut_on_paper(page) == []


@pytest.mark.parametrize("name", PAGES)
def test_without_scripts_there_is_a_figure_that_says_so(name, browser, book):
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{book}{PAGES[name]}")
    assert page.locator(f"#vit-{name} [role=img]").is_visible()
    assert "JavaScript" in page.locator(f"#vit-{name} figcaption").inner_text()
    page.close()


def test_pages_of_one_reader_fetch_the_weights_once(browser, book):
    """The next page asks whether the file is still the same, and takes the copy that the browser has kept."""
    context, came = browser.new_context(), []
    context.on("requestfinished", lambda request: request.url.endswith(".bin") and came.append(request))
    for name in ("explorer", "answers", "positions"):
        come_near(context.new_page(), book, name)
    sizes = [request.sizes()["responseBodySize"] for request in came]
    assert sizes == [(FOLDER / "tiny-imagenet.bin").stat().st_size, 0, 0]
    context.close()


@pytest.mark.parametrize(
    ("name", "file", "come"),
    [("attention", "*.bin", None), ("run", "digits-run.json", None), ("run", "digits-run.json", "{")],
)
def test_a_file_that_does_not_come_whole_leaves_the_figure(name, file, come, page, book):
    page.route(f"**/{file}", lambda route: route.fulfill(body=come) if come else route.abort())
    page.goto(f"{book}{PAGES[name]}")
    page.locator(f"#vit-{name}").scroll_into_view_if_needed()
    expect(page.locator(f"#vit-{name} .vit-note")).to_contain_text("cannot be fetched", timeout=SOON)
    assert page.locator(f"#vit-{name} [role=img]").is_visible()


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
    assert f" = {numbers:,} numbers; " in said
    assert said.endswith(f"N² = {counts**2:,} pairs")
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
    page.mouse.move(*widget.middle(3, 2, 14))
    assert widget.said().startswith("patches[29, 0] = "), "one that is pointed at is shown"
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


def test_other_patches_are_cut_while_a_mouse_rests_on_one(page, book):
    widget = come_near(page, book, "patches")
    widget.slide("patch size P", 0)
    page.mouse.move(*widget.middle(56, 56, 56))
    assert widget.said().startswith("patches[3135, 0] = ")
    widget.whole.get_by_role("slider", name="patch size P").press("End")
    assert re.match(r"patches\[[0-3], 0\] = ", widget.said())


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
        assert widget.said().endswith(" Nothing has moved.")
        assert widget.whole.locator(".vit-bars .moved").count() == 0
    widget.whole.get_by_role("checkbox", name="patches shuffled").uncheck()
    assert answer(widget, "With no positions, patches in order: ") == bag
    widget.whole.get_by_role("checkbox", name="without positions").uncheck()
    assert answer(widget, "With positions, patches in order: ") == whole
    widget.whole.get_by_role("checkbox", name="without positions").check()
    answer(widget, "With no positions, patches in order: ")
    assert widget.whole.locator(".vit-bars .moved").count() > 0, "a line is where each bar was"
    assert "Nothing has moved" not in widget.said()


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


def likeness(widget):
    """The likeness to all places along a side, as the thick line's dots are drawn."""
    heights = widget.whole.locator("circle").evaluate_all("all => all.map((one) => +one.getAttribute('cy'))")
    return torch.tensor([1 - (height - 10) / 90 for height in heights])


@pytest.mark.parametrize(("place", "waves"), [(4, 1), (0, 3), (13, 12), (6, 48)])
def test_the_waves_are_those_of_the_packages_positions(place, waves, page, book):
    widget = come_near(page, book, "waves")
    widget.slide("place", place)
    widget.slide("waves", waves)
    table = sincos_2d((1, 14), 192)[:, 96:]  # of columns: sines, then cosines
    chosen = torch.cat([table[:, :waves], table[:, 48 : 48 + waves]], dim=1)
    expected = chosen @ chosen[place] / waves
    assert torch.allclose(likeness(widget), expected, atol=0.01)
    assert widget.whole.locator("polyline.wave").count() == min(10, waves)
    one = widget.whole.locator(".vit-title").first.inner_text().replace("−", "-")
    found = re.fullmatch(
        rf"Wave {waves} gives place {place} two numbers: (.+), its sine, and (.+), its cos.*", one
    )
    numbers = [float(number) for number in found.groups()]
    assert numbers == pytest.approx(table[place, [waves - 1, 47 + waves]].tolist(), abs=0.006)
    sine = widget.whole.locator("polyline").first.get_attribute("points").split()
    assert len(sine) == 13 * 8 + 1
    drawn = torch.tensor([1 - (float(point.split(",")[1]) - 10) / 35 for point in sine[::8]])
    assert torch.allclose(drawn, table[:, waves - 1], atol=0.01)
    others = [*range(place), *range(place + 1, 14)]
    most = max(expected[other] for other in others)
    names = [str(other) for other in others if most - expected[other] < 1e-6]
    told = f"place {names[0]} is" if len(names) == 1 else f"places {' and '.join(names)} are"
    assert f": {told} most like it, {most:.2f};" in widget.said().replace("−", "-")


def test_what_chapter_2_says_of_waves(page, book):
    widget = come_near(page, book, "waves")
    for place in range(14):
        widget.slide("place", place)
        widget.slide("waves", 1)
        far = [x for x in (place - 6, place + 6) if 0 <= x < 14]
        assert all(likeness(widget)[x] > 0.95 for x in far)
        near = " and ".join(str(x) for x in (place - 1, place + 1) if 0 <= x < 14)
        told = f"places {near} are most" if " " in near else f"place {near} is most"
        assert told not in widget.said()
        for waves in (3, 4, 12, 48):
            widget.slide("waves", waves)
            assert told in widget.said()


def test_the_place_is_dragged_in_the_picture(page, book):
    widget = come_near(page, book, "waves")
    picture, box = widget.whole.locator("svg").nth(1), None
    while box != (now := picture.bounding_box()):
        picture.scroll_into_view_if_needed()
        box = now
        page.wait_for_timeout(500)
    x, y = [box["x"] + (10 + 540 * place / 13) / 560 * box["width"] for place in (4, 11)], box["y"] + 20
    page.mouse.move(x[1], y)
    assert widget.said().startswith("Place 4, "), "the button is up"
    page.mouse.move(x[0], y)
    page.mouse.down()
    page.mouse.move(x[1], y, steps=5)
    page.mouse.up()
    assert widget.said().startswith("Place 11, ")
    assert widget.whole.get_by_role("slider", name="place").input_value() == "11"


def test_a_tap_chooses_a_place(phone, book):
    widget = come_near(phone, book, "waves")
    box = None
    while box != (now := widget.whole.locator("svg").nth(1).bounding_box()):
        widget.whole.locator("svg").nth(1).scroll_into_view_if_needed()
        box = now
        phone.wait_for_timeout(500)
    phone.touchscreen.tap(box["x"] + (10 + 540 * 9 / 13) / 560 * box["width"], box["y"] + box["height"] / 2)
    assert widget.said().startswith("Place 9, ")


def test_waves_are_added_by_keys(page, book):
    widget = come_near(page, book, "waves")
    slider = widget.whole.get_by_role("slider", name="waves")
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    assert "the fastest 3 waves" in widget.said()


def test_a_finger_moves_the_place(phone, book):
    widget = come_near(phone, book, "waves")
    place = widget.whole.get_by_role("slider", name="place")
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    phone.touchscreen.tap(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    assert int(place.input_value()) in (11, 12)
    assert widget.said().startswith(f"Place {place.input_value()}, the fastest wave: ")


# ---- Chapter 3: one head
@pytest.fixture(scope="module")
@torch.no_grad()
def weights():
    """How much each token looks at each, of the photo, as PyTorch says: (L, h, T, T)."""
    trained = open_model("tiny-imagenet")
    pixels = load_photo(FOLDER / "photos/cat.jpg", (64, 64))[None]
    found = trained.model(trained.scaling(255 * pixels), return_intermediates=True)[1]
    return torch.cat(found["attention"])


NOT_DIVIDED = 5.65  # the end of the slider, which stands for the root of 32


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


@torch.no_grad()
def test_scores_and_the_mixture_are_the_packages(page, book):
    head, trained = come_near(page, book, "attention"), open_model("tiny-imagenet")
    pixels = load_photo(FOLDER / "photos/cat.jpg", (64, 64))[None]
    found = trained.model(trained.scaling(255 * pixels), return_intermediates=True)[1]
    z = [found["tokens"], *found["layers"]]
    for layer, number, row, column, scale in ((2, 1, 4, 3, 1), (7, 3, 1, 8, NOT_DIVIDED), (1, 6, 8, 2, 0.5)):
        block = trained.model.encoder.blocks[layer - 1]
        packed = block.attention.qkv(block.attention_norm(z[layer - 1]))[0].view(65, 3, 6, 32)
        q, k, v = packed[:, :, number - 1].unbind(dim=1)  # (T, Dh) each
        times = 1 if scale == NOT_DIVIDED else scale / 32**0.5
        scores = times * q[8 * (row - 1) + column] @ k.T
        likeness = torch.nn.functional.cosine_similarity(scores.softmax(dim=0) @ v, v)
        head.slide("layer", layer)
        head.slide("head", number)
        head.slide("scores times", scale)
        page.mouse.click(*head.middle(row, column))
        for view, values in (("scores", scores), ("mixture", likeness)):
            head.whole.get_by_role("radio", name=view).check()
            spread = values[1:].max() - values[1:].min()
            assert head.dimmed() == pytest.approx(
                (0.66 * (values[1:].max() - values[1:]) / spread).tolist(), abs=0.04
            )
            page.mouse.move(*head.middle(3, 5))
            shown = float(head.said().removeprefix("row 3, column 5: ").replace("−", "-"))
            assert shown == pytest.approx(values[21].item(), abs=0.03 * spread.item())
    assert head.whole.get_by_role("slider", name="scores").get_attribute("aria-valuetext") == "0.50"


def test_keys_choose_what_the_map_shows_and_go_on_until_nothing_is_divided(page, book):
    head = come_near(page, book, "attention")
    head.whole.get_by_role("radio", name="shares").press("ArrowUp")
    assert head.said().startswith("q · k / √32 from row 4, column 3: highest with row 4, column 7, ")
    head.whole.get_by_role("slider", name="scores").press("End")
    assert head.said().startswith("q · k from row 4, column 3: highest with row 4, column 7, ")
    marks = head.whole.locator("datalist option").evaluate_all("all => all.map((one) => +one.value)")
    assert marks == [1, NOT_DIVIDED]
    head.whole.get_by_role("radio", name="scores").press("ArrowUp")
    assert head.said().startswith("The mixture for row 4, column 3, 32 numbers, is most like ")


def test_what_chapter_3_says_of_its_head(page, book):
    head = come_near(page, book, "attention")
    assert head.said().startswith("From row 4, column 3: most at row 4, column 7, ")
    bright = sorted(range(64), key=head.dimmed().__getitem__)[:3]
    for scale, attended in ((0, 65), (0.4, 52), (1, 24), (NOT_DIVIDED, 2)):
        head.slide("scores times", scale)
        assert f"{attended}" == f"{float(re.search('([0-9.]+) of 65', head.said())[1]):.0f}"
        assert scale == 0 or sorted(range(64), key=head.dimmed().__getitem__)[:3] == bright
    head.whole.get_by_role("radio", name="mixture").check()
    assert "most like the value of row 4, column 7, 0.95, and" in head.said()
    head.whole.get_by_role("radio", name="shares").check()
    head.slide("scores times", 0)
    assert "every token alike, 1.5 %" in head.said()
    head.whole.get_by_role("radio", name="scores").check()
    assert head.said() == "With factor 0 every score is 0."
    assert set(head.dimmed()) == {0}


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
    assert head.said().startswith("row 6, column 4: "), "from the eye in row 4, column 3"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert head.said().startswith("From row 6, column 4: ")
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


# ---- Chapter 4: tokens that become alike
@pytest.mark.parametrize("place", range(4))
def test_a_wiring_does_to_tokens_what_the_chapters_does(place, page, book):
    page.goto(f"{book}{PAGES['wirings']}")
    weights, name, found, spread = page.evaluate(
        """async (place) => {
            const { WIRINGS, drawn, states, within } = await import("../_static/vit/wirings.js");
            const pixels = new Float32Array(32 * 32 * 3).map((_, i) => Math.abs(Math.sin(i * i)));
            const weights = drawn(), [name, wiring] = Object.entries(WIRINGS)[place];
            const found = states(pixels, weights, wiring);
            const plain = (_, value) => (value instanceof Float32Array ? [...value] : value);
            return [JSON.stringify(weights, plain), name, found.map((z) => [...z]), found.map(within)];
        }""",
        place,
    )
    weights, pixels = json.loads(weights), torch.arange(32 * 32 * 3, dtype=torch.float64)
    image = (pixels * pixels).sin().abs().float().view(1, 32, 32, 3).permute(0, 3, 1, 2)
    config = ViTConfig(image_size=32, patch_size=4, dim=32, depth=12, heads=4, mlp_dim=64)
    z = torch.tensor(weights["positions"]).view(65, 32)
    z[1:] += (
        patchify((image - image.mean()) / image.std(), 4)[0] @ torch.tensor(weights["embed"]).view(32, 48).T
    )
    torch.testing.assert_close(torch.tensor(found[0]).view(65, 32), z, atol=1e-4, rtol=0)
    wiring = {
        "pre-norm": lambda z, f, norm: z + f(norm(z)),
        "post-norm": lambda z, f, norm: norm(z + f(z)),
        "no residual": lambda z, f, norm: f(norm(z)),
        "no norm": lambda z, f, norm: z + f(z),
    }[name]
    with torch.no_grad():
        for layer, own in enumerate(weights["blocks"], start=1):
            block = Block(config)
            for part, names in (("attention", ("qkv", "projection")), ("mlp", ("hidden", "output"))):
                for dense in names:
                    module, given = getattr(getattr(block, part), dense), own[part][dense]
                    module.weight.copy_(torch.tensor(given["weight"]).view_as(module.weight))
                    module.bias.copy_(torch.tensor(given["bias"]))
            z = torch.tensor(found[layer - 1]).view(65, 32)  # layers that grow make small differences large
            z = wiring(z, lambda x, block=block: block.attention(x[None])[0][0], block.attention_norm)
            z = wiring(z, block.mlp, block.mlp_norm)
            expected = torch.tensor(found[layer]).view(65, 32)
            assert (z - expected).abs().max() < 1e-3 * z.abs().max()  # without a norm they grow fast
            assert spread[layer] == pytest.approx((z.std(dim=0).mean() / z.std()).item(), abs=0.01)


def test_what_chapter_4_says_of_its_wirings(page, book):
    page.goto(f"{book}{PAGES['wirings']}")
    draws = page.evaluate(  # the same draws at every run: a linear congruential generator of 31 bits
        """async () => {
            let state = 17;
            Math.random = () => (state = (state * 48271) % 2147483647) / 2147483647;
            const { SIZES, WIRINGS, drawn, states, within } = await import("../_static/vit/wirings.js");
            const { cutSquare, openPicture, pixelsOf } = await import("../_static/vit/looking.js");
            const cat = await openPicture("../_static/vit/photos/cat.jpg");
            const pixels = pixelsOf(cutSquare(cat), SIZES.image);
            return Array.from({ length: 20 }, drawn).map((weights) =>
                Object.values(WIRINGS).map((wiring) => states(pixels, weights, wiring).map(within)));
        }"""
    )
    pre, post, no_residual, no_norm = torch.tensor(draws).unbind(dim=1)  # (draws, layers + 1) each
    assert (no_residual[:, 3] < 0.02).all()
    assert (post[:, 12] < 0.12).all()
    assert (pre[:, 12] > 0.12).all()
    assert (pre[:, 12] > 2 * post[:, 12]).all()
    assert no_norm[:, 12].max() > 2.5 * no_norm[:, 12].min()


def test_other_weights_are_drawn_and_the_layers_gone_through_by_keys(page, book):
    page.emulate_media(reduced_motion="reduce")
    widget = come_near(page, book, "wirings")
    before = widget.said()
    assert before.startswith("After layer 12, ")
    widget.whole.get_by_role("button", name="Other random weights").press("Enter")
    assert widget.said() != before
    widget.whole.get_by_role("slider").press("Home")
    values = re.findall(r"[\d.]+\d", widget.said())
    assert widget.said().startswith("Before the first layer, ")
    assert len({*values}) == 1, "the wirings begin with the same tokens"


def playing(widget):
    return widget.whole.get_by_role("button", name="Stop").count() == 1


def test_it_plays_by_itself_once_and_can_be_stopped(page, book):
    widget = come_near(page, book, "wirings")
    time = widget.whole.get_by_role("slider")
    time.scroll_into_view_if_needed()
    button = widget.whole.get_by_role("button", name="Stop")
    button.wait_for()
    assert widget.whole.get_attribute("aria-busy") == "true", "not read aloud meanwhile"
    page.wait_for_function("id => document.querySelector(id).value === '2'", arg="#vit-wirings input")
    button.click()
    assert widget.whole.get_attribute("aria-busy") is None
    stopped = time.input_value()
    page.mouse.wheel(0, 3000)
    time.scroll_into_view_if_needed()
    page.wait_for_timeout(900)
    assert time.input_value() == stopped
    play = widget.whole.get_by_role("button", name="Play")
    play.press("Enter")
    assert time.input_value() == stopped, "it goes on"
    play.wait_for(timeout=SOON)
    assert time.input_value() == time.get_attribute("max"), "it ends by itself"
    play.press("Enter")
    assert time.input_value() == "0", "from the end anew"
    time.press("End")
    assert not playing(widget)
    assert time.input_value() == time.get_attribute("max")


def test_for_readers_who_want_less_motion_it_shows_the_end(page, book):
    page.emulate_media(reduced_motion="reduce")
    widget = come_near(page, book, "wirings")
    time = widget.whole.get_by_role("slider")
    time.scroll_into_view_if_needed()
    page.wait_for_timeout(900)
    assert not playing(widget)
    assert time.input_value() == time.get_attribute("max")


def test_a_run_waits_for_a_bet(page, book):
    widget = come_near(page, book, "run")
    time = widget.whole.get_by_role("slider")
    time.scroll_into_view_if_needed()
    page.wait_for_timeout(900)
    assert not playing(widget)
    assert widget.said().startswith("Before training: ")
    widget.whole.get_by_role("button", name="Play").press("Enter")
    expect(time).to_have_value("2", timeout=SOON)


@pytest.mark.parametrize("name", ["wirings", "run"])
def test_where_a_keyboard_stands_on_the_slider_it_stops(name, page, book):
    """Else a screen reader would read every step."""
    widget = come_near(page, book, name)
    time = widget.whole.get_by_role("slider")
    time.focus()
    stopped = time.input_value()
    page.wait_for_timeout(1500)
    assert not playing(widget)
    assert time.input_value() == stopped


@pytest.mark.parametrize("name", ["wirings", "run"])
def test_a_finger_goes_through_time(name, phone, book):
    widget = come_near(phone, book, name)
    time = widget.whole.get_by_role("slider")
    time.scroll_into_view_if_needed()
    box = time.bounding_box()
    phone.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert int(time.input_value()) == pytest.approx(int(time.get_attribute("max")) / 2, abs=1)
    assert not playing(widget)


# ---- Chapter 5: one's own photo
def shown(widget):
    return widget.whole.locator(".vit-bars li").all_inner_texts()


def test_the_five_answers_are_the_packages(page, book):
    widget = come_near(page, book, "answers")
    trained = open_model("tiny-imagenet")
    for name in ("cat", "rocket"):
        before = shown(widget)
        widget.whole.get_by_role("button", name=name, exact=True).press("Enter")
        if name != "cat":
            expect(widget.whole.locator(".vit-bars")).not_to_have_text("".join(before), timeout=SOON)
            page.wait_for_function(
                "before => !document.querySelector('.vit-bars').innerText.includes(before)", arg=before[0]
            )
        pixels = load_photo(FOLDER / f"photos/{name}.jpg", (64, 64))[None]
        with torch.no_grad():
            shares = trained.model(trained.scaling(255 * pixels)).softmax(dim=1)[0]
        pairs = [text.split("\n") for text in shown(widget)]
        assert len(pairs) == 5
        for label, share in pairs[:2]:
            place = trained.class_names.index(label)
            assert float(share.removesuffix(" %")) == pytest.approx(100 * shares[place].item(), abs=2)
    assert pairs[0][0] == "obelisk", "as the chapter says"


def test_keys_choose_a_photo_and_cut_it(page, book):
    widget = come_near(page, book, "answers")
    status, bars = widget.whole.locator(".vit-status"), widget.whole.locator(".vit-bars")
    widget.whole.get_by_role("button", name="coffee").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(status).to_contain_text("obelisk, ", timeout=SOON)
    before = widget.said()
    page.keyboard.press("Tab")  # astronaut
    page.keyboard.press("Tab")  # a photo of one's own
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # opens the fold
    page.keyboard.press("Tab")
    for _ in range(4):
        page.keyboard.press("PageDown")
    expect(status).not_to_have_text(before, timeout=SOON)
    assert widget.whole.get_by_role("slider", name="size").input_value() != "1"
    assert widget.said().startswith(bars.locator("li .name").first.inner_text())


def test_a_photo_of_ones_own_and_another_square_of_it_are_asked_about(phone, book, save_photo, tmp_path):
    widget, asked = come_near(phone, book, "answers"), []
    phone.on("request", lambda request: asked.append(request.url))
    status = widget.whole.locator(".vit-status")
    first = widget.said()
    own = save_photo(tmp_path / "own.png", size=(300, 200), seed=1)
    widget.whole.locator("input[type=file]").set_input_files(own)
    expect(status).not_to_have_text(first, timeout=SOON)
    second = widget.said()
    widget.whole.get_by_text("Cut another square").tap()
    widget.slide("size of the square", 0.3)
    expect(status).not_to_have_text(second, timeout=SOON)
    assert [url for url in asked if not url.startswith("blob:")] == []


# ---- Chapter 7: what one token sees
class Scaled(nn.Module):
    """A norm whose mean and variance are fixed: a pixel counts by its layers alone."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, features):
        return features * self.scale


def new_stem():
    torch.manual_seed(0)
    layers = StemConfig("resnet", width=32, layers=(3, 4, 9))
    return ResNetStem(ViTConfig(224, 16, dim=8, heads=1, stem=layers))


@pytest.fixture(scope="module")
def stem():
    return new_stem()


def window(widget):
    return [int(number) for number in re.findall(r"(\d+) to (\d+)", widget.said()) for number in number]


@pytest.mark.parametrize("units", [0, 1, 4, 8])
def test_the_window_is_where_the_gradient_is(units, page, book, stem):
    open_ = [unit for unit in stem.modules() if isinstance(unit, Bottleneck)][:units]
    for part in list(stem.modules()):
        for name, norm in part.named_children():
            if isinstance(norm, (nn.GroupNorm, Scaled)):
                closed = isinstance(part, Bottleneck) and name == "norm3" and part not in open_
                setattr(part, name, Scaled(0.0 if closed else 0.05))  # keeps the numbers small
    images = torch.rand(1, 3, 224, 224, requires_grad=True)
    stem(images)[0, 14 * 7 + 6].norm().backward()
    seen = images.grad[0].abs().sum(dim=0) > 0  # (H, W)
    rows, columns = (seen.any(dim=axis).nonzero().flatten() for axis in (1, 0))
    widget = come_near(page, book, "window")
    widget.slide("open units", units)
    page.mouse.click(*widget.middle(8, 7, 14))
    assert window(widget) == [one.item() for place in (rows, columns) for one in (place.min(), place.max())]


def test_what_chapter_7_says_of_its_window(page, book):
    widget = come_near(page, book, "window")
    assert window(widget) == [110, 120, 110, 120]
    assert widget.said().endswith("a window of 11 × 11 pixels, smaller than its patch of 16 × 16.")
    sizes = [11]
    for units in range(1, 17):
        widget.slide("open units", units)
        sizes.append(int(re.search(r"window of (\d+) ×", widget.said())[1]))
        assert ("the whole photo" in widget.said()) == (units >= 13)
        if units < 13:
            first, last, *_ = window(widget)
            assert (first <= 112 and last >= 127) == (units > 1)
    assert [after - before for before, after in itertools.pairwise(sizes)] == [8] * 4 + [16] * 4 + [32] * 8


def test_keys_and_a_finger_choose_the_token(phone, book):
    widget = come_near(phone, book, "window")
    phone.touchscreen.tap(*widget.middle(1, 14, 14))
    assert widget.said().startswith(
        "The token of row 0, column 13, sees rows 0 to 8 and columns 206 to 216 of "
    )
    widget.grids.focus()
    phone.keyboard.press("ArrowDown")
    assert widget.said().startswith("The token of row 1, column 13, ")


# ---- Chapter 8: a run, epoch by epoch
@pytest.fixture(scope="module")
def run():
    return json.loads((FOLDER / "digits-run.json").read_text(encoding="utf-8"))


def test_each_epoch_is_told_as_it_was_kept(page, book, run):
    page.emulate_media(reduced_motion="reduce")
    widget = come_near(page, book, "run")
    for number, epoch in enumerate(run["epochs"]):
        widget.slide("after epoch", number)
        said = widget.said()
        assert said.startswith(f"After epoch {number}: " if number else "Before training: ")
        assert (
            f"training loss {epoch['train_loss']:.2f}, validation loss {epoch['validation_loss']:.2f}" in said
        )
        answers = [max(range(10), key=shares.__getitem__) for shares in epoch["shares"]]
        right = sum(one == digit["label"] for one, digit in zip(answers, run["digits"], strict=True))
        assert f", {right if number else 0} of these 12." in said
        assert widget.whole.locator("li.wrong").count() == (12 - right if number else 12)
    texts = widget.whole.locator(".vit-digits li").all_inner_texts()
    for text, answer, digit in zip(texts, answers, run["digits"], strict=True):
        read = "" if answer == digit["label"] else f", read as {answer}"
        assert text.strip().startswith(f"a {digit['label']}{read}: ")
    heights = widget.whole.locator(".columns i").evaluate_all(
        "all => all.map((it) => parseFloat(it.style.height))"
    )
    expected = [100 * share for row in run["epochs"][-1]["shares"] for share in row]
    assert heights == pytest.approx(expected, abs=0.01)
    points = widget.whole.locator("polyline").nth(1).get_attribute("points").split()
    assert len(points) == len(run["epochs"])
    height = 8 + 134 * (1 - run["epochs"][-1]["validation_loss"] / 2.302585)
    assert float(points[-1].split(",")[1]) == pytest.approx(height, abs=0.01)
    dot = widget.whole.locator("circle").nth(1)
    assert f"{dot.get_attribute('cx')},{dot.get_attribute('cy')}" == points[-1]


def test_the_digits_are_those_of_the_test_part(run):
    data = load_dataset("digits")
    for digit in run["digits"]:
        assert digit["pixels"] == data.test_images[digit["place"]].flatten().tolist()
        assert digit["label"] == data.test_labels[digit["place"]]
    assert [digit["place"] for digit in run["digits"][:6]] == [*range(6)]


def test_what_chapter_8_says_of_its_run(run):
    epochs, labels = run["epochs"], [digit["label"] for digit in run["digits"]]
    read = [[max(range(10), key=shares.__getitem__) for shares in epoch["shares"]] for epoch in epochs]
    assert all(answers[:6] == labels[:6] for answers in read[1:])
    wrong = [place for place in range(6, 12) if read[-1][place] != labels[place]]
    assert len(wrong) == 5
    assert sum(max(epochs[-1]["shares"][place]) > 0.8 for place in wrong) == 4
    (five,) = {*range(6, 12)} - {*wrong}
    assert labels[five] == 5
    assert [answers[five] for answers in read[4:]] == [6] * 10 + [5, 5]
    assert epochs[7]["train_loss"] > 7 * epochs[15]["train_loss"]
    assert [f"{epochs[n]['validation_loss']:.2f}" for n in (7, 15)] == ["0.18", "0.16"]
