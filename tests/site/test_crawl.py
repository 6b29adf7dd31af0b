"""The crawl sees its pages at every width, in each theme and without scripts: what is planted is found."""

# ruff: noqa: E501 (pages of one line)

import pytest
from crawl import ALIKE, crawl
from serve import served

pytestmark = pytest.mark.site

PAGE = """<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><style>
html {{ background: #fff; color: #000 }} html[data-theme="dark"] {{ background: #000; color: #fff }}
a {{ color: #00c }} html[data-theme="dark"] a {{ color: #9cf }}
{style}
</style><script>
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => {{ document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; }};
dark.addEventListener("change", follow);
follow();
</script></head><body><nav class="bd-sidebar-primary"><a href="/">Home</a></nav>
<main><article><h1>A page</h1><p>Patches are <a href="/">tokens</a>.</p>
<div id="search-results"></div>{body}</article></main></body></html>"""

WIDE = "(min-width: 1000px)"
MIDDLE = "(min-width: 600px) and (max-width: 900px)"
PHONE = "(max-width: 500px)"
CUT = ".c { width: 40px; overflow: hidden; white-space: nowrap }"
LINK = "<p>And <a class='o' href='/'>o</a>.</p>"
FAINT = "<p class='t'>faint</p>"
NAMELESS = '<button class="less"></button>'
SCROLLS = '<div class="box"><p>What is on the right can only be read by someone who has a mouse.</p></div>'
BOX = ".box {{ width: 90px }} .box p {{ width: 700px }} @media {} {{ .box {{ overflow: auto; mask-image: linear-gradient(red, #0000) }} }}"
DRAWING = '<svg aria-hidden="true" width="200" height="40" viewBox="0 0 200 40"><text y="20" class="f">N</text></svg>'
# A style, what stands in the page, the kind of the finding, and how its sentences begin: where it is found, and for axe
# the rule.
FAULTS = {
    "wide at 1440": (f"@media {WIDE} {{ .w {{ width: 2000px }} }}", "<p class='w'>w</p>", "sideways", "1440 light"),
    "wide at 768": (f"@media {MIDDLE} {{ .w {{ width: 900px }} }}", "<p class='w'>w</p>", "sideways", "768 light"),
    "wide at 390": (f"@media {PHONE} {{ .w {{ width: 600px }} }}", "<p class='w'>w</p>", "sideways", "390 light"),
    "cut at 768": (f"@media {MIDDLE} {{ {CUT} }}", "<p class='c'>cut on its right</p>", "cut", "768 light"),
    "a picture without words at 390": (f".p {{ display: none }} @media {PHONE} {{ .p {{ display: block }} }}", "<svg class='p' width='20' height='20'><rect width='9' height='9'/></svg>", "pictures", "390 light"),
    "a link of its own in dark": ("html[data-theme='dark'] .o { color: #fc9 }", LINK, "links", "1440 dark"),
    "a link like its text in dark": ("html[data-theme='dark'] a { color: #ddd; text-decoration: none }", "", "axe", "1440 dark: link-in-text-block"),
    "a faint drawing in dark": (".f { fill: #000 } html[data-theme='dark'] .f { fill: #222 }", DRAWING, "drawings", "1440 dark"),
    "faint text in dark at 390": (f"@media {PHONE} {{ html[data-theme='dark'] .t {{ color: #333 }} }}", FAINT, "axe", "390 dark: color-contrast"),
    "faint text at 768": (f"@media {MIDDLE} {{ .t {{ color: #999 }} }}", FAINT, "axe", "768 light: color-contrast"),
    "black text on black": (".t { color: #000 }", FAINT, "axe", "1440 dark: color-contrast"),
    "a nameless button at 768": (f".less {{ display: none }} @media {MIDDLE} {{ .less {{ display: block }} }}", NAMELESS, "axe", "768 light: button-name"),
    "a nameless button at 390": (f".less {{ display: none }} @media {PHONE} {{ .less {{ display: block }} }}", NAMELESS, "axe", "390 light: button-name"),
    "a box that scrolls with a mouse alone": (BOX.format("(max-width: 900px)"), SCROLLS, "axe", "768 light: scrollable-region-focusable"),
    "outside of landmarks": ("", "</article></main><p>Nowhere</p><main hidden><article>", "axe", "1440 light: region"),
    "mathematics": ("", r"<p>of \(D_h\)</p>", "raw", ""),
    "a deep heading": ("", "<h4>Deep</h4>", "headings", "1440 light"),
    "a name twice": ("", "<i id='a'>a</i><i id='a'>b</i>", "ids", ""),
    "two folds of one name": ("", "<details><summary>Hint</summary></details>" * 2, "toggles", "1440 light"),
    "a formula as tab stop": ("", '<mjx-container tabindex="0">x</mjx-container>', "tabStops", "1440 light"),
    "an error": ("", "<script>throw new Error('no')</script>", "error", ""),
    "a warning": ("", "<script>console.warn('no')</script>", "console", ""),
    "a picture from elsewhere without scripts": ("", "<noscript><img alt='a' src='http://elsewhere.invalid/x.png'></noscript>", "outside", "without scripts"),
    "wide without scripts": ("", "<noscript><p style='width: 900px'>w</p></noscript>", "sideways", "without scripts: the page is 9"),
    "a picture that is not there without scripts": ("", "<noscript><img alt='a' src='/none.png'></noscript>", "missing", "without scripts"),
}  # fmt: skip
# Some of them on pages of modules, too.
OF_MODULES = (
    "wide at 1440",
    "cut at 768",
    "wide at 390",
    "faint text in dark at 390",
    "a nameless button at 390",
    "a picture that is not there without scripts",
)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the crawl says of a site that has each fault on a page of its own, and a page without any."""
    folder = tmp_path_factory.mktemp("site")
    pages = {"fine.html": ("", "")}
    pages |= {file_of(name): fault[:2] for name, fault in FAULTS.items()}
    pages |= {ALIKE + file_of(name): FAULTS[name][:2] for name in OF_MODULES}
    for name, (style, body) in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGE.format(style=style, body=body), encoding="utf-8")
    scripted = "<script>document.querySelector('nav').style.visibility = 'visible'</script>"
    bare = PAGE.format(style="nav { visibility: hidden }", body=scripted)
    (folder / "bare.html").write_text(bare.replace(' data-theme="light"', ""), encoding="utf-8")
    with served(folder) as root:
        return crawl(root, [*pages, "bare.html"])


def file_of(fault):
    return f"{fault.replace(' ', '-')}.html"


def of_page(found, name):
    return {kind: pages[name] for kind, pages in found.items() if name in pages}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_where_it_is_and_nothing_else(found, fault):
    kind, begins = FAULTS[fault][2:]
    said = of_page(found, file_of(fault))
    assert {*said} - {"axe"} <= {kind}, said  # axe finds some of the others' faults, too
    assert said.get(kind)
    assert [sentence for sentence in said[kind] if not sentence.startswith(begins)] == []


def test_a_page_without_faults_is_clean(found):
    assert of_page(found, "fine.html") == {}


def test_a_page_that_needs_scripts_is_found(found):
    assert of_page(found, "bare.html")["scriptless"] == [
        "no theme: colours and boxes vanish",
        "no navigation",
    ]


@pytest.mark.parametrize("fault", OF_MODULES)
def test_pages_of_modules_are_looked_at_at_every_width_in_the_dark_and_without_scripts(found, fault):
    kind, begins = FAULTS[fault][2:]
    said = of_page(found, ALIKE + file_of(fault))
    assert said.keys() == {kind}
    assert [sentence for sentence in said[kind] if not sentence.startswith(begins)] == []
