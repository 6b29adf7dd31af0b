"""The slides of the built book: what each section says, every figure, no solution, and nothing cut off."""

import html
import re
from functools import cache

import make_slides
import pytest
from browser import open_browser
from chapter_export.catalogue import read_catalogue
from project_facts import ROOT, chapters

SIZES = ((1280, 800), (1024, 768))
MEASURE = """() => {
  const frame = document.querySelector("section.shown"), inner = frame.firstElementChild;
  const scale = new DOMMatrix(getComputedStyle(inner).transform).a;
  const over = [...frame.querySelectorAll("pre, img, table, mjx-container")].filter((one) =>
    one.scrollWidth * scale > frame.clientWidth + 1 || one.getBoundingClientRect().right > innerWidth);
  return {
    scale, over: over.length, down: inner.scrollHeight * scale - frame.clientHeight,
    raw: /\\$|\\\\(frac|text|sqrt)/.test([...inner.children].filter((one) => !one.matches("pre, aside"))
      .map((one) => one.innerText).join(" ").replace(/`[^`]*`/g, "")),
  };
}"""


@cache
def sections(path):
    """The headings of a chapter's sections that a lecture has something to say of."""
    named = make_slides.key_sentences()[path.stem]
    titles = re.findall(r"^###? (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return named, titles


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_each_sentence_belongs_to_a_section_and_hardly_a_section_has_none(path):
    named, titles = sections(path)
    assert [*named] == [title for title in titles if title in named]
    assert len({*titles} - {*named}) <= 4, "exercises, questions, where this went, and one of commands"
    for said in named.values():
        assert 1 <= len(said) <= 3
        assert [one for one in said if not 15 <= len(one) <= 160 or one[-1] not in ".?"] == []


@pytest.mark.built
@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_chapter_becomes_a_lecture(path, built):
    page = make_slides.slides_of(path, read_catalogue(ROOT))
    named, _ = sections(path)
    assert page.count("<section>") > len(named)
    titles = re.findall(r"^```\{exercise\} (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert page.count("<li>Exercise ") == len(titles)
    cells = make_slides.with_outputs(path, ROOT).cells
    end = next(place for place, cell in enumerate(cells) if "## Exercises" in cell.source)
    drawn = sum(
        "image/png" in output.get("data", {}) for cell in cells[:end] for output in cell.get("outputs", [])
    )
    assert page.count('src="data:image/png') >= drawn
    code = "".join(re.findall(r'<pre class="code">(.*?)</pre>', page, re.DOTALL))
    for part in ("Rubric", "check below"):
        assert part not in page
    for part in ("import</span>", "use_style", "manual_seed(0)"):
        assert part not in code


@pytest.mark.built
@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_captions_are_shown_and_answers_are_noted_and_what_is_folded_is_not_projected(path, built):
    page = make_slides.slides_of(path, read_catalogue(ROOT))
    cells = make_slides.with_outputs(path, ROOT).cells
    end = next(place for place, cell in enumerate(cells) if "## Three questions" in cell.source)
    shown = [cell.metadata.get("mystnb", {}) for cell in cells[:end]]
    assert page.count("<figcaption><p>") >= sum("figure" in one for one in shown)
    asides = "".join(re.findall(r"<aside>(.*?)</aside>", page, re.DOTALL))
    assert asides.count("<p>Ours:</p>") == sum(one.get("code_prompt_show") == "Ours" for one in shown)
    slides = re.sub(r"<aside>.*?</aside>", "", page, flags=re.DOTALL)
    projected = html.unescape(re.sub(r"<[^>]+>", "", slides))
    folded = [cell.source for cell in cells[:end] if "hide-cell" in cell.metadata.get("tags", [])]
    assert not [source for source in folded if source.splitlines()[-1] in projected]


@pytest.mark.built
def test_every_slide_fits_its_frame_and_needs_no_network(built, tmp_path):
    assert make_slides.main([]) == 0
    found, asked = [], []
    with open_browser() as browser:
        for width, height in SIZES:
            page = browser.new_page(viewport={"width": width, "height": height})
            page.on("request", lambda request: asked.append(request.url))
            for path in chapters():
                page.goto((ROOT / "_build" / "slides" / f"{path.stem}.slides.html").as_uri())
                page.wait_for_function("window.MathJax?.startup?.promise")
                page.evaluate("MathJax.startup.promise")
                for number in range(page.locator("section").count()):
                    page.evaluate(f"show({number})")
                    seen = page.evaluate(MEASURE)
                    if seen["scale"] < 0.55 or seen["down"] > 1 or seen["over"] or seen["raw"]:
                        found.append((width, path.stem, number + 1, seen))
            page.close()
    assert found == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_a_book_that_is_not_built_is_one_sentence(tmp_path, capsys):
    for name in ("_config.yml", "pyproject.toml", "book/references.bib"):
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "03_attention.md").write_bytes(
        (ROOT / "notebooks/03_attention.md").read_bytes()
    )
    assert make_slides.main([], tmp_path) == 1
    assert "03_attention.md is not in the built book: run `make book` first" in capsys.readouterr().err
    assert make_slides.main(["99"], tmp_path) == 2
    assert "no chapter begins with 99" in capsys.readouterr().err
