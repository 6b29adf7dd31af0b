"""A photo whose patches show, under the pointer, what they look at: HTML for notebooks, books and files."""

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from string import Template

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vit_from_scratch.errors import InputError

FOLDER = Path(__file__).parent
LEVELS = 7
"""A weight is kept as a share of the largest of its row, in sevenths: more would make pages heavy."""
DARKEST = 0.85
ENDINGS = ("css", "js", "html")
PAGE_HEAD = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font-family: sans-serif; margin: 2rem auto; max-width: 22rem; padding: 0 1rem }
:root { color-scheme: light dark }
</style>
"""


class AttentionExplorer:
    """A photo that is darkened where a token does not look.

    The pointer shows where the patch under it looks; a click, a tap or the arrow keys choose a patch,
    and a second click lets it go.
    Notebooks show the whole when it is the last value of a cell. It needs no other file and no network.
    Where scripts do not run, it shows one map and no controls. Each map is on a scale of its own: its largest
    weight alone is fully bright, and what a token gives the class token is left out.
    """

    def __init__(
        self,
        photo: Tensor,
        attentions: Tensor | Sequence[Tensor],
        grid: tuple[int, int],
        layer: int | None = None,
        head: int = 0,
    ) -> None:
        """Take what `layer_attention` returns for one photo.

        Args:
            photo: (C, H, W) with values in [0, 1], of one or three channels.
            attentions: L times (h, T, T) or (1, h, T, T); T is the number of patches, and one more if there
                is a class token, which comes first.
            grid: rows and columns of patches.
            layer: the one that is shown first, counted from 0; the last if there is none.
            head: the one that is shown first, counted from 0.

        Raises:
            InputError: these are attentions of several photos or of another grid, or there is no such layer
                or head.
        """
        rows, columns = grid
        shapes = {tuple(found.shape) for found in attentions}
        if len(shapes) != 1:
            raise InputError(f"attentions of shapes {sorted(shapes)}: expected one shape for all layers.")
        weights = torch.stack([found.detach().cpu().float() for found in attentions])
        weights = weights[:, 0] if weights.ndim == 5 and weights.shape[1] == 1 else weights
        patches, tokens = rows * columns, weights.shape[-1]
        if weights.ndim != 4 or weights.shape[-2] != tokens or tokens - patches not in (0, 1):
            raise InputError(
                f"attentions of shape {tuple(weights.shape)} for a grid of {rows} x {columns} patches: "
                f"expected (layers, heads, T, T) of one photo, T {patches} or, with a class token, "
                f"{patches + 1}. Choose one photo: [found[0] for found in layer_attention(model, images)]."
            )
        if photo.ndim != 3:
            raise InputError(f"a photo of shape {tuple(photo.shape)}: expected (C, H, W), as photos[0] has.")
        layers, heads = weights.shape[:2]
        layer = layers - 1 if layer is None else layer
        if not (0 <= layer < layers and 0 <= head < heads):
            raise InputError(
                f"no layer {layer} with head {head}: there are {layers} layers of {heads} heads."
            )
        self.photo = photo.detach().cpu().clamp(0, 1)
        self.grid, self.layer, self.head = grid, layer, head
        self.special = tokens - patches
        kept = weights[..., self.special :]  # (L, h, T, N)
        largest = kept.amax(dim=-1, keepdim=True)
        levels = (LEVELS * kept / largest.clamp(min=1e-30)).round().clamp(max=LEVELS - 1)
        self.levels = levels.masked_fill(kept == largest, LEVELS).byte()  # no other patch shares the top

    def __repr__(self) -> str:
        """Say how much there is to see, where HTML is not shown."""
        layers, heads, _, _ = self.levels.shape
        return f"AttentionExplorer({layers} layers, {heads} heads, {self.grid[0]} x {self.grid[1]} patches)"

    def _repr_html_(self) -> str:
        """Return the whole as HTML."""
        layers, heads, _, _ = self.levels.shape
        rows, columns = self.grid
        query = 0 if self.special else rows // 2 * columns + columns // 2
        shown = self.levels[self.layer, self.head, query].tolist()
        style, script, template = ((FOLDER / f"explorer.{end}").read_text("utf-8") for end in ENDINGS)
        return Template(template).substitute(
            style=style,
            script=script,
            shape=[layers, heads, rows, columns, self.special, LEVELS, DARKEST],
            maps=self._packed(),
            picture=self._picture(),
            cells="".join(f'<i style="opacity:{DARKEST * (1 - level / LEVELS):.2f}"></i>' for level in shown),
            rows=rows,
            columns=columns,
            width=f"{100 / columns:.3f}",
            height=f"{100 / rows:.3f}",
            layers=layers,
            heads=heads,
            layer=self.layer + 1,
            head=self.head + 1,
            who="the class token" if self.special else "the patch in the middle",
        )

    def page(self, title: str) -> str:
        """Return a page of its own, to be saved as a file that any browser opens."""
        named = html.escape(title)
        return f"{PAGE_HEAD}<title>{named}</title>\n<h1>{named}</h1>\n{self._repr_html_()}"

    def _packed(self) -> str:
        """Return the levels, two in a byte, the first in its lower half, in base64."""
        flat = self.levels.flatten().numpy()
        flat = np.append(flat, np.zeros(flat.size % 2, dtype=np.uint8))
        return base64.b64encode((flat[0::2] | flat[1::2] << 4).tobytes()).decode()

    def _picture(self) -> str:
        """Return the photo as a PNG in base64."""
        pixels = (255 * self.photo).round().byte().permute(1, 2, 0).numpy()
        pixels = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, format="PNG")
        return base64.b64encode(file.getvalue()).decode()
