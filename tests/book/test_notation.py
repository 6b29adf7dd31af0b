"""Every symbol of an equation, and every letter of a shape in a chapter's code, is on the notation page."""

import pytest
from notation_page import (
    NOTATION,
    Chapter,
    Row,
    formulas,
    missing,
    read_chapters,
    read_rows,
    shape_letters,
    stale,
    symbols,
    used_in,
)
from project_facts import ROOT, chapters

PAGES = sorted(set((ROOT / "book").glob("*.md")) - {NOTATION})
HEAD = "---\nkernelspec: {name: python3, display_name: Python 3}\n---\n\n# 3. Attention\n\n"


@pytest.fixture(scope="module")
def rows():
    return read_rows()


@pytest.fixture(scope="module")
def read():
    return read_chapters()


@pytest.mark.parametrize("place", range(len(chapters())), ids=lambda place: chapters()[place].stem)
def test_every_symbol_and_letter_is_explained(read, rows, place):
    assert missing(read[place], rows) == []


def test_nothing_stale_is_explained(read, rows):
    assert [found for row in rows if (found := stale(row, read))] == []


def test_each_row_names_the_first_chapter_that_uses_it(read, rows):
    for row in rows:
        if not row.alone:
            assert row.chapter == min(one.number for one in read if used_in(row, one)), row.symbols


def test_captions_of_figures_count(tmp_path):
    chapter = tmp_path / "03_attention.md"
    figure = "---\nmystnb:\n  figure:\n    name: fig-x\n    caption: A row of $\\Xi$.\n---\n1\n"
    chapter.write_text(f"{HEAD}```{{code-cell}} ipython3\n{figure}```\n", encoding="utf-8")
    (read,) = read_chapters([chapter])
    assert [str(symbol) for symbol in read.symbols] == [r"\Xi"]


def test_the_equations_of_the_paper_are_taken_apart():
    equation_1 = (
        r"z_0 = [\,x_\text{class};\; x_p^1 E\,] + E_\text{pos}, E \in \mathbb{R}^{P \times D} \tag{1}"
    )
    assert [str(symbol) for symbol in symbols(equation_1)] == [
        *("z_{0}", "x_{class}", "x_{p}", "E", "E_{pos}", "E", r"\mathbb R", "P", "D"),
    ]
    equation_2 = r"z'_\ell = \text{MSA}(\text{LN}(z_{\ell-1})) + z_{\ell-1}"
    assert [str(symbol) for symbol in symbols(equation_2)] == [
        *(r"z'_{\ell}", "MSA", "LN", r"z_{\ell-1}", r"z_{\ell-1}"),
    ]
    equation_6 = r"\mathbf{A} = \text{softmax}\!\left(\frac{q k^\top}{\sqrt{D_h}}\right)"
    assert [str(symbol) for symbol in symbols(equation_6)] == ["A", "q", "k", "D_{h}"]


def test_scripts_accents_and_cases_are_read():
    formula = (
        r"\begin{cases} \hat w' & s < W \\ \underbrace{4T}_{\text{all}} \end{cases} e^{y_{b, c_b}} \sum_i^M"
    )
    assert [str(symbol) for symbol in symbols(formula)] == [
        *(r"\hat w'", "s", "W", "T", "e", "y_{b,c_b}", "i", "M"),
    ]


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        (r"The width $D_k$ of a head.", ["D_{k}"]),
        (r"$$\xi = q \cdot k$$", [r"\xi"]),
        (r":::{admonition} A box" "\n" r"$Z_0$" "\n:::", ["Z_{0}"]),
        (r"$z_\theta$", [r"z_{\theta}"]),
        (r"$\mathbb{Q}$", [r"\mathbb Q"]),
        (r"$\text{FFN}(z_3) + z_{\ell-1}^0 + \text{SA}_2 + U_{qkv}$", ["FFN"]),
        ("```{code-cell} ipython3\nq = 1  # (B, J, Dh)\n```", ["J"]),
    ],
)
def test_what_is_planted_is_found(tmp_path, rows, planted, found):
    path = tmp_path / "03_attention.md"
    path.write_text(HEAD + planted + "\n", encoding="utf-8")
    assert missing(*read_chapters([path]), rows) == found


def test_a_letter_of_one_chapter_is_not_explained_in_another(tmp_path, rows):
    path = tmp_path / "05_vision_transformer.md"
    path.write_text(HEAD + r"$\Pi$ and $x$" + "\n", encoding="utf-8")
    assert missing(*read_chapters([path]), rows) == [r"\Pi"]


def test_a_planted_row_is_stale(read):
    (row,) = read_rows(
        "| here | from chapter |\n|---|---|\n| $N, Z_9$ | {doc}`1 <../notebooks/01_patches>` |\n"
    )
    assert isinstance(row, Row)
    assert stale(row, read) == ["Z_{9}"]


def test_letters_of_shapes():
    code = 'def f(x):  # (B, N, P*P*C)\n    """(seeds, Dh) -> (gh, gw)"""\n    return x, "(Q, R)"  # (no)\n'
    assert list(shape_letters(code)) == ["B", "N", "P", "P", "C", "Dh", "gh", "gw"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_beside_the_chapters_use_the_letters_of_all_chapters(rows, page):
    found = [symbol for formula in formulas(page.read_text("utf-8")) for symbol in symbols(formula)]
    assert missing(Chapter(0, frozenset(found), frozenset()), rows) == []
    if page.stem.startswith("if_you_know"):
        assert len(found) > 5
