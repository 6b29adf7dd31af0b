"""First uses of letters lead to the notation page: to the chapter's own meaning where it has one."""

import json
import re
from html import unescape

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from notation_page import read_rows
from project_facts import ROOT, chapter_number, chapters
from vit_book.letters import LINK, Letter, letter_for, link_letters, only_symbol, symbols_named

ROWS = """
| here | what it is | from chapter |
|---|---|---|
| $D$ | width | {doc}`1 <../notebooks/01_patches>` |
| $L$ | layers | {doc}`4 <../notebooks/04_encoder>` |
| $z_\\ell$ | tokens after a block | {doc}`2 <../notebooks/02_tokens>` |
| $W$ | width of an image | {doc}`1 <../notebooks/01_patches>` |

| chapter | letter | what it is |
|---|---|---|
| {doc}`8 <../notebooks/08_first_training_run>` | $L$ | the loss |
| {doc}`8 <../notebooks/08_first_training_run>` | $s, W$ | a step, and the steps of the warm-up |
"""
LETTERS = [
    Letter(row.symbols, row.chapter if row.alone else None, f"{number}", f"{row.symbols[0]}", "", "")
    for number, row in enumerate(read_rows(ROWS))
]


def linked(source, chapter):
    """Link the letters of a page; return each link's formula and where it leads."""
    doctree = publish_doctree(source, settings_overrides={"report_level": 4})
    text = doctree.astext()
    link_letters(doctree, chapter, LETTERS, "../book/notation.html")
    assert doctree.astext() == text
    found = [link for link in doctree.findall(nodes.reference) if LINK in link["classes"]]
    assert all(isinstance(link[0], nodes.math) for link in found)
    return [(link.astext(), link["refuri"].partition("#")[2]) for link in found]


def test_the_first_use_alone_is_linked_and_only_a_letter_that_stands_alone():
    found = linked(":math:`D / 2` of :math:`D` and :math:`D`.\n\n:math:`D`, :math:`L`, :math:`Q`.", 4)
    assert found == [("D", "0"), ("L", "1")]


def test_a_chapter_s_own_letter_comes_before_that_of_the_book():
    assert linked("A loss :math:`L` of :math:`W`.", 8) == [("L", "4"), ("W", "5")]
    assert linked("A loss :math:`L` of :math:`W`, :math:`s`.", 9) == [("L", "1"), ("W", "3")]


def test_a_row_that_counts_explains_each_number_of_it():
    assert linked("From :math:`z_0` to :math:`z_\\ell`.", 5) == [("z_0", "2")]


@pytest.mark.parametrize(
    "source",
    [
        ":math:`D`\n=========\n\nWords.",
        "``D``, D",
        ".. note::\n\n   A :math:`D`.",
        ".. math::\n\n   D",
        "=========  =====\n:math:`D`  other\n=========  =====",
        "*The* **width** :math:`\\ln D`.",
    ],
    ids=["heading", "code", "box", "equation", "table", "more than a letter"],
)
def test_nothing_but_letters_of_running_prose_is_linked(source):
    assert linked(source, 4) == []
    assert linked(f"{source}\n\nThen :math:`D`.", 4) == [("D", "0")]


@pytest.mark.parametrize(
    ("formula", "symbol"),
    [
        ("D_h", "D_{h}"),
        ("x_\\text{class}", "x_{class}"),
        ("\\hat m", "\\hat m"),
        ("\\epsilon", "\\epsilon"),
        ("z'_\\ell", "z'_{\\ell}"),
        ("y_{b,k}", "y_{b,k}"),
        ("gh", "gh"),
        ("D^2", None),
        ("qk", None),
        ("T = N + 1", None),
        ("8", None),
        ("\\sqrt 2", None),
    ],
)
def test_a_letter_is_a_formula_of_one_symbol(formula, symbol):
    found = only_symbol(formula)
    assert (found and str(found)) == symbol


@pytest.mark.parametrize(
    ("cell", "named"),
    [
        ("\\(s, W\\)", ["s", "W"]),
        ("\\(y, y_{b,k}\\)", ["y", "y_{b,k}"]),
        ("\\(D_h\\) (Dh)", ["D_{h}"]),
        ("\\(f^i\\)", []),
    ],
)
def test_a_row_explains_what_stands_alone_in_it(cell, named):
    assert [str(symbol) for symbol in symbols_named(cell)] == named


def test_no_row_explains_a_symbol_that_no_row_has():
    assert letter_for(only_symbol("Q"), 4, LETTERS) is None


@pytest.mark.built
@pytest.mark.parametrize("path", chapters(ROOT), ids=lambda path: path.stem)
def test_each_letter_of_a_chapter_has_its_card_and_its_row(built, path):
    html = (built / f"notebooks/{path.stem}.html").read_text(encoding="utf-8")
    link = rf'<a class="[^"]*{LINK}[^"]*" href="([^"]*)" title="[^"]{{4,}}">'
    shown = re.findall(link + r'<span class="math[^"]*">\\\((.*?)\\\)</span></a>', html)
    links = [address for address, _ in shown]
    rows = re.findall(
        r'<tr[^>]* id="(letter-[^"]*)"', (built / "book/notation.html").read_text(encoding="utf-8")
    )
    assert len(rows) == len(set(rows)) == len(read_rows())
    assert len(links) == len(set(links)) == html.count(LINK)
    found = re.search(r'<script type="application/json" id="cards">(.*?)</script>', html)
    cards = json.loads(found[1])
    for address, formula in shown:
        named = {symbol.base for symbol in symbols_named(cards[address]["name"])}
        assert only_symbol(unescape(formula)).base in named
        anchor = address.partition("#")[2]
        assert anchor in rows
        assert cards[address]["name"].startswith("\\(")
        assert len(cards[address]["text"]) > 3
        own = re.match(r"letter-(\d+)-", anchor)
        assert own is None or int(own[1]) == chapter_number(path.stem)


@pytest.mark.built
def test_letters_are_linked_in_most_chapters(built):
    pages = [(built / f"notebooks/{path.stem}.html").read_text(encoding="utf-8") for path in chapters(ROOT)]
    counts = [page.count(LINK) for page in pages]
    assert sum(counts) >= 50
    assert counts.count(0) <= 2
