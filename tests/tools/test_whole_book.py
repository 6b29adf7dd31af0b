"""The book as one page, and as one PDF."""

import shutil
import sys

import make_pdf
import pytest
from browser import NONE_HERE, find_browser
from bs4 import BeautifulSoup
from make_pdf import assemble
from pypdf import PdfReader

HOME = "https://some-school.github.io/vit"
TOC = """
root: book/index
parts:
  - caption: Build it
    chapters: [{glob: notebooks/0*}, {file: book/api/model}]
"""
CONFIG = "repository: {url: https://github.com/some-school/vit, branch: main}\n"
HEAD = '<link rel="stylesheet" href="../_static/a.css">'
PAGE = f"<html><head>{HEAD}</head><body><article>{{}}</article></body></html>"
FIRST = """<h1 id="one">1. One<a class="headerlink" href="#one">#</a></h1><p>Text of the first.</p>
<a href="02_two.html#deep">to two</a> <a href="02_two.html#gone">lost</a>
<a href="../book/api/model.html#m">api</a>
<a href="#one">here</a> <a href="https://x.org">out</a> <img src="../_images/a.png" alt="a">
<details><summary><p class="collapsed">Ours</p></summary><pre>class Ours</pre></details>
<details><summary>Show the code of this figure Hide the code</summary><pre>draw()</pre></details>
<div class="tip dropdown admonition">a hint</div>
<link rel="stylesheet" href="../_static/vit/widgets.css"><svg><image href="../_static/cat.jpg"/></svg>
<div class="solution dropdown admonition" id="sol">the answer</div><script>run()</script>"""
SECOND = """<h1 id="one">2. Two</h1><p id="deep">Text of the second.</p>
<svg><marker id="tip"></marker><path marker-end="url(#tip)"/></svg>"""


@pytest.fixture
def project(tmp_path):
    """A book of a landing page and two chapters, built."""
    files = {
        "_toc.yml": TOC,
        "_config.yml": CONFIG,
        "pyproject.toml": '[project]\nversion = "1.2.3"\n',
        "_build/html/book/index.html": PAGE.format("<h1>The book</h1><p>Welcome.</p>"),
        "_build/html/notebooks/01_one.html": PAGE.format(FIRST),
        "_build/html/notebooks/02_two.html": PAGE.format(SECOND),
        "notebooks/01_one.md": "",
        "notebooks/02_two.md": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def soup_of(project, numbers=None):
    return BeautifulSoup(assemble(project / "_build" / "html", project, "", numbers or {}), "html.parser")


def test_ids_stay_apart_and_links_lead_to_them(project):
    soup = soup_of(project)
    ids = [tag["id"] for tag in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))
    inside = [tag["href"][1:] for tag in soup.find_all("a") if tag["href"].startswith("#")]
    assert set(inside) <= set(ids)
    words = {tag.get_text(): tag["href"] for tag in soup.find_all("a")}
    assert words["to two"] == "#notebooks-02-two--deep"
    assert words["lost"] == "#notebooks-02-two"
    assert words["here"] == "#notebooks-01-one--one"
    assert words["api"] == f"{HOME}/book/api/model.html#m"
    assert words["out"] == "https://x.org"
    assert soup.path["marker-end"] == "url(#notebooks-02-two--tip)"
    assert soup.find("img", alt="a")["src"] == "../html/_images/a.png"
    assert soup.find("image")["href"] == "../html/_static/cat.jpg"
    loaded = [tag["href"] for tag in soup.find_all(["image", "link"])]
    assert "../html/_static/vit/widgets.css" in loaded
    assert not [address for address in loaded if address.startswith(HOME)], "nothing is fetched from the site"


def test_ours_is_printed_and_answers_are_not(project):
    text = soup_of(project).get_text()
    assert "class Ours" in text
    for word in ("draw()", "a hint", "the answer", "run()", "#"):
        assert word not in text.partition("@page")[0] + text.partition("Welcome.")[2], word
    pointer = soup_of(project).find(class_="vit-elsewhere").a
    assert pointer["href"] == f"{HOME}/notebooks/01_one.html#sol"


def test_contents_name_every_page_and_its_number(project):
    entries = soup_of(project, {"2. Two": 7}).find_all(class_="vit-entry")
    assert [(entry.a.get_text(), entry.span.get_text()) for entry in entries] == [
        ("1. One", ""),
        ("2. Two", "7"),
    ]


def test_the_site_gets_one_link_to_the_print(project):
    built = project / "_build" / "html"
    (project / "book.pdf").write_bytes(b"x" * 2_000_000)
    make_pdf.publish(project / "book.pdf", built, 12)
    make_pdf.publish(project / "book.pdf", built, 12)
    landing = (built / "book" / "index.html").read_text(encoding="utf-8")
    assert landing.count('<a href="../book.pdf">The whole book as a PDF</a>: 12 pages, 2 MB.') == 1
    assert (built / "book.pdf").exists()


def test_without_a_browser_there_is_one_sentence(monkeypatch, tmp_path, capsys):
    (tmp_path / "index.html").touch()
    monkeypatch.setattr(make_pdf, "BUILT", tmp_path)
    monkeypatch.setattr(make_pdf, "make_pdf", lambda *_: make_pdf.print_page("", tmp_path / "none.pdf"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert make_pdf.main([]) == 1
    assert capsys.readouterr().err == f"error: {NONE_HERE}.\n"


@pytest.mark.slow
@pytest.mark.skipif(not find_browser(), reason="no browser to print with")
def test_the_print_has_an_outline_page_numbers_and_links(project):
    target = project / "book.pdf"
    assert make_pdf.make_pdf(project / "_build" / "html", target, project) == 5
    reader = PdfReader(target)
    assert make_pdf.first_pages(target) == {"The book": 3, "1. One": 4, "2. Two": 5}
    texts = [page.extract_text() for page in reader.pages]
    assert "Text of the first." in texts[3]
    assert "4" in texts[3].split()
    assert "1. One" in texts[1]
    assert "4" in texts[1]
    targets = [
        note.get_object().get("/Dest") or note.get_object().get("/A") for note in reader.pages[3]["/Annots"]
    ]
    assert sum("/URI" not in target for target in targets) >= 3, sys.version
