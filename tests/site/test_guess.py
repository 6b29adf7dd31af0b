"""Curves to draw before one sees them: they are those of the runs, and each dot is where it is said to be."""

import json
import math
import re
from html import unescape

import pytest
from playwright.sync_api import expect
from project_facts import ROOT
from widgets import SOON, come_near, swipe

from vit_lab import load_result

pytestmark = pytest.mark.site
TOP, BOTTOM = 10, 190  # where the range ends in the plot


def held(name):
    """What the page holds: the measured accuracies, and the heights of the dots in the still figure."""
    html = (ROOT / f"book/widgets/{name}.html").read_text(encoding="utf-8")
    told = json.loads(unescape(re.search(r"data-runs='(.*?)'", html)[1]))
    return told, [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', html)]


def height(value, told):
    low, high = told["range"]
    return BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low)


def mean(values):
    return sum(values) / len(values)


def per_cent(values):
    return pytest.approx([100 * value for value in values], abs=0.0501)


def test_the_photos_are_those_of_the_study():
    told, heights = held("guess-photos")
    rows = {
        (row["name"], row["config"]["data"]["train_size"]): row for row in load_result("data_hunger")["rows"]
    }
    assert told["x"] == sorted({size for _, size in rows})
    for place, size in enumerate(told["x"]):
        vit, resnet = (
            [run["validation_accuracy"] for run in rows[name, size]["runs"]] for name in ("ViT", "ResNet")
        )
        assert told["runs"][place] == per_cent(vit)
        assert [told["known"]["ResNet"][place]] == per_cent([mean(resnet)])
    assert heights == pytest.approx([height(value, told) for value in told["known"]["ResNet"]], abs=0.1)


def test_the_sizes_are_those_of_the_result():
    told, heights = held("guess-sizes")
    found = {
        int(size): each["grid"] for size, each in load_result("larger_tiny_imagenet")["accuracy"].items()
    }
    assert told["x"] == list(found)
    assert [one for (one,) in told["runs"]] == per_cent(found.values())
    assert told["told"] == 1
    assert heights == pytest.approx([height(told["runs"][0][0], told)], abs=0.1)


def test_the_patches_are_those_of_the_study():
    told, heights = held("guess-patches")
    rows = {
        row["name"]: [run["validation_accuracy"] for run in row["runs"]]
        for row in load_result("patch_size")["rows"]
    }
    assert told["x"] == [4, 8, 16]
    assert told["told"] == 1
    wider = ("4 pixels", "8 pixels, as many operations", "16 pixels, as many operations")
    for place, name in enumerate(wider):
        assert told["runs"][place] == per_cent(rows[name])
    width = [mean(rows[f"{size} pixels"]) for size in told["x"]]
    assert told["known"]["Equal width"] == per_cent(width)
    expected = [*told["known"]["Equal width"], mean(told["runs"][0])]
    assert heights == pytest.approx([height(value, told) for value in expected], abs=0.1)


def test_what_the_chapters_say_of_them():
    photos, sizes = held("guess-photos")[0], held("guess-sizes")[0]
    gaps = [resnet - mean(vit) for resnet, vit in zip(photos["known"]["ResNet"], photos["runs"], strict=True)]
    assert min(gaps) == gaps[0]
    assert gaps[-1] < gaps[-2], "in the last step the ResNet gains less"
    here, larger, largest = (one for (one,) in sizes["runs"])
    assert 45 < here < 50
    assert 2 < larger - here < 3
    assert 7 < here - largest < 8
    patches = held("guess-patches")[0]
    dearer = [mean(runs) for runs in patches["runs"]]
    fine, *coarse = patches["known"]["Equal width"]
    assert [round(fine - one) for one in coarse] == [7, 13]
    gained = [after - before for before, after in zip(coarse, dearer[1:], strict=True)]
    assert 1.25 < gained[0] < 1.75
    assert 0 < gained[1] < 1
    wide = [row for row in load_result("patch_size")["rows"] if "operations" in row["name"]]
    assert all(run["curves"][-1]["train_accuracy"] < 0.6 for row in wide for run in row["runs"])


def drawn(widget, style):
    """The heights of a curve's dots."""
    dots = widget.whole.locator(f"svg circle.{style}")
    return dots.evaluate_all("all => all.map((one) => +one.getAttribute('cy'))")


def values(widget):
    return [float(one.input_value()) for one in widget.whole.get_by_role("slider").all()]


def at(widget, across, value, told):
    """Where on the screen a value is, so far across the plot."""
    plot = widget.whole.locator("svg")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    return box["x"] + across * box["width"], box["y"] + height(value, told) / 230 * box["height"]


def stroke(page, start, end, steps, button="left"):
    page.mouse.move(*start)
    page.mouse.down(button=button)
    page.mouse.move(*end, steps=steps)
    page.mouse.up(button=button)


def places(told):
    """How far across the plot each place is."""
    first, last = math.log(told["x"][0]), math.log(told["x"][-1])
    return [(70 + 260 * (math.log(x) - first) / (last - first)) / 360 for x in told["x"]]


@pytest.mark.parametrize("steps", [2, 60])
@pytest.mark.parametrize("back", [False, True])
def test_each_dot_lies_where_the_stroke_went_over_it(steps, back, page, book):
    told, _ = held("guess-photos")
    widget = come_near(page, book, "guess-photos")
    ends = [at(widget, across, value, told) for across, value in ((0.1, 20), (0.99, 80))]
    stroke(page, *(ends[::-1] if back else ends), steps=steps)
    expected = [20 + 60 * (place - 0.1) / 0.89 for place in places(told)]
    assert values(widget) == pytest.approx(expected, abs=1.1)
    assert drawn(widget, "yours") == pytest.approx([height(value, told) for value in values(widget)], abs=0.1)


def test_a_curve_is_drawn_and_told_how_far_it_is_off(page, book):
    told, _ = held("guess-photos")
    widget = come_near(page, book, "guess-photos")
    known = ", ".join(f"{value:.1f}" for value in told["known"]["ResNet"])
    assert widget.said() == f"ResNet: {known} %."
    expect(widget.whole.locator(".line-0:visible, .yours:visible")).to_have_count(0)  # nothing is given away
    guess = [40, 50, 60, 70, 90]
    for place, value in zip(places(told), guess, strict=True):
        page.mouse.click(*at(widget, place, value, told))
    guessed = values(widget)
    assert guessed == pytest.approx(guess, abs=1)
    widget.whole.get_by_role("button", name="Show what came out").click()
    truth = [mean(runs) for runs in told["runs"]]
    assert drawn(widget, "line-0") == pytest.approx([height(value, told) for value in truth], abs=0.1)
    off = mean([abs(value - right) for value, right in zip(guessed, truth, strict=True)])
    measured = ", ".join(f"{value:.1f}" for value in truth)
    start, end = f"ViT: {measured} %. You were ", " points off on average, too high everywhere."
    assert widget.said().startswith(start)
    assert widget.said().endswith(end)
    told_off = float(widget.said().removeprefix(start).removesuffix(end))
    assert told_off == pytest.approx(off, abs=0.051)
    page.mouse.click(*at(widget, 0.5, 5, told))
    assert values(widget) == guessed, "a guess stays, once the truth is shown"
    for one in widget.whole.get_by_role("slider").all():
        expect(one).to_be_disabled()
    widget.whole.get_by_role("button", name="Back to your guess").click()
    expect(widget.whole.locator(".line-0:visible")).to_have_count(0)
    assert len(drawn(widget, "yours")) == len(guess)


def test_who_guessed_nothing_is_not_told_to_be_off(page, book):
    widget = come_near(page, book, "guess-photos")
    widget.whole.get_by_role("button", name="Show what came out").click()
    assert widget.said().startswith("ViT: ")
    assert "You were" not in widget.said()
    assert drawn(widget, "yours") == []


def test_a_place_that_was_not_guessed_does_not_count(page, book):
    told, _ = held("guess-photos")
    widget = come_near(page, book, "guess-photos")
    page.mouse.click(*at(widget, places(told)[2], 80, told))
    assert len(drawn(widget, "yours")) == 1
    widget.whole.get_by_role("button", name="Show what came out").click()
    said = re.search(r"You were ([\d.]+) points off on average\.$", widget.said())
    assert float(said[1]) == pytest.approx(values(widget)[2] - mean(told["runs"][2]), abs=0.051)


def test_only_a_stroke_that_begins_in_the_plot_draws(page, book):
    told, _ = held("guess-photos")
    widget = come_near(page, book, "guess-photos")
    inside = at(widget, 0.9, 80, told)
    stroke(page, at(widget, 0.2, 20, told), inside, 5, button="right")
    title = widget.whole.locator(".vit-title").bounding_box()
    stroke(page, (title["x"] + 5, title["y"] + 5), inside, 5)
    assert drawn(widget, "yours") == []
    stroke(page, inside, (inside[0], title["y"] - 40), 5)
    assert values(widget)[-1] == 100, "a stroke that leaves the plot ends at its edge"


@pytest.mark.parametrize("name", ["guess-sizes", "guess-patches"])
def test_keys_guess_and_what_was_told_stays(name, page, book):
    told, _ = held(name)
    widget = come_near(page, book, name)
    sliders = widget.whole.get_by_role("slider")
    expect(sliders).to_have_count(2)
    here = mean(told["runs"][0])
    step = 1 if name == "guess-sizes" else 0.5
    assert values(widget) == [pytest.approx(here, abs=step / 2)] * 2
    sliders.first.press("End")
    sliders.last.press("Home")
    expected = [height(value, told) for value in (here, told["range"][1], told["range"][0])]
    assert drawn(widget, "yours") == pytest.approx(expected, abs=0.1)
    assert drawn(widget, "line-0") == pytest.approx(expected[:1], abs=0.1)
    button = widget.whole.get_by_role("button", name="Show what came out")
    button.focus()
    button.press("Enter")
    truth = [mean(runs) for runs in told["runs"]]
    assert drawn(widget, "line-0") == pytest.approx([height(value, told) for value in truth], abs=0.1)
    off = mean([abs(told["range"][1] - truth[1]), abs(told["range"][0] - truth[2])])
    told_off = re.search(r" %\. You were ([\d.]+) points off on average\.$", widget.said())[1]
    assert float(told_off) == pytest.approx(off, abs=0.051)
    expect(button).to_have_count(0)
    expect(widget.whole.get_by_role("button", name="Back to your guess")).to_be_focused()


def test_a_finger_draws_and_after_that_scrolls(phone, book):
    told, _ = held("guess-photos")
    widget = come_near(phone, book, "guess-photos")
    ends = [at(widget, across, value, told) for across, value in ((0.25, 80), (0.95, 90))]
    before = phone.evaluate("scrollY")
    swipe(phone, *ends)
    assert phone.evaluate("scrollY") == before
    assert len(drawn(widget, "yours")) > 2, "each place that it passed"
    assert 75 <= max(values(widget)) <= 95
    phone.wait_for_timeout(1500)  # a tap sooner would only end what Chromium takes for a fling
    widget.whole.get_by_role("button", name="Show what came out").tap()
    expect(widget.whole.locator("svg")).to_have_css("touch-action", "auto")
    places = [at(widget, 0.5, value, told) for value in (10, 90)]
    before = phone.evaluate("scrollY")
    phone.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    swipe(phone, *places)
    phone.wait_for_function("(before) => scrollY !== before", arg=before, timeout=SOON)


def test_on_paper_there_is_nothing_to_press(page, book):
    widget = come_near(page, book, "guess-photos")
    page.emulate_media(media="print")
    assert widget.said().startswith("ResNet: ")
    for one in (widget.whole.get_by_role("button"), widget.whole.locator(".vit-help")):
        expect(one).to_be_hidden()
