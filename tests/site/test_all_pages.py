"""Every page at three widths, in both themes and without scripts: nothing is wrong that is not known.

This takes longest, and its name puts it first: `make test-site` hands files out in their order.
"""

import pytest
from known import KNOWN, check, unused
from looks import below_the_screen, settle

pytestmark = pytest.mark.site

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


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_has(report, kind):
    check(report.get(kind, {}), kind, KINDS[kind])


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


def test_nothing_is_waived_that_is_not_there(report):
    """Runs last in this file: whoever removes a cause removes its line in known.py, too."""
    assert unused(KINDS) == []
    assert {known.kind for known in KNOWN} <= {*KINDS, "focus", "figures"}, "a kind that nobody looks for"
