"""What is put beside the pages: exported notebooks, the root's page, one for wrong addresses, three files.

Machines read `sitemap.xml`, `robots.txt` and `llms.txt` (https://llmstxt.org), which names every page in the
order of the table of contents, each with its description.
"""

import shutil
from html import escape
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from check_book import parts
from project_facts import chapters
from sphinx.application import Sphinx

from vit_book.descriptions import tags

SITEMAP = """<?xml version="1.0" encoding="utf-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{entries}
</urlset>
"""
ROOT_PAGE, MISSING_PAGE = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("root_page.html", "missing_page.html")
)


def sitemap(base: str, pages: list[str]) -> str:
    """The addresses of `pages` (https://www.sitemaps.org)."""
    entries = (f"  <url><loc>{escape(f'{base}{page}.html')}</loc></url>" for page in pages)
    return SITEMAP.format(entries="\n".join(entries))


def llms_text(base: str, title: str, summary: str, pages: list[tuple[str, str, str, str]]) -> str:
    """The list of pages in Markdown; each page is its caption, its name, its title and its description."""
    lines = [f"# {title}", "", f"> {summary}"]
    for caption, group in groupby(pages, key=itemgetter(0)):
        lines += ["", f"## {caption}", ""]
        for _, name, heading, description in group:
            lines.append(f"- [{heading}]({base}{name}.html): {description}")
    return "\n".join(lines) + "\n"


def root_page(app: Sphinx, description: str) -> str:
    """The page that sends whoever opens the site's folder to the landing page."""
    base, title, target = app.config.html_baseurl, app.config.html_title, f"{app.config.root_doc}.html"
    about = tags(title, description, base + target, base, title, "website")
    return ROOT_PAGE.format(title=escape(title), target=target, address=base + target, tags=about)


def write_files(app: Sphinx, error: Exception | None) -> None:
    """Write all of them when everything else is written.

    Our exported notebooks, which Colab opens, replace the theme's executed conversions, which show raw
    directives.
    """
    if error or app.builder.format != "html":
        return
    built, base, root = Path(app.outdir), app.config.html_baseurl, app.config.root_doc
    about = {name: app.env.metadata[name].get("description", "") for name in app.env.all_docs}
    sources = built / "_sources" / "notebooks"
    sources.mkdir(parents=True, exist_ok=True)
    for chapter in chapters(Path(app.srcdir)):
        shutil.copy(chapter.with_suffix(".ipynb"), sources)
    pages = [
        (caption, name, app.env.titles[name].astext(), about[name])
        for caption, names in parts(Path(app.srcdir))[1:]
        for name in names
    ]
    generated = [name for name in ("genindex", "py-modindex") if (built / f"{name}.html").exists()]
    names = [root, *(name for _, name, _, _ in pages), *generated]
    for name, text in {
        "index.html": root_page(app, about[root]),
        "404.html": MISSING_PAGE.format(title=escape(app.config.html_title), base=base, root=root),
        "sitemap.xml": sitemap(base, names),
        "robots.txt": f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n",
        "llms.txt": llms_text(base, app.config.html_title, about[root], pages),
    }.items():
        (built / name).write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Do so when the pages are written."""
    app.connect("build-finished", write_files)
