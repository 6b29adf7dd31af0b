"""What book/notation.md explains: the symbols of its tables, taken apart by pylatexenc."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from chapter_export.markup import directive_of, parser
from markdown_it.token import Token
from project_facts import ROOT, chapter_number, split_title
from pylatexenc import latexwalker as latex
from pylatexenc.macrospec import std_macro

SYMBOLS, FIRST, ONLY = ("here", "letter"), "from chapter", "chapter"
NOTATION = ROOT / "book" / "notation.md"
ACCENTS = {"hat", "bar", "tilde", "vec", "dot"}
FONTS = {"mathbf", "boldsymbol", "mathit"}
SETS = {"mathbb", "mathcal"}
WORDS = {"text", "mathrm", "operatorname", "mathsf"}
GREEK = """alpha beta gamma delta epsilon varepsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau
phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"""
LETTERS = {"ell", *GREEK.split()}
UNSEEN = {"tag", "label"}
SYNTAX = latex.get_default_latex_context_db()
MACROS = [std_macro(name, "{") for name in (*UNSEEN, *SETS, *WORDS)]
SYNTAX.add_context_category("math", macros=MACROS, prepend=True)
LONG = ("gh", "gw")  # the two letters of the code that are two letters long


@dataclass(frozen=True)
class Symbol:
    """A letter or name with its marks: an accent or prime, what stands below it and above it."""

    base: str
    below: str = ""
    inside: tuple["Symbol", ...] = ()  # the symbols of its subscript

    def __str__(self) -> str:
        """The symbol in TeX, its subscript in braces."""
        return f"{self.base}_{{{self.below}}}" if self.below else self.base


def symbols(formula: str) -> list[Symbol]:
    """The symbols of a formula in their order; those inside of scripts and fractions, too.

    >>> [str(symbol) for symbol in symbols(r"z_0 = [x_\\text{class}; x_p^1 E] + E_{pos}")]
    ['z_{0}', 'x_{class}', 'x_{p}', 'E', 'E_{pos}']
    """
    walker = latex.LatexWalker(f"\\({formula}\\)", latex_context=SYNTAX)
    return list(_read(_items(walker.get_latex_nodes()[0])))


def _items(found: Iterable[latex.LatexNode | None]) -> list[latex.LatexNode | str]:
    """Nodes with their text taken apart into characters, the long letters kept whole."""
    items: list[latex.LatexNode | str] = []
    for node in found:
        if isinstance(node, latex.LatexCharsNode):
            items += re.findall("|".join((*LONG, r"\S")), node.chars)
        elif isinstance(node, latex.LatexMathNode | latex.LatexEnvironmentNode):
            items += _items(node.nodelist)
        elif node is not None:
            items.append(node)
    return items


def _read(items: list[latex.LatexNode | str]) -> Iterator[Symbol]:
    """Read bases with their scripts."""
    place = 0
    while place < len(items):
        base, within = _base(items[place])
        place += 1
        below, under = "", []
        while place < len(items) and (mark := items[place]) and isinstance(mark, str) and mark in "'_^":
            if mark == "'":
                base, place = f"{base}'", place + 1
                continue
            inner = _unwrapped(items[place + 1])
            if mark == "_" and base:
                below, under = _written(inner), list(_read(inner))
            else:
                within = [*within, *_read(inner)]
            place += 2
        if base.strip("'"):
            yield Symbol(base, below, tuple(under))
        else:
            within = [*under, *within]
        yield from within


def _base(item: latex.LatexNode | str) -> tuple[str, list[Symbol]]:
    """The letter or name that an item is, if it is one, and the symbols that it encloses."""
    if isinstance(item, str):
        return (item, []) if item.isalpha() else ("", [])
    if isinstance(item, latex.LatexGroupNode):
        return "", list(_read(_items(item.nodelist)))
    if not isinstance(item, latex.LatexMacroNode) or item.macroname in UNSEEN:
        return "", []
    arguments = [_unwrapped(node) for node in (item.nodeargd.argnlist if item.nodeargd else []) if node]
    if item.macroname in WORDS:
        word = _written(arguments[0])
        return (word, []) if word.isupper() else ("", [])  # other words speak for themselves
    if item.macroname in LETTERS:
        return f"\\{item.macroname}", []
    if item.macroname in FONTS:
        return _written(arguments[0]), []
    if item.macroname in ACCENTS | SETS:
        return f"\\{item.macroname} {_written(arguments[0])}", []
    return "", [symbol for argument in arguments for symbol in _read(argument)]


def _unwrapped(item: latex.LatexNode | str) -> list[latex.LatexNode | str]:
    """What a script or an argument holds."""
    if isinstance(item, latex.LatexGroupNode):
        return _items(item.nodelist)
    return [item] if isinstance(item, str) else _items([item])


def _written(items: list[latex.LatexNode | str]) -> str:
    """A script as it is written, without spaces, braces and fonts."""
    parts = []
    for item in items:
        if isinstance(item, str):
            parts.append(item)
        elif isinstance(item, latex.LatexGroupNode):
            parts.append(_written(_items(item.nodelist)))
        elif isinstance(item, latex.LatexMacroNode) and item.macroname in WORDS | FONTS:
            parts += [_written(_unwrapped(node)) for node in item.nodeargd.argnlist if node]
        elif isinstance(item, latex.LatexMacroNode):
            parts.append(f"\\{item.macroname}")
    return "".join(parts)


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


def fits(entry: Symbol, symbol: Symbol) -> bool:
    """Whether an entry explains a symbol: the same one, or with another number where the entry counts.

    An entry counts where its subscript is made of i, j and the number of a block: z_0 is one of the z_l,
    and SA_1 one of the SA_i, while D_k is not D_h.
    """
    counts = bool(entry.inside) and {str(part) for part in entry.inside} <= {"i", "j", "\\ell"}
    return str(entry) == str(symbol) or (counts and entry.base == symbol.base and bool(symbol.below))
