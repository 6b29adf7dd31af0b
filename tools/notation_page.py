"""What book/notation.md explains, held against what the chapters use."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chapter_export.markup import directive_of, parser
from chapter_symbols import NOTATION, Symbol, chapter_formulas, chapter_shapes, symbols
from markdown_it.token import Token
from project_facts import chapter_number, chapters, split_title

SYMBOLS, FIRST, ONLY = ("here", "letter"), "from chapter", "chapter"


@dataclass(frozen=True)
class Row:
    """A row of the page: its symbols, the letters that stand for them in code, and a chapter.

    The chapter is the first that uses the symbols, or, if `alone`, the only one for which the row speaks.
    """

    symbols: tuple[Symbol, ...]
    letters: tuple[str, ...]
    chapter: int
    alone: bool


def read_rows(source: str | None = None) -> list[Row]:
    """Read the tables of the page, or of `source`."""
    text = NOTATION.read_text(encoding="utf-8") if source is None else source
    found: list[Row] = []
    for table in _tables(text):
        names = [cell.content for cell in table[0]]
        place = next(names.index(name) for name in SYMBOLS if name in names)
        alone = ONLY in names
        for cells in table[1:]:
            children = cells[place].children or []
            formulas = [child.content for child in children if child.type.startswith("math")]
            shown = tuple(symbol for formula in formulas for symbol in symbols(formula))
            code = [child.content for child in children if child.type == "code_inline"]
            link = cells[names.index(ONLY if alone else FIRST)].children or []
            (page,) = [split_title(child.content)[1] for child in link if child.type == "myst_role"]
            letters = (*code, *(symbol.base for symbol in shown if not symbol.below))
            found.append(Row(shown, letters, chapter_number(page) or 0, alone))
    return found


def _tables(source: str) -> Iterator[list[list[Token]]]:
    """Each table as rows of cells, those inside of directives included."""
    rows: list[list[Token]] = []
    for token in parser().parse(source):
        directive = directive_of(token) if token.type == "colon_fence" else None
        if directive is not None:
            yield from _tables(directive.body)
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append(token)
        elif token.type == "table_close":
            yield rows
            rows = []


@dataclass(frozen=True)
class Chapter:
    """What a chapter uses: the symbols of its mathematics, the letters of the shapes in its code."""

    number: int
    symbols: frozenset[Symbol]
    shapes: frozenset[str]


def read_chapters(paths: Iterable[Path] | None = None) -> list[Chapter]:
    """Read the chapters of the book, or those at `paths`."""
    return [
        Chapter(
            chapter_number(path.stem) or 0,
            frozenset(symbol for formula in chapter_formulas(path) for symbol in symbols(formula)),
            frozenset(chapter_shapes(path)),
        )
        for path in (chapters() if paths is None else paths)
    ]


def fits(entry: Symbol, symbol: Symbol) -> bool:
    """Whether an entry explains a symbol: the same one, or with another number where the entry counts.

    An entry counts where its subscript is made of i, j and the number of a block: z_0 is one of the z_l,
    and SA_1 one of the SA_i, while D_k is no D_h.
    """
    counts = bool(entry.inside) and {str(part) for part in entry.inside} <= {"i", "j", "\\ell"}
    return str(entry) == str(symbol) or (counts and entry.base == symbol.base and bool(symbol.below))


def missing(chapter: Chapter, rows: list[Row]) -> list[str]:
    """The symbols and letters of a chapter that the page does not explain."""
    speaking = [row for row in rows if not row.alone or row.chapter == chapter.number]
    entries = [entry for row in speaking for entry in row.symbols]
    letters = {letter for row in speaking for letter in row.letters}

    def explained(symbol: Symbol) -> bool:
        if any(str(entry) == str(symbol) for entry in entries):
            return True
        return any(fits(entry, symbol) for entry in entries) and all(map(explained, symbol.inside))

    found = sorted(str(symbol) for symbol in chapter.symbols if not explained(symbol))
    return found + sorted(chapter.shapes - letters)


def used_in(row: Row, chapter: Chapter) -> bool:
    """Whether a chapter uses any of a row's symbols, in a formula or in a shape."""
    in_formula = any(fits(entry, symbol) for entry in row.symbols for symbol in chapter.symbols)
    return in_formula or not chapter.shapes.isdisjoint(row.letters)


def stale(row: Row, read: list[Chapter]) -> list[str]:
    """The symbols of a row that no chapter uses for which it speaks."""
    speaking = [chapter for chapter in read if not row.alone or chapter.number == row.chapter]
    entries = (Row((entry,), (entry.base,), row.chapter, row.alone) for entry in row.symbols)
    return [str(one.symbols[0]) for one in entries if not any(used_in(one, chapter) for chapter in speaking)]
