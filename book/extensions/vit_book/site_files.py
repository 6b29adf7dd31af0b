"""Three files for whoever reads the site without eyes: `sitemap.xml`, `robots.txt` and `llms.txt`.

`llms.txt` (https://llmstxt.org) names every page with one line, in the order of the table of contents.
The lines are the descriptions that stand in the pages themselves.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from vit_book.descriptions import read_description

SITEMAP = """<?xml version="1.0" encoding="utf-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{entries}
</urlset>
"""


def pages_below(env: BuildEnvironment, page: str) -> Iterator[str]:
    """Every page below `page` in the table of contents, which need not be read for that."""
    for name in env.toctree_includes.get(page, []):
        yield name
        yield from pages_below(env, name)


def listed_pages(env: BuildEnvironment, root: str) -> Iterator[tuple[str, str]]:
    """Every page of the table of contents but its root, each with the caption that it stands under."""
    for toctree in env.get_doctree(root).findall(addnodes.toctree):
        for name in toctree["includefiles"]:
            for page in (name, *pages_below(env, name)):
                yield toctree.get("caption") or "", page


def sitemap(base: str, pages: list[str]) -> str:
    """The addresses of `pages` (https://www.sitemaps.org)."""
    entries = (f"  <url><loc>{escape(f'{base}{page}.html')}</loc></url>" for page in pages)
    return SITEMAP.format(entries="\n".join(entries))


def llms_text(base: str, title: str, summary: str, pages: list[tuple[str, str, str, str]]) -> str:
    """The list of pages in Markdown; each page is its caption, its name, its title and its description."""
    lines = [f"# {title}", "", f"> {summary}"]
    last = None
    for caption, name, heading, description in pages:
        if caption != last:
            lines += ["", f"## {caption}", ""]
            last = caption
        lines.append(f"- [{heading}]({base}{name}.html): {description}")
    return "\n".join(lines) + "\n"


def write_files(app: Sphinx, error: Exception | None) -> None:
    """Write all three beside the pages."""
    if error or app.builder.format != "html":
        return
    built, base, root = Path(app.outdir), app.config.html_baseurl, app.config.root_doc
    listed = list(listed_pages(app.env, root))
    pages = [
        (caption, name, app.env.titles[name].astext(), read_description(built, name))
        for caption, name in listed
    ]
    generated = [name for name in ("genindex", "py-modindex") if (built / f"{name}.html").exists()]
    names = [root, *(name for _, name in listed), *generated]
    robots = f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n"
    (built / "sitemap.xml").write_text(sitemap(base, names), encoding="utf-8")
    (built / "robots.txt").write_text(robots, encoding="utf-8")
    text = llms_text(base, app.config.html_title, read_description(built, root), pages)
    (built / "llms.txt").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Do so when the pages are written."""
    app.connect("build-finished", write_files)
