"""Draw the pictures of the landing page and the README, as SVG in book/_static; --check: are they stale?

The large one, in a wide and a narrow arrangement, follows a photo through the shipped model
of Tiny-ImageNet: its patches, the class token's attention in the last block, the most likely answers. The
small ones stand for the three parts. In a page they take its typeface and its colours; opened alone they have
those of the light page, or of the dark one where the reader's system is dark.
"""

import argparse
import base64
import hashlib
import io
import json
import sys
from html import escape
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from vit_from_scratch import examples
from vit_from_scratch.inspection import class_token_maps, layer_attention
from vit_from_scratch.pretrained import class_names, input_scaling, load_pretrained

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "book/_static"
NAME = "tiny-imagenet"
RESULTS = ROOT / "vit_lab/results/tiny-imagenet-plain.json"
WEIGHTS = ROOT / f"vit_from_scratch/weights/{NAME}.safetensors"
ANSWERS = 4
STYLE = """
.vd{--vd-ink:var(--pst-color-text-base,#23282f);--vd-soft:var(--pst-color-text-muted,#59636e);
--vd-blue:var(--vit-blue,#12669e);--vd-orange:var(--vit-orange,#a85400);--vd-line:var(--vit-line,#dfe3e8)}
@media (prefers-color-scheme:dark){.vd{--vd-ink:var(--pst-color-text-base,#d5dae1);
--vd-soft:var(--pst-color-text-muted,#9aa5b1);--vd-blue:var(--vit-blue,#7cc0ee);
--vd-orange:var(--vit-orange,#f0ab4a);--vd-line:var(--vit-line,#353c45)}}
.vd text{font:15px var(--pst-font-family-base,Georgia,serif);fill:var(--vd-soft)}
.vd .name{fill:var(--vd-ink);font-weight:600}
.vd .shape{font:12.5px var(--pst-font-family-monospace,monospace)}
.vd image{image-rendering:pixelated}
.vd .arrow{fill:none;stroke:var(--vd-soft);stroke-width:1.5}
.vd .blue{fill:var(--vd-blue)}.vd .orange{fill:var(--vd-orange)}.vd .pale{fill:var(--vd-line)}
.vd .best{fill:var(--vd-orange);font-weight:650}
.vd .curve{fill:none;stroke:var(--vd-blue);stroke-width:3;stroke-linejoin:round}
.vd .ray{stroke:var(--vd-orange);stroke-linecap:round}
"""


def text(x: float, y: float, words: str, name: str = "", anchor: str = "middle") -> str:
    """A line of text."""
    return f'<text class="{name}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def rect(
    x: float, y: float, width: float, height: float, names: str = "", radius: float = 2, ink: float = 1
) -> str:
    """A rectangle with round corners, as opaque as `ink` says."""
    opacity = "" if ink == 1 else f' opacity="{ink:.2f}"'
    corner = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}"'
    return f'<rect class="{names}" {corner}{opacity}/>'


def squares(x: float, y: float, size: float, values: Tensor | None = None, count: int = 8) -> str:
    """A grid of squares with gaps, white, as opaque as values (rows, columns) say."""
    step, drawn = size / count, ""
    for row in range(count):
        for column in range(count):
            left, top = x + step * (column + 0.06), y + step * (row + 0.06)
            ink = 1 if values is None else values[row, column].item()
            drawn += rect(left, top, 0.88 * step, 0.88 * step, ink=ink)
    return drawn


def arrow(way: str) -> str:
    """An arrow along a path."""
    return f'<path class="arrow" d="{way}"/>'


def drawing(name: str, width: float, height: float, label: str, content: str) -> str:
    """A whole file, which says what it was drawn from."""
    root = f'<svg xmlns="http://www.w3.org/2000/svg" class="vd {name}" viewBox="0 0 {width:g} {height:g}"'
    style = f"<style>{STYLE.replace(chr(10), '')}</style>"
    named = f'role="img" aria-label="{escape(label)}" data-drawn-from="{fingerprint()}"'
    return f"{root} {named}>{style}{content}</svg>\n"


class Answer:
    """What the shipped model makes of the book's photo."""

    def __init__(self) -> None:
        self.prefix = "vd"  # of the ids in one drawing: a page may hold several
        model = load_pretrained(NAME)
        self.config, self.size = model.config, model.config.image_shape[0]
        photo = examples.photo(self.size)  # (1, 3, H, W)
        scaled = input_scaling(NAME)(255 * photo)
        with torch.no_grad():
            chances = model(scaled).softmax(dim=-1)[0]
            attention = layer_attention(model, scaled)[-1:]
        self.attention = class_token_maps(attention, self.config.grid)[0, 0].mean(dim=0)  # (rows, columns)
        best = chances.topk(ANSWERS).indices.tolist()
        self.answers = [(class_names(NAME)[index], chances[index].item()) for index in best]
        self.classes = len(class_names(NAME))
        file = io.BytesIO()
        Image.fromarray((255 * photo[0]).round().byte().permute(1, 2, 0).numpy()).save(
            file, "PNG", optimize=True
        )
        self.photo = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def photo(answer: Answer, x: float, y: float, size: float, mask: str = "") -> str:
    """The photo, whole or through a mask; the file holds its pixels once."""
    through = f' mask="url(#{mask})"' if mask else ""
    place = f"translate({x:g} {y:g}) scale({size / answer.size:g})"
    return f'<g{through}><use href="#{answer.prefix}-photo" transform="{place}"/></g>'


def station(answer: Answer, kind: str, x: float, y: float, size: float) -> str:
    """One of the five stations of the path, in a square of a size."""
    middle, below = x + size / 2, y + size + 24
    rows, columns = answer.config.grid
    length, width = rows * columns + 1, answer.config.dim
    if kind == "photo":
        names = ("a photo", f"3 × {answer.size} × {answer.size}")
        drawn = photo(answer, x, y, size)
    elif kind == "patches":
        names = (f"{rows * columns} patches", f"{rows * columns} × {3 * answer.config.patch_size**2}")
        mask = f'<mask id="{answer.prefix}-cut"><g fill="#fff">{squares(x, y, size)}</g></mask>'
        drawn = mask + photo(answer, x, y, size, f"{answer.prefix}-cut")
    elif kind == "tokens":
        names = (f"{length} tokens", f"{length} × {width}")
        drawn = tokens(answer, x, y, size)
    elif kind == "attention":
        names = (f"{answer.config.depth} blocks of attention", f"{length} × {width}")
        shown = 0.08 + 0.92 * answer.attention / answer.attention.max()
        mask = f'<mask id="{answer.prefix}-seen"><g fill="#fff">{squares(x, y, size, shown)}</g></mask>'
        drawn = rect(x, y, size, size, "pale", 4, 0.5)
        drawn += mask + photo(answer, x, y, size, f"{answer.prefix}-seen")
    else:
        return bars(answer, x, y, size)
    return drawn + text(middle, below, names[0], "name") + text(middle, below + 19, names[1], "shape")


def tokens(answer: Answer, x: float, y: float, size: float) -> str:
    """The class token in front of six patches from the row of the eyes, each with its position."""
    side, rows = size / 7 * 0.86, 7
    drawn = ""
    for row in range(rows):
        top = y + size / rows * row
        left = x + 0.15 * size
        if row == 0:
            drawn += rect(left, top, side, side, "orange", 3)
        else:
            patch = 3 * answer.config.grid[1] + row
            line, column = divmod(patch, answer.config.grid[1])
            clip = f"{answer.prefix}-token-{row}"
            scale = side / answer.config.patch_size
            x_shift, y_shift = left - scale * 8 * column, top - scale * 8 * line
            shift = f'transform="translate({x_shift:.2f} {y_shift:.2f}) scale({scale:.4f})"'
            drawn += f'<clipPath id="{clip}">{rect(left, top, side, side, radius=3)}</clipPath>'
            drawn += f'<g clip-path="url(#{clip})"><use href="#{answer.prefix}-photo" {shift}/></g>'
        place = "[class]" if row == 0 else f"+ position {3 * answer.config.grid[1] + row + 1}"
        drawn += text(left + side + 8, top + 0.68 * side, place, "shape", "start")
    return drawn


def bars(answer: Answer, x: float, y: float, size: float) -> str:
    """The most likely answers with their probabilities."""
    drawn = text(x, y + 15, f"{answer.classes} answers", "name", "start")
    for place, (name, chance) in enumerate(answer.answers):
        top = y + 34 + 36 * place
        best = "best" if place == 0 else ""
        width = max(2, 0.98 * size * chance / answer.answers[0][1])
        drawn += text(x, top + 11, f"{name}  {chance:.0%}", best, "start")
        drawn += rect(x, top + 17, width, 7, "orange" if best else "pale", 3)
    return drawn


def path(answer: Answer, narrow: bool) -> str:
    """The whole path: five stations in a row, or two by two for a phone."""
    answer.prefix = "vdn" if narrow else "vdw"
    size, kinds = 150, ("photo", "patches", "tokens", "attention", "answers")
    if narrow:
        corners = [(10, 4), (196, 4), (10, 232), (196, 232), (70, 460)]
        width, height = 356, 650
        arrows = arrow("M168 79h20m-6-5l6 5-6 5") + arrow("M271 206v8H85v10m-5-6l5 6 5-6")
        arrows += arrow("M168 307h20m-6-5l6 5-6 5") + arrow("M271 434v8H145v10m-5-6l5 6 5-6")
    else:
        corners = [(8 + 196 * number, 4) for number in range(5)]
        arrows = "".join(arrow(f"M{x + size + 13} 79h20m-6-5l6 5-6 5") for x, _ in corners[:4])
        width, height = 960, 206
    best = ", ".join(f"{name} {chance:.0%}" for name, chance in answer.answers)
    label = (
        "A photo of a cat is cut into patches. They become tokens behind a class token. In the last block "
        f"the class token attends to some of them. The most likely answers: {best}."
    )
    stations = "".join(station(answer, kind, x, y, size) for kind, (x, y) in zip(kinds, corners, strict=True))
    side = f'width="{answer.size}" height="{answer.size}"'
    pixels = f'<defs><image id="{answer.prefix}-photo" {side} href="{answer.photo}"/></defs>'
    name = f"path {'narrow' if narrow else 'wide'}"
    return drawing(name, width, height, label, pixels + stations + arrows)


def build_card() -> str:
    """Part I: patches, tokens, a stack of blocks."""
    grid = squares(8, 18, 84, count=4)
    row = "".join(rect(112, 12 + 20 * n, 15, 15, "blue" if n else "orange", 3) for n in range(5))
    stack = "".join(rect(150 + 7 * n, 32 - 7 * n, 72, 76, "blue", 5, 0.35 + 0.3 * n) for n in range(3))
    label = "Patches, tokens and a stack of blocks"
    return drawing("small", 250, 120, label, f'<g class="pale">{grid}</g>{row}{stack}')


def train_card() -> str:
    """Part II: how the accuracy on held-out photos rose in the shipped model's first run."""
    curves = json.loads(RESULTS.read_text(encoding="utf-8"))["runs"][0]["curves"]
    heights = [epoch["validation_accuracy"] for epoch in curves]
    step, top = 226 / (len(heights) - 1), max(heights)
    points = [(10 + step * place, 108 - 96 * height / top) for place, height in enumerate(heights)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    ground = '<path class="arrow" d="M10 8v104h230"/>'
    last = f'<circle class="orange" cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="6"/>'
    label = "Accuracy on held-out photos, rising over the epochs"
    return drawing("small", 250, 120, label, f'{ground}<polyline class="curve" points="{line}"/>{last}')


def look_card(answer: Answer) -> str:
    """Part III: from the class token, rays to the patches that it attends to."""
    step, rays, grid = 13, "", ""
    shares = answer.attention / answer.attention.max()
    for row in range(answer.config.grid[0]):
        for column in range(answer.config.grid[1]):
            share, x, y = shares[row, column].item(), 136 + step * column, 9 + step * row
            grid += rect(x, y, 11, 11, "blue", 2, 0.15 + 0.85 * share)
            if share > 0.45:
                width = f'stroke-width="{2.5 * share:.1f}" opacity=".75"'
                rays += f'<path class="ray" d="M34 60L{x + 5} {y + 5}" {width}/>'
    token = rect(20, 46, 28, 28, "orange", 5)
    return drawing("small", 250, 120, "The class token attends to patches", f"{grid}{rays}{token}")


def fingerprint() -> str:
    """What the pictures depend on: this script, the result file and the weights."""
    content = b"".join(path.read_bytes() for path in (Path(__file__), RESULTS, WEIGHTS))
    return hashlib.sha256(content).hexdigest()[:16]


FILES = ("overview.svg", "overview-narrow.svg", "card-build.svg", "card-train.svg", "card-look.svg")


def main() -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; fail when a picture is stale")
    if options.parse_args().check:
        key = f'data-drawn-from="{fingerprint()}"'
        for name in FILES:
            if not (STATIC / name).exists() or key not in (STATIC / name).read_text(encoding="utf-8"):
                print(f"error: book/_static/{name} is stale; run `make pictures`.", file=sys.stderr)
                return 1
        return 0
    answer = Answer()
    drawn = (path(answer, False), path(answer, True), build_card(), train_card(), look_card(answer))
    for name, content in zip(FILES, drawn, strict=True):
        (STATIC / name).write_text(content, encoding="utf-8")
        print(f"wrote: book/_static/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
