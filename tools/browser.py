"""This machine's Chromium, without a window: for tests of the built pages, measurements and the print."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The first draws pages as the others do and has nothing else to do: a fifth faster.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
# Letters are as wide as their font says, as in a window. Rounded, they make formulas wider by a pixel.
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--font-render-hinting=none")
NONE_HERE = "this machine has no Chromium; on Debian: apt-get install chromium-headless-shell"


def find_browser() -> str | None:
    """The path of the first of BROWSERS that is installed, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def open_browser() -> Iterator["Browser"]:
    """Start the browser, or raise FileNotFoundError where this machine has none."""
    path = find_browser()
    if path is None:
        raise FileNotFoundError(NONE_HERE)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
