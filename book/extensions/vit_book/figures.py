"""A figure of a code cell in the page: the narrow picture on a phone, the wide one elsewhere.

The narrow picture, or the width at which a figure has to scroll, is an output of its own beside the wide
picture (`kernel_figures` makes it). Here the two become one `<picture>`, which chooses by the screen's width.
"""

import base64
import hashlib
import posixpath
import struct
import urllib.parse

from docutils import nodes
from kernel_figures import MIME
from myst_nb.core import render
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

PHONE = "(max-width: 600px)"


class Narrow(nodes.image):
    """The picture for a phone: Sphinx collects and copies it like every image."""


class Variants(nodes.General, nodes.Element):
    """Holds a figure's wide picture and the narrow one, or says at which width (`scroll`) it can be read."""


class NarrowOutput:
    """What myst-nb asks how to show an output."""

    mime_priority_overrides: tuple[tuple[str, str, int], ...] = ()

    @staticmethod
    def handle_mime(
        renderer: render.NbElementRenderer, data: render.MimeData, inline: bool
    ) -> list[nodes.Element] | None:
        """Return a node for an output of our type, None for all others."""
        if data.mime_type != MIME:
            return None
        if "scroll" in data.content:
            return [Variants(scroll=data.content["scroll"])]
        png = base64.b64decode(data.content["png"])
        across, down = struct.unpack(">II", png[16:24])  # dots
        width = data.content["width"]
        uri = renderer.write_file([f"{hashlib.sha256(png).hexdigest()}.png"], png, exists_ok=True)
        return [Variants("", Narrow(uri=uri, across=width, down=round(width * down / across)))]


def join_variants(app: Sphinx, doctree: nodes.document) -> None:
    """Put each wide picture to its narrow one: of several outputs myst-nb would show only the first."""
    for variants in list(doctree.findall(Variants)):
        bundle = variants.parent.parent
        wide = next(one for one in bundle if one["mime_type"] == "image/png")
        bundle.remove(variants.parent)
        if "scroll" not in variants:  # a link between <picture> and <img> would not be HTML
            wide.children[0]["classes"].append("no-scaled-link")
        variants.extend(wide.children)
        wide.children = []
        wide.append(variants)


def visit_variants(translator: HTML5Translator, node: Variants) -> None:
    """Open the element that chooses a picture, or the box in which a picture scrolls."""
    if "scroll" in node:
        box = f'<div class="scrolls" tabindex="0" style="--readable: {node["scroll"]}px">'
        translator.body.append(box)
    else:
        wide = _place(translator, node.children[-1])
        translator.body.append(f'<a class="reference internal image-reference" href="{wide}"><picture>')


def depart_variants(translator: HTML5Translator, node: Variants) -> None:
    """Close it."""
    translator.body.append("</div>" if "scroll" in node else "</picture></a>")


def _place(translator: HTML5Translator, image: nodes.image) -> str:
    """The address of a picture, as seen from the page."""
    name = urllib.parse.quote(translator.builder.images[image["uri"]])
    return posixpath.join(translator.builder.imgpath, name)


def visit_narrow(translator: HTML5Translator, node: Narrow) -> None:
    """Offer the narrow picture."""
    place = _place(translator, node)
    size = f'width="{node["across"]}" height="{node["down"]}"'
    translator.body.append(f'<source media="{PHONE}" srcset="{place}" {size}>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the nodes, and join myst-nb's own list of those that show outputs."""
    app.add_node(Narrow, html=(visit_narrow, None))
    app.add_node(Variants, html=(visit_variants, depart_variants))
    plugins = [*render.load_mime_renders(), NarrowOutput]
    render.load_mime_renders = lambda: plugins
    app.connect("doctree-read", join_variants)
