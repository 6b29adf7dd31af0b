"""First uses of terms lead to the glossary, in running prose alone, and notebooks know nothing of it."""

import json
import re

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from list_terms import prose_of, terms_of_the_glossary, unexplained, words_of_the_field
from project_facts import ROOT, chapters
from vit_book import cards, terms
from vit_book.terms import Entry, forms, link_terms

HERE, THERE = "notebooks/03_attention", "../book/glossary.html"
PAGES = [*(f"notebooks/{path.stem}" for path in chapters(ROOT)), *terms.PROSE]


def entry(term, *pages):
    return Entry(term, f"term-{term}", f"What {term} means.", "Chapter 10", frozenset(pages))


GLOSSARY = [
    entry("token"),
    entry("class token"),
    entry("attention", HERE),
    entry("MLP"),
    entry("patch"),
    entry("patch embedding"),
    entry("value"),
    entry("residual connection"),
    entry("fine-tuning"),
]


def test_no_chapter_uses_a_word_of_the_field_that_nothing_explains():
    texts = {path.stem: prose_of(path) for path in chapters(ROOT)}
    assert unexplained(words_of_the_field(), texts, terms_of_the_glossary()) == {}


def test_a_word_in_the_glossary_in_italics_or_in_no_chapter_is_no_gap():
    texts = {"08": "An epoch has *batches*. The seeds differ.", "09": "A **bag of patches**, a sink, `loss`."}
    words = ["epoch", "batch", "seed", "bag of patches", "sink", "whitening"]
    assert unexplained(words, texts, ["seed"]) == {"08": ["epoch"], "09": ["sink"]}


def linked(source, glossary=GLOSSARY):
    """Link the terms of a page; return each link's words and where it leads."""
    doctree = publish_doctree(source, settings_overrides={"report_level": 4})
    text = doctree.astext()
    link_terms(doctree, HERE, glossary, THERE)
    assert doctree.astext() == text
    return [
        (re.sub(r"\s+", " ", link.astext()), link["refuri"].partition("#term-")[2])
        for link in doctree.findall(nodes.reference)
        if terms.LINK in link["classes"]
    ]


def test_the_first_use_alone_is_linked():
    assert linked("A token is a token.\n\nTokens.") == [("token", "token")]


def test_longer_terms_come_before_the_terms_in_them():
    assert linked("The class token is one of the tokens.") == [
        ("class token", "class token"),
        ("tokens", "token"),
    ]
    assert linked("Patch embeddings.") == [("Patch embeddings", "patch embedding")]


def test_plurals_other_forms_and_capitals_are_known():
    found = linked("MLPs, then\nresidual\npaths. *Fine-tuned* models.")
    assert found == [
        ("MLPs", "MLP"),
        ("residual paths", "residual connection"),
        ("Fine-tuned", "fine-tuning"),
    ]
    assert forms("query")[:2] == ["query", "queries"]
    assert forms("patch")[:2] == ["patch", "patches"]


@pytest.mark.parametrize("words", ["mlp", "tokenise", "sub-token", "token-like", "a value", "attention"])
def test_other_words_terms_of_this_page_and_those_by_hand_are_left_alone(words):
    assert linked(f"Here is {words}.") == []


@pytest.mark.parametrize(
    "source",
    [
        "A token\n=======\n\nWords.",
        "``token``",
        "`token <https://example.org>`_",
        ".. note::\n\n   A token.",
        ".. figure:: token.png\n\n   A token.",
        "=====  =====\ntoken  other\n=====  =====",
        ".. sidebar:: Note\n\n   A token.",
        ".. code::\n\n   token",
        ":math:`token`",
        "Needs tokens.",
    ],
    ids=["heading", "code", "link", "box", "caption", "table", "side note", "block", "formula", "opening"],
)
def test_nothing_but_running_prose_is_linked(source):
    assert linked(source) == []
    assert linked(f"{source}\n\nThen - a token.") == [("token", "token")]


def test_what_an_author_links_is_not_linked_again():
    found = linked(f"`values <{THERE}#term-value>`__ and a `token <{THERE}#term-token>`__.\n\nTokens, MLP.")
    assert found == [("values", "value"), ("token", "token"), ("MLP", "MLP")]


def test_two_terms_of_one_definition_are_one():
    pair = [Entry(term, f"term-{term}", "The same.", "", frozenset()) for term in ("pre-norm", "post-norm")]
    assert linked("Pre-norm, post-norm.", pair) == [("Pre-norm", "pre-norm")]


def test_equations_are_found_by_their_number():
    text = "Equation 1, equations\n2 and 3, equation 4.2, equations 5, 6 and 7, equation 8 and 1.5 more."
    found = [(number, text[slice(*place)]) for number, place in cards.mentions(text)]
    assert found == [
        ("1", "Equation 1"),
        ("2", "equations\n2"),
        ("3", "3"),
        ("5", "equations 5"),
        ("6", "6"),
        ("7", "7"),
        ("8", "equation 8"),
    ]


@pytest.mark.built
@pytest.mark.parametrize("page", PAGES)
def test_each_link_of_a_page_has_its_card_and_leads_somewhere(built, page):
    html = (built / f"{page}.html").read_text(encoding="utf-8")
    kinds = "glossary-term|paper-equation|notation-letter"
    links = re.findall(rf'<a class="[^"]*(?:{kinds})[^"]*" href="([^"]*)"', html)
    found = re.search(r'<script type="application/json" id="cards">(.*?)</script>', html)
    assert found, page
    shown = json.loads(found[1])
    assert len(links) == len(set(links)) >= 2
    assert set(links) - set(shown) == {link for link in links if link.startswith("#")}
    assert set(shown) <= set(links)
    ids = re.findall(r'<dt id="(term-[^"]*)"', (built / "book/glossary.html").read_text(encoding="utf-8"))
    assert {link.partition("#")[2] for link in links if "glossary" in link} <= set(ids)


@pytest.mark.built
def test_the_glossary_has_plain_definitions_and_says_where_each_term_is_made(built):
    html = (built / "book/glossary.html").read_text(encoding="utf-8")
    definitions = re.findall(r"<dd>(.*?)</dd>", html, flags=re.DOTALL)
    assert 40 <= len(definitions) <= 110, "a new term replaces one"
    for definition in definitions:
        paragraphs = re.findall(r"<p>(.*?)</p>", definition, flags=re.DOTALL)
        assert len(paragraphs) == 2, definition
        assert "<" not in paragraphs[0]  # a card shows it as plain words
        assert 1 <= len(re.findall(r"[.:](?:\s|$)", paragraphs[0])) <= 4
        assert 'class="reference internal" href="' in paragraphs[1]
