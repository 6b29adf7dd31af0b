"""Equations, exercises and figures are numbered by chapter, whatever comes before it."""

from vit_book.numbering import number_by_chapter


def test_numbers_start_anew_in_every_chapter():
    plain = {
        "notebooks/03_attention": {"exercise": {"b": (6,), "a": (5,)}, "displaymath": {"equation-x": (2,)}},
        "book/notation": {"table": {"t": (4,)}},
    }
    assert number_by_chapter(plain) == {
        "notebooks/03_attention": {
            "exercise": {"a": (3, 1), "b": (3, 2)},
            "displaymath": {"equation-x": (3, 1)},
        },
        "book/notation": {"table": {"t": (1,)}},
    }


def test_the_papers_equations_are_not_counted():
    plain = {"notebooks/03_attention": {"displaymath": {"paper-eq-6": (1,), "equation-ours": (2,)}}}
    assert number_by_chapter(plain)["notebooks/03_attention"]["displaymath"] == {"equation-ours": (3, 1)}
