"""The check of the built book finds what readers would stumble over."""

import check_links
import pytest

PAGE = "<html><body><article>{}</article></body></html>"


@pytest.fixture
def book(tmp_path):
    def build(content, style=""):
        (tmp_path / "index.html").write_text(PAGE.format(content), encoding="utf-8")
        (tmp_path / "other.html").write_text(PAGE.format('<h1 id="there">x</h1>'), encoding="utf-8")
        (tmp_path / "look.css").write_text(style, encoding="utf-8")
        check_links.read_page.cache_clear()
        check_links.anchors.cache_clear()
        return check_links.findings(tmp_path)

    return build


def test_a_whole_book_has_no_findings(book):
    assert (
        book(
            '<a href="other.html#there">a</a> <a href="https://x.org">b</a> <img src="look.css" alt="words">'
        )
        == []
    )


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
        ("<p>See {doc}`x`.</p>", "raw MyST"),
        ("<p>:::{note}</p>", "raw MyST"),
        ('<div class="output stderr">oops</div>', "error stream"),
    ],
)
def test_each_fault_is_found(book, content, finding):
    assert finding in " ".join(book(content))


def test_code_may_show_myst(book):
    assert book("<pre>:::{note}</pre><code>{doc}</code>") == []


def test_a_style_sheet_may_not_load_from_another_host(book):
    assert "loads from another host" in " ".join(book("", "@font-face {src: url(https://x.org/f.woff2)}"))


def test_a_missing_book_is_one_sentence(tmp_path, capsys):
    assert check_links.main([str(tmp_path)]) == 1
    assert "run `make book` first" in capsys.readouterr().err
