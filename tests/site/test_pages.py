"""Every page at three widths, light and dark, and without scripts: nothing is wrong that is not known."""

import pytest
from check_links import BUILT
from figures import faint_on_pages, figures_of_pages
from known import KNOWN, unknown
from looks import below_the_screen, invisible_focus, settle, switch_theme
from PIL import ImageColor

pytestmark = pytest.mark.site

CHAPTER = "notebooks/05_vision_transformer.html"
CONTROLS = (
    "book/index.html",
    CHAPTER,
    "notebooks/12_attention_maps.html",
    "search.html",
    "book/api/modules/model.attention.html",
)
KINDS = {
    "console": "warnings and errors in the console",
    "error": "errors in scripts",
    "outside": "requests to other hosts",
    "missing": "addresses that are not there",
    "raw": "raw directives, roles and mathematics",
    "sideways": "pages that scroll sideways",
    "cut": "text that is cut without a cue",
    "pictures": "pictures without words",
    "headings": "headings out of order",
    "ids": "names that stand twice on a page",
    "toggles": "folds without a name of their own",
    "tabStops": "formulas that are tab stops",
    "links": "links of several colours",
    "drawings": "text in drawings that does not stand out",
    "axe": "violations of axe-core's rules",
    "scriptless": "what is missing without scripts",
}
used = set()


def check(findings, kind):
    used.update(
        known
        for known in KNOWN
        for page, sentences in findings.items()
        for sentence in sentences
        if known.covers(kind, page, sentence)
    )
    found = unknown(findings, kind)
    assert not found, f"{len(found)} findings ({KINDS.get(kind, kind)}):\n" + "\n".join(found[:60])


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_has(report, kind):
    check(report.get(kind, {}), kind)


def test_every_page_was_opened(names):
    chapters = [name for name in names if name.startswith("notebooks/")]
    assert len(chapters) >= 16
    assert {"book/index.html", "search.html", "genindex.html", "py-modindex.html"} <= set(names)


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("book/index.html", ".hero"),
        ("book/if_you_know_cnns.html", "article section > p:last-of-type"),
        ("book/if_you_know_nlp_transformers.html", "article section > p:last-of-type"),
    ],
)
def test_what_is_meant_for_one_screen_fits_one(page, book, name, last):
    """What the book does, drawn, and the ways in, on a laptop of 1440 x 900."""
    page.goto(f"{book}{name}")
    settle(page)
    assert below_the_screen(page, last) <= 0
    page.add_style_tag(content=".bd-article { margin-top: 900px !important }")  # a planted fault
    assert below_the_screen(page, last) > 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_control_shows_that_it_has_the_focus(page, book, theme):
    page.emulate_media(color_scheme=theme)
    findings = {}
    for name in CONTROLS:
        page.goto(f"{book}{name}")
        settle(page)
        findings[name] = invisible_focus(page)
    check(findings, "focus")


def test_figures_stand_out_from_both_themes(page, book):
    grounds = {}
    page.goto(f"{book}{CHAPTER}")
    for theme in ("light", "dark"):
        switch_theme(page, theme)
        colour = page.evaluate(
            "getComputedStyle(document.documentElement).getPropertyValue('--pst-color-background')"
        )
        grounds[theme] = ImageColor.getrgb(colour.strip())
    assert grounds["light"] != grounds["dark"]
    assert len({path for paths in figures_of_pages(BUILT).values() for path in paths}) > 40
    check(faint_on_pages(BUILT, grounds), "figures")


def test_nothing_is_waived_that_is_not_there(report):
    """Runs last in this file: whoever removes a cause removes its line in known.py, too."""
    here = {known for known in KNOWN if known.kind in {*KINDS, "focus", "figures"}}
    assert not here - used, [known.reason for known in here - used]
