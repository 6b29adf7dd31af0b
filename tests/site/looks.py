"""What is looked for on a page in a browser. One function a kind of finding; each returns sentences."""

import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image, ImageChops
from playwright.sync_api import ConsoleMessage, Page, Request, Response

SCRIPT = (Path(__file__).parent / "findings.js").read_text(encoding="utf-8")
FINDINGS = f"if (!window.siteFindings) {{ {SCRIPT} }}"
LOOK = f"(kinds) => {{ {FINDINGS} return siteFindings.look(kinds); }}"
# Formulas are set, fonts are there: what is looked at does not move any more.
SETTLED = """async () => {
    await window.MathJax?.startup?.promise;
    await document.fonts.ready;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
SEVERE = ("moderate", "serious", "critical")
# The rules of axe-core: on a whole page, or on what a theme shows for the first time. Those about colours,
# the slowest, are asked of one text of each sort; of a text in the very colour of its ground axe is not sure.
# What is inside a formula, a box for each glyph, is left out: MathJax makes it.
AXE = """async (whole) => {
    if (!window.axe) return null;
    FINDINGS
    const colours = ["color-contrast", "link-in-text-block"];
    const [elements, texts] = [siteFindings.newElements(), siteFindings.newSortsOfText()];
    if (!whole && !elements.length && !texts.length) return [];
    const sort = "data-sort-of-text";
    const selectors = [`[${sort}]`, `a[href][${sort}]`];
    axe.configure({rules: colours.map((id, k) => ({id, selector: selectors[k], enabled: texts.length > 0}))});
    texts.forEach((text) => text.setAttribute(sort, ""));
    const where = {exclude: ["mjx-container > *"], ...(whole ? {} : {include: [...elements, ...texts]})};
    const only = whole || elements.length ? {} : {runOnly: colours};
    const found = await axe.run(where, {resultTypes: ["violations", "incomplete"], preload: false, ...only});
    texts.forEach((text) => text.removeAttribute(sort));
    const unseen = (node) => node.any.some(({data}) => data?.messageKey === "equalRatio");
    const equal = found.incomplete.filter((rule) => colours.includes(rule.id));
    return [...found.violations, ...equal.map((rule) => ({...rule, nodes: rule.nodes.filter(unseen)}))];
}""".replace("FINDINGS", FINDINGS)
FOCUSABLE = "a[href], button, summary, input, select, textarea, [tabindex='0']"
STILL = (
    "*, ::before, ::after { transition: none !important; animation: none !important; caret-color: #0000; }"
)
# One control of each sort, in the dialog that is open or on the page: those of the same tag, classes and
# place look the same when they have the focus.
SORTS = """() => {
    const seen = new Map();
    const open = document.querySelector("dialog[open]") ?? document;
    for (const element of open.querySelectorAll(FOCUSABLE)) {
        if (!element.checkVisibility({visibilityProperty: true}) || element.disabled) continue;
        const box = element.getBoundingClientRect();
        if (element.tabIndex < 0 || box.width < 2) continue;
        const place = element.closest("nav, article, header, footer, aside, dialog, [id]");
        const sort = [element.tagName, element.className, place?.tagName, place?.className].join(" ");
        if (!seen.has(sort)) seen.set(sort, element);
    }
    window.siteControls = [...seen.values()];
    return window.siteControls.map((element) =>
        `<${element.tagName.toLowerCase()} class="${element.className}"> ` +
        `"${(element.getAttribute("aria-label") ?? element.textContent).trim().slice(0, 40)}"`);
}""".replace("FOCUSABLE", json.dumps(FOCUSABLE))


@contextmanager
def listening(page: Page) -> Iterator[dict[str, list[str]]]:
    """Collect what goes wrong while pages load: `console`, `error`, `outside` and `missing`."""
    heard: dict[str, list[str]] = {"console": [], "error": [], "outside": [], "missing": []}

    def console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            heard["console"].append(message.text)

    def request(asked: Request) -> None:
        parts = urlsplit(asked.url)
        if parts.scheme in ("http", "https") and parts.hostname not in ("127.0.0.1", "localhost"):
            heard["outside"].append(asked.url)

    def response(answer: Response) -> None:
        if answer.status >= 400:
            heard["missing"].append(f"{answer.status} {answer.url}")

    def error(raised: Exception) -> None:
        heard["error"].append(str(raised))

    page.on("console", console)
    page.on("pageerror", error)
    page.on("request", request)
    page.on("response", response)
    try:
        yield heard
    finally:
        for event, handler in (
            ("console", console),
            ("pageerror", error),
            ("request", request),
            ("response", response),
        ):
            page.remove_listener(event, handler)


def settle(page: Page) -> None:
    """Wait until formulas and fonts are in their places."""
    page.evaluate(SETTLED)


def switch_theme(page: Page, theme: str) -> None:
    """Let the system ask for light or dark, and wait until the page has followed."""
    page.emulate_media(color_scheme=theme)
    page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)


def look(page: Page, kinds: Iterable[str] | None = None) -> dict[str, list[str]]:
    """What findings.js finds, by kind: these kinds, or all."""
    return page.evaluate(LOOK, None if kinds is None else list(kinds))


def find(page: Page, kind: str) -> list[str]:
    """One kind of what findings.js finds."""
    return look(page, [kind])[kind]


def axe(page: Page, script: str, whole: bool = True) -> list[str]:
    """Violations of axe-core's rules from moderate up; `script` is its source, which a page may have already.

    Colours are asked of the sorts of text that this window has not been asked about; everything else of the
    whole page, or of what the window has not shown before.
    """
    found = page.evaluate(AXE, whole)
    if found is None:
        page.evaluate(script)
        found = page.evaluate(AXE, whole)
    return [
        f"{violation['id']} ({violation['impact']}): {node['target'][0]}"
        for violation in found
        if violation["impact"] in SEVERE
        for node in violation["nodes"]
    ]


def below_the_screen(page: Page, selector: str) -> float:
    """By how many pixels the first of these elements ends below the screen; negative where it ends above."""
    box = page.locator(selector).first.bounding_box()
    return box["y"] + box["height"] - page.viewport_size["height"]


def invisible_focus(page: Page) -> list[str]:
    """Controls that look the same with the focus and without it."""
    page.add_style_tag(content=STILL + " .tooltip { display: none !important; }")
    page.keyboard.press("Tab")  # the keyboard is in use: focus shows
    for widget in page.locator(
        ".vit-widget"
    ).all():  # which comes when it is near, and moves what is below it
        widget.scroll_into_view_if_needed()
        page.wait_for_load_state("networkidle")
    found = []
    for number, name in enumerate(page.evaluate(SORTS)):
        box = page.evaluate(
            """number => {
                document.activeElement.blur();
                const element = siteControls[number];
                element.scrollIntoView({block: "center", behavior: "instant"});
                const {x, y, width, height} = element.getBoundingClientRect();
                const [left, top] = [Math.max(0, x - 8), Math.max(0, y - 8)];
                return {x: left, y: top, width: width + 16, height: Math.min(height, 300) + 16};
            }""",
            number,
        )
        without = _picture(page, box)
        page.evaluate(
            "number => siteControls[number].focus({preventScroll: true, focusVisible: true})", number
        )
        difference = ImageChops.difference(without, _picture(page, box))
        if np.count_nonzero(np.asarray(difference).max(axis=-1) > 40) < 20:
            found.append(name)
    return found


def _picture(page: Page, box: dict[str, float]) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot(clip=box, animations="disabled"))).convert("RGB")
