"""The symbols of the chapters' equations, and the letters of the shapes in their code.

Read by notation_page.py; needs pylatexenc, one of the packages of the extra `book`.
"""

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jupytext
from chapter_export.markup import directive_of, parser
from project_facts import ROOT
from pylatexenc import latexwalker as latex
from pylatexenc.macrospec import std_macro

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
SYNTAX.add_context_category(
    "math", macros=[std_macro(name, "{") for name in (*UNSEEN, *SETS, *WORDS)], prepend=True
)
LONG = ("gh", "gw")  # the two letters of the code that are two letters long
SHAPE = re.compile(r"\(([^()=\"']*,[^()=\"']*)\)")


@dataclass(frozen=True)
class Symbol:
    """A letter or name with its marks: an accent or prime, what stands below it and above it."""

    base: str
    below: str = ""
    inside: tuple["Symbol", ...] = ()  # the symbols of its subscript

    def __str__(self) -> str:
        """The symbol in TeX, its subscript in braces."""
        return f"{self.base}_{{{self.below}}}" if self.below else self.base


def formulas(source: str) -> Iterator[str]:
    """All mathematics of a piece of MyST, in its order, that inside of directives included."""
    for token in parser().parse(source):
        directive = directive_of(token) if token.type in ("fence", "colon_fence") else None
        if token.type in ("math_block", "math_block_label", "amsmath"):
            yield token.content
        elif directive is not None and directive.name == "math":
            yield directive.body
        elif directive is not None and not directive.name.startswith("code"):
            yield from formulas(directive.argument)
            yield from formulas(directive.body)
        for child in token.children or []:
            if child.type.startswith("math"):
                yield child.content


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


@cache
def chapter_cells(path: Path) -> list[tuple[str, str]]:
    """The cells of a chapter: the kind and the text of each."""
    return [(cell.cell_type, cell.source) for cell in jupytext.read(path, fmt="md:myst").cells]


def chapter_formulas(path: Path) -> list[str]:
    """All mathematics of a chapter's text and of the captions of its figures."""
    texts = []
    for cell in jupytext.read(path, fmt="md:myst").cells:
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        texts.append(cell.source if cell.cell_type == "markdown" else figure.get("caption", ""))
    return [formula for text in texts for formula in formulas(text)]


def chapter_shapes(path: Path) -> set[str]:
    """The letters of shapes in the comments and docstrings of a chapter's code, such as B and Dh.

    A word of three letters or more, as in (seeds, D), speaks for itself.
    """
    return {
        letter for kind, source in chapter_cells(path) if kind == "code" for letter in shape_letters(source)
    }


def shape_letters(code: str) -> Iterator[str]:
    """The letters of all shapes that some code mentions: of (B, N, P*P*C) they are B, N, P, P and C."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string[:3] == '"""'):
            for found in SHAPE.findall(token.string):
                yield from (letter for letter in re.findall(r"[A-Za-z]+", found) if len(letter) < 3)
