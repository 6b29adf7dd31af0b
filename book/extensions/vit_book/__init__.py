"""The book's own Sphinx extension: one small module for each thing that stock Jupyter Book does not do.

execution   when chapters are run again, and in which environment
runner      chapters that have to run, as many at a time as there are cores
numbering   figures, equations and exercises numbered by chapter: (3.2)
recipes     the table of recipes and of what their runs reached
assigned    what each chapter asks, for instructors
tried       the log of runs and trials, made of their result files
roles       {source}`path` and {minutes}`chapter`
citations   author (year) references in round brackets
docstrings  names of the package that docstrings mention become links
reference   pages of the package, one module after the other
downloads   our exported notebooks behind the download button, and a page at the root of the site
page        what is taken from, and added to, the theme's HTML
finishing   the last step, over finished pages: weight (what they fetch), markup (what stands in them twice),
            lean_styles, lean_mathjax and lean_pictures (the files beside them)
"""

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# The tools know the repository's address and the measured minutes; the book reads them from the same place.
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from vit_book import (
    assigned,
    citations,
    docstrings,
    downloads,
    execution,
    finishing,
    numbering,
    page,
    recipes,
    reference,
    roles,
    runner,
    tried,
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register every module of the extension."""
    for module in (
        execution,
        runner,
        numbering,
        roles,
        citations,
        docstrings,
        reference,
        recipes,
        assigned,
        tried,
        downloads,
        page,
        finishing,
    ):
        module.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
