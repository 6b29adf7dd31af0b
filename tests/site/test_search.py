"""What the search finds, and in which order."""

import pytest

pytestmark = pytest.mark.site


def found(page, book, asked, at_least=5):
    """The results of a search, each as its title and its excerpt in one text."""
    page.goto(f"{book}search.html?q={asked}")
    page.locator("#search-results li .context").nth(at_least - 1).wait_for()
    return page.locator("#search-results ul.search > li").all_inner_texts()


def test_a_term_is_defined_and_chapters_come_in_the_books_order(page, book):
    results = found(page, book, "softmax")
    assert any("softmax: Turns a row of numbers into shares" in one for one in results[:2])
    chapters = [int(one.partition(".")[0]) for one in results if one[0].isdigit()]
    assert len(chapters) > 5
    assert chapters == sorted(chapters)


def test_a_module_is_shown_with_its_own_words(page, book):
    title, *_, said = found(page, book, "assignments.alignment", 3)[2].split("\n")
    assert title == "assignments > assignments.alignment"
    assert said.startswith("assignments.alignment Where the cells of a chapter are in a student")


def test_a_section_of_that_name_comes_before_pages_that_mention_it(page, book):
    assert found(page, book, "timm")[0].startswith("Take it with you > timm")
    assert found(page, book, "weight+decay")[0].startswith("8. A first training run > Weight decay")
