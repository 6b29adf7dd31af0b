"""Print the built book into one PDF, _build/pdf/vit_from_scratch.pdf, with Chromium.

    python tools/make_pdf.py
    python tools/make_pdf.py --publish     # also put it into the site, with a link on the landing page

One HTML page is made of every page. Folded code is opened; hints and solutions give way to a line that says
where they are; the documentation of the package, which is for looking up, stays on the site. Ids get the name
of their page in front, and links between pages become links within the one. It is printed twice: the first
print tells on which page each chapter begins, the second has that in its contents.
"""

import argparse
import logging
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from urllib.parse import unquote, urlsplit

from browser import NONE_HERE, find_browser
from bs4 import BeautifulSoup, Tag
from check_book import BUILT, parts
from project_facts import ROOT, read_repository, read_version
from pypdf import PdfReader, PdfWriter
from serve import served

PDF = ROOT / "_build" / "pdf" / "vit_from_scratch.pdf"
STYLE = Path(__file__).with_name("whole_book.css")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--no-pdf-header-footer", "--generate-pdf-document-outline", "--virtual-time-budget=120000"),
)
SECONDS = 900  # for one print
LINK = (
    '<p class="vit-pdf"><a href="../{name}">The whole book as a PDF</a>: {pages} pages, {size:.0f} MB.</p>'
    "</article>"
)
LEFT_OUT = "book/api/"
CARD = "_static/social_card.jpg"
POINTS = ("aria-labelledby", "aria-describedby", "aria-controls", "for")
INLINE_TARGET = re.compile(r"url\(\s*['\"]?#([^)'\"]+)['\"]?\s*\)")
PLAIN_FOLD = "Show "  # code that draws or sets up; an answer, "Ours", belongs to the text
ABOUT = (
    "Printed from {address}, version {version}. There, hints and solutions unfold, chapters open in Colab, "
    "and the package is documented. Our text and code may be copied and changed under the MIT licence; "
    "THIRD_PARTY.md says what has other terms."
)


@dataclass(frozen=True)
class Page:
    """One page of the book: its name, its heading in plain words, and its part's caption."""

    name: str
    title: str
    caption: str
    article: Tag

    @property
    def slug(self) -> str:
        """What stands in front of its ids."""
        return self.name.replace("/", "-").replace("_", "-")

    def beside(self, path: str) -> str:
        """A path that is relative to the page, from the site's folder on."""
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.name), path))


def read_pages(built: Path, root: Path) -> tuple[list[Page], BeautifulSoup]:
    """The pages to print in the book's order, and the page whose styles and mathematics serve them all."""
    found, model = [], BeautifulSoup("", "html.parser")
    for caption, names in parts(root):
        for name in names:
            if name.startswith(LEFT_OUT):
                continue
            soup = BeautifulSoup((built / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
            article, heading = soup.select_one("article"), soup.select_one("article h1")
            if article is None or heading is None:
                raise ValueError(f"{name}.html has no article with a heading")
            for mark in heading.find_all("a", class_="headerlink"):
                mark.decompose()
            found.append(Page(name, heading.get_text().strip(), caption, article))
            if soup.find("script", src=re.compile("mathjax")):
                model = soup
    return found, model


def head(model: BeautifulSoup) -> Iterator[str]:
    """The style sheets of the site and its mathematics, addressed from a folder beside the site's."""
    for tag in model.find_all(["link", "script"]):
        sheet = tag.name == "link" and "stylesheet" in (tag.get("rel") or [])
        formulas = tag.name == "script" and "mathjax" in f"{tag.get('src')} {tag.string}".lower()
        if sheet or formulas:
            for attribute in ("href", "src"):
                if tag.get(attribute):
                    tag[attribute] = re.sub(r"^(\.\./)*", "../html/", str(tag[attribute]))
            yield str(tag)


def unfold(page: Page, address: str) -> None:
    """Open folded code; leave out code that only draws; say where hints and solutions are."""
    article = page.article
    for fold in article.find_all("details"):
        title = fold.find("summary")
        words = " ".join(title.get_text().split()) if title else ""
        if words.startswith(PLAIN_FOLD):
            fold.decompose()
            continue
        fold["open"] = ""
    for hint in article.select(".tip.dropdown"):
        hint.decompose()
    for solution in article.select(".solution"):
        where = f"{address}{page.name}.html#{solution.get('id', '')}"
        line = f'<p class="vit-elsewhere">Its solution is <a href="{escape(where)}">on the site</a>.</p>'
        solution.replace_with(BeautifulSoup(line, "html.parser"))
    for tag in article.find_all(["script", "button", "iframe"]):
        tag.decompose()
    for tag in article.find_all("img"):
        tag["loading"] = "eager"


def move(page: Page, slugs: dict[str, str], ids: set[str], address: str) -> None:
    """Prefix the page's ids, and turn its links to pages of the book into links within the one page."""
    for tag in page.article.find_all(True):
        for attribute, value in list(tag.attrs.items()):
            text = " ".join(value) if isinstance(value, list) else str(value)
            if attribute == "id":
                tag["id"] = f"{page.slug}--{text}"
            elif attribute in POINTS:
                tag[attribute] = " ".join(f"{page.slug}--{word}" for word in text.split())
            elif attribute == "href" and tag.name in ("image", "link") and not urlsplit(text).scheme:
                tag["href"] = f"../html/{page.beside(text)}"
            elif attribute in ("href", "xlink:href"):
                tag[attribute] = new_address(page, text, slugs, ids, address)
            elif attribute == "src" and not urlsplit(text).scheme:
                tag["src"] = f"../html/{page.beside(text)}"
            elif "url(" in text:
                tag[attribute] = INLINE_TARGET.sub(rf"url(#{page.slug}--\1)", text)


def new_address(page: Page, link: str, slugs: dict[str, str], ids: set[str], address: str) -> str:
    """Where a link of `page` leads in the one page, or on the site when its target is not printed."""
    target = urlsplit(link)
    if target.scheme or target.netloc:
        return link
    path = page.beside(unquote(target.path))
    name = path.removesuffix(".html") if target.path else page.name
    if name not in slugs:
        return f"{address}{path}" + (f"#{target.fragment}" if target.fragment else "")
    inside = f"{slugs[name]}--{unquote(target.fragment)}"
    return f"#{inside}" if inside in ids else f"#{slugs[name]}"


def contents(pages: list[Page], numbers: dict[str, int]) -> str:
    """The table of contents; a page of the book without a number yet gets a blank."""
    lines = ['<p class="vit-heading">Contents</p>']
    for caption, group in groupby(pages, key=attrgetter("caption")):
        lines.append(f'<p class="vit-part">{escape(caption)}</p>')
        for page in group:
            link = f'<a href="#{page.slug}">{escape(page.title)}</a>'
            lines.append(f'<p class="vit-entry">{link}<span>{numbers.get(page.title, "")}</span></p>')
    return "\n".join(lines)


def page_styles(pages: list[Page]) -> str:
    """A running head for each page of the book."""
    rules = []
    for page in pages:
        title = page.title.replace("\\", "").replace('"', "'")
        rules.append(f'@page {page.slug} {{ @top-left {{ content: "{title}"; }} }}')
        rules.append(f"#{page.slug} {{ page: {page.slug}; }}")
    return "\n".join(rules)


def assemble(built: Path, root: Path, style: str, numbers: dict[str, int]) -> str:
    """The whole book as one HTML page, to be served from a folder beside `built`."""
    address = f"{read_repository(root).pages_url}/"
    pages, model = read_pages(built, root)
    slugs = {page.name: page.slug for page in pages}
    for page in pages:
        unfold(page, address)
    ids = {f"{page.slug}--{tag['id']}" for page in pages for tag in page.article.find_all(id=True)}
    for page in pages:
        move(page, slugs, ids, address)
    landing, *rest = pages
    title = escape(landing.title)
    about = ABOUT.format(address=f'<a href="{address}">{address}</a>', version=read_version(root))
    sections = (f'<section id="{page.slug}" class="vit-page">{page.article}</section>' for page in pages)
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light" data-mode="light">
<head><meta charset="utf-8"><title>{title}</title>
{chr(10).join(head(model))}
<style>{style}
{page_styles(rest)}</style></head>
<body><main class="bd-main">
<div class="vit-title"><img src="../html/{CARD}" alt="{title}"><p>{about}</p></div>
<nav class="vit-contents">{contents(rest, numbers)}</nav>
{chr(10).join(sections)}
</main></body></html>
"""


def print_page(address: str, target: Path) -> None:
    """Let the browser print one address, with a profile of its own."""
    path = find_browser()
    if path is None:
        raise FileNotFoundError(NONE_HERE)
    with tempfile.TemporaryDirectory() as profile:
        command = [path, *FLAGS, f"--user-data-dir={profile}", f"--print-to-pdf={target}", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode or not target.exists():
        raise RuntimeError(f"the browser printed nothing: {done.stderr.strip()[-500:]}")


def first_pages(pdf: Path) -> dict[str, int]:
    """On which page each heading of the outline's first level stands, counted from 1."""
    reader = PdfReader(pdf)
    entries = [entry for entry in reader.outline if not isinstance(entry, list)]
    return {str(entry.title).strip(): reader.get_destination_page_number(entry) + 1 for entry in entries}


def finish(printed: Path, target: Path) -> int:
    """Let the outline show when the PDF opens, and put it in its place whole; returns the number of pages."""
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # Chromium miscounts its objects, which harms nothing
    writer = PdfWriter(clone_from=printed)
    writer.page_mode = "/UseOutlines"
    writer.compress_identical_objects()
    part = target.with_suffix(".part")
    writer.write(part)
    part.replace(target)
    return len(writer.pages)


def make_pdf(built: Path, target: Path, root: Path = ROOT) -> int:
    """Print the book in `built`; returns the number of pages."""
    folder = built.parent / "pdf"
    folder.mkdir(parents=True, exist_ok=True)
    style = STYLE.read_text(encoding="utf-8")
    page, printed = folder / "whole_book.html", folder / "printed.pdf"
    numbers: dict[str, int] = {}
    with served(built.parent) as address:
        for _ in range(2):
            page.write_text(assemble(built, root, style, numbers), encoding="utf-8")
            print_page(f"{address}pdf/{page.name}", printed)
            numbers = first_pages(printed)
    pages = finish(printed, target)
    printed.unlink()
    return pages


def publish(pdf: Path, built: Path, pages: int) -> None:
    """Put the PDF into the site, and link it at the foot of the landing page."""
    shutil.copyfile(pdf, built / pdf.name)
    landing = built / "book" / "index.html"
    text = landing.read_text(encoding="utf-8")
    if 'class="vit-pdf"' not in text:
        link = LINK.format(name=pdf.name, pages=pages, size=pdf.stat().st_size / 1e6)
        landing.write_text(text.replace("</article>", link, 1), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description="Print the built book into one PDF.")
    options.add_argument("--publish", action="store_true", help="put the PDF into the site, too")
    given = options.parse_args(arguments)
    if not (BUILT / "index.html").exists():
        print(f"error: there is no book in {BUILT}; run `make book` first.", file=sys.stderr)
        return 1
    try:
        pages = make_pdf(BUILT, PDF)
    except (FileNotFoundError, RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}.", file=sys.stderr)
        return 1
    if given.publish:
        publish(PDF, BUILT, pages)
    print(f"wrote: {PDF.relative_to(ROOT)}, {pages} pages, {PDF.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
