"""Where the built book lies, if it is there and up to date."""

import pytest
from check_links import BUILT
from project_facts import ROOT

SOURCES = ("_config.yml", "_toc.yml", "book/**/*", "notebooks/*", "tools/**/*.py", "vit_from_scratch/**/*")


def newest_source():
    paths = (path for pattern in SOURCES for path in ROOT.glob(pattern) if "__pycache__" not in path.parts)
    return max(path.stat().st_mtime for path in paths if path.is_file())


@pytest.fixture(scope="session")
def built():
    """The built book; tests that look at it are marked `built`, and `make test` leaves them out."""
    page = BUILT / "index.html"
    if not page.exists() or page.stat().st_mtime < newest_source():
        pytest.fail("the book is not built, or older than its sources: run `make book`")
    return BUILT
