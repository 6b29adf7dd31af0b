"""Faults that only one kind of look tells, beside those that test_crawl.py plants, and what is let through."""

# ruff: noqa: E501 (pages of one line)

import pytest
from figures import faint
from looks import axe, find, look
from PIL import Image, ImageDraw

pytestmark = pytest.mark.site

CLEAN = """<h1>Patches</h1><p>A photo, in <code>patch_size</code> squares, for $5 and $10.</p><h2>Why</h2>
<pre>{eq}`x` \\(x\\) ::: in code</pre><img alt="a cat" width="10" src="data:,"><button>Press</button>
<details><summary>Ours</summary><p>code</p></details><details><summary>Hint</summary><p>text</p></details>"""
MORE = {
    "cut": [
        '<p style="width: 60px; overflow: hidden; white-space: nowrap">what is on the right is lost</p>',
        '<p style="height: 20px; overflow: hidden">one<br>two<br>three</p>',
    ],
    "raw": [
        "<p>see {numref}`figure`</p>",
        "<dl class='py'><dd><cite>“model.”</cite></dd></dl>",
        r"<p>of \(D_h\)</p>",
        "<p>:::{note}</p>",
        "<p>where $x_p$ is</p>",
        "<p>\\frac{1}{2}</p>",
    ],
    "headings": ["<h1>Again</h1>"],
    "toggles": [
        "<button aria-expanded='false' aria-label='Toggle hidden content'></button>",
        "<details><summary></summary></details>",
    ],
    "links": ['<a href="/a">one</a> <a href="/b"><code style="color: #070">another</code></a>'],
    "pictures": ["<svg width='20' height='20'><rect width='9' height='9'/></svg>"],
    "drawings": [
        "<svg aria-hidden='true' width='200'><rect width='200' height='40' fill='#12669e'/><text x='9' y='20'>N</text></svg>"
    ],
}
FINE = {
    "cut": [
        '<p style="width: 60px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis">told by dots</p>',
        '<p style="width: 60px; overflow: auto; white-space: nowrap; mask-image: linear-gradient(red, #0000)">fades</p>',
    ],
    "links": ['<a href="/a">one</a> <a href="/b" class="glossary-term" style="color: #070">a word</a>'],
    "drawings": [
        "<svg aria-hidden='true' width='200'><rect width='200' height='40' fill='#12669e'/><text x='9' y='20' fill='#fff'>N</text></svg>"
    ],
}


def show(page, extra=""):
    page.set_content(
        "<!DOCTYPE html><html lang='en'><head><title>t</title></head>"
        f"<body><main><article>{CLEAN}{extra}</article></main></body></html>"
    )
    return page


def test_a_clean_page_is_clean(page, axe_source):
    assert {kind: found for kind, found in look(show(page)).items() if found} == {}
    assert axe(page, axe_source) == []


@pytest.mark.parametrize(
    ("kind", "html", "wrong"),
    [
        (kind, html, wrong)
        for kinds, wrong in ((MORE, True), (FINE, False))
        for kind, list_ in kinds.items()
        for html in list_
    ],
)
def test_faults_are_found_and_what_is_fine_is_let_through(page, kind, html, wrong):
    assert bool(find(show(page, html), kind)) == wrong


# ---- figures ----------------------------------------------------------------------------------------


def draw(path, colour):
    picture = Image.new("RGBA", (400, 300))
    for y in range(20, 280, 20):
        ImageDraw.Draw(picture).line((20, y, 380, y), fill=colour, width=2)
    picture.save(path)
    return path


GROUNDS = {"light": (255, 255, 255), "dark": (18, 22, 27)}


@pytest.mark.parametrize(
    ("colour", "themes"),
    [
        ("#777b80", []),
        ("#999999", ["light"]),
        ("#555555", ["dark"]),
        ("#440154", ["dark"]),
        ("#12a0e0", ["light"]),
    ],
)
def test_faint_lines_are_found_in_the_theme_that_hides_them(tmp_path, colour, themes):
    found = faint(draw(tmp_path / "x.png", colour), GROUNDS)
    assert [sentence.rsplit(" ", 1)[-1] for sentence in found] == themes
