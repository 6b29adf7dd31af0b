"""Every symbol of an equation, and every letter of a shape in a chapter's code, is on the notation page."""

import io
import re
import tokenize
from dataclasses import dataclass, replace

import jupytext
import pytest
from chapter_export.catalogue import figure_of
from chapter_export.markup import directive_of, parser
from notation_page import NOTATION, Symbol, fits, read_rows, symbols
from project_facts import ROOT, chapter_number, chapters

PAGES = sorted(set((ROOT / "book").glob("*.md")) - {NOTATION})
HEAD = "---\nkernelspec: {name: python3, display_name: Python 3}\n---\n\n# 3. Attention\n\n"
SHAPE = re.compile(r"\(([^()=\"']*,[^()=\"']*)\)")


@dataclass(frozen=True)
class Use:
    """What a chapter uses: the symbols of its mathematics, the letters of the shapes in its code."""

    number: int
    symbols: frozenset[Symbol]
    shapes: frozenset[str] = frozenset()


def formulas(source):
    """All mathematics of a piece of MyST, in its order, that inside of directives included."""
    for token in parser().parse(source):
        directive = directive_of(token) if token.type in ("fence", "colon_fence") else None
        if token.type in ("math_block", "math_block_label", "amsmath"):
            yield token.content
        elif directive is not None and directive.name == "math":
            yield directive.body
        elif directive is not None and not directive.name.startswith("code"):
            yield from formulas(f"{directive.argument}\n\n{directive.body}")
        for child in token.children or []:
            if child.type.startswith("math"):
                yield child.content


def symbols_in(source):
    """The symbols of all mathematics of a piece of MyST."""
    return frozenset(symbol for formula in formulas(source) for symbol in symbols(formula))


def shape_letters(code):
    """The letters of the shapes in comments and docstrings: of (B, N, P*P*C) they are B, N, P, P and C.

    A word of three letters or more, as in (seeds, D), speaks for itself.
    """
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string[:3] == '"""'):
            for found in SHAPE.findall(token.string):
                yield from (letter for letter in re.findall(r"[A-Za-z]+", found) if len(letter) < 3)


def use_of(path):
    """Read a chapter: text, captions of figures, and code."""
    used, shapes = set(), set()
    for cell in jupytext.read(path, fmt="md:myst").cells:
        used |= symbols_in(
            cell.source if cell.cell_type == "markdown" else figure_of(cell).get("caption", "")
        )
        shapes |= set(shape_letters(cell.source)) if cell.cell_type == "code" else set()
    return Use(chapter_number(path.stem), frozenset(used), frozenset(shapes))


def missing(use, rows):
    """The symbols and letters of a chapter that the page does not explain."""
    speaking = [row for row in rows if not row.alone or row.chapter == use.number]
    entries = [entry for row in speaking for entry in row.symbols]
    letters = {letter for row in speaking for letter in row.letters}

    def explained(symbol):
        if any(str(entry) == str(symbol) for entry in entries):
            return True
        return any(fits(entry, symbol) for entry in entries) and all(map(explained, symbol.inside))

    found = sorted(str(symbol) for symbol in use.symbols if not explained(symbol))
    return found + sorted(use.shapes - letters)


def used_in(row, use):
    """Whether a chapter uses any of a row's symbols, in a formula or in a shape."""
    in_formula = any(fits(entry, symbol) for entry in row.symbols for symbol in use.symbols)
    return in_formula or not use.shapes.isdisjoint(row.letters)


@pytest.fixture(scope="module")
def rows():
    return read_rows()


@pytest.fixture(scope="module")
def uses():
    return [use_of(path) for path in chapters()]


@pytest.mark.parametrize("place", range(len(chapters())), ids=lambda place: chapters()[place].stem)
def test_every_symbol_and_letter_is_explained(uses, rows, place):
    assert missing(uses[place], rows) == [], "explain these in book/notation.md"


def test_each_symbol_of_a_row_is_used_where_the_row_speaks(uses, rows):
    for row in rows:
        speaking = [use for use in uses if not row.alone or use.number == row.chapter]
        for entry in row.symbols:
            one = replace(row, symbols=(entry,), letters=(entry.base,))
            assert any(used_in(one, use) for use in speaking), entry


def test_each_row_names_the_first_chapter_that_uses_it(uses, rows):
    for row in rows:
        if not row.alone:
            assert row.chapter == min(use.number for use in uses if used_in(row, use)), row.symbols


@pytest.mark.parametrize(
    ("formula", "found"),
    [
        (
            r"z_0 = [\,x_\text{class};\; x_p^1 E\,] + E_\text{pos}, E \in \mathbb{R}^{P \times D} \tag{1}",
            ["z_{0}", "x_{class}", "x_{p}", "E", "E_{pos}", "E", r"\mathbb R", "P", "D"],
        ),
        (
            r"z'_\ell = \text{MSA}(\text{LN}(z_{\ell-1})) + z_{\ell-1}",
            [r"z'_{\ell}", "MSA", "LN", r"z_{\ell-1}", r"z_{\ell-1}"],
        ),
        (
            r"\mathbf{A} = \text{softmax}\!\left(\frac{q k^\top}{\sqrt{D_h}}\right)",
            ["A", "q", "k", "D_{h}"],
        ),
        (
            r"\begin{cases} \hat w' & s < W \\ \underbrace{4T}_{\text{all}} \end{cases}"
            r" e^{y_{b, c_b}} \sum_i^M",
            [r"\hat w'", "s", "W", "T", "e", "y_{b,c_b}", "i", "M"],
        ),
    ],
)
def test_equations_are_taken_apart(formula, found):
    assert [str(symbol) for symbol in symbols(formula)] == found


FIGURE = "---\nmystnb:\n  figure:\n    name: fig-x\n    caption: A row of $\\Xi$.\n---\n1\n"


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        (
            r":::{admonition} A box" "\n" r"$Z_0$ and $D_k$, $z_\theta$" "\n:::",
            ["D_{k}", "Z_{0}", r"z_{\theta}"],
        ),
        (r"$$\xi = q \cdot k \in \mathbb{Q}$$", [r"\mathbb Q", r"\xi"]),
        (r"$\text{FFN}(z_3) + z_{\ell-1}^0 + \text{SA}_2 + U_{qkv}$", ["FFN"]),
        ('```{code-cell} ipython3\nq = "(Q, R)"  # (B, J, Dh), (seeds, P*P*C)\n```', ["J"]),
        (f"```{{code-cell}} ipython3\n{FIGURE}```", [r"\Xi"]),
        (r"$L$ layers, and a letter of another chapter: $\Pi$", [r"\Pi"]),
    ],
)
def test_what_is_planted_is_found(tmp_path, rows, planted, found):
    path = tmp_path / "03_attention.md"
    path.write_text(f"{HEAD}{planted}\n", encoding="utf-8")
    assert missing(use_of(path), rows) == found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_beside_the_chapters_use_the_letters_of_all_chapters(rows, page):
    found = symbols_in(page.read_text("utf-8"))
    assert missing(Use(0, found), rows) == []
    if page.stem.startswith("if_you_know"):
        assert len(found) > 3
