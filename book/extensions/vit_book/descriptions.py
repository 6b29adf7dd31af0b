"""What search engines, link previews and language models read of a page: a short description in plain words.

A page's front matter gives it (`description: ...`); pages that Sphinx generates have a sentence of their own.
"""

import re
from html import escape, unescape
from typing import Any

from docutils import nodes
from project_facts import read_repository
from sphinx.application import Sphinx
from sphinx.config import Config

CARD = "_static/social_card.jpg"
CARD_SIZE = (1200, 630)
CARD_ALT = "A photo of a cat, cut into patches, beside the title Vision Transformer from scratch."
VIEWPORT = re.compile(r"""<meta\s[^>]*name="viewport"[^>]*>\s*""")
TITLES = {"search": "Search", "genindex": "Index", "py-modindex": "Python Module Index"}  # as the theme's


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
    generated = f"{TITLES.get(pagename, pagename)}: a page beside the chapters of the book {site}."
    description = app.env.metadata.get(pagename, {}).get("description", generated)
    base = app.config.html_baseurl
    added = tags(title, description, context["pageurl"], base, site, "website" if landing else "article")
    context["metatags"] = "\n" + VIEWPORT.sub("", context.get("metatags", "")) + added
    if landing:
        context["docstitle"] = ""


def set_address(app: Sphinx, config: Config) -> None:
    """Say where the book is published: canonical links, previews and the site map need whole addresses."""
    config.html_baseurl = f"{read_repository().pages_url}/"


def setup(app: Sphinx) -> None:
    """Run when the theme has filled the page's context."""
    app.connect("config-inited", set_address)
    app.connect("html-page-context", add_tags, priority=910)
