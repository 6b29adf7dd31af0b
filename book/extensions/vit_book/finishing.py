"""The last step of a build: finished pages, wherever they come from, are made light and put right.

A page makes a browser fetch nothing that it does not use, and nothing before it is needed; what the theme
writes twice, or so that it needs a script, is put right. A second pass over a book changes nothing, so pages
that a build leaves alone may be gone over again.
"""

import re
from functools import partial
from hashlib import sha256
from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx

from vit_book.lean_files import BUNDLE, lighten_mathjax, lighten_pictures, lighten_styles, write_licences

SCRIPT = r'<script(?=[^>]*\ssrc="[^"]*{name})[^>]*></script>\s*'
FORMULA = re.compile(r'class="[^"]*(?<![\w-])(?:math|mathjax_process|tex2jax_process|output_area)(?![\w-])')
MATHJAX_SETTINGS = re.compile(r"<script>window\.MathJax = .*?</script>\s*")
HURRIED_SCRIPT = re.compile(r'<link rel="preload" as="script"[^>]*>\s*')
LETTERS = ("fonts/literata-latin-wght-normal.woff2", "vendor/fontawesome/webfonts/fa-solid-900.woff2")
PICTURE = re.compile(r"<img\b[^>]*>")
ARTICLE = re.compile(r"<article\b.*</article>", re.DOTALL)  # with those in it
APART = re.compile(
    r"(<(?:pre|code|script|style|svg|math)\b.*?</(?:pre|code|script|style|svg|math)>|<[^>]*>)", re.DOTALL
)
NUMBER = re.compile(r"(?<=\d) (?=%)|(?<=[\w)]) (?=×)|(?<=×) (?=[\w(])")
PRINTED = re.compile(r'(<div class="output (?:text_plain|stream)[^"]*)">(.*?)</pre>', re.DOTALL)
SEARCHES, SHOWS_CODE = re.compile('id="search-results"'), re.compile('class="highlight')
# Which companions of the theme a page without these words does without. The icons come from web fonts, so no
# page needs the script that would draw them a second time, with 1.5 MB.
ONLY_WITH = {
    "scripts/fontawesome.js": re.compile("(?!)"),
    "searchtools.js": SEARCHES,
    "language_data.js": SEARCHES,
    "searchindex.js": SEARCHES,
    "search-results.js": SEARCHES,
    "sphinx-design.min.css": re.compile(r'class="[^"]*\bsd-'),
    "design-tabs.js": re.compile(r'class="[^"]*\bsd-tab'),
    "claims.css": re.compile('class="claims'),
    "landing.css": re.compile(r'class="[^"]*\bpromise'),
    "clipboard.min.js": SHOWS_CODE,
    "copybutton.js": SHOWS_CODE,
    "copybutton.css": SHOWS_CODE,
}
# Said in the page itself, before anything is drawn: no flash of the other theme, and colours without scripts.
THEME = Path(__file__).with_name("theme.html").read_text(encoding="utf-8").rstrip()
PUT_RIGHT = (
    # Light colours without scripts; with them, the theme that the reader wants.
    (re.compile(r'(<html[^>]*data-theme=)"auto"'), r'\1"light"'),
    (re.compile(r'<script data-cfasync="false">.*?</script>', re.DOTALL), THEME),
    # Exercises and solutions all name their text alike; nothing leads there, so it goes without a name.
    (re.compile(r'(<section) id="(?:exercise|solution)-content"'), r"\1"),
    # The search marks what it found; it would end at a word in a drawing's name, which has no place.
    (re.compile(r"<(title|desc) id="), r'<\1 class="nohighlight" id='),
)


def without_script(page: str, name: str) -> str:
    """Leave out the script whose address ends with `name` (before a version)."""
    return re.sub(SCRIPT.format(name=re.escape(name)), "", page)


def formulas_where_they_are(page: str) -> str:
    """MathJax, and only the part that is used, on pages with formulas; it comes last, nothing waits."""
    if not FORMULA.search(page):
        return MATHJAX_SETTINGS.sub("", without_script(without_script(page, "tex-chtml.js"), BUNDLE))
    page = re.sub(r'mathjax/tex-chtml\.js(\?v=\w+)?"', f'mathjax/{BUNDLE}"', page)
    script = re.search(SCRIPT.format(name=re.escape(BUNDLE)), page)
    if not script:
        return page
    last = re.sub(r'<script (?:defer(?:="defer")?|async)', "<script async", script.group().rstrip())
    return f"{last}\n</body>".join(page.replace(script.group(), "").rsplit("</body>", 1))


def drop_unused_companions(page: str) -> str:
    """Leave out what is loaded for search, code, cards and tabs where a page has none."""
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


def letters_first(page: str) -> str:
    """Letters and icons are asked for at once, before the scripts that the theme would hurry."""
    static = re.search(r'href="((?:\.\./)*_static/)', page)
    page = HURRIED_SCRIPT.sub("", page)
    if not static or 'as="font"' in page:
        return page
    links = "\n".join(
        f'<link rel="preload" as="font" type="font/woff2" href="{static[1]}{name}" crossorigin />'
        for name in LETTERS
    )
    return re.sub(r'<meta charset="utf-8"[^>]*>', lambda found: f"{found[0]}\n{links}", page, count=1)


def pictures_when_they_near(page: str, folder: Path) -> str:
    """Every picture of the text says its size, and loads when a reader comes near."""
    article = ARTICLE.search(page)
    if not article:
        return page

    def sized(found: re.Match) -> str:
        tag = found.group()
        source = re.search(r'\ssrc="([^":]+)"', tag)
        if not source or not (folder / source[1]).exists():
            return tag
        added = "" if " loading=" in tag else ' loading="lazy" decoding="async"'
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


def put_right(page: str) -> str:
    """Say in a way that works what the theme writes twice, or so that it needs a script."""
    for pattern, text in PUT_RIGHT:
        page = pattern.sub(text, page)
    return page


def together(page: str) -> str:
    """Keep a number and what it belongs to on one line: "50 %", "8 × 8"."""
    article = ARTICLE.search(page)
    if not article:
        return page
    parts = APART.split(article.group())  # text, and between texts what stays as it is
    parts[::2] = [NUMBER.sub("\N{NO-BREAK SPACE}", text) for text in parts[::2]]
    return page[: article.start()] + "".join(parts) + page[article.end() :]


def sentences(page: str) -> str:
    """Mark what a cell prints where no blanks set columns apart: its long lines may break."""

    def marked(found: re.Match) -> str:
        columns = "  " in found[2] or "sentences" in found[1]
        return found[0] if columns else found[1] + " sentences" + found[0][len(found[1]) :]

    return PRINTED.sub(marked, page)


def versions(page: str, digests: dict[str, str]) -> str:
    """Say the version of files that changed after the build named it, so that browsers fetch them anew."""
    for name, digest in digests.items():
        page = re.sub(rf'({re.escape(name)})(?:\?[\w=]*)?"', rf'\1?v={digest}"', page)
    return page


def finish(site: Path, cache: Path) -> None:
    """Go over a built book; lighter figures are kept in `cache` from build to build."""
    pages = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    renamed = [path.with_suffix(".png").name for path in (site / "_images").glob("*.webp")]
    renamed = sorted({*renamed, *lighten_pictures(site, cache)})
    lighten_mathjax(site / "_static")
    write_licences(site / "_static")
    rename = partial(renamed_pictures, names=renamed)
    steps = (
        formulas_where_they_are,
        drop_unused_companions,
        scripts_after_the_text,
        letters_first,
        put_right,
        together,
        sentences,
        rename,
    )
    for path in pages:
        text = path.read_text(encoding="utf-8")
        for step in steps:
            text = step(text)
        path.write_text(pictures_when_they_near(text, path.parent), encoding="utf-8")
    changed = [*lighten_styles(site), site / "_static/mathjax" / BUNDLE]
    digests = {path.name: sha256(path.read_bytes()).hexdigest()[:8] for path in changed if path.exists()}
    for path in pages:
        path.write_text(versions(path.read_text(encoding="utf-8"), digests), encoding="utf-8")


def finish_build(app: Sphinx, error: Exception | None) -> None:
    """Run when everything else is written."""
    if not error and app.builder.format == "html":
        finish(Path(app.outdir), Path(app.doctreedir) / "pictures")


def setup(app: Sphinx) -> None:
    """Come last: other steps at the end of a build may write pages, too."""
    app.connect("build-finished", finish_build, priority=950)
