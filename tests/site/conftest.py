"""The built book, served as `make serve` does, and a browser. Needs Chromium and `make book`."""

import pytest
from browser import open_browser
from check_book import BUILT
from crawl import MARKED, RESULTS, axe_script, crawl, page_names
from freshness import STALE, is_fresh
from serve import served
from widgets import PHONE


@pytest.fixture(scope="session")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def book():
    """The address of the served book, with a slash at its end."""
    if not is_fresh():
        pytest.fail(STALE)
    with served(BUILT) as root:
        yield root


@pytest.fixture(scope="session")
def names():
    return page_names(BUILT)


@pytest.fixture(scope="session")
def report(book, names):
    """What is wrong on any page: kind, page, sentences."""
    return crawl(book, [*names, RESULTS, *MARKED])


@pytest.fixture(scope="session")
def axe_source():
    return axe_script()


@pytest.fixture
def page(browser):
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, permissions=["clipboard-read", "clipboard-write"]
    )
    yield context.new_page()
    context.close()


@pytest.fixture
def phone(browser):
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    yield context.new_page()
    context.close()
