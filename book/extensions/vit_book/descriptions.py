"""What search engines, link previews and language models read of a page: a short description in plain words.

A page's front matter may give it (`description: ...`); else it is made of the page's first sentences.
"""

import re
from html import escape, unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from project_facts import read_repository
from sphinx.application import Sphinx
from sphinx.config import Config

SHORTEST, LONGEST = 50, 160
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z0-9\"'“])")
UNREADABLE = "\0"  # stands for a formula, and makes its sentence unfit
CARD = "_static/social_card.png"
CARD_SIZE = (1200, 630)
CARD_ALT = "A photo of a cat, cut into patches, beside the title Vision Transformer from scratch."
VIEWPORT = re.compile(r"""<meta\s[^>]*name="viewport"[^>]*>\s*""")
TITLES = {"search": "Search", "genindex": "Index", "py-modindex": "Python Module Index"}  # as the theme's


def plain_text(paragraph: nodes.Element) -> str:
    """The words of a paragraph, with a mark in place of each formula and without citations in brackets."""
    parts = []
    for node in paragraph.findall(lambda node: isinstance(node, nodes.Text | nodes.math)):
        formula = isinstance(node, nodes.math)
        if formula or not isinstance(node.parent, nodes.math):
            parts.append(UNREADABLE if formula else node.astext())
    text = re.sub(r"\s*\([^()]*\b(?:19|20)\d\d[a-z]?\)", "", "".join(parts))
    return re.sub(r"\s+", " ", text).strip()


def first_sentences(texts: list[str]) -> str:
    """As many of the first sentences as fit into LONGEST characters, the last one cut where they fall short.

    >>> first_sentences(["Cut a photo into squares, and lay these in a row. Multiply each.", "Not this."])
    'Cut a photo into squares, and lay these in a row. Multiply each.'
    """
    taken = ""
    for text in texts:
        for sentence in SENTENCE_END.split(text):
            if UNREADABLE in sentence:
                continue
            longer = f"{taken} {sentence}".strip()
            if len(longer) > LONGEST:
                return taken if len(taken) >= SHORTEST else cut(longer)
            taken = longer
        if len(taken) >= SHORTEST:
            break
    return re.sub(r":$", ".", taken)


def cut(text: str) -> str:
    """End a text that is too long after a whole word."""
    return text[:LONGEST].rsplit(" ", 1)[0].rstrip(" ,;:–") + "…"


def describe(pagename: str, given: str | None, doctree: nodes.document | None, site: str) -> str:
    """The description of a page: what its front matter gives, or its first sentences."""
    if given:
        return given
    if doctree is None:
        return f"{TITLES.get(pagename, pagename)}: a page beside the chapters of the book {site}."
    paragraphs = [
        node
        for node in doctree.findall(nodes.paragraph)
        if isinstance(node.parent, nodes.section | nodes.document)
    ]
    sentences = first_sentences([plain_text(paragraph) for paragraph in paragraphs])
    return sentences if len(sentences) >= SHORTEST else f"{sentences} A page of the book {site}."


def tags(title: str, description: str, url: str, base: str, site: str, kind: str) -> str:
    """The `<meta>` tags of a page: its description, and what a link to it shows (https://ogp.me)."""
    properties = {
        "og:title": title,
        "og:description": description,
        "og:type": kind,
        "og:url": url,
        "og:site_name": site,
        "og:image": base + CARD,
        "og:image:width": CARD_SIZE[0],
        "og:image:height": CARD_SIZE[1],
        "og:image:alt": CARD_ALT,
    }
    lines = [
        f'<meta name="description" content="{escape(description)}" />',
        *(f'<meta property="{name}" content="{escape(str(text))}" />' for name, text in properties.items()),
        '<meta name="twitter:card" content="summary_large_image" />',
    ]
    return "\n".join(f"    {line}" for line in lines)


def add_tags(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Put the tags into a page's head, leave one viewport tag, and say the landing page's title once."""
    site = app.config.html_title
    landing = pagename == app.config.root_doc
    title = unescape(re.sub(r"<[^>]*>", "", str(context.get("title", TITLES.get(pagename, site)))))
    given = app.env.metadata.get(pagename, {}).get("description")
    description = describe(pagename, given, doctree, site)
    base = app.config.html_baseurl
    added = tags(title, description, context["pageurl"], base, site, "website" if landing else "article")
    context["metatags"] = "\n" + VIEWPORT.sub("", context.get("metatags", "")) + added
    if landing:
        context["docstitle"] = ""


def read_description(built: Path, page: str) -> str:
    """What a built page says of itself."""
    text = (built / f"{page}.html").read_text("utf-8")
    found = re.search(r'<meta name="description" content="([^"]*)"', text)
    return unescape(found[1]) if found else ""


def set_address(app: Sphinx, config: Config) -> None:
    """Say where the book is published: canonical links, previews and the site map need whole addresses."""
    config.html_baseurl = f"{read_repository().pages_url}/"


def setup(app: Sphinx) -> None:
    """Run when the theme has filled the page's context."""
    app.connect("config-inited", set_address)
    app.connect("html-page-context", add_tags, priority=910)
