"""The last step of a build: finished pages, wherever they come from, are made light and put right.

A second pass over a book changes nothing, so pages that a build leaves alone may be gone over again.
"""

import sys
from functools import partial
from hashlib import sha256
from pathlib import Path

from sphinx.application import Sphinx

from vit_book.lean_mathjax import BUNDLE, lighten_mathjax
from vit_book.lean_pictures import lighten_pictures
from vit_book.lean_styles import lighten_styles
from vit_book.markup import names_of_drawings_unmarked, theme_from_the_start, unique_ids
from vit_book.weight import (
    drop_icon_script,
    drop_unused_companions,
    formulas_where_they_are,
    pictures_when_they_near,
    renamed_pictures,
    scripts_after_the_text,
    search_on_its_page,
    versions,
)


def finish(site: Path, cache: Path) -> None:
    """Go over a built book: its pages, style sheets, fonts, formulas and figures.

    Args:
        site: the folder of the built book.
        cache: a folder in which lighter figures are kept from build to build.
    """
    pages = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    renamed = [path.with_suffix(".png").name for path in (site / "_images").glob("*.webp")]
    renamed = sorted({*renamed, *lighten_pictures(site, cache)})
    lighten_mathjax(site / "_static")
    steps = [
        drop_icon_script,
        search_on_its_page,
        formulas_where_they_are,
        drop_unused_companions,
        scripts_after_the_text,
        theme_from_the_start,
        unique_ids,
        names_of_drawings_unmarked,
        partial(renamed_pictures, names=renamed),
    ]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        for step in steps:
            text = step(text)
        path.write_text(pictures_when_they_near(text, path.parent), encoding="utf-8")
    changed = [*lighten_styles(site), site / "_static/mathjax" / BUNDLE]
    digests = {path.name: sha256(path.read_bytes()).hexdigest()[:8] for path in changed if path.exists()}
    for path in pages:
        path.write_text(versions(path.read_text(encoding="utf-8"), digests), encoding="utf-8")


def finish_build(app: Sphinx, error: Exception | None) -> None:
    """Run when everything else is written."""
    if not error and app.builder.format == "html":
        finish(Path(app.outdir), Path(app.doctreedir) / "pictures")


def setup(app: Sphinx) -> None:
    """Come last: other steps at the end of a build may write pages, too."""
    app.connect("build-finished", finish_build, priority=950)


if __name__ == "__main__":
    finish(Path(sys.argv[1]), Path(sys.argv[2]))
