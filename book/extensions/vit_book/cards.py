"""What the card beside a link shows, in the page itself: a definition, a letter's meaning, an equation.

book/_static/cards.js shows the cards; the titles of references and the equations of the same page it finds
there. "Equation 6" in running prose becomes a link to where the book has the paper's equation; of
"equations 2 and 3" each number does.
"""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from project_facts import chapter_number
from sphinx.application import Sphinx

from vit_book.letters import letters_of
from vit_book.terms import LINK, entries_of, put_links, running_prose

EQUATION = re.compile(r"\b[Ee]quations?\s+([1-8])\b(?!\.\d)")
NEXT = re.compile(r"(?:,|,?\s+(?:and|or|to))\s+([1-8])\b(?!\.\d)")
TARGET = "paper-eq-"


@functools.cache
def paper_equations(app: Sphinx) -> dict[str, tuple[str, str]]:
    """The paper's equations, read once a build: the id of each, the page that has it, and it in TeX."""
    found = {}
    for label, (docname, anchor) in app.env.get_domain("std").anonlabels.items():
        if label.startswith(TARGET):
            blocks = app.env.get_doctree(docname).findall(nodes.math_block)
            formula = next((block.astext() for block in blocks if anchor in block["ids"]), "")
            found[label] = (docname, formula)
    return found


def mentions(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The numbers of equations that a text mentions, each with the place of the words that name it.

    >>> list(mentions("Equations 2 and 3, equation 4.2"))
    [('2', (0, 11)), ('3', (16, 17))]
    """
    for first in EQUATION.finditer(text):
        yield first[1], first.span()
        place = first.end()
        while further := NEXT.match(text, place):
            yield further[1], further.span(1)
            place = further.end()


def link_equations(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link the first mention of each of the paper's equations on a chapter's page."""
    if chapter_number(docname) is None or app.builder.format != "html":
        return
    known, used = paper_equations(app), set()
    for text in running_prose(doctree):
        links = []
        for number, place in mentions(text.astext()):
            label = f"{TARGET}{number}"
            if label in known and label not in used:
                used.add(label)
                there = known[label][0]
                page = "" if there == docname else app.builder.get_relative_uri(docname, there)
                address = {"refuri": f"{page}#{label}"}
                link = nodes.reference("", "", internal=True, classes=["paper-equation"], **address)
                links.append((place, link))
        put_links(text, links)


def cards(app: Sphinx, doctree: nodes.document) -> dict[str, dict[str, str]]:
    """What the links of a page show, by their addresses."""
    entries = {entry.anchor: entry for entry in entries_of(app)}
    letters = {letter.anchor: letter for letter in letters_of(app)}
    found: dict[str, dict[str, str]] = {}
    for link in doctree.findall(nodes.reference):
        page, _, anchor = link.get("refuri", "").partition("#")
        if LINK in link["classes"] and anchor in entries:
            entry = entries[anchor]
            found[link["refuri"]] = {"name": entry.term, "text": entry.definition, "made": entry.made}
        elif anchor in letters:
            letter = letters[anchor]
            found[link["refuri"]] = {"name": letter.name, "text": letter.meaning, "made": letter.more}
        elif page and anchor.startswith(TARGET) and anchor in paper_equations(app):
            found[link["refuri"]] = {"tex": paper_equations(app)[anchor][1]}
    return found


def add_cards(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Put the cards of a page at its end, as data."""
    if doctree is not None and (found := cards(app, doctree)):
        data = json.dumps(found, ensure_ascii=False).replace("<", "\\u003c")
        context["body"] += f'<script type="application/json" id="cards">{data}</script>\n'


def setup(app: Sphinx) -> None:
    """Run when the references of a page are resolved, and when it is about to become HTML."""
    app.connect("doctree-resolved", link_equations, priority=810)
    app.connect("html-page-context", add_cards)
