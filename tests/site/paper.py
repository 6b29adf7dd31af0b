"""What is looked for on a printout: in the page as a printer gets it, and on the sheets themselves."""

import numpy as np
import pypdfium2
from playwright.sync_api import Page

SHEET = 680  # pixels of an A4 sheet between its margins of 15 mm
MARGIN_MM, A4_MM = 15, 210
# Of a sheet this much must be used where another follows; not more: a tall drawing moves to the next.
FILLED = 0.5
WIDER = """() => {
    const sheet = document.documentElement.clientWidth;
    const found = []; // mjx-ext: a part of a brace, which MathJax repeats and clips
    for (const element of document.querySelectorAll("main *")) {
        const shown = element.checkVisibility({visibilityProperty: true});
        if (!shown || element.closest("mjx-assistive-mml, mjx-ext, svg *")) continue;
        const box = element.getBoundingClientRect();
        const hidden = getComputedStyle(element).overflowX !== "visible" &&
            element.clientWidth > 2 && element.scrollWidth > element.clientWidth + 1;
        if (box.width && (box.right > sheet + 1 || hidden)) {
            const wide = Math.round(Math.max(box.right, element.scrollWidth));
            found.push(`${wide} px on a sheet of ${sheet}: <${element.tagName.toLowerCase()} ` +
                `class="${element.className}"> "${element.textContent.trim().slice(0, 40)}"`);
        }
    }
    return found;
}"""


def prepare(page: Page) -> None:
    """Lay a page out as on paper, and let its scripts know."""
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.set_viewport_size({"width": SHEET, "height": 1000})
    page.emulate_media(media="print")
    page.wait_for_load_state("networkidle")


def cut_on_paper(page: Page) -> list[str]:
    """What is wider than the sheet, or hidden in a box that nobody can scroll on paper."""
    return page.evaluate(WIDER)


def unfolded(page: Page) -> list[str]:
    """Solutions that are to be read."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".solution")]
            .filter((box) => [...box.children].slice(1)
                .some((child) => child.checkVisibility({visibilityProperty: true})))
            .map((box) => box.textContent.trim().slice(0, 50))"""
    )


def sheets(pdf: bytes) -> list[np.ndarray]:
    """The sheets of a printout as grey pictures, 0 black to 255 white."""
    document = pypdfium2.PdfDocument(pdf)
    return [
        document[number].render(scale=1, grayscale=True).to_numpy().squeeze()
        for number in range(len(document))
    ]


def spoilt_sheets(pictures: list[np.ndarray]) -> list[str]:
    """Sheets that are dark, written on beyond their margin, or half empty though another one follows."""
    found = []
    for number, picture in enumerate(pictures, start=1):
        height, width = picture.shape
        margin = int(width * MARGIN_MM / A4_MM) - 3
        ink = np.flatnonzero((picture < 200).any(axis=1))
        if np.median(picture) < 200:
            found.append(f"sheet {number} is dark")
        elif (picture[:, -margin:] < 200).any():
            found.append(f"sheet {number} goes on beyond its right margin")
        filled = ink[-1] / height if len(ink) else 0
        if number < len(pictures) and filled < FILLED:
            found.append(f"sheet {number} is used down to {filled:.0%}")
    return found
