"""What a page makes a browser fetch: nothing that it does not use, nothing before it is needed.

Each function takes a finished page's text and returns it changed; what it has been over stays as it is.
"""

import re
from pathlib import Path

from PIL import Image

from vit_book.lean_mathjax import BUNDLE

SCRIPT = r'<script(?=[^>]*\ssrc="[^"]*{name})[^>]*></script>\s*'
FORMULA = re.compile(r'class="[^"]*(?<![\w-])(?:math|mathjax_process|tex2jax_process|output_area)(?![\w-])')
MATHJAX_SETTINGS = re.compile(r"<script>window\.MathJax = .*?</script>\s*")
PICTURE = re.compile(r"<img\b[^>]*>")
ARTICLE = re.compile(r"<article\b.*?</article>", re.DOTALL)
# Which companions of the theme a page without these words does without.
ONLY_WITH = {
    "sphinx-design.min.css": re.compile(r'class="[^"]*\bsd-'),
    "design-tabs.js": re.compile(r'class="[^"]*\bsd-tab'),
    "clipboard.min.js": re.compile(r'class="highlight'),
    "copybutton.js": re.compile(r'class="highlight'),
    "copybutton.css": re.compile(r'class="highlight'),
}
SEARCH_TOOLS = ("searchtools.js", "language_data.js", "searchindex.js", "search-results.js")


def without_script(page: str, name: str) -> str:
    """Leave out the script whose address ends with `name` (before a version)."""
    return re.sub(SCRIPT.format(name=re.escape(name)), "", page)


def drop_icon_script(page: str) -> str:
    """The icons come from web fonts; the script would draw them a second time, with 1.5 MB."""
    return without_script(page, "scripts/fontawesome.js")


def search_on_its_page(page: str) -> str:
    """The index of all words is for the page that searches; the others lead there."""
    if 'id="search-results"' not in page:
        for name in SEARCH_TOOLS:
            page = without_script(page, name)
    return page


def formulas_where_they_are(page: str) -> str:
    """MathJax, and only the part that is used, on pages with formulas; nothing waits for it."""
    if not FORMULA.search(page):
        return MATHJAX_SETTINGS.sub("", without_script(without_script(page, "tex-chtml.js"), BUNDLE))
    page = re.sub(r'mathjax/tex-chtml\.js(\?v=\w+)?"', f'mathjax/{BUNDLE}"', page)
    return re.sub(rf'<script defer(?:="defer")?(?=[^>]*mathjax/{BUNDLE})', "<script async", page)


def drop_unused_companions(page: str) -> str:
    """Leave out what the theme's companions load for code, cards and tabs where a page has none."""
    for name, sign in ONLY_WITH.items():
        if not sign.search(page):
            page = without_script(page, name)
            page = re.sub(rf'<link [^>]*href="[^"]*{re.escape(name)}[^>]*>\s*', "", page)
    return page


def scripts_after_the_text(page: str) -> str:
    """No script holds up the first picture of a page; they run in their order when it has been read.

    `documentation_options.js` stays: the page itself speaks to it in the next line.
    """
    eager = re.compile(r'<script(?![^>]*\b(?:defer|async)\b)(?![^>]*documentation_options)(?=[^>]*\ssrc=")')
    return eager.sub("<script defer", page)


def pictures_when_they_near(page: str, folder: Path) -> str:
    """Every picture of the text says its size, and all but the first load when a reader comes near.

    Args:
        page: the page's text.
        folder: where the page lies; its pictures' addresses start there.
    """
    article = ARTICLE.search(page)
    if not article:
        return page
    seen = 0

    def sized(found: re.Match) -> str:
        nonlocal seen
        tag = found.group()
        source = re.search(r'\ssrc="([^":]+)"', tag)
        if not source or not (folder / source[1]).exists():
            return tag
        seen += 1
        added = "" if seen == 1 or " loading=" in tag else ' loading="lazy" decoding="async"'
        if " width=" not in tag and (folder / source[1]).suffix in (".png", ".webp", ".jpg"):
            width, height = Image.open(folder / source[1]).size
            added += f' width="{width}" height="{height}"'
        return tag[:4] + added + tag[4:]

    return page[: article.start()] + PICTURE.sub(sized, article.group()) + page[article.end() :]


def renamed_pictures(page: str, names: list[str]) -> str:
    """Lead to the WebP file where a PNG file has become one."""
    for name in names:
        page = page.replace(f"_images/{name}", f"_images/{Path(name).with_suffix('.webp')}")
    return page


def versions(page: str, digests: dict[str, str]) -> str:
    """Say the version of files that changed after the build named it, so that browsers fetch them anew."""
    for name, digest in digests.items():
        page = re.sub(rf'({re.escape(name)})(?:\?[\w=]*)?"', rf'\1?v={digest}"', page)
    return page
