"""Drawings: the SVG files of book/drawings, which pages of the book hold, and their pictures for notebooks.

NAME.svg          what the page shows, with a title and a description for those who cannot see it
NAME.narrow.svg   the same on a phone, where another arrangement reads better; it needs neither
NAME.png          the same for notebooks, which know no style sheet: fixed colours that read on light and dark

The still figure of a widget, in book/widgets/NAME.html, has such a picture beside it, too. Here its name is
widgets/NAME.

The picture is kept, not made anew each time, since another machine may round a pixel in another way. It
carries a fingerprint of what it was drawn from, so that a stale one is noticed.
"""

import base64
import hashlib
import io
import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

from project_facts import ROOT

FOLDER, STYLE = "book/drawings", "book/_static/drawings.css"
WIDGETS, FILES = "widgets", "book/_static/vit"  # in book/; and what STATIC stands for in them
NEEDS = re.compile(r"\s*[^.]*needs JavaScript\.$")  # how the caption of a still figure ends
SVG = "{http://www.w3.org/2000/svg}"
KEY = "drawn from"
PAGE = "/* ---- in the page"  # where the part of the style sheet begins that pictures do without
ZOOM, COLOURS = 1.5, 64  # of the pictures
FONTS = ("DejaVuSans.ttf", "DejaVuSans-Oblique.ttf", "DejaVuSansMono.ttf")  # which matplotlib brings along
#: What stands for the page's variables in a picture on an unknown ground.
FIXED = {
    "--pst-color-text-base": "#777777",
    "--pst-color-text-muted": "#777777",
    "--pst-font-family-base": "'DejaVu Sans'",
    "--pst-font-family-monospace": "'DejaVu Sans Mono'",
    "--vit-blue": "#1a7fc1",
    "--vit-blue-wash": "rgba(26, 127, 193, 0.14)",
    "--vit-code-wash": "rgba(128, 128, 128, 0.1)",
    "--vit-orange": "#b56c00",
    "--vit-orange-wash": "rgba(224, 138, 0, 0.16)",
}


def names(root: Path = ROOT) -> list[str]:
    """The names of all drawings."""
    return sorted(path.stem for path in (root / FOLDER).glob("*.svg") if "." not in path.stem)


def variants(name: str, root: Path = ROOT) -> list[Path]:
    """The files of a drawing: for wide screens, and for narrow ones where that differs."""
    paths = [root / FOLDER / f"{name}{end}" for end in (".svg", ".narrow.svg")]
    return [path for path in paths if path.exists()]


def words(name: str, root: Path = ROOT) -> tuple[str, str]:
    """The title and the description of a drawing."""
    tree = ElementTree.parse(root / FOLDER / f"{name}.svg").getroot()
    title, description = (tree.findtext(f"{SVG}{tag}", "") for tag in ("title", "desc"))
    return title, description


def stills(root: Path = ROOT) -> list[str]:
    """The names of all widgets whose still figure is drawn, `widgets/NAME`."""
    paths = (root / "book" / WIDGETS).glob("*.html")
    return sorted(f"{WIDGETS}/{path.stem}" for path in paths if "<svg" in path.read_text(encoding="utf-8"))


def still(name: str, root: Path = ROOT) -> tuple[str, str, str]:
    """The still figure of a widget: its SVG, its words, and its caption but for the need of JavaScript."""

    def inside(found: re.Match[str]) -> str:
        picture = (root / FILES / found[1]).read_bytes()
        kind = "png" if found[1].endswith(".png") else "jpeg"
        return f'"data:image/{kind};base64,{base64.b64encode(picture).decode()}"'

    html = (root / "book" / f"{name}.html").read_text(encoding="utf-8")
    svg = re.findall(r"<svg.*?</svg>", html, re.DOTALL)[0].replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1)
    alt, caption = (unescape(re.findall(p, html)[0]) for p in ('aria-label="(.*?)"', "<figcaption>(.*?)<"))
    alone = re.sub('"STATIC/([^"]+)"', inside, svg).replace("currentColor", FIXED["--pst-color-text-base"])
    return alone, alt, NEEDS.sub("", caption)


def source(name: str, root: Path = ROOT) -> str:
    """The SVG that a picture is drawn from."""
    if name.startswith(WIDGETS):
        return still(name, root)[0]
    return (root / FOLDER / f"{name}.svg").read_text(encoding="utf-8")


def picture_path(name: str, root: Path = ROOT) -> Path:
    """Where the picture of a drawing, or of a widget's still figure, lies."""
    return root / ("book" if name.startswith(WIDGETS) else FOLDER) / f"{name}.png"


def style_of_pictures(root: Path = ROOT) -> str:
    """The style sheet of drawings, with fixed values in place of the page's variables."""
    style = (root / STYLE).read_text(encoding="utf-8").partition(PAGE)[0]
    return re.sub(r"var\((--[\w-]+)\)", lambda match: FIXED[match[1]], style)


def fingerprint(name: str, root: Path = ROOT) -> str:
    """What the picture of a drawing depends on: the drawing, its style and how it is rendered."""
    content = "\n".join([source(name, root), style_of_pictures(root), *FONTS, str(ZOOM), str(COLOURS)])
    return hashlib.sha256(content.encode()).hexdigest()


def stale_pictures(root: Path = ROOT) -> dict[Path, str | None]:
    """The pictures that are missing or were drawn from something else, with the names of their drawings.

    A picture whose drawing is gone has none: None.
    """
    from PIL import Image

    wanted = {picture_path(name, root): name for name in (*names(root), *stills(root))}
    there = [path for folder in (FOLDER, f"book/{WIDGETS}") for path in (root / folder).glob("*.png")]
    stale: dict[Path, str | None] = dict.fromkeys(set(there) - set(wanted))
    for path, name in wanted.items():
        if not path.exists() or Image.open(path).info.get(KEY) != fingerprint(name, root):
            stale[path] = name
    return dict(sorted(stale.items()))


def render(name: str, root: Path = ROOT) -> bytes:
    """Draw a drawing with fixed colours on a transparent ground, as a PNG."""
    import matplotlib
    import resvg_py

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    svg = ElementTree.fromstring(source(name, root))
    drawn, shown = (float(number) for number in (svg.get("viewBox", "").split()[2], svg.get("width", 0)))
    picture = resvg_py.svg_to_bytes(
        svg_string=ElementTree.tostring(svg, encoding="unicode"),
        style_sheet=style_of_pictures(root),
        skip_system_fonts=True,
        font_files=[str(folder / font) for font in FONTS],
        font_family="DejaVu Sans",
        width=round(shown if name.startswith(WIDGETS) else ZOOM * drawn),
    )
    return bytes(picture)


def draw(name: str, root: Path = ROOT) -> None:
    """Write the picture of a drawing, in few colours and with its fingerprint."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    about = PngInfo()
    about.add_text(KEY, fingerprint(name, root))
    image = Image.open(io.BytesIO(render(name, root))).convert("RGBA")
    few = image.quantize(COLOURS, Image.Quantize.FASTOCTREE)
    few.save(picture_path(name, root), pnginfo=about, optimize=True)
