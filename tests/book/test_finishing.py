"""The last step of a build, on small pages: what goes, what stays, and that a second pass changes nothing."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from fontTools.ttLib import TTFont
from matplotlib import get_data_path
from PIL import Image, ImageDraw
from vit_book import finishing, lean_files
from vit_book.lean_files import lighten_pictures, lighter, likeness

HEAD = """<html lang="en" data-theme="auto"><head>
<meta charset="utf-8">
<script data-cfasync="false">document.documentElement.dataset.theme = "auto";</script>
<link href="_static/styles/pydata-sphinx-theme.css?digest=55" rel="stylesheet" />
<link rel="stylesheet" type="text/css" href="_static/sphinx-design.min.css?v=1" />
<link rel="stylesheet" type="text/css" href="_static/claims.css?v=1" />
<link rel="stylesheet" type="text/css" href="_static/landing.css?v=1" />
<script defer src="_static/scripts/fontawesome.js?digest=55"></script>
<script src="_static/documentation_options.js?v=9"></script>
<script src="_static/doctools.js?v=9"></script>
<script src="_static/copybutton.js?v=9"></script>
<script>window.MathJax = {"options": {}}</script>
<script defer="defer" src="_static/mathjax/tex-chtml.js?v=20daa33d"></script>
<script src="_static/searchtools.js"></script><script src="searchindex.js"></script>
</head>"""
FORMULA = '<span class="math notranslate nohighlight">\\(x\\)</span>'


def book_page(body):
    return f"<!DOCTYPE html>{HEAD}<body><main><article>{body}</article></main></body></html>"


def loaded(page):
    return re.findall(r'(?:src|href)="([^"?]*)', page)


def test_mathjax_stays_where_formulas_are_and_only_the_part_that_is_used():
    plain = finishing.formulas_where_they_are(book_page("aftermath"))
    assert not [name for name in loaded(plain) if "mathjax" in name]
    assert "MathJax" not in finishing.formulas_where_they_are(book_page("no formula"))
    page = finishing.formulas_where_they_are(book_page(FORMULA))
    assert "_static/mathjax/formulas.js" in loaded(page)
    assert "_static/mathjax/tex-chtml.js" not in loaded(page)
    assert "window.MathJax" in page
    assert re.search(r'<script async src="[^"]*formulas.js"></script>\s*</body>', page)
    assert finishing.formulas_where_they_are(page) == page


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("", set()),
        ('<div id="search-results"></div>', {"_static/searchtools.js", "searchindex.js"}),
        ('<div class="highlight"></div>', {"_static/copybutton.js"}),
        ('<div class="sd-card"></div>', {"_static/sphinx-design.min.css"}),
        ('<p class="claims-count"></p>', {"_static/claims.css"}),
        ('<div class="promise docutils container"></div>', {"_static/landing.css"}),
    ],
)
def test_companions_stay_where_they_are_needed_and_the_icon_script_nowhere(body, kept):
    companions = {"searchtools", "searchindex", "copybutton", "sphinx-design", "fontawesome"}
    names = loaded(finishing.drop_unused_companions(book_page(body)))
    companions |= {"claims.css", "landing.css"}
    assert {name for name in names if any(word in name for word in companions)} == kept
    assert {"_static/doctools.js", "_static/documentation_options.js"} <= set(names)


def test_scripts_wait_but_the_one_that_the_page_speaks_to():
    scripts = re.findall(r"<script[^>]*src[^>]*>", finishing.scripts_after_the_text(book_page("")))
    assert [script for script in scripts if " defer" not in script and " async" not in script] == [
        '<script src="_static/documentation_options.js?v=9">'
    ]


def test_letters_are_asked_for_before_scripts():
    hurried = '<link rel="preload" as="script" href="_static/scripts/bootstrap.js?digest=5" />'
    page = finishing.letters_first(book_page("").replace("<link", f"{hurried}<link", 1))
    assert "bootstrap" not in page
    fonts = re.findall('<link rel="preload" as="font" type="font/woff2" href="([^"]*)" crossorigin />', page)
    assert [font.rsplit("/")[-1] for font in fonts] == [
        "literata-latin-wght-normal.woff2",
        "fa-solid-900.woff2",
    ]
    assert finishing.letters_first(page) == page


def test_what_the_theme_writes_is_put_right_once():
    drawing = '<svg><title id="a">Patches</title><desc id="b">Cut.</desc></svg>'
    body = f'<section id="exercise-content">a</section><section id="solution-content">b</section>{drawing}'
    page = finishing.put_right(book_page(body))
    assert '<html lang="en" data-theme="light">' in page  # without scripts
    assert "prefers-color-scheme" in page
    assert "<section>a</section><section>b</section>" in page
    assert '<title class="nohighlight" id="a">' in page
    assert '<desc class="nohighlight" id="b">' in page
    assert finishing.put_right(page) == page


def test_a_number_stays_with_what_it_counts():
    page = finishing.together(
        book_page('<p title="5 % x">50 % of 8 × 8, or (a + b) × 3 <b>9</b> %.</p><pre>5 %</pre>')
    )
    assert (
        '<p title="5 % x">50\xa0% of 8\xa0×\xa08, or (a + b)\xa0×\xa03 <b>9</b> %.</p><pre>5 %</pre>' in page
    )
    assert finishing.together(page) == page


def test_printed_sentences_may_break_and_columns_may_not():
    def printed(text):
        return f'<div class="output stream highlight"><div><pre>{text}</pre></div></div>'

    page = book_page(printed("patches of 5: expected 4\nor 8") + printed("a    1\nb    2"))
    sentences, columns = re.findall('<div class="(output[^"]*)"', finishing.sentences(page))
    assert sentences == "output stream highlight sentences"
    assert columns == "output stream highlight"
    assert finishing.sentences(finishing.sentences(page)) == finishing.sentences(page)


def test_pictures_of_the_text_say_their_size_and_wait(tmp_path):
    Image.new("RGB", (40, 30)).save(tmp_path / "a.png")
    page = book_page(
        '<article><img alt="2" src="a.png"/></article><img src="gone.png"><img src="a.png" width="5">'
    )
    first, gone, sized = re.findall("<img[^>]*>", finishing.pictures_when_they_near(page, tmp_path))
    assert first == '<img loading="lazy" decoding="async" width="40" height="30" alt="2" src="a.png"/>'
    assert gone == '<img src="gone.png">'
    assert 'loading="lazy"' in sized  # behind an article in the article
    assert 'width="5"' in sized
    assert "height" not in sized


# ---- style sheets and fonts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("css", "left"),
    [
        (".card{a:b}.fa-cat:before{a:b}", ".card{a:b}"),
        (".fa-cat,.card{a:b}", ".card{a:b}"),
        (".card .fa-cat{a:b}", ""),
        ("p:not(.fa-cat){a:b}", "p:not(.fa-cat){a:b}"),
        ("@media print{.fa-cat{a:b}.card{c:d}}", "@media print{.card{c:d}}"),
        ("@media print{.fa-cat{a:b}}", ""),
        ('@font-face{font-family:"x"}', '@font-face{font-family:"x"}'),
        (":root{--x:1.5}", ":root{--x:1.5}"),
        ("a>b,[data-x]{width:.5em}", "a>b,[data-x]{width:.5em}"),
    ],
)
def test_rules_for_classes_that_no_page_has_go(css, left):
    assert re.sub(r"\s*\n\s*", "", lean_files.prune(css, {"card"})) == left


def test_fonts_keep_the_icons_that_are_used(tmp_path):
    font = TTFont(Path(get_data_path()) / "fonts/ttf/DejaVuSans.ttf")
    font.save(tmp_path / "icons.ttf")
    font.flavor = "woff2"
    font.save(tmp_path / "icons.woff2")
    lean_files.subset_icons(tmp_path, {ord("A"), ord("é")})
    for name in ("icons.ttf", "icons.woff2"):
        assert set(TTFont(tmp_path / name).getBestCmap()) == {ord("A"), ord("é")}
        assert (tmp_path / name).stat().st_size < 8000
        records = [record for record in TTFont(tmp_path / name)["name"].names if record.nameID in (1, 4, 6)]
        assert {*map(str, records)} == {"BookIcons"}, "the whole font's name is reserved"


# ---- figures ----------------------------------------------------------------------------------------


def drawing():
    picture = Image.new("RGBA", (300, 200))
    brush = ImageDraw.Draw(picture)
    brush.line((10, 10, 290, 190), fill=(18, 102, 158, 255), width=5)
    brush.ellipse((90, 40, 200, 150), fill=(240, 171, 74, 255))
    return picture


def photo():
    waves = np.random.default_rng(0).normal(size=(3, 3))
    y, x = np.mgrid[:200, :300] / 60
    channels = [np.sin(x * a + b) * np.cos(y * c) for a, b, c in waves]
    return Image.fromarray((np.stack(channels, axis=-1) * 127 + 128).astype(np.uint8)).convert("RGBA")


def test_drawings_and_photos_become_lighter_and_look_the_same(tmp_path):
    images = tmp_path / "_images"
    images.mkdir()
    drawing().save(images / "drawing.png")
    photo().save(images / "photo.png")
    before = {path.stem: path.stat().st_size for path in images.iterdir()}
    assert lighten_pictures(tmp_path, tmp_path / "cache") == ["drawing.png", "photo.png"]
    assert sorted(path.name for path in images.iterdir()) == ["drawing.webp", "photo.webp"]
    assert (images / "drawing.webp").stat().st_size < before["drawing"]
    assert (images / "photo.webp").stat().st_size < before["photo"] / 4
    assert likeness(drawing(), Image.open(images / "drawing.webp")) > 42
    assert likeness(photo(), Image.open(images / "photo.webp")) > 35
    again = {path.name: path.read_bytes() for path in images.iterdir()}
    assert lighten_pictures(tmp_path, tmp_path / "cache") == []
    assert {path.name: path.read_bytes() for path in images.iterdir()} == again


def test_a_file_that_gets_no_lighter_stays():
    noise = np.random.default_rng(0).integers(0, 2, (256, 256)).astype(bool)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, format="PNG")
    assert lighter(file.getvalue()) == (".png", file.getvalue())


def test_likeness_is_that_of_the_formula_and_blind_to_what_is_transparent():
    grey = Image.new("RGBA", (9, 9), (100, 100, 100, 255))
    assert likeness(grey, Image.new("RGBA", (9, 9), (110, 110, 110, 255))) == pytest.approx(28.13, abs=0.01)
    assert likeness(Image.new("RGBA", (9, 9), (0, 0, 0, 0)), Image.new("RGBA", (9, 9), (255, 0, 0, 0))) > 90


# ---- the whole --------------------------------------------------------------------------------------


def test_a_second_pass_changes_nothing(tmp_path):
    static = tmp_path / "_static"
    (static / "styles").mkdir(parents=True)
    (static / "vendor/fontawesome/webfonts").mkdir(parents=True)
    (static / "styles/pydata-sphinx-theme.css").write_text(".card{a:b}.fa-cat:before{content:'\\f09b'}")
    (tmp_path / "_images").mkdir()
    file = io.BytesIO()
    photo().save(file, "PNG")
    (tmp_path / "_images" / "photo.png").write_bytes(file.getvalue())
    pictures = "".join(f'<img src="_images/photo.png" alt="{number}">' for number in range(2))
    body = f'{FORMULA}<div class="card"></div>{pictures}'
    (tmp_path / "index.html").write_text(book_page(body))
    passes = []
    for _ in range(2):
        finishing.finish(tmp_path, tmp_path / "cache")
        passes.append({path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()})
    assert passes[0] == passes[1]
    page = (tmp_path / "index.html").read_text()
    assert page.count("_images/photo.webp") == 2
    assert re.search(r'pydata-sphinx-theme\.css\?v=\w{8}"', page)
