"""Look at the built book before it is published: is it whole, and what would readers stumble over?

    python tools/check_book.py            # the book in _build/html
    python tools/check_book.py FOLDER

Missing or halved pages, pages of another site; dead links, pictures without words, foreign scripts, raw MyST.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from project_facts import ROOT, chapters, read_repository

BUILT = ROOT / "_build" / "html"
# Elements that make a browser fetch something, and the attribute that says what.
LOADED = {name: "src" for name in ("script", "img", "iframe", "source", "video")}
LOADED |= {"link": "href", "image": "href"}
ADDRESSES = ("href", "src", "srcset", "data-model", "data-photos", "data-run")
NOT_FETCHED = {"canonical", "next", "prev", "index", "search", "author", "genindex", "alternate"}
FOREIGN_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])(https?:)?//""")
RAW_MYST = re.compile(
    r":::|```\{|\{(?:doc|ref|numref|eq|cite(?::[pt])?|source|minutes|term|code-cell|admonition)\}"
)
BESIDE = (
    "index.html",
    "404.html",
    "search.html",
    "sitemap.xml",
    "robots.txt",
    "llms.txt",
    "_static/social_card.jpg",
)
CANONICAL = re.compile(r'<link rel="canonical" href="([^"]*)"')


def parts(root: Path) -> list[tuple[str, list[str]]]:
    """The parts of `_toc.yml` in its order: the caption of each, and its pages."""
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    listed = [("", [contents["root"]])]
    for part in contents["parts"]:
        listed.append((part.get("caption", ""), list(dict.fromkeys(_entries(part, root)))))
    return listed


def pages(root: Path) -> list[str]:
    """Every page that the book must have: those of `_toc.yml`, and every chapter, listed there or not."""
    listed = [name for _, names in parts(root) for name in names]
    return list(dict.fromkeys([*listed, *(f"notebooks/{path.stem}" for path in chapters(root))]))


def _entries(part: dict[str, Any], root: Path) -> Iterator[str]:
    for entry in [*part.get("chapters", []), *part.get("sections", [])]:
        if "file" in entry:
            yield entry["file"]
        if "glob" in entry:
            found = sorted(root.glob(f"{entry['glob']}.md"))
            yield from (path.relative_to(root).with_suffix("").as_posix() for path in found)
        yield from _entries(entry, root)


def shortcomings(built: Path, root: Path = ROOT) -> list[str]:
    """What is missing, cut off, or addressed to another site."""
    found = [f"{name} is missing" for name in BESIDE if not _holds_something(built / name)]
    home = f"{read_repository(root).pages_url}/"
    for page in pages(root):
        path = built / f"{page}.html"
        if not _holds_something(path):
            found.append(f"{page}.html is missing")
            continue
        text = path.read_text(encoding="utf-8")
        if "<h1" not in text or not text.rstrip().endswith("</html>"):
            found.append(f"{page}.html has no heading, or ends before its end")
        stated, address = CANONICAL.search(text), f"{home}{page}.html"
        if not stated or stated[1] != address:
            found.append(f"{page}.html says that its address is {stated and stated[1]}, not {address}")
    return found


def _holds_something(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


@cache
def read_page(path: Path) -> BeautifulSoup:
    """Parse a page once."""
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(path: Path) -> frozenset[str]:
    """Every place of a page that a link may lead to."""
    names = (tag.get("id") or tag.get("name") for tag in read_page(path).find_all(True))
    return frozenset(str(name) for name in names if name)


def broken_links(path: Path) -> Iterator[str]:
    """Links and pictures that name a file or an anchor which is not there."""
    for tag in read_page(path).find_all(True):
        for attribute in ADDRESSES:
            address = str(tag.get(attribute) or "")
            parts = urlsplit(address)
            if not address or parts.scheme or parts.netloc or address == "#":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir() and attribute == "href":
                target /= "index.html"
            if not target.exists():
                yield f"{address} does not exist"
            elif target.suffix == ".html" and not {unquote(parts.fragment)} <= {"", *anchors(target)}:
                yield f"{address}: the page has no such anchor"


def foreign_loads(path: Path) -> Iterator[str]:
    """Whatever a browser would fetch from another host."""
    for name, attribute in LOADED.items():
        for tag in read_page(path).find_all(name):
            fetched = name != "link" or not NOT_FETCHED.intersection(tag.get("rel") or [])
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


def findings(built: Path) -> list[str]:
    """What readers would stumble over, page by page, and style sheets that load from another host."""
    found = []
    for path in sorted(built.rglob("*.html")):
        if "_static" not in path.relative_to(built).parts:
            for look in (broken_links, foreign_loads, silent_pictures, untidy_text):
                found += [f"{path.relative_to(built)}: {sentence}" for sentence in look(path)]
    for path in sorted(built.rglob("*.css")):
        if FOREIGN_STYLE.search(path.read_text(encoding="utf-8", errors="replace")):
            found.append(f"{path.relative_to(built)}: loads from another host")
    return found


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("built", nargs="?", type=Path, default=BUILT, help="the folder of the built book")
    built = options.parse_args(arguments).built.resolve()
    found = shortcomings(built, root) + findings(built)
    for sentence in found:
        print(f"error: {sentence}.", file=sys.stderr)
    print(f"{len(found)} findings in {len(pages(root))} pages and what lies beside them.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
