"""The pages of the packages: one for each folder, with the paper's equations where a docstring names them."""

import pickle
import re

import pytest
from docutils import nodes
from docutils.utils import new_document
from project_facts import PACKAGES, ROOT
from vit_book.reference import equations, modules, named_equations, own_nodes


def test_every_public_module_is_on_one_page():
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "book" / "api").glob("*.md"))
    found = [
        name
        for package, flat in re.findall(r"package-modules:: ([\w.]+)(\n   :flat:)?", pages)
        for name in modules(package, deep=not flat)
    ]
    assert sorted(found) == sorted(name for package in PACKAGES for name in modules(package))


def test_a_module_is_public_unless_its_name_or_its_folder_says_otherwise():
    assert "vit_lab.cli.train" not in modules("vit_lab")
    assert "vit_from_scratch.__init__" not in modules("vit_from_scratch")
    assert "vit_from_scratch.model.patches" not in modules("vit_from_scratch", deep=False)


def test_the_papers_eight_equations_are_known():
    assert sorted(equations()) == list(range(1, 9))
    assert all("tag" not in body for body in equations().values())


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("The weights (equation 6).", [6]),
        ("Equations 6 and 7, and equations 5 to 8.", [5, 6, 7, 8]),
        ("No equation of ours.", []),
    ],
)
def test_equations_are_found_where_they_are_named(text, numbers):
    assert named_equations(text.replace("Equations", "equations")) == numbers


def test_a_page_is_written_out_without_the_book():
    page, read_apart = new_document("a page"), new_document("what eval-rst reads")
    read_apart.settings.book = "x" * 1_000_000
    section = nodes.section()
    read_apart += section
    section += nodes.paragraph("", "text")
    page += read_apart.children
    for document in (page, read_apart):
        document.reporter = None  # as Sphinx does before it writes a page out
    assert len(pickle.dumps(page)) > 1_000_000
    own_nodes(None, page)
    assert len(pickle.dumps(page)) < 20_000
    assert section[0].document is page


@pytest.mark.built
def test_no_page_of_the_book_was_written_out_with_all_of_it(built):
    written = (path.stat().st_size for path in (built.parent / ".doctrees").rglob("*.doctree"))
    assert max(written) < 2_000_000, "the whole book takes 4 MB"


@pytest.mark.built
def test_a_built_page_shows_the_equation_that_its_docstring_names(built):
    page = (built / "book/api/model.html").read_text(encoding="utf-8")
    shown = re.findall(r'<div class="math[^>]*>\s*\\\[(.*?)\\\]', page, re.DOTALL)
    assert any("softmax" in formula and "sqrt" in formula for formula in shown)
