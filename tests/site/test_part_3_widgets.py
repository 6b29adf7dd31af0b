"""The widgets of Part III show what the package measures, and what the chapters say of them holds."""

import re

import pytest
import torch
from PIL import Image
from playwright.sync_api import expect
from widgets import FOLDER, SOON, come_near, swipe

from vit_from_scratch.data.photos import load_photo
from vit_from_scratch.inspection import attention_rollout, mean_attention_distance, position_similarity
from vit_from_scratch.model import patchify
from vit_from_scratch.model.tokens import sincos_2d
from vit_lab.runs.trained_models import open_model

pytestmark = pytest.mark.site

NAMES = ("coffee", "cat", "rocket", "astronaut")
UNIFORM = mean_attention_distance(torch.full((1, 1, 64, 64), 1 / 64), (8, 8), 8).item()


@pytest.fixture(scope="module")
def trained():
    return open_model("tiny-imagenet")


@pytest.fixture(scope="module")
@torch.no_grad()
def weights(trained):
    """How much each token looks at each: for each photo (L, h, T, T)."""
    found = {}
    for name in NAMES:
        pixels = load_photo(FOLDER / f"photos/{name}.jpg", (64, 64))[None]
        given = trained.model(trained.scaling(255 * pixels), return_intermediates=True)[1]
        found[name] = torch.cat(given["attention"])
    return found


def dark(widget):
    """How dark each patch is of the picture on the right."""
    cells = widget.grids.nth(1).locator(".cells i")
    return cells.evaluate_all("all => all.map((one) => +one.style.opacity)")


def expected_darkness(row):
    """What the row of a token, (T), should be drawn as."""
    return pytest.approx((0.66 * (1 - row[1:] / row[1:].max())).tolist(), abs=0.03)


def says(widget, text):
    expect(widget.whole.locator(".vit-status")).to_contain_text(text, timeout=SOON)


# ---- Chapter 13: the attention explorer
def test_the_map_is_the_packages_for_any_token_layer_and_head(page, book, weights):
    explorer = come_near(page, book, "explorer")
    found = weights["coffee"]
    assert dark(explorer) == expected_darkness(found[1, 1, 27])
    for layer, head, row, column in ((1, 3, 2, 6), (4, 6, 7, 3), (2, 0, 1, 1)):
        explorer.slide("layer", layer)
        explorer.slide("head", head)
        page.mouse.click(*explorer.middle(row, column))
        maps = found[layer - 1].mean(dim=0) if head == 0 else found[layer - 1, head - 1]
        assert dark(explorer) == expected_darkness(maps[8 * (row - 1) + column])
    explorer.whole.get_by_role("radio", name="rollout").check()
    assert dark(explorer) == expected_darkness(attention_rollout(found[:, None])[0, 1])
    explorer.press("Class token")
    assert dark(explorer) == expected_darkness(attention_rollout(found[:, None])[0, 0])
    assert explorer.said().startswith("Through all layers: the class token looks most at ")


def test_a_patch_asks_while_a_mouse_is_on_it_and_is_kept_by_a_click(page, book):
    explorer = come_near(page, book, "explorer")
    before = dark(explorer)
    page.mouse.move(*explorer.middle(7, 3))
    assert "the patch in row 7, column 3 looks most" in explorer.said()
    page.mouse.move(0, 0, steps=4)
    assert dark(explorer) == before
    page.mouse.click(*explorer.middle(3, 5))
    row, column, share = re.search(r"most at row (\d), column (\d), ([\d.]+ %)", explorer.said()).groups()
    page.mouse.move(*explorer.middle(int(row), int(column), grid=1), steps=4)
    assert explorer.said() == f"row {row}, column {column}: {share}"
    page.mouse.move(0, 0, steps=4)
    assert "the patch in row 3, column 5 looks most" in explorer.said()


def test_dragging_goes_from_patch_to_patch(page, book):
    explorer = come_near(page, book, "explorer")
    page.mouse.move(*explorer.middle(2, 2))
    page.mouse.down()
    page.mouse.move(*explorer.middle(2, 7), steps=12)
    page.mouse.up()
    page.mouse.move(0, 0, steps=4)
    assert "the patch in row 2, column 7 looks most" in explorer.said()


def test_a_finger_that_goes_sideways_drags_and_one_that_goes_up_scrolls(phone, book):
    explorer = come_near(phone, book, "explorer")
    swipe(phone, explorer.middle(4, 2), explorer.middle(4, 7))
    assert "the patch in row 4, column 7 looks most" in explorer.said()
    before = phone.evaluate("scrollY")
    x, y = explorer.middle(8, 4)
    swipe(phone, (x, y), (x, y - 120))
    assert phone.evaluate("scrollY") > before + 60
    assert "the patch in row 4, column 7 looks most" in explorer.said()
    phone.touchscreen.tap(*explorer.middle(2, 8))
    assert "the patch in row 2, column 8 looks most" in explorer.said()


def test_keys_choose_who_asks_and_read_shares(page, book):
    explorer = come_near(page, book, "explorer")
    explorer.grids.nth(0).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert "the patch in row 6, column 4 looks most" in explorer.said()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert explorer.said().startswith("row 1, column 2: ")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert "the patch in row 1, column 2 looks most" in explorer.said()


def test_a_photo_of_ones_own_stays_in_the_page(page, book, save_photo, tmp_path):
    explorer = come_near(page, book, "explorer")
    before, asked = dark(explorer), []
    page.on("request", lambda request: asked.append(request.url))
    own = explorer.whole.locator("input[type=file]")
    answer = explorer.whole.get_by_text("The model says")
    first = answer.inner_text()
    own.set_input_files(save_photo(tmp_path / "own.png", size=(300, 200), seed=1))
    expect(answer).not_to_have_text(first, timeout=SOON)
    assert dark(explorer) != before
    assert [url for url in asked if not url.startswith("blob:")] == []
    (tmp_path / "no.png").write_text("no picture")
    own.set_input_files(tmp_path / "no.png")
    refused = explorer.whole.get_by_role("alert")
    expect(refused).to_contain_text("This picture cannot be read", timeout=SOON)
    explorer.grids.first.hover()
    explorer.page.mouse.move(0, 0)
    expect(refused).to_contain_text("This picture cannot be read")
    explorer.whole.get_by_role("button", name="cat").click()
    expect(refused).to_be_empty(timeout=SOON)


@torch.no_grad()
def shares_without(trained, name, hidden):
    """What the package says of a photo, some patches of which have its mean colour: per cent by class."""
    pixels = load_photo(FOLDER / f"photos/{name}.jpg", (64, 64))[None]
    colour = pixels.mean(dim=(2, 3), keepdim=True)
    for row, column in hidden:
        pixels[..., 8 * row - 8 : 8 * row, 8 * column - 8 : 8 * column] = colour
    shares = trained.model(trained.scaling(255 * pixels)).softmax(dim=1)[0]
    return dict(zip(trained.class_names, (100 * shares).tolist(), strict=True))


def test_a_click_hides_a_patch_and_words_say_what_becomes_of_the_answer(page, book, trained):
    explorer = come_near(page, book, "explorer")
    explorer.press("cat")
    answer = explorer.whole.get_by_text("The model says")
    expect(answer).to_contain_text("cat", timeout=SOON)
    whole = answer.inner_text()
    assert " hidden" not in whole
    explorer.whole.get_by_role("radio", name="hides it").check()
    eyes = [(4, 3), (4, 7)]
    page.mouse.click(*explorer.middle(*eyes[0]))
    expect(answer).to_contain_text("With one patch hidden, ", timeout=SOON)
    page.mouse.click(*explorer.middle(*eyes[1], grid=1))
    expect(answer).to_contain_text("With 2 patches hidden, ", timeout=SOON)
    label, before, after = re.search(
        r"hidden, (.+) went from ([\d.]+) % to ([\d.]+) %", answer.inner_text()
    ).groups()
    assert float(before) == pytest.approx(shares_without(trained, "cat", [])[label], abs=2)
    assert float(after) == pytest.approx(shares_without(trained, "cat", eyes)[label], abs=2)
    assert abs(float(after) - float(before)) > 5
    assert explorer.whole.locator(".cells i.hidden").count() == 4, "two in each picture"
    page.mouse.move(*explorer.middle(2, 2))
    assert explorer.said().startswith("row 2, column 2: "), "a patch that is pointed at does not ask"
    for eye in eyes:
        page.mouse.click(*explorer.middle(*eye))
    expect(answer).to_have_text(whole, timeout=SOON)
    explorer.whole.get_by_role("radio", name="asks from there").check()
    page.mouse.click(*explorer.middle(2, 2))
    assert "the patch in row 2, column 2 looks most" in explorer.said()
    assert explorer.whole.locator(".cells i.hidden").count() == 0


def test_keys_hide_a_patch_and_no_other_that_they_pass(page, book):
    explorer = come_near(page, book, "explorer")
    answer = explorer.whole.get_by_text("The model says")
    explorer.whole.get_by_role("radio", name="asks from there").press("ArrowDown")
    said = [grid.get_attribute("aria-label") for grid in explorer.grids.all()]
    assert all(words.endswith("Enter hides it, or shows it again.") for words in said)
    explorer.grids.nth(0).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert explorer.said().startswith("row 6, column 4: ")
    page.keyboard.press("Enter")
    expect(answer).to_contain_text("With one patch hidden, espresso went from ", timeout=SOON)
    page.keyboard.press("Enter")
    expect(answer).not_to_contain_text("hidden", timeout=SOON)
    explorer.whole.get_by_role("radio", name="hides it").press("ArrowUp")
    said = [grid.get_attribute("aria-label") for grid in explorer.grids.all()]
    assert said[0].endswith("choose the patch that asks.")
    assert said[1].endswith("Enter asks from there.")


def likeness(explorer, asks=((1, 1), (3, 3), (4, 7), (6, 2), (7, 5), (8, 8))):
    """The mean cosine of the maps of some patches, each without the patches that ask."""
    kept = [8 * row + column for row in range(8) for column in range(8) if (row + 1, column + 1) not in asks]
    maps = []
    for row, column in asks:
        explorer.page.mouse.click(*explorer.middle(row, column))
        maps.append(1 - torch.tensor(dark(explorer))[kept] / 0.66)
    unit = torch.nn.functional.normalize(torch.stack(maps), dim=1)
    return (unit @ unit.T)[~torch.eye(len(asks), dtype=torch.bool)].mean().item()


def test_what_chapter_13_says_of_the_explorer(page, book, weights):
    for found in weights.values():
        attended = torch.special.entr(found).sum(dim=-1).exp().mean(dim=-1)  # (L, h), of 65 tokens
        assert attended[0].mean() > 45
        assert attended[0].mean() > attended[1].mean() + 10
    explorer = come_near(page, book, "explorer")
    for name in NAMES:
        explorer.press(name)
        page.wait_for_timeout(1500)
        alike = {}
        for layer in (2, 8):
            explorer.slide("layer", layer)
            alike[layer] = likeness(explorer)
        explorer.whole.get_by_role("radio", name="rollout").check()
        rolled = likeness(explorer)
        explorer.whole.get_by_role("radio", name="of this layer").check()
        assert alike[2] < 0.65 < 0.8 < alike[8], name
        assert rolled > 0.95, name


def test_the_still_map_is_what_the_live_one_shows_first(page, book):
    drawn = "all => all.map((one) => +one.getAttribute('fill-opacity'))"
    for name, chapter in (("explorer", "13_attention_maps"), ("reach", "14_attention_distance")):
        page.goto(f"{book}notebooks/{chapter}.html")
        still = page.locator(f"#vit-{name} path[fill-opacity]").evaluate_all(drawn)
        assert dark(come_near(page, book, name)) == pytest.approx(still, abs=0.02)


# ---- Chapter 14: how far a head looks
@pytest.fixture
def reach(page, book):
    return come_near(page, book, "reach")


def radius(reach):
    """Of the circle, in pixels of the model's 64."""
    return reach.whole.locator(".vit-grid u").first.evaluate("it => parseFloat(it.style.width) * 64 / 200")


def test_circles_dots_and_words_are_the_packages_distances(reach, weights):
    far = mean_attention_distance(weights["coffee"].double(), (8, 8), 8)  # (L, h)
    for layer, head in ((3, 1), (8, 4), (1, 6)):
        reach.slide("layer", layer)
        reach.slide("head", head)
        distance = far[layer - 1, head - 1].item()
        assert radius(reach) == pytest.approx(distance, abs=0.1)
        assert f"Layer {layer}, head {head}: " in reach.said()
        assert float(re.search(r"([\d.]+) pixels far", reach.said())[1]) == pytest.approx(distance, abs=0.1)
    heights = reach.whole.locator(".plot i").evaluate_all(
        "all => all.map((it) => parseFloat(it.style.bottom))"
    )
    tops = far.flatten().max().item()
    assert [height * tops / max(heights) for height in heights] == pytest.approx(
        far.flatten().tolist(), abs=0.2
    )
    assert f"everywhere alike, {UNIFORM:.1f} pixels" in reach.whole.locator(".vit-dots p").inner_text()


def test_the_circle_follows_the_pointer_and_the_chart_chooses_a_head(page, reach):
    page.mouse.move(*reach.middle(5, 6))
    middles = reach.whole.locator(".vit-grid u").first.evaluate(
        "it => ['left', 'top'].map((side) => parseFloat(it.style[side]) + parseFloat(it.style.width) / 2)"
    )
    assert middles == [pytest.approx(100 * 5.5 / 8), pytest.approx(100 * 4.5 / 8)]
    assert "the patch in row 5, column 6" in reach.said()
    dot = reach.whole.locator(".plot i").nth(6 * 7 + 3)  # the longest of layer 8
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "Layer 8, head 4: " in reach.said()
    assert reach.whole.get_by_role("slider", name="head").input_value() == "4"
    assert "chosen" in dot.get_attribute("class")


def test_keys_and_a_finger_move_the_circle(page, phone, book, reach):
    reach.grids.nth(0).focus()
    page.keyboard.press("ArrowDown")
    assert "the patch in row 5, column 3" in reach.said(), "below the one that asked"
    touched = come_near(phone, book, "reach")
    phone.touchscreen.tap(*touched.middle(6, 6))
    assert "the patch in row 6, column 6" in touched.said()


def test_what_chapter_14_says_of_reach(reach, weights):
    for found in weights.values():
        far = mean_attention_distance(found.double(), (8, 8), 8)
        assert (far[:2] < UNIFORM).all()
        assert (far[2] > UNIFORM).any()
    bright = torch.tensor(dark(reach)).view(8, 8) < 0.33
    places = torch.cartesian_prod(torch.arange(8.0), torch.arange(8.0)).view(8, 8, 2)
    within = 8 * (places - torch.tensor([3.0, 2.0])).norm(dim=-1) < radius(reach)
    assert bright[within].float().mean() < 0.5
    assert bright[~within].sum() > 1


# ---- Chapter 15: the position map
@pytest.fixture
def similarity(page, book):
    return come_near(page, book, "similarity")


def value(text):
    return float(text.replace("−", "-"))


def test_cosines_are_the_packages_in_all_tables(page, similarity, trained):
    learned = position_similarity(trained.model.tokens.position_embedding().detach(), (8, 8))
    fixed = position_similarity(sincos_2d((8, 8), 192)[None], (8, 8))
    for name, table in (("sines and cosines", fixed), ("of the trained model", learned)):
        similarity.whole.get_by_role("radio", name=name).check()
        for row, column, other in ((1, 1, (1, 8)), (5, 2, (3, 7)), (8, 6, (1, 1))):
            page.mouse.click(*similarity.middle(row, column))
            page.mouse.move(*similarity.middle(*other, grid=1), steps=4)
            found = re.fullmatch(
                rf"row {row}, column {column}, and row \d, column \d: (.*)", similarity.said()
            )
            expected = table[row - 1, column - 1, other[0] - 1, other[1] - 1].item()
            assert value(found[1]) == pytest.approx(expected, abs=0.02)
    similarity.whole.get_by_role("radio", name="untrained").check()
    told = re.findall(r"([−\d.]+) (?:with|half-way)", similarity.said())
    assert len(told) == 3
    assert max(abs(value(one)) for one in told) < 0.4


def test_it_leaves_the_second_spot_to_be_found(page, similarity):
    assert re.fullmatch(r"row 2, column 2: [−\d.]+ with the next in its row\.", similarity.said())
    page.mouse.click(*similarity.middle(2, 2))
    assert similarity.said().endswith("with its top-bottom one, row 7, column 2.")


def test_it_says_how_alike_a_place_is_to_those_on_the_way_to_its_mirror_image(page, similarity, trained):
    learned = position_similarity(trained.model.tokens.position_embedding().detach(), (8, 8))
    for row, column in ((2, 2), (5, 8), (8, 4), (4, 3)):
        page.mouse.click(*similarity.middle(row, column))
        page.mouse.move(0, 0, steps=4)
        along, mirror = learned[row - 1, column - 1, row - 1], 8 - column
        inwards = 1 if column < 5 else -1
        way = [along[column - 1 + inwards], along[(column - 1 + mirror) // 2], along[mirror]]
        if column in (3, 4, 5, 6):  # the mirror image is next, or next but two
            del way[1]
        way += [learned[row - 1, column - 1, 8 - row, column - 1]]
        told = re.findall(r"([−\d.]+) (?:with|half-way)", similarity.said())
        assert [value(one) for one in told] == pytest.approx([one.item() for one in way], abs=0.01)


def test_the_pictures_are_drawn_in_the_figures_colours(similarity):
    """Pale grey at 0, orange below, blue above; each map stands in its patch's place."""
    large, small = (
        similarity.whole.locator(".vit-grid canvas").nth(1),
        similarity.whole.locator(".vit-grid canvas").first,
    )
    pixel = "(it, [x, y]) => [...it.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3)"
    assert large.evaluate(pixel, [1, 1]) == [26, 82, 118]  # itself, 1
    red, _, blue = large.evaluate(pixel, [1, 7])
    assert red > blue
    for x, y in ((3, 0), (7, 5)):
        assert small.evaluate(pixel, [9 + x, 9 + y]) == large.evaluate(pixel, [x, y])


def test_dragging_and_keys_go_through_the_maps(page, similarity):
    page.mouse.move(*similarity.middle(4, 1))
    assert similarity.said().startswith("row 4, column 1: ")
    page.mouse.down()
    page.mouse.move(*similarity.middle(4, 8), steps=12)
    page.mouse.up()
    page.mouse.move(0, 0, steps=4)
    assert similarity.said().startswith("row 4, column 8: ")
    similarity.grids.nth(0).focus()
    page.keyboard.press("ArrowUp")
    assert similarity.said().startswith("row 3, column 8: ")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert similarity.said().startswith("row 3, column 8, and row 2, column 1: ")


def test_a_finger_drags_through_the_maps(phone, book):
    similarity = come_near(phone, book, "similarity")
    swipe(phone, similarity.middle(3, 1), similarity.middle(3, 6))
    assert similarity.said().startswith("row 3, column 6: ")
    phone.touchscreen.tap(*similarity.middle(7, 7, grid=1))
    assert similarity.said().startswith("row 7, column 7: ")


def test_what_chapter_15_says_of_mirror_images(trained):
    learned = position_similarity(trained.model.tokens.position_embedding().detach(), (8, 8))
    fixed = position_similarity(sincos_2d((8, 8), 192)[None], (8, 8))
    places = torch.arange(8)
    rows, columns = torch.meshgrid(places, places, indexing="ij")
    assert (learned[rows, columns, rows, 7 - columns] > 0.9).all()
    assert (learned[rows, columns, 7 - rows, columns][:3] < 0.4).all()
    assert fixed.min() > 0.7
    falls = fixed[rows, 0, rows, columns]  # along each row, from its beginning
    assert (falls.diff(dim=1) <= 0.01).all()


# ---- Chapter 16: filters
@pytest.fixture
def filters(page, book):
    return come_near(page, book, "filters")


@pytest.fixture(scope="module")
def cat(trained):
    """The photo as the model gets it, (1, 3, 64, 64)."""
    return trained.scaling(255 * load_photo(FOLDER / "photos/cat.jpg", (64, 64))[None])


@torch.no_grad()
def test_values_are_those_of_the_patch_embedding_at_each_step(page, filters, trained, cat):
    embedding = trained.model.patch_embedding
    kernel, bias = embedding.as_convolution_weight(), embedding.projection.bias
    for number, step in ((7, 8), (0, 8), (100, 4), (191, 1)):
        page.mouse.click(*sheet_place(filters, number))
        filters.slide("a step of", [1, 2, 4, 8].index(step))
        page.mouse.move(0, 0)
        found = torch.nn.functional.conv2d(
            cat, kernel[number : number + 1], bias[number : number + 1], stride=step
        )[0, 0]
        side = found.shape[0]
        assert f"Value {number} of the token, at {side} × {side} places" in filters.said()
        low, high = re.search(r"from ([−\d.]+) in .*, to ([−\d.]+) in", filters.said()).groups()
        assert (value(low), value(high)) == pytest.approx((found.min().item(), found.max().item()), abs=0.05)
        page.mouse.move(*filters.middle(2, side, rows=side, grid=1))
        assert value(filters.said().split(": ")[1]) == pytest.approx(found[1, -1].item(), abs=0.05)
    assert torch.allclose(
        embedding(cat)[0, :, 7].view(8, 8),
        torch.nn.functional.conv2d(cat, kernel[7:8], bias[7:8], stride=8)[0, 0],
        atol=1e-4,
    )


def test_the_still_relief_is_what_the_live_one_shows_first(page, filters):
    read = "it => [...it.getContext('2d').getImageData(0, 0, it.width, it.height).data]"
    live = torch.tensor(filters.grids.nth(1).locator("canvas").evaluate(read)).view(57, 57, 4)[..., 0]
    with Image.open(FOLDER / "filters.png") as still:
        drawn = torch.frombuffer(bytearray(still.tobytes()), dtype=torch.uint8).view(57, 57).int()
    assert (drawn - live).abs().max() <= 4


def sheet_place(filters, number):
    """Where a filter is on the screen."""
    filters.grids.nth(0).scroll_into_view_if_needed()
    box = filters.grids.nth(0).bounding_box()
    return box["x"] + box["width"] * (number % 16 + 0.5) / 16, box["y"] + box["height"] * (
        number // 16 + 0.5
    ) / 12


def test_pointing_shows_a_filter_and_keys_and_a_finger_choose_one(page, phone, book, filters):
    page.mouse.move(*sheet_place(filters, 50))
    assert filters.said().startswith("Value 50 ")
    page.mouse.move(0, 0, steps=4)
    assert filters.said().startswith("Value 7 ")
    filters.grids.nth(0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert filters.said().startswith("Value 24 "), "16 below the chosen one is 23"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert filters.said().startswith("row 2, column 1: ")
    touched = come_near(phone, book, "filters")
    phone.touchscreen.tap(*sheet_place(touched, 100))
    assert touched.said().startswith("Value 100 ")


@torch.no_grad()
def test_what_chapter_16_says_of_even_colour(trained, cat):
    patches = patchify(cat, 8)[0]  # (N, P²C)
    even = patches.view(64, 64, 3).mean(dim=1, keepdim=True).expand(64, 64, 3).reshape(64, 192)
    kernel = trained.model.patch_embedding.projection.weight

    def spread(rows):
        return (rows - rows.mean(dim=0)).square().sum()

    assert f"{spread(even) / spread(patches):.0%}" == "48%"
    assert f"{spread(even @ kernel.T) / spread(patches @ kernel.T):.0%}" == "12%"
