"""Draw the picture of the README and the landing page, book/_static/overview.png; --check: is it stale?

The picture shows the path from a photo to an answer, and the training curves of results/digits.json.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from PIL import Image

from vit_from_scratch import examples, plots

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "book/_static/overview.png"
RESULTS = ROOT / "vit_from_scratch/experiments/results/digits.json"
KEY = "drawn from"


def draw_path(ax: Axes) -> None:
    """Draw the model as a path: photo, patches, tokens, encoder, answer."""
    ax.set(xlim=(0, 20), ylim=(0, 5), aspect="equal")
    ax.axis("off")
    photo = examples.photo(224)
    pixels = photo[0].permute(1, 2, 0).numpy()
    ax.imshow(pixels, extent=(0, 3, 1, 4))
    step, size = 0.8, 0.7
    for row in range(4):
        for column in range(4):
            patch = pixels[56 * row : 56 * (row + 1), 56 * column : 56 * (column + 1)]
            left, bottom = 4.1 + step * column, 3.35 - step * row
            ax.imshow(patch, extent=(left, left + size, bottom, bottom + size))
    for place in range(9):
        left, bottom = 8.5 + 0.62 * place, 2.2
        if place == 0:
            ax.add_patch(plt.Rectangle((left, bottom), 0.54, 0.54, color=plots.ORANGE))
        elif place < 8:
            number = place - 1
            row, column = divmod(number, 4)
            patch = pixels[56 * row : 56 * (row + 1), 56 * column : 56 * (column + 1)]
            ax.imshow(patch, extent=(left, left + 0.54, bottom, bottom + 0.54))
        else:
            ax.text(left + 0.2, bottom + 0.27, "…", ha="center", va="center", fontsize=13)
    for depth in (0.36, 0.18, 0.0):
        box = plt.Rectangle(
            (14.9 + depth, 1.3 + depth), 2.2, 2.2, facecolor=plots.BLUE, edgecolor="white", linewidth=1.2
        )
        ax.add_patch(box)
    ax.text(16.0, 2.4, "encoder", ha="center", va="center", color="white", fontsize=10)
    ax.text(19.1, 2.5, "cat", ha="center", va="center", fontsize=14, color=plots.ORANGE, weight="bold")
    for left, right in ((3.2, 3.9), (7.5, 8.2), (14.0, 14.7), (17.7, 18.5)):
        ax.annotate(
            "", (right, 2.5), (left, 2.5), arrowprops={"arrowstyle": "-|>", "color": plots.GREY, "lw": 1.4}
        )
    for x, text in (
        (1.5, "photo"),
        (5.65, "patches"),
        (11.2, "class token and patch tokens"),
        (16.1, "12 blocks"),
        (19.1, "answer"),
    ):
        ax.text(x, 0.25, text, ha="center", va="center", fontsize=9.5)


def draw_training(ax: Axes, results: dict) -> None:
    """Draw one training curve a seed, and say what the test images gave."""
    for run in results["runs"]:
        accuracy = [100 * epoch["train_accuracy"] for epoch in run["curves"]]
        ax.plot(range(1, len(accuracy) + 1), accuracy, "-", color=plots.BLUE, alpha=0.55, lw=1.3)
    mean, seeds = results["test_accuracy_mean"], len(results["seeds"])
    ax.axhline(100 * mean, color=plots.ORANGE, linestyle="--", lw=1.5)
    text = f"{mean:.1%} of {results['test_images']} test digits read correctly, mean of {seeds} seeds"
    ax.text(len(accuracy), 100 * mean - 4, text, ha="right", va="top", color=plots.ORANGE, fontsize=10)
    ax.set(xlabel="epoch", ylabel="training accuracy, %", ylim=(0, 103), xlim=(1, len(accuracy)))


def fingerprint() -> str:
    """What the picture depends on: this script and the result file."""
    return hashlib.sha256(Path(__file__).read_bytes() + RESULTS.read_bytes()).hexdigest()[:16]


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
