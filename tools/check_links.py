"""Look at the built book from outside: dead links, pictures without words, foreign scripts, raw MyST."""

import argparse
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag
from project_facts import ROOT

BUILT = ROOT / "_build" / "html"
# Elements that make a browser fetch something, and the attribute that says what.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "video": "src"}
NOT_FETCHED = {"canonical", "next", "prev", "index", "search", "author", "genindex", "alternate"}
FOREIGN_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])(https?:)?//""")
RAW_MYST = re.compile(
    r":::|```\{|\{(?:doc|ref|numref|eq|cite(?::[pt])?|source|minutes|term|code-cell|admonition)\}"
)


@cache
def read_page(path: Path) -> BeautifulSoup:
    """Parse a page once."""
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(path: Path) -> frozenset[str]:
    """Every place of a page that a link may lead to."""
    names = (tag.get("id") or tag.get("name") for tag in read_page(path).find_all(True))
    return frozenset(str(name) for name in names if name)


def _leads_to(page: Path, fragment: str) -> bool:
    return unquote(fragment) in anchors(page)


def broken_links(path: Path) -> Iterator[str]:
    """Links and pictures that name a file or an anchor which is not there."""
    for tag in read_page(path).find_all(True):
        for attribute in ("href", "src"):
            address = str(tag.get(attribute) or "")
            parts = urlsplit(address)
            if not address or parts.scheme or parts.netloc or address == "#":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{address} does not exist"
            elif parts.fragment and target.suffix == ".html" and not _leads_to(target, parts.fragment):
                yield f"{address}: the page has no such anchor"


def foreign_loads(path: Path) -> Iterator[str]:
    """Whatever a browser would fetch from another host."""
    for name, attribute in LOADED.items():
        for tag in read_page(path).find_all(name):
            fetched = name != "link" or not NOT_FETCHED.intersection(_words(tag, "rel"))
            if fetched and urlsplit(str(tag.get(attribute) or "")).netloc:
                yield f"<{name}> loads {tag.get(attribute)}"
    for tag in read_page(path).find_all("script"):
        if re.search(r"""(?:src|href|URL)\s*=\s*["'`]https?://""", tag.string or ""):
            yield f"a script loads from another host: {(tag.string or '').strip()[:60]}"


def silent_pictures(path: Path) -> Iterator[str]:
    """Pictures that a screen reader cannot read."""
    for tag in read_page(path).find_all("img"):
        if not str(tag.get("alt") or "").strip() or str(tag.get("alt")).startswith(("../_images", "_images")):
            yield f"the picture {tag.get('src')} has no alternative text"


def untidy_text(path: Path) -> Iterator[str]:
    """Raw MyST, and what a chapter wrote to the error stream."""
    article = read_page(path).find("article")
    if not isinstance(article, Tag):
        return
    for tag in article.find_all(class_="stderr"):
        yield f"a cell wrote to the error stream: {tag.get_text()[:60]!r}"
    for text in article.find_all(string=RAW_MYST):
        if not any(parent.name in ("pre", "code", "script") for parent in text.parents):
            yield f"raw MyST: {str(text).strip()[:60]!r}"


def foreign_styles(built: Path) -> Iterator[str]:
    """Style sheets that load fonts or pictures from another host."""
    for path in sorted(built.rglob("*.css")):
        if FOREIGN_STYLE.search(path.read_text(encoding="utf-8", errors="replace")):
            yield f"{path.relative_to(built)}: loads from another host"


def _words(tag: Tag, attribute: str) -> list[str]:
    value = tag.get(attribute) or []
    return value if isinstance(value, list) else value.split()


def findings(built: Path) -> list[str]:
    """Everything that is wrong, page by page."""
    found = []
    for path in sorted(built.rglob("*.html")):
        if "_static" in path.relative_to(built).parts:
            continue
        for look in (broken_links, foreign_loads, silent_pictures, untidy_text):
            found += [f"{path.relative_to(built)}: {sentence}" for sentence in look(path)]
    return found + list(foreign_styles(built))


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("built", nargs="?", type=Path, default=BUILT, help="the folder of the built book")
    built = options.parse_args(arguments).built.resolve()
    if not (built / "index.html").exists():
        print(f"error: there is no book in {built}; run `make book` first.", file=sys.stderr)
        return 1
    found = findings(built)
    for sentence in found:
        print(sentence)
    print(f"{len(found)} findings in {sum(1 for _ in built.rglob('*.html'))} pages.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
