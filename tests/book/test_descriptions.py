"""What search engines, previews and language models read of the book."""

import re
from html import unescape
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
import yaml
from check_book import pages, read_page
from PIL import Image
from project_facts import ROOT, Repository, read_repository
from vit_book.descriptions import CARD, CARD_SIZE, tags
from vit_book.site_files import llms_text, sitemap

HOME = f"{read_repository().pages_url}/"


SHORTEST, LONGEST = 50, 160


@pytest.mark.parametrize("page", pages(ROOT))
def test_every_page_has_a_description_in_its_front_matter(page):
    _, front, _ = (ROOT / f"{page}.md").read_text(encoding="utf-8").split("---\n", 2)
    assert SHORTEST <= len(yaml.safe_load(front)["description"]) <= LONGEST


def test_tags_survive_quotes_and_brackets():
    made = tags('A "b" <c>', "d & e", "https://x/y.html", "https://x/", "Site", "article")
    assert 'property="og:title" content="A &quot;b&quot; &lt;c&gt;"' in made
    assert 'name="description" content="d &amp; e"' in made
    assert f'property="og:image" content="https://x/{CARD}"' in made


def test_the_site_map_is_xml_whatever_the_names_are():
    tree = ElementTree.fromstring(sitemap("https://x/", ["a", "b&c"]).encode())
    assert [place.text for place in tree.findall(".//{*}loc")] == ["https://x/a.html", "https://x/b&c.html"]


def test_llms_txt_has_a_title_a_summary_and_a_list_a_part():
    text = llms_text("https://x/", "T", "S.", [("One", "a", "A", "Of a."), ("Two", "b", "B", "Of b.")])
    assert text == (
        "# T\n\n> S.\n\n## One\n\n- [A](https://x/a.html): Of a.\n"
        "\n## Two\n\n- [B](https://x/b.html): Of b.\n"
    )


@pytest.mark.parametrize(
    ("slug", "address"),
    [("Some-School/vit", "https://some-school.github.io/vit"), ("me/Me.github.io", "https://me.github.io")],
)
def test_the_address_is_that_of_github_pages(slug, address):
    assert Repository(f"https://github.com/{slug}", "main").pages_url == address


def test_the_card_has_the_size_that_its_tags_say():
    card = Image.open(ROOT / "book" / CARD)
    assert card.size == CARD_SIZE
    assert card.mode == "RGB"  # on a dark ground, too, it is read


def contents(soup, attribute, name):
    return [tag["content"] for tag in soup.find_all("meta", {attribute: name})]


def html_pages(built):
    return [path for path in built.rglob("*.html") if "_static" not in path.relative_to(built).parts]


@pytest.mark.built
def test_every_page_has_one_description_and_one_viewport(built):
    for path in html_pages(built):
        soup = read_page(path)
        (description,) = contents(soup, "name", "description")
        assert SHORTEST <= len(description) <= LONGEST, f"{path.name}: {description}"
        assert not re.search(r"\\\(|[`{}$]|\(\)", description), f"{path.name}: {description}"
        assert len(soup.find_all("meta", {"name": "viewport"})) == 1, path


@pytest.mark.built
def test_no_two_chapters_say_the_same(built):
    said = [contents(read_page(built / f"{page}.html"), "name", "description")[0] for page in pages(ROOT)]
    assert len(set(said)) == len(said)


@pytest.mark.built
def test_every_page_says_where_it_is_and_what_a_link_to_it_shows(built):
    for path in html_pages(built):
        soup, name = read_page(path), path.relative_to(built).as_posix()
        if name == "404.html":  # it stands for any address
            continue
        address = HOME + ("book/index.html" if name == "index.html" else name)
        assert [tag["href"] for tag in soup.find_all("link", rel="canonical")] == [address]
        assert contents(soup, "property", "og:url") == [address]
        assert contents(soup, "property", "og:description") == contents(soup, "name", "description")
        (title,) = contents(soup, "property", "og:title")
        assert soup.title.get_text().startswith(title)
        kind = "website" if name in ("index.html", "book/index.html") else "article"
        assert contents(soup, "property", "og:type") == [kind]
        (image,) = contents(soup, "property", "og:image")
        assert (built / urlsplit(image).path.removeprefix(urlsplit(HOME).path)).is_file()
        assert contents(soup, "property", "og:image:alt")[0]


@pytest.mark.built
def test_the_landing_page_says_its_title_once(built):
    title = read_page(built / "book" / "index.html").title.get_text()
    assert title == "Vision Transformer from scratch"
    assert read_page(built / "book" / "notation.html").title.get_text().endswith(f" — {title}")


@pytest.mark.built
def test_the_site_map_and_llms_txt_list_what_is_there(built):
    tree = ElementTree.parse(built / "sitemap.xml")
    listed = [place.text.removeprefix(HOME).removesuffix(".html") for place in tree.findall(".//{*}loc")]
    assert set(pages(ROOT)) <= set(listed)
    assert all((built / f"{name}.html").exists() for name in listed)
    llms = (built / "llms.txt").read_text(encoding="utf-8")
    for name in pages(ROOT)[1:]:
        (description,) = contents(read_page(built / f"{name}.html"), "name", "description")
        assert f"]({HOME}{name}.html): {unescape(description)}" in llms
    assert f"Sitemap: {HOME}sitemap.xml" in (built / "robots.txt").read_text(encoding="utf-8")
