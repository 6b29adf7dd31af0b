"""The pictures that cells draw, made as light as they can be without looking different.

A picture keeps at most 256 colours: those of a plot are fewer, and photos are not dithered, which would make
them heavier than before. Where it is partly transparent, at the edges of letters and lines, it has colours of
its own among these.
"""

import base64
import io

import numpy as np
from kernel_figures import MIME
from nbformat import NotebookNode
from PIL import Image

COLOURS = 256
SHEER = 40  # colours of them for what is partly or wholly transparent
EXACT = 12  # of them for the most frequent colours, such as that of the texts


def pack(notebook: NotebookNode) -> None:
    """Put lighter pictures into the place of those that the cells have made."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                data["image/png"] = _packed(data["image/png"])
            if "png" in data.get(MIME, {}):
                data[MIME]["png"] = _packed(data[MIME]["png"])


def _packed(text: str) -> str:
    return base64.b64encode(lighter(base64.b64decode(text))).decode("ascii")


def lighter(png: bytes) -> bytes:
    """Return a PNG with a palette of 256 colours, or the one given where that is smaller."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))
    pixels = np.where(pixels[..., 3:] > 0, pixels, 0).astype(np.uint8)  # what cannot be seen is all alike
    colours, places, counts = np.unique(
        pixels.reshape(-1, 4).view(np.uint32), return_inverse=True, return_counts=True
    )
    palette = colours.view(np.uint8).reshape(-1, 4)
    indices = np.arange(len(palette))
    if len(palette) > COLOURS:
        palette, indices = _chosen(palette, counts)
    picture = Image.fromarray(indices[places].reshape(pixels.shape[:2]).astype(np.uint8), "P")
    picture.putpalette(palette[:, :3].tobytes())
    file = io.BytesIO()
    picture.save(file, format="PNG", optimize=True, transparency=palette[:, 3].tobytes())
    return min(file.getvalue(), png, key=len)


def _chosen(colours: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Choose 256 of many colours (n, 4): a palette (k, 4), and the place in it for each of them (n,)."""
    solid = colours[:, 3] == 255
    indices = np.empty(len(colours), np.uint8)
    exact = np.argsort(-counts, kind="stable")[:EXACT]
    palettes, first = [colours[exact]], EXACT
    for which, mode, method, count in (
        (~solid, "RGBA", Image.Quantize.FASTOCTREE, SHEER),
        (solid, "RGB", Image.Quantize.MAXCOVERAGE, COLOURS - SHEER - EXACT),
    ):
        if not which.any():
            continue
        row = Image.fromarray(np.ascontiguousarray(colours[which][None, :, : len(mode)]), mode)
        found = row.quantize(count, method=method, kmeans=1)
        palette = np.array(found.getpalette("RGBA"), np.uint8).reshape(-1, 4)[:count]
        indices[which] = np.asarray(found)[0] + first
        palettes.append(palette)
        first += len(palette)
    indices[exact] = np.arange(EXACT)
    return np.vstack(palettes), indices
