"""{widget} NAME: something to touch, made by book/_static/vit/NAME.js of what book/widgets/NAME.html holds.

Several widgets may share a module: guess-photos is made by guess.js.

The first paragraph of its text stands before the widget and says what to try, the rest after it. Notebooks,
which run no scripts of the book, have the still figure and a link in its place.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = "book/widgets"
# A page that is only opened fetches no widget's code.
LOADER = """<script type="module">
new IntersectionObserver((entries, near) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    near.disconnect();
    import("STATIC/MODULE.js").catch((error) => {
        document.querySelector(".vit-NAME figcaption").textContent = location.protocol === "file:"
            ? "To touch this, serve the book: make serve." : error instanceof SyntaxError
            ? "To touch this, use a newer browser." : "This cannot be fetched; load the page again.";
        if (location.protocol !== "file:") throw error;
    });
}, { rootMargin: "600px" }).observe(document.querySelector(".vit-NAME"));
</script>"""


class Widget(SphinxDirective):
    """The element that a script fills, with what it shows to readers without scripts and on paper."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Put the text and the element into the page, and ask for the styles and the script."""
        name = self.arguments[0]
        path = Path(self.env.srcdir) / FOLDER / f"{name}.html"
        if not path.exists():
            raise self.error(f"there is no {FOLDER}/{name}.html")
        self.env.note_dependency(str(path))
        static = f"{'../' * self.env.docname.count('/')}_static/vit"
        html = path.read_text(encoding="utf-8").replace("STATIC", static)
        styles = f'<link rel="stylesheet" href="{static}/widgets.css">\n'
        script = (
            LOADER.replace("NAME", name).replace("MODULE", name.partition("-")[0]).replace("STATIC", static)
        )
        text = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, text)
        widget = nodes.raw("", f"{styles}{html}{script}", format="html")
        return [*text.children[:1], widget, *text.children[1:]]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("widget", Widget)
