"""A book with a hole in it is not published, nor one with what readers would stumble over."""

import check_book
import pytest
from project_facts import ROOT, chapters, read_repository

WHOLE = '<html><head><link rel="canonical" href="{}"></head><body><h1>x</h1></body></html>\n'
HOME = f"{read_repository().pages_url}/"


@pytest.fixture
def built(tmp_path):
    """A folder with every page of this book, each of one line."""
    for name in check_book.BESIDE:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x", encoding="utf-8")
    for name in check_book.pages(ROOT):
        path = tmp_path / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WHOLE.format(f"{HOME}{name}.html"), encoding="utf-8")
    return tmp_path


def test_the_list_holds_what_the_book_is_built_of():
    listed = check_book.pages(ROOT)
    files = {path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.glob("book/**/*.md")}
    assert files | {f"notebooks/{path.stem}" for path in chapters()} == set(listed)
    assert len(listed) == len(set(listed))


def test_a_whole_book_passes(built, capsys):
    assert check_book.main([str(built)]) == 0
    assert f"0 findings in {len(check_book.pages(ROOT))} pages" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    ["index.html", "notebooks/03_attention.html", "book/index.html", "book/api/model.html", "llms.txt"],
)
def test_a_missing_or_empty_file_is_named(built, name, capsys):
    (built / name).write_text("", encoding="utf-8")
    assert check_book.main([str(built)]) == 1
    assert f"error: {name} is missing." in capsys.readouterr().err
    (built / name).unlink()
    assert check_book.main([str(built)]) == 1
    assert f"error: {name} is missing." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (WHOLE.format(HOME)[:-20], "ends before its end"),
        (WHOLE.format(HOME).replace("h1", "p"), "has no heading"),
        (
            WHOLE.format("https://other.github.io/x/book/notation.html"),
            "its address is https://other.github.io",
        ),
        ("<html><h1>x</h1></html>", "its address is None"),
    ],
)
def test_half_a_page_or_one_of_another_site_is_found(built, text, finding):
    (built / "book" / "notation.html").write_text(text, encoding="utf-8")
    (sentence, *more) = check_book.shortcomings(built)
    assert finding in " ".join([sentence, *more])
    assert "book/notation.html" in sentence


PAGE = "<html><body><article>{}</article></body></html>"


@pytest.fixture
def book(tmp_path):
    def build(content, style=""):
        (tmp_path / "index.html").write_text(PAGE.format(content), encoding="utf-8")
        (tmp_path / "other.html").write_text(PAGE.format('<h1 id="there">x</h1>'), encoding="utf-8")
        (tmp_path / "look.css").write_text(style, encoding="utf-8")
        check_book.read_page.cache_clear()
        check_book.anchors.cache_clear()
        return check_book.findings(tmp_path)

    return build


@pytest.mark.parametrize(
    "content",
    [
        '<a href="other.html#there">a</a> <a href="https://x.org">b</a> <img src="look.css" alt="words">',
        "<pre>:::{note}</pre><code>{doc}</code>",
    ],
)
def test_a_whole_book_and_myst_in_code_have_no_findings(book, content):
    assert book(content) == []


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        ('<a href="gone.html">a</a>', "gone.html does not exist"),
        ('<a href="other.html#nowhere">a</a>', "no such anchor"),
        ('<a href="#nowhere">a</a>', "no such anchor"),
        ('<img src="look.css">', "no alternative text"),
        ('<img src="look.css" alt="_images/abc.png">', "no alternative text"),
        ('<script src="https://x.org/a.js"></script>', "loads https://x.org/a.js"),
        ('<link rel="stylesheet" href="//x.org/a.css">', "loads //x.org/a.css"),
        ('<picture><source srcset="gone.png"></picture>', "gone.png does not exist"),
        ('<div data-model="gone.bin"></div>', "gone.bin does not exist"),
        ('<div data-photos="gone"></div>', "gone does not exist"),
        ('<div data-run="gone.json"></div>', "gone.json does not exist"),
        ('<iframe src="https://x.org/a"></iframe>', "loads https://x.org/a"),
        ('<video src="https://x.org/a.mp4"></video>', "loads https://x.org/a.mp4"),
        ('<script>s.src = "https://x.org/a.js"</script>', "a script loads from another host"),
        ('<svg><image href="https://x.org/a.jpg"/></svg>', "<image> loads https://x.org/a.jpg"),
        ("<p>See {doc}`x`.</p>", "raw MyST"),
        ("<p>:::{note}</p>", "raw MyST"),
        ('<div class="output stderr">oops</div>', "error stream"),
    ],
)
def test_each_fault_is_found(book, content, finding):
    assert finding in " ".join(book(content))


def test_a_style_sheet_may_not_load_from_another_host(book):
    for style in ("@font-face {src: url(https://x.org/f.woff2)}", '@import "https://x.org/a.css";'):
        assert "loads from another host" in " ".join(book("", style))
