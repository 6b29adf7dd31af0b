"""{drawing} NAME: a drawing of book/drawings in the page itself, where it takes its fonts and colours.

The text is the caption, numbered like every figure of the chapter; `{numref}` finds it as `drawing-NAME`.
"""

import re
from pathlib import Path

from docutils import nodes
from drawings import FOLDER, variants
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Drawing(SphinxDirective):
    """A figure that holds SVG, in one arrangement or in two: for wide screens and for phones."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Put the drawing and its caption into the page."""
        name = self.arguments[0]
        paths = variants(name, Path(self.env.srcdir))
        if not paths:
            raise self.error(f"there is no {FOLDER}/{name}.svg")
        if not self.content:
            raise self.error(f"the drawing {name} has no caption")
        for path in paths:
            self.env.note_dependency(str(path))
        figure = nodes.figure("", nodes.raw("", inlined(paths), format="html"), classes=["drawn"])
        self.set_source_info(figure)
        text = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, text)
        if len(text.children) != 1 or not isinstance(text.children[0], nodes.paragraph):
            raise self.error(f"the caption of the drawing {name} is more than a paragraph")
        figure += nodes.caption(text.children[0].rawsource, "", *text.children[0].children)
        figure["names"].append(f"drawing-{name}")
        self.state.document.note_explicit_target(figure, figure)
        return [figure]


def inlined(paths: list[Path]) -> str:
    """The text of a drawing; the narrow arrangement gets the words of the wide one, under ids of its own."""
    texts = (path.read_text(encoding="utf-8") for path in paths)
    wide, *narrow = (re.sub(r'\s*\n\s*| xmlns="http://www.w3.org/2000/svg"', "", text) for text in texts)
    if not narrow:
        return wide
    words = re.search(r"<title.*</desc>", wide)
    labels = re.search(r' role="img" aria-labelledby="[^"]*"', wide)
    assert words is not None
    assert labels is not None
    head, rest = narrow[0].split(">", 1)
    other = f"{head}{labels[0]}>{words[0]}{rest}".replace("drawing-", "drawing-narrow-")
    both = {"for-wide": wide, "for-narrow": other}
    return "".join(svg.replace('class="drawing"', f'class="drawing {name}"', 1) for name, svg in both.items())


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("drawing", Drawing)
