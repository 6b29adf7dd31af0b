"""Curves to draw before one sees them: they are those of the runs, and each dot is where it is said to be."""

import json
import re
from html import unescape

import pytest
from playwright.sync_api import expect
from project_facts import ROOT
from widgets import PHONE, come_near, swipe

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
    assert told["known"]["equal width"] == per_cent(width)
    expected = [*told["known"]["equal width"], mean(told["runs"][0])]
    assert heights == pytest.approx([height(value, told) for value in expected], abs=0.1)


def test_what_the_chapters_say_of_them():
    photos, sizes = held("guess-photos")[0], held("guess-sizes")[0]
    gaps = [resnet - mean(vit) for resnet, vit in zip(photos["known"]["ResNet"], photos["runs"], strict=True)]
    assert min(gaps) == gaps[0]
    here, larger, largest = (one for (one,) in sizes["runs"])
    assert 45 < here < 50
    assert largest < here - 5 < here < larger
    patches = held("guess-patches")[0]
    dearer = [mean(runs) for runs in patches["runs"]]
    fine, *coarse = patches["known"]["equal width"]
    assert [round(fine - one) for one in coarse] == [7, 13]
    gained = [after - before for before, after in zip(coarse, dearer[1:], strict=True)]
    assert 1.25 < gained[0] < 1.75
    assert 0 < gained[1] < 1


def drawn(widget, style):
    """The heights of a curve's dots."""
    dots = widget.whole.locator(f"svg circle.{style}[r='4']")
    return dots.evaluate_all("all => all.map((one) => +one.getAttribute('cy'))")


def test_a_curve_is_drawn_and_told_how_far_it_is_off(page, book):
    told, _ = held("guess-photos")
    widget = come_near(page, book, "guess-photos")
    assert widget.said() == "Draw in the plot, or move the sliders."
    assert drawn(widget, "line-0") == [], "nothing is given away"
    plot = widget.whole.locator("svg")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + height(20, told) / 230 * box["height"])
    page.mouse.down()
    page.mouse.move(
        box["x"] + 0.99 * box["width"], box["y"] + height(80, told) / 230 * box["height"], steps=60
    )
    page.mouse.up()
    sliders = widget.whole.get_by_role("slider")
    values = [int(one.input_value()) for one in sliders.all()]
    assert values == sorted(values)
    assert len({*values}) == 4
    assert abs(values[-1] - 80) <= 1
    assert drawn(widget, "yours") == pytest.approx([height(value, told) for value in values], abs=0.1)
    widget.whole.get_by_role("button", name="Show what came out").click()
    truth = [mean(runs) for runs in told["runs"]]
    assert drawn(widget, "line-0") == pytest.approx([height(value, told) for value in truth], abs=0.1)
    off = [abs(value - right) for value, right in zip(values, truth, strict=True)]
    worst = off.index(max(off))
    assert widget.said() == (
        f"You were {mean(off):.1f} points off on average, most with {told['x'][worst]:,} photos: "
        f"{values[worst]} % by you, {truth[worst]:.1f} % in the mean of the runs."
    )
    for one in sliders.all():
        expect(one).to_be_disabled()
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 5)
    assert [int(one.input_value()) for one in sliders.all()] == values, (
        "a guess stays, once the truth is shown"
    )
    widget.whole.get_by_role("button", name="Guess again").click()
    assert drawn(widget, "line-0") == []


def test_keys_guess_and_what_was_told_stays(page, book):
    told, _ = held("guess-sizes")
    widget = come_near(page, book, "guess-sizes")
    sliders = widget.whole.get_by_role("slider")
    expect(sliders).to_have_count(2)
    sliders.first.press("End")
    sliders.last.press("Home")
    here = told["runs"][0][0]
    expected = [height(value, told) for value in (here, told["range"][1], told["range"][0])]
    assert drawn(widget, "yours") == pytest.approx(expected, abs=0.1)
    assert drawn(widget, "line-0") == pytest.approx(expected[:1], abs=0.1)
    button = widget.whole.get_by_role("button", name="Show what came out")
    button.focus()
    button.press("Enter")
    assert widget.said().endswith(" % in the run.")
    assert len(drawn(widget, "line-0")) == 3


def test_a_finger_draws_and_the_page_stays(phone, book):
    widget = come_near(phone, book, "guess-photos")
    plot = widget.whole.locator("svg")
    plot.scroll_into_view_if_needed()
    box, before = plot.bounding_box(), phone.evaluate("scrollY")
    assert box["width"] < PHONE["width"]
    swipe(phone, (box["x"] + 60, box["y"] + 120), (box["x"] + box["width"] - 20, box["y"] + 40))
    assert phone.evaluate("scrollY") == before
    values = [int(one.input_value()) for one in widget.whole.get_by_role("slider").all()]
    assert values[0] < values[-1]
