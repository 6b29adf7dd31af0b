"""A chapter opens with its part, its place in the model and a strip of facts."""

from html.parser import HTMLParser

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from project_facts import ROOT, chapter_number, chapters
from vit_book.opener import PARTS, addresses, facts, part_of
from vit_book.place import PLACES, place_drawing, shapes

NUMBERS = [chapter_number(path.stem) for path in chapters(ROOT)]


class Shapes(HTMLParser):
    """Collects the classes of every shape of a drawing."""

    def __init__(self, html):
        super().__init__()
        self.classes = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag in ("rect", "path", "circle"):
            self.classes.append(dict(attrs)["class"].split())


def test_every_chapter_has_a_place_and_no_place_is_left_over():
    assert sorted(PLACES) == NUMBERS, "give each chapter its place in vit_book/place.py"


@pytest.mark.parametrize("number", NUMBERS)
def test_the_drawing_colours_the_parts_of_the_chapter_and_no_others(number):
    parts, caption = PLACES[number]
    drawn = Shapes(place_drawing(number)).classes
    coloured = [set(names) for names in drawn if "here" in names]
    assert all(names & set(parts) for names in coloured)
    assert set(parts) <= set().union(*coloured)
    assert len(drawn) == len(shapes())
    assert f'aria-label="Where we are: {caption}"' in place_drawing(number)


@pytest.mark.parametrize("path", chapters(ROOT), ids=lambda path: path.stem)
def test_the_part_is_the_one_whose_page_lists_the_chapter(path):
    page = (ROOT / "book" / f"{part_of(chapter_number(path.stem))}.md").read_text(encoding="utf-8")
    assert f"notebooks/{path.stem}`" in page


def test_the_parts_are_called_as_their_pages():
    for name, title in PARTS.items():
        page = (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8")
        assert f"# {title.replace(' · ', ': ')}" in page.splitlines()


def test_a_line_of_facts_is_split_at_its_dots():
    needs, time, link = nodes.strong("", "Needs"), nodes.strong("", "Time"), nodes.reference("", "2. Tokens")
    line = nodes.paragraph(
        "", "", needs, nodes.Text(" "), link, nodes.Text(" · "), time, nodes.Text(" 5 minutes ·\n")
    )
    split = [[node.astext().strip() for node in piece] for piece in facts(line)]
    assert split == [["Needs", "2. Tokens"], ["Time", "5 minutes"]]


@pytest.mark.built
@pytest.mark.parametrize("path", chapters(ROOT), ids=lambda path: path.stem)
def test_a_built_chapter_opens_with_all_of_it(built, path):
    page = (built / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
    opener = page[
        page.index('<header class="opener">') : page.index("</header>", page.index('class="opener"'))
    ]
    assert PARTS[part_of(chapter_number(path.stem))] in opener
    assert f'<span class="opener-number">{chapter_number(path.stem)}.</span>' in opener
    strip = page[page.index('<div class="strip') : page.index('class="get"')]
    assert [name for name in ("Needs", "Time", "Code") if f">{name}</p>" not in strip] == []
    assert "<strong>Needs</strong>" not in page
    assert addresses(f"notebooks/{path.stem}") in page


def test_each_link_leads_where_it_says():
    links = {
        link.text: link["href"]
        for link in BeautifulSoup(addresses("notebooks/03_attention"), "html.parser")("a")
    }
    assert links["Open in Colab"].endswith("/notebooks/03_attention.ipynb")
    assert links["Exercises in Colab"].endswith("/exercises/03_attention.ipynb")
