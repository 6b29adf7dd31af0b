"""The book's own Sphinx extension: one small module for each thing that stock Jupyter Book does not do.

execution   when chapters are run again, and in which environment
runner      chapters that have to run, as many at a time as there are cores
drawings    {drawing} NAME: inline SVG with a caption
widgets     {widget} NAME: something to touch, and what stands there on paper
figures     the narrow picture of a figure on a phone
numbering   figures, equations and exercises numbered by chapter: (3.2)
recipes     the table of recipes and of what their runs reached
glance      three numbers of the book's own runs
assigned    what each chapter asks, for instructors
peers       speed and memory beside other libraries, from the benchmark's results
tried       the log of runs and trials, made of their result files
claims      what the paper says beside what our results say; evidence, the differences that it rests on
reproduced  how often test images were measured, and where chapters deviate from the paper
roles       {source}`path`, {colab}`path` and {minutes}`chapter`
citations   author (year) references in round brackets
terms       first uses of terms lead to the glossary
letters     first uses of letters lead to the notation page
cards       what a card beside a link shows: a definition, a letter, an equation
side_notes  side notes beside their paragraphs
quiz        {quiz} QUESTION: four answers that fold, each with its reason
docstrings  names of the package that docstrings mention become links
reference   pages of the package, one module after the other
opener      how a chapter opens: part, number, title, its place in the model, a strip of facts
place       the small drawing of the model in which a chapter's part is in colour
page        what is taken from, and added to, the theme's HTML
descriptions a page's description and what a link to it shows
site_files  our exported notebooks behind the download button, a page at the root, files for machines
finishing   the last step: what finished pages fetch and what is in them twice; lean_files, those beside them
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# The tools know the repository's address and the measured minutes; the book reads them from the same place.
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

MODULES = """execution runner figures numbering drawings widgets roles citations docstrings reference
recipes glance assigned peers tried claims reproduced terms letters cards side_notes quiz opener page
descriptions site_files finishing"""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register every module of the extension."""
    for name in MODULES.split():
        import_module(f"vit_book.{name}").setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
