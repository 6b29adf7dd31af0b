"""Look whether the built book is whole before it is published: the pages of `_toc.yml` and what lies beside.

python tools/check_published.py            # the book in _build/html
python tools/check_published.py FOLDER
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from project_facts import ROOT, chapters, read_repository

BUILT = ROOT / "_build" / "html"
BESIDE = ("index.html", "search.html", "sitemap.xml", "robots.txt", "llms.txt", "_static/social_card.png")
CANONICAL = re.compile(r'<link rel="canonical" href="([^"]*)"')


def parts(root: Path) -> list[tuple[str, list[str]]]:
    """The parts of `_toc.yml` in its order: the caption of each, and its pages."""
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    listed = [
        (part.get("caption", ""), list(dict.fromkeys(_entries(part, root)))) for part in contents["parts"]
    ]
    return [("", [contents["root"]]), *listed]


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


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description="Look whether the built book is whole.")
    options.add_argument("built", nargs="?", type=Path, default=BUILT, help="the folder of the built book")
    built = options.parse_args(arguments).built.resolve()
    found = shortcomings(built, root)
    for sentence in found:
        print(f"error: {sentence}.", file=sys.stderr)
    if not found:
        print(f"{len(pages(root))} pages are there.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
