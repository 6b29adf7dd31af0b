"""Print the built book into one PDF, _build/pdf/vit_from_scratch.pdf, with Chromium.

python tools/make_pdf.py
python tools/make_pdf.py --publish     # also put it into the site, with a link on the landing page

Printed twice: the first print tells on which page each chapter begins, the second has that in its contents.
"""

import argparse
import logging
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import NONE_HERE, find_browser
from check_published import BUILT
from project_facts import ROOT
from pypdf import PdfReader, PdfWriter
from serve import served
from whole_book import assemble

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
