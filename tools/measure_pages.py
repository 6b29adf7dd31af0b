"""What pages of the built book make a browser fetch, and how soon they show, on a slow phone.

    python tools/measure_pages.py notebooks/01_patches.html book/index.html

Bytes are counted as they come over the line, compressed, in a browser that has nothing yet. Seconds are those
of a processor four times slower at 1.6 Mbit/s and 150 ms: the median of three openings. Needs Chromium.
"""

import argparse
import statistics
import sys
from collections import Counter
from pathlib import Path

from browser import NONE_HERE, find_browser, open_browser
from check_links import BUILT
from playwright.sync_api import Browser, CDPSession, Page
from serve import served

SLOW_LINE = {"offline": False, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 93_750}
SLOWER = 4
OPENINGS = 3
SETTLED = 500  # milliseconds until what was fetched is counted, too
PAINTS = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)[0] ?? NaN"
PARSED = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def count_bytes(session: CDPSession) -> Counter[str]:
    """A counter that grows with what the page fetches: bytes over the line by kind."""
    kinds: dict[str, str] = {}
    weight: Counter[str] = Counter()

    def answered(event: dict) -> None:
        kinds[event["requestId"]] = event["type"]

    def finished(event: dict) -> None:
        weight[kinds.get(event["requestId"], "Other")] += int(event["encodedDataLength"])

    session.send("Network.enable")
    session.on("Network.responseReceived", answered)
    session.on("Network.loadingFinished", finished)
    return weight


def fetch_pictures(page: Page) -> None:
    """Fetch every picture of a page, those which wait until a reader comes near too."""
    page.evaluate("document.querySelectorAll('img').forEach(image => { image.loading = 'eager'; })")
    page.wait_for_function("[...document.images].every(image => image.complete)")
    page.wait_for_timeout(SETTLED)


def weigh(browser: Browser, address: str) -> tuple[Counter[str], Counter[str]]:
    """Bytes by kind of a page as it opens, and when every picture of it has been seen."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    weight = count_bytes(context.new_cdp_session(page))
    page.goto(address, wait_until="networkidle")
    opened = Counter(weight)
    fetch_pictures(page)
    context.close()
    return opened, weight


def seconds(browser: Browser, address: str) -> tuple[float, float]:
    """First paint and content loaded on a slow phone, in seconds."""
    paints, parses = [], []
    for _ in range(OPENINGS):
        context = browser.new_context(viewport={"width": 390, "height": 844})
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", SLOW_LINE)
        session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        page.goto(address, wait_until="load", timeout=120_000)
        page.wait_for_timeout(500)
        paints.append(page.evaluate(PAINTS) / 1000)
        parses.append(page.evaluate(PARSED) / 1000)
        context.close()
    return statistics.median(paints), statistics.median(parses)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("pages", nargs="*", help="paths below the built book; every page without any")
    options.add_argument("--built", type=Path, default=BUILT, help="the folder of the built book")
    options.add_argument("--no-times", action="store_true", help="only the bytes")
    chosen = options.parse_args(arguments)
    built = chosen.built.resolve()
    if not (built / "index.html").exists():
        print(f"error: there is no book in {built}; run `make book` first.", file=sys.stderr)
        return 1
    if not find_browser():
        print(f"error: {NONE_HERE}", file=sys.stderr)
        return 1
    names = chosen.pages or sorted(str(path.relative_to(built)) for path in built.glob("[bn]*/**/*.html"))
    with served(built) as root, open_browser() as browser:
        for name in names:
            opened, whole = weigh(browser, f"{root}{name}")
            kinds = ", ".join(f"{kind.lower()} {count // 1000}" for kind, count in opened.most_common())
            line = f"{name}: {opened.total() // 1000} kB ({kinds}); "
            line += f"with every picture {whole.total() // 1000} kB"
            if not chosen.no_times:
                line += "; first paint {:.2f} s, content loaded {:.2f} s".format(
                    *seconds(browser, f"{root}{name}")
                )
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
