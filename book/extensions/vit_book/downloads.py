"""Put our exported notebooks behind the download button, and a page at the root of the site."""

import shutil
from html import escape
from pathlib import Path

from project_facts import chapters
from sphinx.application import Sphinx

from vit_book.descriptions import read_description, tags

ROOT_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="canonical" href="{address}">
{tags}
<meta http-equiv="refresh" content="0; url={target}">
</head>
<body><main><h1>{title}</h1><p><a href="{target}">Open the book</a></p></main></body>
</html>
"""


def copy_notebooks(app: Sphinx, error: Exception | None) -> None:
    """Replace the theme's executed conversions, which show raw directives, by the files that Colab opens."""
    if error or app.builder.format != "html":
        return
    for chapter in chapters(Path(app.srcdir)):
        exported = chapter.with_suffix(".ipynb")
        target = Path(app.outdir) / "_sources" / "notebooks" / exported.name
        if exported.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(exported, target)


def write_root_page(app: Sphinx, error: Exception | None) -> None:
    """Send whoever opens the site's folder to the landing page."""
    if error or app.builder.format != "html":
        return
    built, title, target = Path(app.outdir), app.config.html_title, f"{app.config.root_doc}.html"
    base = app.config.html_baseurl
    description = read_description(built, app.config.root_doc)
    page = ROOT_PAGE.format(
        title=escape(title),
        target=target,
        address=base + target,
        tags=tags(title, description, base + target, base, title, "website"),
    )
    (built / "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Do both when everything else is written."""
    app.connect("build-finished", copy_notebooks)
    app.connect("build-finished", write_root_page)
