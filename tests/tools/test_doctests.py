"""The examples in the docstrings of the tools and of the book's extension are true."""

import doctest
import importlib

import pytest
from project_facts import ROOT

FILES = [*ROOT.glob("tools/*.py"), *ROOT.glob("book/extensions/vit_book/*.py")]
WITH_EXAMPLES = sorted(path for path in FILES if ">>> " in path.read_text(encoding="utf-8"))


def test_there_are_examples():
    assert len(WITH_EXAMPLES) >= 4


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_true(path):
    name = path.stem if path.parent.name == "tools" else f"vit_book.{path.stem}"
    tried = doctest.testmod(importlib.import_module(name))
    assert tried.attempted
    assert not tried.failed
