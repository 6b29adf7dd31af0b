"""Whether the built book is that of the sources as they are."""

from check_book import BUILT
from project_facts import ROOT

SOURCES = ("_config.yml", "_toc.yml", "book/**/*", "notebooks/*", "tools/**/*.py", "vit_*/**/*")
STALE = "the book is not built, or older than its sources: run `make book`"


def is_fresh() -> bool:
    """Whether the book is built, and not older than what it is made of."""
    paths = (path for pattern in SOURCES for path in ROOT.glob(pattern) if "__pycache__" not in path.parts)
    newest = max(path.stat().st_mtime for path in paths if path.is_file())
    page = BUILT / "index.html"
    return page.exists() and page.stat().st_mtime >= newest
