"""The first use of a letter in the running prose of a chapter leads to its row in the notation page.

A letter is a formula that holds one symbol and nothing else. What a chapter calls something by a letter of
its own is in the rows of that chapter; they come before the rows of the whole book.
"""

import functools
import re
from collections import Counter
from dataclasses import dataclass

from docutils import nodes
from notation_page import ONLY, SYMBOLS, Symbol, fits, read_rows, symbols
from project_facts import chapter_number
from sphinx.application import Sphinx

from vit_book.terms import pages_to_rewrite, running_paragraphs

PAGE = "book/notation"
LINK = "notation-letter"
MEANING = "what it is"
MARKUP = re.compile(r"[\s{}]|\\text")  # in which two ways of writing a symbol differ


@dataclass(frozen=True)
class Letter:
    """A row of the notation page: the symbols that it explains, its chapter if it is of one alone, its id.

    What a card shows follows, with its formulas between \\( and \\).
    """

    symbols: tuple[Symbol, ...]
    chapter: int | None
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
    seen: Counter[str] = Counter()
    for heads, rows in _tables(doctree):
        for row in rows:
            cells = dict(zip(heads, row, strict=True))
            place = next(name for name in SYMBOLS if name in heads)
            chapter = f"{cells[ONLY].astext().strip()}-" if ONLY in heads else ""
            anchor = f"letter-{chapter}{nodes.make_id(cells[place].astext())}".rstrip("-")
            seen[anchor] += 1
            row["ids"].append(anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}")


def _more(cells: dict[str, nodes.Node]) -> str:
    """What a row says beside a letter's meaning, as one line."""
    titles = ("in the paper", "shape in the code", "ViT-B/16 at 224 px")
    said = [(title, _plain(cells[title])) for title in titles if title in cells]
    line = "; ".join(f"{title}: {text}" for title, text in said if text)
    return line[:1].upper() + line[1:]


def symbols_named(name: str) -> tuple[Symbol, ...]:
    """The symbols that stand alone in a row's first cell: of f^i it is none, and i is another row's."""
    formulas = re.findall(r"\\\((.*?)\\\)", name)
    parts = (only_symbol(part) for formula in formulas for part in formula.split(", "))
    return tuple(symbol for symbol in parts if symbol)


@functools.cache
def letters_of(app: Sphinx) -> list[Letter]:
    """Read the rows of the notation page as it was parsed, once for all pages of a build."""
    shown = [(heads, row) for heads, rows in _tables(app.env.get_doctree(PAGE)) for row in rows]
    found = []
    for entry, (heads, row) in zip(read_rows(), shown, strict=True):
        cells = dict(zip(heads, row, strict=True))
        name = _plain(next(cells[head] for head in SYMBOLS if head in cells))
        chapter = entry.chapter if entry.alone else None
        said = (name, _plain(cells[MEANING]), _more(cells))
        found.append(Letter(symbols_named(name), chapter, row["ids"][0], *said))
    return found


def only_symbol(formula: str) -> Symbol | None:
    r"""The symbol that a formula consists of; None when there is more to it.

    >>> str(only_symbol("D_h")), only_symbol("D / 2"), only_symbol(r"\ln K")
    ('D_{h}', None, None)
    """
    found = symbols(formula)
    same = bool(found) and MARKUP.sub("", formula) == MARKUP.sub("", str(found[0]))
    return found[0] if same else None


def letter_for(symbol: Symbol, chapter: int, letters: list[Letter]) -> Letter | None:
    """The row that explains a symbol to a chapter: the same symbol first, then the chapter's own rows."""
    speaking = [one for one in letters if one.chapter in (None, chapter)]
    by_nearness = sorted(speaking, key=lambda one: one.chapter is None)
    for same in (lambda entry: str(entry) == str(symbol), lambda entry: fits(entry, symbol)):
        for one in by_nearness:
            if any(map(same, one.symbols)):
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


def setup(app: Sphinx) -> None:
    """Run when the notation page is read, and when all references of a chapter are resolved."""
    app.connect("doctree-read", mark_rows)
    app.connect("env-get-updated", lambda app, env: pages_to_rewrite(env, PAGE))
    app.connect("doctree-resolved", link_page, priority=805)
