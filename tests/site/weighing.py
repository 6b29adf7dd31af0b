"""What a page makes a browser fetch that has nothing yet: bytes as they come over the line, compressed."""

from collections import Counter

from playwright.sync_api import Browser, CDPSession, Page

SETTLED = 500  # milliseconds until what was fetched is counted, too


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
