"""A side note stands in the margin beside the paragraph that it follows: both get a box that holds them."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)

BESIDE = (nodes.paragraph, nodes.bullet_list, nodes.enumerated_list)


def put_beside(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Wrap each side note with what stands before it, if that is prose."""
    for note in list(doctree.findall(nodes.sidebar)):
        if "margin" not in note["classes"]:
            continue
        parent, place = note.parent, note.parent.index(note)
        before = parent[place - 1] if place else None
        if isinstance(before, BESIDE):
            pair = nodes.container(classes=["with-side-note"])
            parent[place - 1 : place + 1] = [pair]
            pair += [before, note]
        elif isinstance(parent, nodes.section):
            LOGGER.warning("a side note that follows no prose hangs outside the page", location=note)


def setup(app: Sphinx) -> None:
    """Run after the terms of running prose are linked, which a box is not."""
    app.connect("doctree-resolved", put_beside, priority=850)
