"""Chapter 12's sizes to turn: operations and memory of any ViT."""

import itertools
import random
import re

import pytest
from playwright.sync_api import expect
from widgets import come_near

from vit_from_scratch.model.config import variant_config
from vit_from_scratch.model.cost import block_flops, forward_flops, parameters_of
from vit_from_scratch.model.memory import training_memory

pytestmark = pytest.mark.site

ASK = """async (settings) => {
    const { cost } = await import(document.querySelector('script[src*="/vit/"], link[href*="/vit/"]').href
        .replace(/[^/]*$/, "cost.js"));
    return settings.map(cost);
}"""


def settings():
    """Forty settings, with and without each remedy, and the first."""
    chance = random.Random(0)
    ways = itertools.cycle(itertools.product((False, True), repeat=3))
    for _, (fused, half, again) in zip(range(40), ways, strict=False):
        patch = chance.choice((8, 14, 16, 32))
        yield {
            "size": chance.choice(("Ti", "S", "B", "L", "H")),
            "P": patch,
            "side": patch * chance.randint(4, 64),
            "batch": 2 ** chance.randint(0, 10),
            "fused": fused,
            "half": half,
            "again": again,
        }


def test_every_number_is_the_packages(page, book):
    come_near(page, book, "cost")
    asked = list(settings())
    for setting, found in zip(asked, page.evaluate(ASK, asked), strict=True):
        config = variant_config(f"{setting['size']}/{setting['P']}", image_size=setting["side"])
        attention, precision = (
            ("explicit", "fused")[setting["fused"]],
            ("float32", "bfloat16")[setting["half"]],
        )
        memory = training_memory(config, setting["batch"], precision, attention, setting["again"])
        assert found["memory"] == {name: getattr(memory, name) for name in found["memory"]}, setting
        assert sum(found["memory"].values()) == memory.total
        assert found["parameters"] == parameters_of(config)
        assert sum(found["block"]) == block_flops(config)
        assert found["block"][2] == 4 * config.num_tokens * config.dim * config.mlp_dim
        assert found["forward"] == forward_flops(config)
        assert found["tokens"] == config.num_tokens


def test_what_chapter_12_says_of_it(page, book):
    cost = come_near(page, book, "cost")
    assert "577 tokens" in cost.said()
    assert cost.said().startswith("47.0 GiB: it does not fit. ")
    assert "computed twice" not in cost.said()
    box = {
        name: cost.whole.get_by_role("checkbox", name=name) for name in ("fused", "bfloat16", "checkpointing")
    }
    box["checkpointing"].check()
    assert cost.said().startswith("8.0 GiB: it fits. ")
    assert cost.said().endswith(" forward, which is computed twice.")
    box["checkpointing"].uncheck()
    box["fused"].check()
    box["bfloat16"].check()
    assert cost.said().startswith("18.8 GiB: it does not fit. ")
    cost.whole.get_by_role("radio", name="24 GiB").check()
    assert cost.said().startswith("18.8 GiB: it fits. ")
    cost.whole.get_by_role("radio", name="16 GiB").check()
    box["fused"].uncheck()
    box["bfloat16"].uncheck()
    cost.slide("batch", 3)
    assert cost.said().startswith("15.2 GiB: it fits. ")


def test_keys_change_the_size_and_a_patch_keeps_about_the_image(page, book):
    cost = come_near(page, book, "cost")
    cost.whole.get_by_role("slider", name="size").press("ArrowRight")
    assert re.search(r"ViT-H/16 with 32 images of 384 pixels, 577 tokens each: 63\d million", cost.said())
    patch = cost.whole.get_by_role("slider", name="patch")
    patch.press("ArrowLeft")
    assert "ViT-H/14 with 32 images of 378 pixels, " in cost.said()
    assert cost.whole.get_by_role("slider", name="image").get_attribute("aria-valuetext") == "378 pixels"
    patch.press("Home")
    assert "ViT-H/8 with 32 images of 384 pixels, " in cost.said(), "the image that was chosen"


def test_bars_and_line_are_drawn_to_scale(page, book):
    cost = come_near(page, book, "cost")
    for room, batch in ((16, 5), (16, 7), (80, 2)):
        cost.whole.get_by_role("radio", name=f"{room} GiB").check()
        cost.slide("batch", batch)
        expect(cost.whole.locator("svg text")).to_have_text(f"{room} GiB")
        widths = "all => all.map((one) => +one.getAttribute('width'))"
        held, rest = cost.whole.locator("svg rect").evaluate_all(widths)
        told = re.findall(r"[\d.]+", cost.whole.locator(".vit-title").first.inner_text())
        begins = "all => all.map((one) => +one.getAttribute('x'))"
        first, second = cost.whole.locator("svg rect").evaluate_all(begins)
        assert [first, second] == pytest.approx([1, 1 + held], abs=0.2)
        line = cost.whole.locator("svg path").get_attribute("d")
        edge = float(re.match(r"M([\d.]+) ", line)[1]) - 1
        assert [held, rest] == pytest.approx([edge / room * float(one) for one in told], abs=1.5)
        assert max(held + rest, edge) <= 338


def test_a_finger_turns_a_size(phone, book):
    cost = come_near(phone, book, "cost")
    image = cost.whole.get_by_role("slider", name="image")
    image.scroll_into_view_if_needed()
    box = image.bounding_box()
    phone.touchscreen.tap(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    assert " of 1024 pixels, " in cost.said()
