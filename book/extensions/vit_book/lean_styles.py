"""Style sheets and icon fonts of the theme, cut down to what the pages of this book use."""

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import tinycss2
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

SHEETS = ("styles/pydata-sphinx-theme.css", "sphinx-design.min.css", "mystnb.*.css")
ICON_FONTS = "vendor/fontawesome/webfonts"
WORD = re.compile(r"[A-Za-z_][\w-]*")
ESCAPED = re.compile(r"\\([ef][0-9a-f]{3})\b", re.IGNORECASE)  # an icon in CSS, written as a number
DRAWN = re.compile("[\ue000-\uf8ff]")  # and written as itself, in the range that fonts have to themselves
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
    parts: list[list] = [[]]
    for token in prelude:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


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
            inner = _pruned(
                tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True), words
            )
            if inner:
                kept.append(f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inner}}}")
        else:
            kept.append(rule.serialize())
    return "\n".join(kept)


def subset_icons(fonts: Path, characters: set[int]) -> None:
    """Leave the given characters in every font of a folder, .ttf and .woff2 alike."""
    options = Options(layout_features=[], notdef_outline=True, drop_tables=["FFTM"])
    for path in sorted(fonts.glob("*.ttf")):
        for flavour, suffix in ((None, ".ttf"), ("woff2", ".woff2")):
            with TTFont(path.with_suffix(suffix)) as font:
                subsetter = Subsetter(options)
                subsetter.populate(unicodes=characters)
                subsetter.subset(font)
                font.flavor = flavour
                font.save(path.with_suffix(suffix))


def lighten_styles(site: Path) -> list[Path]:
    """Cut down the theme's style sheets and icon fonts; say which files changed.

    Args:
        site: the folder of the built book. What was cut down before stays as it is.
    """
    static = site / "_static"
    (static / "scripts" / "fontawesome.js").unlink(missing_ok=True)
    (static / "scripts" / "fontawesome.js.map").unlink(missing_ok=True)
    words = words_used(site)
    changed = [path for pattern in SHEETS for path in sorted(static.glob(pattern))]
    for path in changed:
        path.write_text(prune(path.read_text(encoding="utf-8"), words), encoding="utf-8")
    styles = "\n".join(path.read_text(encoding="utf-8") for path in static.rglob("*.css"))
    icons = {int(code, 16) for code in ESCAPED.findall(styles)} | {
        ord(icon) for icon in DRAWN.findall(styles)
    }
    subset_icons(static / ICON_FONTS, icons)
    return changed
