"""A book with a hole in it is not published."""

import check_published
import pytest
from project_facts import ROOT, chapters, read_repository

PAGE = '<html><head><link rel="canonical" href="{}"></head><body><h1>x</h1></body></html>\n'
HOME = f"{read_repository().pages_url}/"


@pytest.fixture
def built(tmp_path):
    """A folder with every page of this book, each of one line."""
    for name in check_published.BESIDE:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x", encoding="utf-8")
    for name in check_published.pages(ROOT):
        path = tmp_path / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGE.format(f"{HOME}{name}.html"), encoding="utf-8")
    return tmp_path


def test_the_list_holds_what_the_book_is_built_of():
    listed = check_published.pages(ROOT)
    files = {path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.glob("book/**/*.md")}
    assert files | {f"notebooks/{path.stem}" for path in chapters()} == set(listed)
    assert len(listed) == len(set(listed))


def test_a_whole_book_passes(built, capsys):
    assert check_published.main([str(built)]) == 0
    assert f"{len(check_published.pages(ROOT))} pages are there" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    ["index.html", "notebooks/03_attention.html", "book/index.html", "book/api/model.html", "llms.txt"],
)
def test_a_missing_or_empty_file_is_named(built, name, capsys):
    (built / name).write_text("", encoding="utf-8")
    assert check_published.main([str(built)]) == 1
    assert f"error: {name} is missing." in capsys.readouterr().err
    (built / name).unlink()
    assert check_published.main([str(built)]) == 1
    assert f"error: {name} is missing." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (PAGE.format(HOME)[:-20], "ends before its end"),
        (PAGE.format(HOME).replace("h1", "p"), "has no heading"),
        (
            PAGE.format("https://other.github.io/x/book/notation.html"),
            "its address is https://other.github.io",
        ),
        ("<html><h1>x</h1></html>", "its address is None"),
    ],
)
def test_half_a_page_or_one_of_another_site_is_found(built, text, finding):
    (built / "book" / "notation.html").write_text(text, encoding="utf-8")
    (sentence, *more) = check_published.shortcomings(built)
    assert finding in " ".join([sentence, *more])
    assert "book/notation.html" in sentence


def test_a_folder_that_is_not_there_has_no_page(tmp_path):
    assert len(check_published.shortcomings(tmp_path / "gone")) > len(chapters())
