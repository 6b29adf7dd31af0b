"""Open every page of the book at three widths, in both themes and without scripts; collect what is wrong."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import resources
from pathlib import Path

from looks import axe, listening, look, settle, switch_theme
from measure_pages import open_browser
from playwright.sync_api import Browser

WIDTHS = (1440, 768, 390)
THEMES = ("light", "dark")
# Pages of modules are made alike, from docstrings, and those of packages stand for them: here only where room
# is scarce, in one theme.
ALIKE, ALIKE_WIDTHS = "book/api/modules/", (390,)
WORKERS = 2
HEIGHT = 900
# Findings that neither width nor theme can change are looked for once.
EVERYWHERE_ALIKE = ("raw", "pictures", "headings", "ids", "tabStops", "toggles")
OF_THEMES = ("drawings",)
COLOURS = ("color-contrast",)  # the one rule of axe-core that another theme can break

Report = dict[str, dict[str, list[str]]]  # kind, page, sentences


def axe_script() -> str:
    """The source of axe-core, from the package that carries it."""
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def page_names(built: Path) -> list[str]:
    """Every page of the book, as a path below it; the page at the root only leads to the landing page."""
    found = (path.relative_to(built) for path in built.rglob("*.html"))
    return sorted(str(path) for path in found if path.parts[0] != "_static" and str(path) != "index.html")


def _visit(browser: Browser, root: str, name: str, script: str, report: Report) -> None:
    """Look at one page in every width and theme."""

    def add(kind: str, where: str, sentences: list[str]) -> None:
        for sentence in sentences:
            if sentence not in report[kind][name]:
                report[kind][name].append(f"{where}: {sentence}" if where else sentence)

    alike = name.startswith(ALIKE)
    widths, themes = (ALIKE_WIDTHS, THEMES[:1]) if alike else (WIDTHS, THEMES)
    for width in widths:
        context = browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme="light")
        page = context.new_page()
        with listening(page) as heard:
            page.goto(f"{root}{name}", wait_until="load")
            settle(page)
            for theme in themes:
                switch_theme(page, theme)
                for kind, sentences in look(page).items():
                    first = (width, theme) == (widths[0], THEMES[0])
                    if kind in EVERYWHERE_ALIKE:
                        add(kind, "", sentences if first else [])
                    elif kind in OF_THEMES or theme == "light":
                        add(kind, f"{width} {theme}", sentences)
                if width == widths[0] and not alike:
                    add("axe", theme, axe(page, script, () if theme == THEMES[0] else COLOURS))
        for kind, sentences in heard.items():
            add(kind, "", sentences)
        context.close()
    if alike:
        return
    context = browser.new_context(viewport={"width": 390, "height": HEIGHT}, java_script_enabled=False)
    page = context.new_page()
    with listening(page) as heard:
        page.goto(f"{root}{name}", wait_until="load")
        add("scriptless", "", without_scripts(page))
    add("missing", "without scripts", heard["missing"])
    context.close()


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
        for name in names:
            _visit(browser, root, name, script, report)
    return report


def crawl(root: str, names: list[str]) -> Report:
    """Visit the pages, several at a time, and put together what each found."""
    shares = [names[start::WORKERS] for start in range(WORKERS)]
    whole: Report = defaultdict(dict)
    with ThreadPoolExecutor(WORKERS) as pool:
        for report in pool.map(partial(_visit_all, root, axe_script()), shares):
            for kind, pages in report.items():
                whole[kind].update({page: found for page, found in pages.items() if found})
    return whole
