"""Drawings can be read on a phone, in the dark, by ear and in a notebook, and each is in the book once."""

import base64
import io
import itertools
import re
import shutil
from collections import Counter
from xml.etree import ElementTree

import drawings
import export_notebooks
import nbformat
import numpy as np
import pytest
from contrast import contrast
from drawings import FIXED, FOLDER, KEY, STYLE, SVG, names, picture_path, still, stills, variants, words
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from PIL import Image
from project_facts import ROOT, chapters
from vit_book.drawings import inlined

NAMES = names()
FILES = [path for name in NAMES for path in variants(name)]
CSS = re.sub(r"/\*.*?\*/", "", (ROOT / STYLE).read_text(encoding="utf-8"), flags=re.DOTALL)
USED = re.compile(r"^```\{drawing\} (\S+)$", re.MULTILINE)
COLOUR = re.compile(r"#[0-9a-f]{3,8}\b|\b(?:rgba?|hsla?|black|white|gr[ae]y)\b", re.IGNORECASE)
FACES = {True: FontProperties(family="DejaVu Sans Mono"), False: FontProperties(family="DejaVu Sans")}
SMALLEST = 9  # pixels
PHONE, TABLET = 358, 560  # columns of a page: at 390 pixels, and where the wide arrangement begins


def classes(element):
    return element.get("class", "").split()


def lines_of_text(root):
    """Every line of text: its words, its size, and the box around it in the drawing's own units."""
    whole = float(root.get("font-size"))
    for element in root.iter(f"{SVG}text"):
        size = float(element.get("font-size", whole))
        pieces = [(element.text or "", size)]
        for part in element:
            pieces += [(part.text or "", float(part.get("font-size", size))), (part.tail or "", size)]
        face = FACES["code" in classes(element)]
        width = sum(text_to_path.get_text_width_height_descent(t, face, False)[0] * s / 10 for t, s in pieces)
        x, y = float(element.get("x")), float(element.get("y"))
        kinds = classes(element)
        left = x if "start" in kinds else x - width if "end" in kinds else x - width / 2
        smallest = min(s for t, s in pieces if t)
        yield "".join(t for t, _ in pieces), smallest, (left, y - 0.72 * size, left + width, y + 0.2 * size)


@pytest.fixture(params=FILES, ids=lambda path: path.name.removesuffix(".svg"))
def path(request):
    return request.param


@pytest.fixture
def drawing(path):
    return ElementTree.parse(path).getroot()


def test_there_are_drawings_and_each_is_used_once():
    used = Counter(name for path in chapters() for name in USED.findall(path.read_text(encoding="utf-8")))
    assert NAMES
    assert used == dict.fromkeys(NAMES, 1)


@pytest.mark.parametrize("name", NAMES)
def test_says_what_it_shows(name):
    wide = ElementTree.parse(variants(name)[0]).getroot()
    title, description = words(name)
    assert len(title) > 10
    assert len(description) > 100
    assert wide.get("role") == "img"
    ids = [element.get("id") for element in wide.iter() if element.get("id")]
    assert ids == wide.get("aria-labelledby").split() == [f"drawing-{name}-title", f"drawing-{name}-desc"]


@pytest.mark.parametrize("name", NAMES)
def test_in_the_page_both_arrangements_have_words_and_no_id_is_there_twice(name):
    page = inlined(variants(name))
    ids = re.findall(r' id="([^"]+)"', page)
    labels = " ".join(re.findall(r'aria-labelledby="([^"]+)"', page)).split()
    assert labels == ids
    assert len(set(ids)) == len(ids) == 2 * len(variants(name))
    assert page.count('role="img"') == page.count("<svg ") == len(variants(name))
    assert re.findall(r"<desc[^>]*>([^<]*)</desc>", page) == [words(name)[1]] * len(variants(name))


def test_takes_all_colours_from_the_page(drawing, path):
    assert not COLOUR.search(path.read_text(encoding="utf-8").split("</desc>")[-1])
    for element in drawing.iter():
        assert not {"fill", "stroke", "style", "color", "font-family"} & set(element.attrib)


def test_its_classes_are_those_of_the_style_sheet(drawing):
    known = set(re.findall(r"\.([a-z][\w-]*)", CSS))
    assert {kind for element in drawing.iter() for kind in classes(element)} <= known


def declared(theme):
    """The variables that the site's style sheets give a value in a theme."""
    found = set()
    for sheet in (ROOT / "book/_static").glob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
        for selectors, rules in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
            if f'[data-theme="{theme}"]' in selectors or "html[data-theme]" in selectors:
                found |= set(re.findall(r"(--[\w-]+):", rules))
    return found


def test_the_style_sheet_uses_the_pages_variables_and_no_colour_of_its_own():
    assert not COLOUR.search(CSS)
    variables = set(re.findall(r"var\((--[\w-]+)\)", CSS))
    assert variables <= declared("light") & declared("dark")
    assert variables == set(FIXED)


def test_text_can_be_read_on_a_phone(drawing, path):
    *_, width, _ = map(float, drawing.get("viewBox").split())
    narrower = path.with_name(f"{path.stem}.narrow.svg").exists()
    scale = min(1, (TABLET if narrower else PHONE) / width)
    for text, size, _ in lines_of_text(drawing):
        assert size * scale >= SMALLEST, text


def test_text_stays_inside_and_apart(drawing):
    *_, width, height = map(float, drawing.get("viewBox").split())
    boxes = [(text, box) for text, _, box in lines_of_text(drawing)]
    for text, (left, top, right, bottom) in boxes:
        assert min(left, top) >= 0, text
        assert right <= width, text
        assert bottom <= height, text
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, (one, other)


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_is_small_transparent_and_shows_the_drawing(name):
    assert picture_path(name).stat().st_size < 40_000
    kept = np.asarray(Image.open(picture_path(name)).convert("RGBA"), dtype=float)
    drawn = np.asarray(Image.open(io.BytesIO(drawings.render(name))).convert("RGBA"), dtype=float)
    assert kept.shape == drawn.shape
    assert kept[0, 0, 3] == 0
    on_white = [image[..., :3] * image[..., 3:] / 255 + 255 - image[..., 3:] for image in (kept, drawn)]
    assert np.abs(on_white[0] - on_white[1]).mean() < 1


@pytest.mark.parametrize("name", stills())
def test_the_picture_of_a_widget_is_small_and_its_caption_asks_for_no_scripts(name):
    assert picture_path(name).stat().st_size < 30_000
    kept, drawn = (
        np.asarray(Image.open(io.BytesIO(picture)).convert("RGBA").convert("RGB"), dtype=float)
        for picture in (picture_path(name).read_bytes(), drawings.render(name))
    )
    assert np.abs(kept - drawn).mean() < 10  # of a photo in few colours
    assert kept.std() > 10
    alt, caption = still(name)[1:]
    assert len(alt) > 20
    assert caption.endswith(".")
    assert "JavaScript" not in caption


@pytest.mark.parametrize("colour", sorted({value for value in FIXED.values() if value.startswith("#")}))
def test_the_pictures_colours_read_on_light_and_on_dark(colour):
    assert min(contrast(colour, ground) for ground in ("#ffffff", "#111111")) >= 4


@pytest.mark.parametrize("folder", ["notebooks", "exercises", "vit_classroom/assignments/chapters"])
def test_notebooks_hold_the_pictures_with_words_and_a_numbered_caption(folder):
    shown = []
    for chapter in chapters():
        cells = nbformat.read(ROOT / folder / f"{chapter.stem}.ipynb", as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        shown += re.findall(r"!\[([^]]+)\]\(data:image/png;base64,([^)]+)\)\n\n\*Figure \d+\.\d+: ", text)
    expected = {". ".join(words(name)): picture_path(name).read_bytes() for name in NAMES}
    assert {alt: base64.b64decode(data) for alt, data in shown} == expected
    assert len(shown) == len(NAMES)


@pytest.mark.parametrize("folder", ["notebooks", "exercises", "vit_classroom/assignments/chapters"])
def test_notebooks_hold_each_widgets_picture_and_say_where_it_is_live(folder):
    for chapter in chapters():
        used = re.findall(r"^:::+\{widget\} (\S+)$", chapter.read_text(encoding="utf-8"), re.MULTILINE)
        cells = nbformat.read(ROOT / folder / f"{chapter.stem}.ipynb", as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        shown = re.findall(
            rf"\*\*Try it: live in the book, \[.+\]\(https://.+/{chapter.stem}\.html#vit-([\w-]+)\)\.\*\* .+"
            r"\n\n!\[([^]]+)\]\(data:image/png;base64,([^)]+)\)\n\n\*(.+)\*\n\n<details>\n"
            r"<summary>What to notice<",
            text,
        )
        assert [name for name, *_ in shown] == used
        for name, alt, data, caption in shown:
            assert (alt, caption) == still(f"widgets/{name}")[1:]
            assert base64.b64decode(data) == picture_path(f"widgets/{name}").read_bytes()


def test_a_stale_and_an_orphaned_picture_are_noticed_and_put_right(tmp_path, capsys):
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    (tmp_path / STYLE).parent.mkdir(parents=True)
    shutil.copy(ROOT / STYLE, tmp_path / STYLE)
    assert drawings.stale_pictures(tmp_path) == {}
    svg = variants(NAMES[0], tmp_path)[0]
    svg.write_text(svg.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    orphan = tmp_path / FOLDER / "gone.png"
    shutil.copy(picture_path(NAMES[0]), orphan)
    changed = picture_path(NAMES[0], tmp_path)
    assert drawings.stale_pictures(tmp_path) == {changed: NAMES[0], orphan: None}
    assert export_notebooks.refresh_pictures(tmp_path, check=True)
    assert f"stale: {FOLDER}/gone.png" in capsys.readouterr().out
    assert export_notebooks.refresh_pictures(tmp_path, check=False)
    assert drawings.stale_pictures(tmp_path) == {}
    assert Image.open(changed).info[KEY] == drawings.fingerprint(NAMES[0], tmp_path)
    style = (tmp_path / STYLE).read_text(encoding="utf-8")
    (tmp_path / STYLE).write_text(f"{style}/* of the page alone */", encoding="utf-8")
    assert drawings.stale_pictures(tmp_path) == {}
    (tmp_path / STYLE).write_text(style.replace("1.25", "1.5"), encoding="utf-8")
    assert set(drawings.stale_pictures(tmp_path).values()) == set(NAMES)


@pytest.mark.built
def test_the_page_shows_each_drawing_with_its_number(built):
    for chapter in chapters():
        page = (built / "notebooks" / f"{chapter.stem}.html").read_text(encoding="utf-8")
        used = USED.findall(chapter.read_text(encoding="utf-8"))
        figures = re.findall(r'<figure class="[^"]*\bdrawn\b.*?</figure>', page, re.DOTALL)
        assert [re.findall(r' id="drawing-([\w-]+)"', figure)[0] for figure in figures] == used
        for name, figure in zip(used, figures, strict=True):
            assert figure.count("<svg ") == len(variants(name))
            assert re.search(r'<figcaption>.*caption-number">[^<]*\b\d+\.\d+', figure, re.DOTALL)
