"""The widgets of chapters, as a reader has them before them."""

import re

from looks import settle
from playwright.sync_api import expect
from project_facts import ROOT

FOLDER = ROOT / "book/_static/vit"
PAGES = {
    "patches": "notebooks/01_patches.html",
    "positions": "notebooks/02_tokens.html",
    "waves": "notebooks/02_tokens.html",
    "attention": "notebooks/03_attention.html",
    "wirings": "notebooks/04_encoder.html",
    "answers": "notebooks/05_vision_transformer.html",
    "hunt": "notebooks/06_parity.html",
    "window": "notebooks/07_hybrid.html",
    "run": "notebooks/08_first_training_run.html",
    "guess-photos": "notebooks/09_small_data.html",
    "guess-sizes": "notebooks/10_fine_tuning.html",
    "guess-patches": "notebooks/17_ablations.html",
    "cost": "notebooks/12_scaling.html",
    "masked": "notebooks/11_masked_patches.html",
    "explorer": "notebooks/13_attention_maps.html",
    "reach": "notebooks/14_attention_distance.html",
    "similarity": "notebooks/15_position_similarity.html",
    "filters": "notebooks/16_embedding_filters.html",
}
MODULES = {name: name.partition("-")[0] for name in PAGES}
WITHOUT_A_MODEL = ("patches", "waves", "wirings", "hunt", "window", "run", "cost", "guess")
WITH_A_MODEL = [name for name in PAGES if MODULES[name] not in WITHOUT_A_MODEL]
SOON = 30_000  # milliseconds, on a busy machine
PHONE = {"width": 390, "height": 844}


class Widget:
    """A widget as a reader has it before them."""

    def __init__(self, page, selector):
        self.page, self.whole = page, page.locator(selector)
        self.grids = self.whole.get_by_role("application")

    def said(self):
        return self.whole.locator(".vit-status").inner_text()

    def press(self, name):
        self.whole.get_by_role("button", name=name, exact=True).click()

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
    return brought_near(page, name)


def brought_near(page, name):
    """The same on a page that is open."""
    settle(page)
    page.locator(f"#vit-{name}").scroll_into_view_if_needed()
    expect(page.locator(f"#vit-{name} .vit-status")).to_have_text(re.compile(r"\w"), timeout=SOON)
    return Widget(page, f"#vit-{name}")


def swipe(phone, start, end):
    """Move a finger over the screen, and lift it."""
    session = phone.context.new_cdp_session(phone)
    places = [[a + (b - a) * step / 8 for a, b in zip(start, end, strict=True)] for step in range(9)]
    for number, (x, y) in enumerate(places):
        kind = "touchMove" if number else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    phone.wait_for_timeout(500)  # what follows is no second tap
