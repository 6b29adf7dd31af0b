"""The files beside the pages, made light: MathJax, figures, style sheets and icon fonts; and their licences.

The whole of MathJax's `tex-chtml.js` is 1.1 MB, nearly half of it a menu. `formulas.js` holds the components
that are needed, each as a function that MathJax's own loader calls where it would otherwise fetch a file: no
menu, no speech, formulas are not tab stops.
"""

import io
import json
import logging
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.metadata import distribution
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import tinycss2
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from joblib import cpu_count
from PIL import Image

BUNDLE = "formulas.js"
COMPONENTS = ("core", "input/tex", "output/chtml", "output/chtml/fonts/tex", "a11y/assistive-mml")
KEPT = (BUNDLE, "output/chtml/fonts/woff-v2", "input/tex/extensions")

# A small x of Literata is so much taller than one of MathJax's letters. Left to itself, MathJax measures the
# text around a formula: often before the page's own letters have come, and then it ends up a tenth too small.
SCALE = 1.147

# assistive-mml stays: it is what readers who listen to the page hear of a formula.
TEMPLATE = Path(__file__).with_name("formulas.js").read_text(encoding="utf-8")
LICENCE = Path(__file__).with_name("mathjax-licence.txt")
LICENCES = Path(__file__).with_name("licences.txt")
OF_A_PACKAGE = re.compile(r"\S+\.dist-info/(licenses/)?LICENSE")
# Packages whose files are on the site as they are.
COMPANIONS = (
    *("sphinx", "sphinx-book-theme", "pydata-sphinx-theme", "sphinx-copybutton", "sphinx-togglebutton"),
    *("sphinx-design", "sphinx-exercise", "sphinx-thebe", "myst-nb"),
)


def bundle(mathjax: Path) -> str:
    """Write one script of the components in the folder `mathjax` that the book needs."""
    parts = ",\n".join(
        f"{json.dumps(name)}: () => {{\n{(mathjax / f'{name}.js').read_text(encoding='utf-8')}\n}}"
        for name in COMPONENTS
    )
    startup = (mathjax / "startup.js").read_text(encoding="utf-8")
    text = TEMPLATE.replace("__NAMES__", json.dumps(COMPONENTS)).replace("__SCALE__", str(SCALE))
    return text.replace("__PARTS__", parts).replace("__STARTUP__", startup)


def lighten_mathjax(static: Path) -> None:
    """Leave the bundle, its fonts and the extensions that formulas may ask for; drop the rest (20 MB)."""
    mathjax = static / "mathjax"
    if not (mathjax / "startup.js").exists():
        return
    (mathjax / BUNDLE).write_text(bundle(mathjax), encoding="utf-8")
    shutil.copyfile(LICENCE, mathjax / "LICENSE")
    kept = [mathjax / name for name in (*KEPT, "LICENSE")]
    for path in sorted(mathjax.rglob("*"), reverse=True):
        if path.is_file() and not any(path == place or place in path.parents for place in kept):
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            shutil.rmtree(path)


# ---- figures: a palette or a photo's quality, where the eye sees no difference ----------

SAME_TO_THE_EYE = 42.0  # decibels of signal over what the palette changes, on white and on black
PHOTO_QUALITY = 82  # of WebP with losses, 0 to 100
WORTH_IT = 0.9  # a lighter file has at most this share of the bytes
METHOD = 3  # counts up when this file makes other pictures of the same input


def likeness(picture: Image.Image, other: Image.Image) -> float:
    """How alike two pictures look, in decibels: the peak signal-to-noise ratio on the worse ground."""
    errors = [_on(picture, ground) - _on(other, ground) for ground in (0, 255)]
    worst = max(float(np.square(error).mean()) for error in errors)
    return 10 * np.log10(255**2 / max(worst, 1e-9))


def _on(picture: Image.Image, ground: int) -> np.ndarray:
    pixels = np.asarray(picture.convert("RGBA"), dtype=np.float32)
    opacity = pixels[..., 3:] / 255
    return pixels[..., :3] * opacity + ground * (1 - opacity)


def lighter(png: bytes) -> tuple[str, bytes]:
    """The ending and the bytes of a lighter file with the same picture, or the given ones.

    A drawing of few colours keeps 256 of them, without a further loss. Else the smaller of two: every pixel
    as it is, or what a photo may lose.
    """
    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    drawn = picture.quantize(256, method=Image.Quantize.FASTOCTREE).convert("RGBA")
    if likeness(picture, drawn) >= SAME_TO_THE_EYE:
        small = _webp(drawn, lossless=True)
    else:
        small = min(_webp(picture, lossless=True), _webp(picture, quality=PHOTO_QUALITY), key=len)
    return (".webp", small) if len(small) <= WORTH_IT * len(png) else (".png", png)


def _webp(picture: Image.Image, **how: float) -> bytes:
    file = io.BytesIO()
    picture.save(file, format="WEBP", method=5, **how)
    return file.getvalue()


def lighten_pictures(site: Path, cache: Path) -> list[str]:
    """Put lighter files in the place of the figures in `_images`; name the PNG files that became WebP."""
    cache.mkdir(parents=True, exist_ok=True)
    paths = sorted((site / "_images").glob("*.png"))
    with ThreadPoolExecutor(cpu_count()) as pool:  # encoders leave Python alone
        found = list(pool.map(lambda path: _lighter_file(path.read_bytes(), cache), paths))
    renamed = []
    for path, made in zip(paths, found, strict=True):
        shutil.copyfile(made, path.with_suffix(made.suffix))
        if made.suffix != ".png":
            path.unlink()
            renamed.append(path.name)
    return renamed


def _lighter_file(png: bytes, cache: Path) -> Path:
    """Return the file of the cache with a lighter picture, made if it is not there."""
    key = f"{sha256(png).hexdigest()[:32]}-{METHOD}"
    made = next(cache.glob(f"{key}.*"), None)
    if made is None:
        ending, content = lighter(png)
        made = cache / f"{key}{ending}"
        made.write_bytes(content)
        (cache / f"{sha256(content).hexdigest()[:32]}-{METHOD}{ending}").write_bytes(content)
    return made


# ---- style sheets and icon fonts of the theme, cut down to what the pages use ----------

SHEETS = ("styles/pydata-sphinx-theme.css", "sphinx-design.min.css", "mystnb.*.css")
ICON_FONTS = "vendor/fontawesome/webfonts"
NAMES = (1, 3, 4, 6)  # of a font, which its licence keeps for the whole one
WORD = re.compile(r"[A-Za-z_][\w-]*")
ESCAPED = re.compile(r"\\([ef][0-9a-f]{3})\b", re.IGNORECASE)  # an icon in CSS, written as a number
DRAWN = re.compile("[\ue000-\uf8ff]")  # and written as itself, in the range that fonts have to themselves
NOTICE = re.compile(r"/\*!.*?\*/", re.DOTALL)
NESTED = ("media", "supports", "layer")


def words_used(site: Path) -> set[str]:
    """Every word of the pages and of the scripts beside them: a class that is none of these cannot occur."""
    pages = [path for path in site.rglob("*.html") if "_sources" not in path.parts]
    scripts = [path for path in (site / "_static").rglob("*.js") if "mathjax" not in path.parts]
    words: set[str] = set()
    for path in pages + scripts:
        if path.name != "fontawesome.js":
            words.update(WORD.findall(path.read_text(encoding="utf-8")))
    return words


def _classes(selector: list) -> list[str]:
    """The classes that an element must have; what stands in :not() and :is() is left out."""
    return [after.value for dot, after in pairwise(selector) if dot == "." and after.type == "ident"]


def _selectors(prelude: list) -> list[list]:
    return [list(part) for comma, part in groupby(prelude, lambda token: token == ",") if not comma]


def prune(css: str, words: set[str]) -> str:
    """Drop the rules of a style sheet that need a class which is not among `words`."""
    return _pruned(tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True), words)


def _pruned(rules: Iterable, words: set[str]) -> str:
    kept = []
    for rule in rules:
        if rule.type == "qualified-rule":
            live = [part for part in _selectors(rule.prelude) if words.issuperset(_classes(part))]
            if live:
                selector = ",".join(tinycss2.serialize(part).strip() for part in live)
                kept.append(f"{selector}{{{tinycss2.serialize(rule.content).strip()}}}")
        elif rule.type == "at-rule" and rule.lower_at_keyword in NESTED and rule.content is not None:
            nested = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
            inner = _pruned(nested, words)
            if inner:
                kept.append(f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inner}}}")
        else:
            kept.append(rule.serialize())
    return "\n".join(kept)


def write_licences(static: Path) -> None:
    """Put the licences of what the site is made with into one file, `LICENCES.txt`."""
    texts = [LICENCES.read_text(encoding="utf-8")]
    for name in COMPANIONS:
        made = distribution(name)
        licences = [file for file in made.files or [] if OF_A_PACKAGE.match(file.as_posix())]
        texts += [f"{name} {made.version}\n\n{file.read_text(encoding='utf-8')}" for file in licences]
    (static / "LICENCES.txt").write_text(f"\n{'-' * 80}\n\n".join(texts), encoding="utf-8")


def subset_icons(fonts: Path, characters: set[int]) -> None:
    """Leave the given characters in every font of a folder, .ttf and .woff2 alike, under another name."""
    logging.getLogger("fontTools.subset").setLevel(logging.WARNING)  # it tells of every table
    options = Options(layout_features=[], notdef_outline=True, drop_tables=["FFTM"])
    for path in sorted(fonts.glob("*.ttf")):
        for flavour, suffix in ((None, ".ttf"), ("woff2", ".woff2")):
            with TTFont(path.with_suffix(suffix)) as font:
                subsetter = Subsetter(options)
                subsetter.populate(unicodes=characters)
                subsetter.subset(font)
                for record in font["name"].names:
                    if record.nameID in NAMES:
                        record.string = "BookIcons"
                font.flavor = flavour
                font.save(path.with_suffix(suffix))


def lighten_styles(site: Path) -> list[Path]:
    """Cut down the theme's style sheets and icon fonts; say which files changed."""
    static = site / "_static"
    for name in ("fontawesome.js", "fontawesome.js.map"):
        (static / "scripts" / name).unlink(missing_ok=True)
    words = words_used(site)
    changed = [path for pattern in SHEETS for path in sorted(static.glob(pattern))]
    for path in changed:
        css = path.read_text(encoding="utf-8")
        if notices := dict.fromkeys(NOTICE.findall(css)):  # of licences, which lie beside it then
            path.with_name(f"{path.name}.LICENSE.txt").write_text("\n".join(notices) + "\n", encoding="utf-8")
        path.write_text(prune(css, words), encoding="utf-8")
    styles = "\n".join(path.read_text(encoding="utf-8") for path in static.rglob("*.css"))
    icons = {int(code, 16) for code in ESCAPED.findall(styles)} | {*map(ord, DRAWN.findall(styles))}
    subset_icons(static / ICON_FONTS, icons)
    return changed
