"""The first use of a term in the running prose of a page leads to the glossary.

Links are made when a page is written, so that sources and exported notebooks stay as they are. A page that
makes a term, which is one that the term's entry links to, explains it itself and gets no link.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from docutils import nodes
from project_facts import chapter_number
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

GLOSSARY = "book/glossary"
PROSE = ("book/if_you_know_cnns", "book/if_you_know_nlp_transformers", "book/after_this_book")
LINK = "glossary-term"
# Running prose is a paragraph in nothing but these: not in a box, a table, a caption or a side note.
AROUND = (nodes.document, nodes.section, nodes.bullet_list, nodes.enumerated_list, nodes.list_item)
# Words that have everyday meanings as well are linked only where an author writes {term}.
BY_HAND = {"baseline", "batch", "features", "filter", "frozen", "key", "loss", "parity"}
BY_HAND |= {"register", "schedule", "value", "variance", "variant", "warm-up"}
FORMS = {
    "attention distance": ("mean attention distance",),
    "attention rollout": ("rollout",),
    "classification head": ("zero head", "head of zeros"),
    "confidence interval": ("interval", "95 % interval"),
    "cosine schedule": ("cosine decay",),
    "exponential moving average (EMA)": ("EMA", "Polyak averaging"),
    "few-shot accuracy": ("few-shot",),
    "fine-tuning": ("fine-tune", "fine-tuned"),
    "held-out images": ("held out", "held-out"),
    "masked autoencoding": ("masked autoencoder", "MAE"),
    "mimetic initialisation": ("mimetic start",),
    "overfitting": ("overfit", "overfits", "memorise", "memorised"),
    "pre-training": ("pre-train", "pre-trained"),
    "query": ("queries, keys and values", "query, key and value", "queries and keys"),
    "residual connection": ("residual path", "skip connection"),
    "stem": ("conv stem",),
}


@dataclass(frozen=True)
class Entry:
    """A term of the glossary: its id there, its definition in plain words, where it is made."""

    term: str
    anchor: str
    definition: str
    made: str
    pages: frozenset[str]


def forms(term: str) -> list[str]:
    """The words under which a term may stand in a text: itself, its plural, and those of FORMS.

    >>> forms("patch"), forms("residual stream")
    (['patch', 'patches'], ['residual stream', 'residual streams'])
    """
    found = []
    for form in (term, *FORMS.get(term, ())):
        ending = "es" if form.endswith(("ch", "s", "x")) else "s"
        plural = f"{form[:-1]}ies" if re.search("[^aeiou]y$", form) else form + ending
        found += [form, plural]
    return found


@functools.cache
def entries_of(app: Sphinx) -> list[Entry]:
    """Read the glossary as it was parsed, once a build: each entry defines, then says where it leads."""
    found = []
    for item in app.env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
        first, *others = item[-1].findall(nodes.paragraph)
        links = [link for other in others for link in other.findall(addnodes.pending_xref)]
        pages = frozenset(link["reftarget"] for link in links)
        made = " ".join(other.astext() for other in others)
        for term in item.findall(nodes.term):
            found.append(Entry(term.astext(), term["ids"][0], first.astext(), made, pages))
    return found


def finder(entries: list[Entry]) -> re.Pattern[str]:
    """What finds any form of any term; where two begin at one place, the longer one."""
    words = {form for entry in entries if entry.term not in BY_HAND for form in forms(entry.term)}
    choices = "|".join(anywhere(form) for form in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])(?:{choices})(?![\w-])")


def anywhere(form: str) -> str:
    """A form with any white space between its words, and with a small letter or a capital at its start."""
    first = f"[{form[0].lower()}{form[0].upper()}]" if form[1:2].islower() else re.escape(form[0])
    return first + re.escape(form[1:]).replace(r"\ ", r"\s+")


def running_paragraphs(doctree: nodes.document) -> Iterator[nodes.paragraph]:
    """The paragraphs of a page's running prose, in their order."""
    for paragraph in doctree.findall(nodes.paragraph):
        around = paragraph.parent
        while isinstance(around, AROUND):
            around = around.parent
        if around is None and not paragraph.astext().startswith("Needs "):
            yield paragraph


def running_prose(doctree: nodes.document) -> list[nodes.Text]:
    """The pieces of text in which words may become links, in their order."""
    plain = (nodes.paragraph, nodes.emphasis)
    return [
        text
        for paragraph in running_paragraphs(doctree)
        for text in paragraph.findall(nodes.Text)
        if type(text.parent) in plain
    ]


def put_links(text: nodes.Text, links: list[tuple[tuple[int, int], nodes.reference]]) -> None:
    """Put links in the place of some characters of a text; each takes their words."""
    words, parts, last = text.astext(), [], 0
    for (start, end), link in links:
        link += nodes.Text(words[start:end])
        parts += [nodes.Text(words[last:start]), link]
        last = end
    text.parent.replace(text, [*parts, nodes.Text(words[last:])])


def link_terms(doctree: nodes.document, docname: str, entries: list[Entry], glossary: str) -> None:
    """Link the first use of each term on a page; `glossary` is the way there from the page."""
    known = {form.lower(): entry for entry in entries for form in forms(entry.term)}
    used = {entry.definition for entry in entries if docname in entry.pages}
    anchors = {f"{glossary}#{entry.anchor}": entry for entry in entries}
    for link in doctree.findall(nodes.reference):  # those that an author wrote
        if link.get("refuri") in anchors:
            link["classes"].append(LINK)
            used.add(anchors[link["refuri"]].definition)
    expression = finder(entries)
    for text in running_prose(doctree):
        links = []
        for found in expression.finditer(text.astext()):
            entry = known[re.sub(r"\s+", " ", found[0]).lower()]
            if entry.definition not in used:
                used.add(entry.definition)
                address = f"{glossary}#{entry.anchor}"
                link = nodes.reference("", "", internal=True, refuri=address, classes=[LINK])
                links.append((found.span(), link))
        put_links(text, links)


def link_page(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link the terms of a page that is about to be written."""
    linked = chapter_number(docname) is not None or docname in PROSE
    if linked and app.builder.format == "html" and GLOSSARY in app.env.all_docs:
        there = app.builder.get_relative_uri(docname, GLOSSARY)
        link_terms(doctree, docname, entries_of(app), there)


def pages_to_rewrite(env: BuildEnvironment, source: str, more: tuple[str, ...] = ()) -> list[str]:
    """Name the chapters, and `more`, if the page that their links lead to was read since the last build."""
    if source not in env.all_docs or "linked" in env.metadata[source]:
        return []
    env.metadata[source]["linked"] = "yes"  # gone when Sphinx reads the page again
    return [name for name in env.all_docs if chapter_number(name) is not None or name in more]


def setup(app: Sphinx) -> None:
    """Run when all references of a page are resolved, an author's {term} among them."""
    app.connect("env-get-updated", lambda app, env: pages_to_rewrite(env, GLOSSARY, PROSE))
    app.connect("doctree-resolved", link_page, priority=800)
