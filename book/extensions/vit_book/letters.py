"""The first use of a letter in the running prose of a chapter leads to its row in the notation page.

A letter is a formula that holds one symbol and nothing else. What a chapter calls something by a letter of
its own is in the rows of that chapter; they come before the rows of the whole book.
"""

import functools
import re
from dataclasses import dataclass
from typing import Any

from chapter_symbols import Symbol, symbols
from docutils import nodes
from notation_page import ONLY, SYMBOLS, Row, fits, read_rows
from project_facts import chapter_number
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from vit_book.terms import running_paragraphs

PAGE = "book/notation"
LINK = "notation-letter"
MEANING = "what it is"
ALONE = re.compile(
    r"(?:\\(?:hat|mathcal|mathbb)\s*)?\{?\\?[A-Za-z]+\}?'*(?:_(?:\{.*\}|\\text\{\w+\}|\S+))?'*"
)


@dataclass(frozen=True)
class Letter:
    """A row of the notation page: its id there and what a card shows, with formulas between \\( and \\)."""

    row: Row
    anchor: str
    name: str
    meaning: str
    more: str


def _plain(cell: nodes.Node) -> str:
    """The text of a cell, its formulas between MathJax's brackets."""
    return "".join(
        f"\\({part.astext()}\\)" if isinstance(part, nodes.math) else part.astext()
        for paragraph in cell.findall(nodes.paragraph)
        for part in paragraph.children
    )


def _tables(doctree: nodes.document) -> list[tuple[list[str], list[nodes.row]]]:
    """The heads and the rows of the page's tables."""
    found = []
    for table in doctree.findall(nodes.tgroup):
        (head,) = next(table.findall(nodes.thead)).findall(nodes.row)
        body = next(table.findall(nodes.tbody))
        found.append(([cell.astext() for cell in head], list(body.findall(nodes.row))))
    return found


def mark_rows(app: Sphinx, doctree: nodes.document) -> None:
    """Give each row of the notation page an id, such as letter-d or letter-7-epsilon."""
    if app.env.docname != PAGE:
        return
    used: set[str] = set()
    for heads, rows in _tables(doctree):
        for row in rows:
            cells = dict(zip(heads, row, strict=True))
            place = next(name for name in SYMBOLS if name in heads)
            chapter = f"{cells[ONLY].astext().strip()}-" if ONLY in heads else ""
            anchor = plain = f"letter-{chapter}{nodes.make_id(cells[place].astext())}".rstrip("-")
            number = 1
            while anchor in used:
                anchor, number = f"{plain}-{number + 1}", number + 1
            used.add(anchor)
            row["ids"].append(anchor)


def _more(cells: dict[str, nodes.Node]) -> str:
    """What a row says beside a letter's meaning, as one line."""
    titles = ("in the paper", "shape in the code", "ViT-B/16 at 224 px")
    said = [(title, _plain(cells[title])) for title in titles if title in cells]
    line = "; ".join(f"{title}: {text}" for title, text in said if text)
    return line[:1].upper() + line[1:]


def read_letters(env: BuildEnvironment) -> list[Letter]:
    """Read the rows of the notation page as it was parsed."""
    shown = [(heads, row) for heads, rows in _tables(env.get_doctree(PAGE)) for row in rows]
    found = []
    for entry, (heads, row) in zip(read_rows(), shown, strict=True):
        cells = dict(zip(heads, row, strict=True))
        name = _plain(next(cells[head] for head in SYMBOLS if head in cells))
        found.append(Letter(entry, row["ids"][0], name, _plain(cells[MEANING]), _more(cells)))
    return found


@functools.cache
def letters_of(app: Sphinx) -> list[Letter]:
    """The notation page, read once for all pages of a build."""
    return read_letters(app.env)


def only_symbol(formula: str) -> Symbol | None:
    r"""The symbol that a formula consists of; None when there is more to it.

    >>> str(only_symbol("D_h")), only_symbol("D / 2"), only_symbol(r"\ln K")
    ('D_{h}', None, None)
    """
    found = symbols(formula) if ALONE.fullmatch(formula.strip()) else []
    return found[0] if len(found) == 1 else None


def letter_for(symbol: Symbol, chapter: int, letters: list[Letter]) -> Letter | None:
    """The row that explains a symbol to a chapter: the same symbol first, then the chapter's own rows."""
    speaking = [one for one in letters if not one.row.alone or one.row.chapter == chapter]
    by_nearness = sorted(speaking, key=lambda one: not one.row.alone)
    for same in (lambda entry: str(entry) == str(symbol), lambda entry: fits(entry, symbol)):
        for one in by_nearness:
            if any(same(entry) for entry in one.row.symbols):
                return one
    return None


def link_letters(doctree: nodes.document, chapter: int, letters: list[Letter], page: str) -> None:
    """Link the first use of each letter in a chapter; `page` is the way to the notation page from there.

    The title says in words what a drawn letter cannot; with scripts the card takes its place.
    """
    used = set()
    for paragraph in running_paragraphs(doctree):
        for formula in list(paragraph.findall(nodes.math)):
            symbol = only_symbol(formula.astext()) if isinstance(formula.parent, nodes.paragraph) else None
            found = letter_for(symbol, chapter, letters) if symbol else None
            if found and found.anchor not in used:
                used.add(found.anchor)
                said = re.sub(r"\\[()]", "", f"{found.name}: {found.meaning}")
                address = {"refuri": f"{page}#{found.anchor}", "reftitle": said}
                link = nodes.reference("", "", internal=True, classes=[LINK], **address)
                formula.replace_self(link)
                link += formula


def link_page(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link the letters of a chapter that is about to be written."""
    chapter = chapter_number(docname)
    if chapter is not None and app.builder.format == "html" and PAGE in app.env.all_docs:
        link_letters(doctree, chapter, letters_of(app), app.builder.get_relative_uri(docname, PAGE))


def rewrite_pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Name all chapters to be written again when the notation page has changed since the last build."""
    if PAGE not in env.all_docs or "linked" in env.metadata[PAGE]:
        return []
    env.metadata[PAGE]["linked"] = "yes"  # gone when Sphinx reads the page again
    return [name for name in env.all_docs if chapter_number(name) is not None]


def setup(app: Sphinx) -> dict[str, Any] | None:
    """Run when the notation page is read, and when all references of a chapter are resolved."""
    app.connect("doctree-read", mark_rows)
    app.connect("env-get-updated", rewrite_pages)
    app.connect("doctree-resolved", link_page, priority=805)
