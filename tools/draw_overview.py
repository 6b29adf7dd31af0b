"""Draw the picture of the README and the landing page, book/_static/overview.png; --check: is it stale?

The picture shows the path from a photo to what the shipped model of tiny-imagenet-plain answers, and how that
model was trained: the curves of results/tiny-imagenet-plain.json.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from PIL import Image

from vit_from_scratch import examples, plots
from vit_from_scratch.pretrained import class_names, input_scaling, load_pretrained

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "book/_static/overview.png"
NAME = "tiny-imagenet"
RESULTS = ROOT / "vit_from_scratch/experiments/results/tiny-imagenet-plain.json"
WEIGHTS = ROOT / f"vit_from_scratch/weights/{NAME}.safetensors"
KEY = "drawn from"


def draw_path(ax: Axes) -> None:
    """Draw the model as a path: photo, patches, tokens, encoder, and its most likely answers."""
    ax.set(xlim=(0, 20), ylim=(0, 5), aspect="equal")
    ax.axis("off")
    model = load_pretrained(NAME)
    photo = examples.photo(model.config.image_shape[0])
    pixels = photo[0].permute(1, 2, 0).numpy()
    rows, columns = model.config.grid
    size = model.config.patch_size
    patches = [
        pixels[size * row : size * (row + 1), size * column : size * (column + 1)]
        for row in range(rows)
        for column in range(columns)
    ]
    ax.imshow(pixels, extent=(0, 3, 1, 4))
    step = 3.2 / columns
    for number, patch in enumerate(patches):
        row, column = divmod(number, columns)
        left, bottom = 4.0 + step * column, 4.1 - step * (row + 1)
        ax.imshow(patch, extent=(left, left + 0.85 * step, bottom, bottom + 0.85 * step))
    shown = patches[3 * columns : 3 * columns + 7]  # from the row of the eyes
    for place, token in enumerate([None, *shown]):
        left, bottom = 8.1 + 0.62 * place, 2.2
        if token is None:
            ax.add_patch(plt.Rectangle((left, bottom), 0.54, 0.54, color=plots.ORANGE))
        else:
            ax.imshow(token, extent=(left, left + 0.54, bottom, bottom + 0.54))
    ax.text(13.25, 2.47, "…", ha="center", va="center", fontsize=13)
    for depth in (0.36, 0.18, 0.0):
        box = plt.Rectangle(
            (14.4 + depth, 1.3 + depth), 2.0, 2.2, facecolor=plots.BLUE, edgecolor="white", linewidth=1.2
        )
        ax.add_patch(box)
    ax.text(15.4, 2.4, "encoder", ha="center", va="center", color="white", fontsize=10)
    with torch.no_grad():
        chances = model(input_scaling(NAME)(255 * photo)).softmax(dim=-1)[0]
    best = chances.topk(3).indices.tolist()
    for place, index in enumerate(best):
        looks = {"color": plots.ORANGE, "weight": "bold"} if place == 0 else {}
        text = f"{class_names(NAME)[index]} {chances[index]:.0%}"
        ax.text(17.7, 3.3 - 0.8 * place, text, va="center", fontsize=10, **looks)
    for left, right in ((3.2, 3.8), (7.3, 7.9), (13.6, 14.2), (16.95, 17.6)):
        ax.annotate(
            "", (right, 2.5), (left, 2.5), arrowprops={"arrowstyle": "-|>", "color": plots.GREY, "lw": 1.4}
        )
    for x, text in (
        (1.5, f"photo, {size * columns} pixels wide"),
        (5.6, f"{len(patches)} patches"),
        (10.8, "class token and patch tokens"),
        (15.5, f"{model.config.depth} blocks"),
        (18.7, "answers"),
    ):
        ax.text(x, 0.25, text, ha="center", va="center", fontsize=9.5)


def draw_training(ax: Axes, results: dict) -> None:
    """Draw accuracy on held-out photos against the epoch, and say what the test photos gave."""
    curves = results["runs"][0]["curves"]
    accuracy = [100 * epoch["validation_accuracy"] for epoch in curves]
    epochs = range(1, len(accuracy) + 1)
    ax.plot(epochs, accuracy, "-o", color=plots.BLUE, ms=4, lw=1.5)
    first = results["test_accuracy_mean"]
    fifth = results["runs"][0]["test_top5_accuracy"]
    text = (
        f"{results['test_images']:,} test photos of {len(class_names(NAME))} kinds:\n"
        f"{first:.1%} right, {fifth:.1%} among five answers"
    )
    ax.text(len(accuracy), 3, text, ha="right", va="bottom", color=plots.ORANGE, fontsize=10)
    ax.set(xlabel="epoch", ylabel="held-out photos\nright, %", ylim=(0, None), xlim=(1, len(accuracy)))


def fingerprint() -> str:
    """What the picture depends on: this script, the result file and the weights."""
    content = b"".join(path.read_bytes() for path in (Path(__file__), RESULTS, WEIGHTS))
    return hashlib.sha256(content).hexdigest()[:16]


def main() -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="write nothing; fail when the picture is stale")
    if options.parse_args().check:
        fresh = PICTURE.exists() and Image.open(PICTURE).info.get(KEY) == fingerprint()
        if not fresh:
            print("error: book/_static/overview.png is stale; run `make pictures`.", file=sys.stderr)
        return int(not fresh)
    plots.use_style()
    figure, (path, training) = plt.subplots(2, 1, figsize=(10, 5), height_ratios=[2.5, 2.3])
    draw_path(path)
    draw_training(training, json.loads(RESULTS.read_text(encoding="utf-8")))
    figure.savefig(PICTURE, dpi=160, metadata={KEY: fingerprint(), "Software": None})
    print(f"wrote: {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
