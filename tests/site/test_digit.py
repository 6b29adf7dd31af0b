"""Drawing a digit in the playground: with a mouse, a finger and keys, and what the model reads then."""

import re

import pytest
import torch
from export_page_model import FOLDER
from looks import axe, settle, switch_theme
from playwright.sync_api import expect
from project_facts import ROOT
from serve import served
from widgets import Widget

from vit_lab.experiments.recipes import load_recipe

pytestmark = pytest.mark.site

PAGE = "book/playground.html"
SIDE = 28
# In the page: ten digits in each of some hands, centred, (n, 10, 28 28), and what the model reads in them.
HANDS = """async (hands) => {
    const { centred, written } = await import("/vit/strokes.js");
    const model = await (await import("/vit/vit.js")).load("/vit/mnist.bin");
    return hands.map((hand) => model.classes.map((_, digit) => {
        const { strokes, radius } = written(digit, hand), pixels = centred(strokes, radius);
        const { logits } = model.forward(pixels);
        return [[...pixels], logits.indexOf(Math.max(...logits))];
    }));
}"""
CENTRED = """async ([strokes, radius]) => {
    const { centred } = await import("/vit/strokes.js");
    return [...centred(strokes, radius)];
}"""
# Of the same digits, moved by some pixels along each axis both ways: how many are read as before.
MOVED = """async ([hands, by]) => {
    const { centred, written } = await import("/vit/strokes.js");
    const model = await (await import("/vit/vit.js")).load("/vit/mnist.bin");
    const read = (pixels) => {
        const { logits } = model.forward(pixels);
        return logits.indexOf(Math.max(...logits));
    };
    const moved = (pixels, right, down) => pixels.map((_, place) => {
        const row = Math.floor(place / 28) - down, column = place % 28 - right;
        return row in [...Array(28)] && column in [...Array(28)] ? pixels[28 * row + column] : 0;
    });
    let kept = 0;
    for (const hand of hands) for (const digit of model.classes.keys()) {
        const { strokes, radius } = written(digit, hand), pixels = centred(strokes, radius);
        for (const [right, down] of [[by, 0], [-by, 0], [0, by], [0, -by]])
            kept += read(moved(pixels, right, down)) === read(pixels);
    }
    return kept;
}"""
WRITTEN = """async ([digit, hand]) => {
    const { written } = await import("../_static/vit/strokes.js");
    return written(digit, hand).strokes;
}"""

# How much the class token looks at each patch (N), of pixels that the widget shows, counted from 0.
LOOKS = """async ([pixels, layer, head]) => {
    const { load } = await import("../_static/vit/vit.js");
    const model = await load("../_static/vit/mnist.bin"), T = model.config.num_patches + 1;
    const first = head * T * T + 1;
    return [...model.forward(new Float32Array(pixels)).attention[layer].subarray(first, first + T - 1)];
}"""


class Pad(Widget):
    """The widget as a reader has it before them."""

    def __init__(self, page):
        super().__init__(page, ".vit-digit")
        self.canvas = self.whole.locator(".vit-pad")
        self.sees, self.maps = self.whole.locator(".vit-grid").all()

    def reads(self, digit):
        """Wait until the model reads this digit, in words and as the longest bar."""
        expect(self.whole.locator(".vit-reads")).to_contain_text(f"It reads {digit}, with")
        shares = self.shares()
        assert shares.index(max(shares)) == digit
        assert sum(shares) == pytest.approx(100, abs=4)

    def shares(self):
        """What each of the ten digits gets, in per cent."""
        values = self.whole.locator(".vit-bars .value").all_inner_texts()
        assert len(values) == 10
        return [float(value.removesuffix(" %")) for value in values]

    def seen(self):
        """The pixels that the model was shown, (28, 28), 0 to 255."""
        self.page.wait_for_timeout(500)  # an answer
        read = """(it) => [...it.getContext("2d").getImageData(0, 0, it.width, it.height).data]"""
        numbers = torch.tensor(self.sees.locator("canvas").evaluate(read))
        return numbers.view(SIDE, SIDE, 4)[..., 0]

    def strokes(self, digit, hand):
        """A digit's strokes as points on the screen."""
        self.canvas.scroll_into_view_if_needed()
        box = None
        while box != (now := self.canvas.bounding_box()):  # the photo's widget above grows as it comes
            box = now
            self.page.wait_for_timeout(500)
        return [
            [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
            for stroke in self.page.evaluate(WRITTEN, [digit, hand])
        ]


def opened(page, book):
    page.goto(f"{book}{PAGE}")
    settle(page)
    page.locator(".vit-digit").scroll_into_view_if_needed()
    page.wait_for_selector(".vit-digit .vit-bars li")
    pad = Pad(page)
    pad.reads(3)  # the example that is there
    pad.whole.locator("summary").click()
    pad.press("Clear")
    expect(pad.whole.locator(".vit-reads")).to_have_text("Nothing is drawn yet.")
    return pad


@pytest.fixture
def pad(page, book):
    return opened(page, book)


@pytest.fixture
def phone(browser, book):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    yield opened(context.new_page(), book)
    context.close()


@pytest.fixture
def strokes(page):
    """A page that may import what turns strokes into pixels."""
    with served(FOLDER.parent) as root:
        page.goto(f"{root}vit/strokes.js")
        yield page


# ---- From strokes to pixels


def test_digits_in_ten_hands_are_read(strokes):
    found = strokes.evaluate(HANDS, list(range(10)))
    wrong = [
        (hand, digit, read)
        for hand, row in enumerate(found)
        for digit, (_, read) in enumerate(row)
        if read != digit
    ]
    print("hand, digit, read:", wrong)
    assert len(wrong) <= 8
    pictures = {tuple(pixels) for row in found for pixels, _ in row}
    assert len(pictures) == 100, "no two are alike"


def test_a_drawing_is_fitted_and_centred_as_mnists_makers_did(strokes):
    pixels = torch.tensor([[one for one, _ in row] for row in strokes.evaluate(HANDS, list(range(10)))])
    ink = pixels.view(-1, SIDE, SIDE)  # (100, 28, 28)
    assert ((ink > 0) & (ink < 1)).flatten(1).sum(dim=1).min() > 20, "edges are grey"
    for axis in (1, 2):
        along, place = ink.sum(dim=3 - axis), torch.arange(SIDE) + 0.5  # (100, 28)
        middle = (along * place).sum(dim=1) / along.sum(dim=1)
        assert middle.min() > 13.9
        assert middle.max() < 15.1
    sides = torch.stack([(ink > 0.4).any(dim=axis).sum(dim=1) for axis in (1, 2)])
    assert {*sides.amax(dim=0).tolist()} <= {19, 20, 21}


def test_where_and_how_large_one_draws_makes_no_difference(strokes):
    line = [[0.2, 0.1], [0.6, 0.2], [0.4, 0.9]]
    smaller = [[0.3 + 0.5 * x, 0.02 + 0.5 * y] for x, y in line]
    one, other = (
        torch.tensor(strokes.evaluate(CENTRED, [[points], radius]))
        for points, radius in ((line, 0.06), (smaller, 0.03))
    )
    assert one.sum() > 30
    torch.testing.assert_close(one, other, atol=1e-3, rtol=0)
    assert strokes.evaluate(CENTRED, [[], 0.05]) == [0] * SIDE**2


def test_a_digit_moved_by_a_pixel_is_read_as_before_and_one_in_ten_moved_by_six_is_not(strokes):
    words = (ROOT / "notebooks/08_first_training_run.md").read_text("utf-8")
    assert "Move it by one pixel: every patch changes, but hardly any answers do" in words
    assert "Move it by six, and about one answer in ten changes." in words
    near, far = (strokes.evaluate(MOVED, [[*range(10)], by]) for by in (1, 6))
    print(f"of 400, moved by one pixel {near} are read as before, by six {far}")
    assert near >= 390
    assert 340 <= far <= 380


# ---- Drawing


def test_a_mouse_draws(page, pad):
    for stroke in pad.strokes(7, 1):
        page.mouse.move(*stroke[0])
        page.mouse.down()
        for point in stroke[1:]:
            page.mouse.move(*point)
        assert page.locator(".vit-digit .vit-bars:not(.nothing)").count() == 1, "it answers while one draws"
        page.mouse.up()
    pad.reads(7)
    page.mouse.move(*pad.strokes(7, 1)[0][0])
    before = pad.seen()
    page.mouse.move(*pad.strokes(2, 1)[0][0])
    assert torch.equal(pad.seen(), before), "the pen is up"


def test_a_drawing_begins_without_the_example(page, pad):
    pad.press("8")
    pad.reads(8)
    for stroke in pad.strokes(7, 1):
        page.mouse.move(*stroke[0])
        page.mouse.down()
        for point in stroke[1:]:
            page.mouse.move(*point)
        page.mouse.up()
    pad.reads(7)  # of which the second stroke lies on the first


def test_where_it_looks_is_shown_once_one_asks_for_it(pad):
    pad.press("3")
    pad.reads(3)
    shades = "all => all.filter((one) => +one.style.opacity > 0).length"
    assert pad.sees.locator(".cells i").evaluate_all(shades) > 0
    assert "looks most at" in pad.whole.locator(".vit-status").inner_text()
    pad.whole.locator("summary").click()
    expect(pad.whole.locator(".vit-status")).to_have_text("")
    assert pad.sees.locator(".cells i").evaluate_all(shades) == 0
    pad.sees.press("Enter")
    expect(pad.whole.locator(".vit-status")).to_contain_text("The patch in row 1, column 1 looks most at")


# Another widget that comes later moves what is below it.
UNMOVED = """() => {
    const height = document.body.scrollHeight, now = performance.now();
    if (window.seen?.height !== height) window.seen = { height, since: now };
    return now - window.seen.since > 1500;
}"""


def test_a_finger_draws_on_the_canvas_and_scrolls_the_page_beside_it(phone):
    page = phone.page
    session = page.context.new_cdp_session(page)

    def swipe(points):
        for kind, point in (
            ("touchStart", points[0]),
            *(("touchMove", point) for point in points[1:]),
            ("touchEnd", None),
        ):
            touches = [{"x": point[0], "y": point[1]}] if point else []
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})
        page.wait_for_timeout(300)
        return page.evaluate("scrollY")

    lines = phone.strokes(2, 5)
    page.wait_for_function(UNMOVED)
    start = page.evaluate("scrollY")
    assert {swipe(line) for line in lines} == {start}
    phone.reads(2)
    box = phone.canvas.bounding_box()
    beside, low = box["x"] + box["width"] + 20, box["y"] + box["height"] - 20
    assert beside < 390
    before = phone.seen()
    assert swipe([(beside, low - 10 * step) for step in range(15)]) > start + 50
    assert torch.equal(phone.seen(), before)


def test_a_second_finger_neither_draws_nor_ends_the_stroke(phone):
    session = phone.page.context.new_cdp_session(phone.page)
    (line,) = phone.strokes(1, 5)[:1]
    phone.page.wait_for_function(UNMOVED)
    box = phone.canvas.bounding_box()
    palm = {"x": box["x"] + 5, "y": box["y"] + box["height"] - 5, "id": 1}

    def touch(kind, *points):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    finger = [{"x": x, "y": y, "id": 0} for x, y in line]
    half = len(finger) // 2
    touch("touchStart", finger[0])
    for point in finger[:half]:
        touch("touchMove", point)
    touch("touchStart", finger[half - 1], palm)
    touch("touchMove", finger[half], palm | {"x": palm["x"] + 40})
    for point in finger[half:]:
        touch("touchMove", point)
    touch("touchEnd")
    with_palm = phone.seen()
    phone.press("Clear")
    touch("touchStart", finger[0])
    for point in finger:
        touch("touchMove", point)
    touch("touchEnd")
    assert torch.equal(with_palm, phone.seen())


def test_keys_draw(page, pad):
    pad.canvas.focus()
    for key in ["Space", *["ArrowDown"] * 15, "Space", "ArrowRight", "ArrowRight"]:
        page.keyboard.press(key)
    pad.reads(1)
    expect(pad.whole.locator(".vit-help")).to_have_text(
        "The pen is up, 58 % from the left, 80 % from the top."
    )
    before = pad.seen()
    page.keyboard.press("Space")
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    expect(pad.whole.locator(".vit-help")).to_contain_text("The pen is down")
    page.keyboard.press("Tab")  # lifts the pen
    expect(pad.whole.locator(".vit-help")).to_contain_text("The pen is up")
    assert not torch.equal(pad.seen(), before)


# ---- What one can change


def test_a_digit_is_moved_thickened_and_put_back(pad):
    pad.press("5")
    pad.reads(5)
    first, shares = pad.seen(), pad.shares()
    for name, by in (
        ("move right", (0, 1)),
        ("move left", (0, -1)),
        ("move up", (-1, 0)),
        ("move down", (1, 0)),
    ):
        pad.press(name)
        assert torch.equal(pad.seen(), first.roll(by, dims=(0, 1))), name
        assert pad.whole.locator(".vit-bars .moved").count() > 0, "a line is where a bar was"
        pad.press("Put it back")
        assert torch.equal(pad.seen(), first)
    ink = {name: (pad.press(name), pad.seen().sum())[1] for name in ("thicker", "Put it back", "thinner")}
    assert ink["thinner"] < 0.9 * ink["Put it back"]
    assert ink["thicker"] > 1.1 * ink["Put it back"]
    pad.press("Put it back")
    assert torch.equal(pad.seen(), first)
    assert pad.shares() == shares


def test_a_patch_is_erased_and_comes_back(pad):
    pad.press("0")
    pad.reads(0)
    first, shares = pad.seen(), pad.shares()
    patches = first.view(7, 4, 7, 4).sum(dim=(1, 3)).flatten()
    inky = [divmod(patch, 7) for patch in patches.nonzero().flatten().tolist()]
    pad.whole.get_by_label("erases it, or brings it back").check()
    pad.sees.focus()
    at = (0, 0)
    for erased in (True, False):
        for row, column in inky:
            for step, keys in (
                (row - at[0], ("ArrowDown", "ArrowUp")),
                (column - at[1], ("ArrowRight", "ArrowLeft")),
            ):
                for _ in range(abs(step)):
                    pad.page.keyboard.press(keys[step < 0])
            pad.page.keyboard.press("Enter")
            at = (row, column)
        expect(pad.whole.locator(".cells i.hidden")).to_have_count(len(inky) * erased)
        now = pad.seen()
        for row, column in inky:
            patch = now[4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
            assert (patch.max() == patch.min()) == erased
        assert (pad.shares() == shares) != erased  # without its ink a 0 is read less surely
        assert (
            pad.whole.locator(".vit-reads").inner_text().endswith(f"Patches erased: {len(inky)}.") == erased
        )
    assert torch.equal(pad.seen(), first)


def test_each_layer_and_head_shows_where_it_looks(page, pad):
    status = pad.whole.locator(".vit-status")
    pad.press("8")
    pad.reads(8)
    expect(status).to_contain_text("Layer 5, the mean of all heads. The class token looks most at row")
    pad.maps.focus()
    for key in (*["ArrowUp"] * 3, "ArrowRight", "ArrowRight", "Enter"):  # from layer 5, the mean
        page.keyboard.press(key)
    expect(status).to_contain_text("Layer 2, head 2. The class token looks most at row")
    row, column, share = re.search(r"row (\d), column (\d), ([\d.]+) %", status.inner_text()).groups()
    looks = page.evaluate(LOOKS, [(pad.seen().flatten() / 255).tolist(), 1, 1])
    patch = 7 * int(row) + int(column) - 8
    assert 100 * looks[patch] == pytest.approx(float(share), abs=1)
    assert looks[patch] > 0.9 * max(looks)
    tints = pad.sees.locator(".cells i").evaluate_all("all => all.map((it) => it.style.background)")
    assert "0.75" in tints[patch], "the brightest"
    pad.sees.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(status).to_contain_text("The patch in row 1, column 1 looks most at")
    pad.press("Class token")
    expect(status).to_contain_text("The class token looks most at")


# ---- The page


def test_the_page_says_what_training_did():
    words, recipe = (ROOT / "book/playground.md").read_text("utf-8"), load_recipe("mnist")
    assert "the 49 patches" in words
    assert (SIDE // recipe.model["patch_size"]) ** 2 == 49
    assert "a pixel and a half at most" in words
    assert (recipe.train.augmentation.jitter, recipe.train.augmentation.shift) == (1.5, 0)


def test_the_model_comes_when_a_reader_comes_near(page, book):
    asked = []
    page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
    page.goto(f"{book}{PAGE}", wait_until="networkidle")
    assert "mnist.bin" not in asked
    page.locator(".vit-digit").scroll_into_view_if_needed()
    page.wait_for_selector(".vit-digit .vit-bars li")
    assert asked.count("mnist.bin") == 1


def test_without_the_model_or_scripts_and_on_paper_there_is_a_drawing(browser, page, book):
    page.route("**/mnist.bin", lambda route: route.abort())
    page.goto(f"{book}{PAGE}")
    page.locator(".vit-digit").scroll_into_view_if_needed()
    expect(page.locator(".vit-digit .vit-note")).to_contain_text("cannot be fetched")
    page.emulate_media(media="print")
    assert page.locator(".vit-digit svg").is_visible()
    plain = browser.new_page(java_script_enabled=False)
    plain.goto(f"{book}{PAGE}")
    assert plain.locator(".vit-digit svg").is_visible()
    assert "needs JavaScript" in plain.locator(".vit-digit figcaption").inner_text()
    plain.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_bars_a_reader(phone, axe_source, theme):
    phone.press("4")
    phone.reads(4)
    switch_theme(phone.page, theme)
    assert [one for one in axe(phone.page, axe_source) if "vit" in one] == []
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
