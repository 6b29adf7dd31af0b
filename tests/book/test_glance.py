"""The landing page's numbers are those of the results that ship."""

import pytest
from bs4 import BeautifulSoup
from vit_book.glance import tiles

from vit_lab import load_result


def test_they_are_first_answers_on_test_photos_and_a_plain_vits():
    (_, _), (half, _), (kinds, _) = tiles()
    assert kinds == f"{load_result('tiny-imagenet_weights')['test_accuracy']:.1%}"
    plain = load_result("cifar10-half-hour-remedies")
    assert half == f"{plain['test_accuracy_mean']:.1%}"
    assert "stem" not in plain["config"]["model"]


@pytest.mark.built
def test_the_landing_page_shows_them(built):
    page = (built / "book/index.html").read_text(encoding="utf-8")
    assert all(f"<strong>{number}</strong>" in page for number, _ in tiles())


@pytest.mark.built
def test_the_landing_page_leads_to_the_book_to_the_playground_and_to_colab(built):
    page = BeautifulSoup((built / "book/index.html").read_text(encoding="utf-8"), "html.parser")
    links = {link.get_text(): link["href"] for link in page.select(".get a")}
    assert list(links) == ["Start with Patches", "Try the model", "Open in Colab"]
    assert links["Start with Patches"] == "../notebooks/01_patches.html"
    assert links["Open in Colab"].endswith("/notebooks/01_patches.ipynb")
    assert links["Try the model"] == "playground.html"
    cards = page.select(".parts > .part")
    assert [card.select_one("h3 a").get_text() for card in cards] == ["Build it", "Train it", "Look inside"]
    assert all(card.select_one("svg") for card in cards)
