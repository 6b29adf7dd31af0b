"""Open every page of the book at three widths, in both themes and without scripts; collect what is wrong.

A page is loaded once, and its window then made as wide as the next, which shows what a phone shows. Pages of
the reference are looked at in the dark, and by axe, on a phone alone.
"""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import resources
from pathlib import Path

from browser import open_browser
from looks import STILL, axe, find, listening, look, settle, switch_theme
from playwright.sync_api import Page

PHONE = 390
WIDTHS = (1440, 768, PHONE)
THEMES = ("light", "dark")
# Pages of the reference are made alike, from docstrings. They begin where room is scarcest; there they are
# looked at in the dark, too, and by axe.
ALIKE, ALIKE_WIDTHS = "book/api/", (PHONE, 768, 1440)
WORKERS = 2
HEIGHT = 900
# The theme makes boxes that scroll tab stops 300 ms after the window has another width: later, by its clock.
RESIZED = """() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 350))))"""
RESULTS = "search.html?q=patch"
# The pages that a result leads to have the words that were searched for marked.
MARKED = ("book/index.html?highlight=patch", "notebooks/05_vision_transformer.html?highlight=patch")
# What scripts write there comes late.
LATE = {RESULTS: "#search-results li .context", **dict.fromkeys(MARKED, "article span.highlighted")}
# What is slow and hardly depends on width is looked for once a load, what no theme changes at each width.
ONCE = ("raw", "ids")
OF_WIDTHS = ("sideways", "cut", "pictures", "headings", "tabStops", "toggles")
OF_THEMES = ("drawings", "links")

Report = dict[str, dict[str, list[str]]]  # kind, page, sentences


def axe_script() -> str:
    """The source of axe-core, from the package that carries it."""
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def page_names(built: Path) -> list[str]:
    """Every page of the book, as a path below it, but for the root's and the one for wrong addresses."""
    found = (path.relative_to(built) for path in built.rglob("*.html"))
    return sorted(str(path) for path in found if path.parts[0] not in ("_static", "index.html", "404.html"))


def _visit(reader: Page, scriptless: Page, name: str, script: str, report: Report) -> None:
    """Look at one page in every width and theme."""

    said = set()

    def add(kind: str, where: str, sentences: list[str]) -> None:
        for sentence in sentences:
            if (kind, sentence) not in said:
                said.add((kind, sentence))
                report[kind][name].append(f"{where}: {sentence}" if where else sentence)

    alike = name.startswith(ALIKE)
    widths = ALIKE_WIDTHS if alike else WIDTHS
    reader.bring_to_front()  # a window behind another is drawn late
    reader.emulate_media(color_scheme=THEMES[0])
    reader.set_viewport_size({"width": widths[0], "height": HEIGHT})
    with listening(reader) as heard:
        reader.goto(name, wait_until="load")
        reader.add_style_tag(content=STILL)
        if name in LATE:
            reader.locator(LATE[name]).first.wait_for(state="attached")
            reader.wait_for_load_state("networkidle")
        for width in widths:
            first = width == widths[0]
            closely = not alike or width == PHONE
            if not first:
                reader.set_viewport_size({"width": width, "height": HEIGHT})
                if closely:
                    reader.evaluate(RESIZED)
            settle(reader)
            for theme in THEMES if closely else THEMES[:1]:
                switch_theme(reader, theme)
                light = theme == THEMES[0]
                kinds = ((ONCE if first else ()) + OF_WIDTHS if light else ()) + OF_THEMES
                for kind, sentences in look(reader, kinds).items():
                    add(kind, "" if kind in ONCE else f"{width} {theme}", sentences)
                if closely:
                    add("axe", f"{width} {theme}", axe(reader, script, whole=light))
        # The next page would have the words of a search marked.
        reader.evaluate("localStorage.clear()")
    for kind, sentences in heard.items():
        add(kind, "", sentences)
    with listening(scriptless) as heard:
        scriptless.goto(name, wait_until="load")
        add("scriptless", "", without_scripts(scriptless))
        add("sideways", "without scripts", find(scriptless, "sideways"))
    for kind in ("missing", "outside"):  # the console only says the same again
        add(kind, "without scripts", heard[kind])


def without_scripts(page) -> list[str]:
    """What a reader on a phone misses where scripts are turned off: colours, or the way to other pages.

    Asked from outside: a page without scripts evaluates what the browser's own protocol sends.
    """
    found = []
    if page.locator("html").get_attribute("data-theme") not in ("light", "dark"):
        found.append("no theme: colours and boxes vanish")
    if not page.locator(".bd-sidebar-primary a:visible").count():
        found.append("no navigation")
    return found


def _visit_all(root: str, script: str, names: list[str]) -> Report:
    report: Report = defaultdict(lambda: defaultdict(list))
    with open_browser() as browser:
        # Windows are kept from page to page: what pages share is fetched and read once.
        reader = browser.new_page(base_url=root)
        reader.add_init_script(script)
        phone = {"width": PHONE, "height": HEIGHT}
        scriptless = browser.new_page(base_url=root, viewport=phone, java_script_enabled=False)
        for name in names:
            _visit(reader, scriptless, name, script, report)
    return report


def crawl(root: str, names: list[str]) -> Report:
    """Visit the pages in shares, side by side, and put together what each found."""
    shares = [names[start::WORKERS] for start in range(WORKERS)]
    whole: Report = defaultdict(dict)
    with ThreadPoolExecutor(WORKERS) as pool:
        for report in pool.map(partial(_visit_all, root, axe_script()), shares):
            for kind, pages in report.items():
                whole[kind].update({page: found for page, found in pages.items() if found})
    return whole
