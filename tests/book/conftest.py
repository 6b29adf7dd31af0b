"""Where the built book lies, if it is there and up to date."""

import pytest
from check_book import BUILT
from freshness import STALE, is_fresh


@pytest.fixture(scope="session")
def built():
    """The built book; tests that look at it are marked `built`, and `make test` leaves them out."""
    if not is_fresh():
        pytest.fail(STALE)
    return BUILT
