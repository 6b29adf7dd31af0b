"""Where the built book lies."""

import pytest
from check_links import BUILT


@pytest.fixture
def built():
    """The built book; tests that look at it are skipped while there is none (`make book` builds it)."""
    if not (BUILT / "index.html").exists():
        pytest.skip("the book is not built")
    return BUILT
