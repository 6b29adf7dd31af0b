"""A page with a photo whose patches show, under the pointer, what they look at."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from string import Template

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.inspection.inputs import check_attentions

FOLDER = Path(__file__).parent
LEVELS = 7
"""A weight is kept as a share of the largest of its row, in sevenths: more would make pages heavy."""
DARKEST = 0.66
ENDINGS = ("css", "js", "html")
PAGE_HEAD = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font-family: sans-serif; margin: 2rem auto; max-width: 22rem; padding: 0 1rem }
:root { color-scheme: light dark }
</style>
<title>Where patches look</title>
<h1>Where patches look</h1>
"""


def explorer_page(photo: Tensor, attentions: Sequence[Tensor], grid: tuple[int, int]) -> str:
    """Return a page of HTML on which a photo is darkened where a token does not look.

    The pointer shows where the patch under it looks; a click, a tap or the arrow keys choose a patch, and a
    second click lets it go. The page needs no other file and no network. Where scripts do not run, it shows
    one map of the last layer and no controls. Each map is on a scale of its own: its largest weight alone is
    fully bright, and what a token gives the class token is left out.

    Args:
        photo: (C, H, W) with values in [0, 1], of one or three channels.
        attentions: what `layer_attention` returns for this photo alone, L times (1, h, T, T); T is the number
            of patches, and one more if there is a class token, which comes first.
        grid: rows and columns of patches.

    Raises:
        InputError: these are attentions of several photos, of another grid, or none.
    """
    rows, columns = grid
    weights = torch.cat(check_attentions(attentions, same_heads=True)).detach().cpu().float()  # (L, h, T, T)
    layers, heads, tokens, _ = weights.shape
    special = tokens - rows * columns
    if len(attentions) != layers or special not in (0, 1):
        raise InputError(
            f"attentions of shape {tuple(attentions[0].shape)} for a grid of {rows} x {columns} patches: "
            f"expected (1, h, T, T) of one photo, T {rows * columns} or, with a class token, one more."
        )
    kept = weights[..., special:]  # (L, h, T, N)
    largest = kept.amax(dim=-1, keepdim=True)
    levels = (LEVELS * kept / largest.clamp(min=1e-30)).round().clamp(max=LEVELS - 1)
    levels = levels.masked_fill(kept == largest, LEVELS).byte()  # no other patch shares the top
    query = 0 if special else rows // 2 * columns + columns // 2
    shown = levels[-1, 0, query].tolist()
    style, script, template = ((FOLDER / f"explorer.{end}").read_text("utf-8") for end in ENDINGS)
    body = Template(template).substitute(
        style=style,
        script=script,
        shape=[layers, heads, rows, columns, special, LEVELS, DARKEST],
        maps=_packed(levels),
        picture=_picture(photo),
        cells="".join(f'<i style="opacity:{DARKEST * (1 - level / LEVELS):.2f}"></i>' for level in shown),
        rows=rows,
        columns=columns,
        width=f"{100 / columns:.3f}",
        height=f"{100 / rows:.3f}",
        layers=layers,
        heads=heads,
        who="the class token" if special else "the patch in the middle",
    )
    return f"{PAGE_HEAD}{body}"


def _packed(levels: Tensor) -> str:
    """Return levels, two in a byte, the first in its lower half, in base64."""
    flat = levels.flatten().numpy()
    flat = np.append(flat, np.zeros(flat.size % 2, dtype=np.uint8))
    return base64.b64encode((flat[0::2] | flat[1::2] << 4).tobytes()).decode()


def _picture(photo: Tensor) -> str:
    """Return a photo as a PNG in base64."""
    pixels = (255 * photo.detach().cpu().clamp(0, 1)).round().byte().permute(1, 2, 0).numpy()
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()
