"""The pages of the package: one a module, with the paper's equations where a docstring names them."""

import importlib
import inspect
import pickle
import re

import pytest
from docutils import nodes
from docutils.utils import new_document
from project_facts import ROOT
from vit_book.reference import (
    HEADINGS,
    PACKAGE,
    PAGES,
    documented,
    equations,
    members,
    modules,
    named_equations,
    own_nodes,
    write_pages,
)


def test_every_package_with_public_modules_is_documented():
    packages = {path.parent.name for path in (ROOT / "vit_from_scratch").glob("*/__init__.py")}
    assert set(documented()) == packages - {"cli", "weights"}


def test_every_public_module_has_a_page_and_no_other():
    write_pages()
    expected = {f"{package}.{path.stem}" for package in documented() for path in modules(package)}
    assert {page.stem for page in PAGES.glob("*.md")} == expected


@pytest.mark.parametrize("package", documented())
def test_a_page_names_the_classes_and_functions_that_its_module_defines(package):
    for path in modules(package):
        module = importlib.import_module(f"vit_from_scratch.{package}.{path.stem}")
        defined = {
            name: thing
            for name, thing in vars(module).items()
            if not name.startswith("_")
            and (inspect.isclass(thing) or callable(thing))
            and getattr(thing, "__module__", None) == module.__name__
            and thing.__doc__
        }
        found = {name: kind for name, kind in members(path).items() if kind != "autodata"}
        assert found.keys() == defined.keys(), path.stem
        errors = {
            name
            for name, thing in defined.items()
            if inspect.isclass(thing) and issubclass(thing, BaseException)
        }
        assert {name for name, kind in found.items() if kind == "autoexception"} == errors, path.stem


def test_a_page_of_a_module_that_is_gone_goes_and_a_fresh_one_is_left_alone():
    write_pages()
    stale, kept = PAGES / "model.nothing.md", PAGES / "model.attention.md"
    stale.write_text("# gone", encoding="utf-8")
    before = kept.stat().st_mtime_ns
    write_pages()
    assert not stale.exists()
    assert kept.stat().st_mtime_ns == before


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
    written = [path.stat().st_size for path in (built.parent / ".doctrees").rglob("*.doctree")]
    assert len(written) > 150
    assert max(written) < 1_000_000, "the whole book takes four times as much"


@pytest.mark.built
def test_a_built_page_has_a_heading_for_each_kind_of_member(built):
    page = (built / "book/api/modules/model.attention.html").read_text(encoding="utf-8")
    found = [re.sub("<.*?>", "", heading) for heading in re.findall(r"<h2>(.*?)<a ", page)]
    kinds = set(members(PACKAGE / "model" / "attention.py").values())
    assert found == [heading for directive, heading in HEADINGS.items() if directive in kinds]


@pytest.mark.built
def test_a_built_page_shows_the_equation_that_its_docstring_names(built):
    page = (built / "book/api/modules/model.attention.html").read_text(encoding="utf-8")
    shown = re.findall(r'<div class="math[^>]*>\s*\\\[(.*?)\\\]', page, re.DOTALL)
    assert any("softmax" in formula and "sqrt" in formula for formula in shown)
