"""Where a chapter stands in Figure 1 of the paper: a small drawing of the model, with its part in colour."""

from html import escape
from itertools import product

WHOLE = ("cut", "tokens", "class", "positions", "block", "attention", "mlp", "head")
PLACES = {
    1: (("photo", "cut"), "the cut into patches"),
    2: (("cut", "tokens", "class", "positions"), "class token and positions"),
    3: (("attention",), "attention, inside every block"),
    4: (("block", "attention", "mlp"), "the encoder block"),
    5: (WHOLE, "the whole model"),
    6: (WHOLE, "all of it, beside the original"),
    7: (("photo", "stem"), "a ResNet in front of the cut"),
    8: (("answers", "learn"), "from answers back to the weights"),
    9: (("photo", "learn"), "few photos, many weights"),
    10: (("head", "positions"), "a new head, a finer grid"),
    11: (("hidden", "class"), "patches that the model does not see"),
    12: (("tokens", "block", "depth"), "its width, depth and length"),
    13: (("class", "attention"), "what the class token attends to"),
    14: (("attention",), "how far attention reaches"),
    15: (("positions",), "the position embeddings"),
    16: (("cut",), "the filters of the projection"),
    17: (("positions", "class", "depth"), "parts that are left out, one at a time"),
}
"""The parts of the drawing that a chapter is about, and what they are called."""


def box(names: str, x: float, y: float, width: float, height: float, radius: float = 2) -> str:
    """A rectangle that belongs to the named parts."""
    corner = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}"'
    return f'<rect class="{names}" {corner}/>'


def line(names: str, path: str) -> str:
    """A line that belongs to the named parts."""
    return f'<path class="{names} line" d="{path}"/>'


def shapes() -> list[str]:
    """The whole drawing, from the photo on the left to the answers on the right."""
    hidden = ((0, 1), (1, 2), (2, 0), (2, 1))
    photo = [
        box(f"photo{' hidden' * (place in hidden)}", 2 + 13 * place[1], 34 + 13 * place[0], 11, 11)
        for place in product(range(3), range(3))
    ]
    edge = '<path class="cut" d="M56 42l10 5v12l-10 5z"/>'
    cut = [line("cut stem", "M46 53h8"), edge, line("cut", "M68 53h7")]
    tokens = [box("tokens" if row else "class tokens", 79, 11 + 17 * row, 12, 12, 3) for row in range(5)]
    positions = [f'<circle class="positions" cx="97" cy="{17 + 17 * row}" r="2.6"/>' for row in range(5)]
    depth = [line("depth block", "M120 9h70v78"), line("depth block", "M126 3h70v78")]
    block = [
        line("block", "M101 53h9"),
        '<rect class="block frame" x="114" y="15" width="70" height="78" rx="5"/>',
        box("attention", 122, 34, 24, 38, 3),
        box("mlp", 152, 34, 24, 38, 3),
        line("block", "M114 53h8m24 0h6m24 0h8M118 53V26h31v27M149 53v27h31V53"),
    ]
    head = [line("head", "M184 53h17"), box("head", 204, 44, 10, 18, 3)]
    answers = [box("answers", 222, 36 + 13 * row, width, 8, 2) for row, width in enumerate((26, 15, 7))]
    learn = [line("learn", "M236 79v24H85V92m-4 5l4-5 4 5")]
    return [*depth, *photo, *cut, *tokens, *positions, *block, *head, *answers, *learn]


def place_drawing(chapter: int) -> str:
    """Draw the model with the parts of one chapter in colour, as a figure with a caption.

    Every shape carries the names of the parts that it belongs to; those of the chapter get the class `here`.
    """
    names, caption = PLACES[chapter]
    drawn = []
    for shape in shapes():
        parts = shape.partition('class="')[2].partition('"')[0].split()
        drawn.append(shape.replace('class="', 'class="here ', 1) if set(parts) & set(names) else shape)
    drawn.sort(key=lambda shape: "here " in shape)  # what is in colour lies on top
    caption = escape(caption)
    svg = f'<svg viewBox="0 0 252 108" role="img" aria-label="Where we are: {caption}">{"".join(drawn)}</svg>'
    return f'<figure class="place">{svg}<figcaption>{caption}</figcaption></figure>'
