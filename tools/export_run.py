"""Train chapter 8's model as the chapter does, and keep for its page what each epoch did.

    python tools/export_run.py            # writes book/_static/vit/digits-run.json, in under a minute
    python tools/export_run.py --check    # fails when the chapter's model or settings are not the file's

Model, settings and seed are taken from the chapter's own cells. The twelve test digits are the first six, and
of the others those six with the largest loss, summed over all epochs.
"""

import argparse
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from project_facts import ROOT

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.budget import by_budget
from vit_from_scratch.data import Augmentation, load_dataset
from vit_from_scratch.files import write_atomically
from vit_from_scratch.model.cost import count_parameters
from vit_from_scratch.training import Callback, TrainConfig, evaluate, train
from vit_from_scratch.training.state import TrainingState

CHAPTER = ROOT / "notebooks/08_first_training_run.md"
FILE = ROOT / "book/_static/vit/digits-run.json"
CELLS = ("config = ViTConfig(", "settings = TrainConfig(")  # how the cells begin that say what is trained
FIRST, HARDEST = 6, 6


def source(chapter: Path = CHAPTER) -> str:
    """Return the chapter's cells that say what is trained, and how."""
    cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", chapter.read_text("utf-8"), re.M | re.S)
    return "\n".join(next(cell for cell in cells if cell.startswith(start)) for start in CELLS)


class Asked(Callback):
    """Ask the model about all test images, before training and after each epoch: (n, K) shares of each."""

    def __init__(self, images: torch.Tensor) -> None:
        self.images, self.shares = images, list[torch.Tensor]()

    @torch.no_grad()
    def on_start(self, state: TrainingState) -> None:
        """Ask."""
        state.model.eval()
        self.shares.append(state.model(state.data.normalise(self.images)).softmax(dim=1))

    on_epoch = on_start


def run(cells: str) -> dict[str, Any]:
    """Train, and return what the page shows."""
    torch.set_num_threads(1)  # as in the chapter
    data = load_dataset("digits")
    asked = Asked(data.test_images)
    names: dict[str, Any] = {"data": data, "device": "cpu", "torch": torch, "replace": replace}
    names |= {kind.__name__: kind for kind in (ViTConfig, VisionTransformer, TrainConfig, Augmentation)}
    names |= {function.__name__: function for function in (by_budget, count_parameters)}
    exec(cells, names)  # the book's own
    model = names["new_model"](seed=0)
    parts = {
        name: evaluate(model, *images, data.normalise)
        for name, images in {
            "train": (data.train_images, data.train_labels),
            "validation": (data.validation_images, data.validation_labels),
        }.items()
    }
    epochs = [
        {f"{name}_{what}": getattr(m, what) for name, m in parts.items() for what in ("loss", "accuracy")}
    ]
    epochs += [
        {name: getattr(epoch, name) for name in epochs[0]}
        for epoch in train(model, data, names["settings"], [asked])
    ]
    shares = torch.stack(asked.shares)  # (E + 1, n, K)
    losses = F.nll_loss(
        shares.log().movedim(2, 1), data.test_labels.expand(len(shares), -1), reduction="none"
    ).sum(dim=0)
    hardest = [place for place in losses.argsort(descending=True).tolist() if place >= FIRST][:HARDEST]
    chosen = [*range(FIRST), *hardest]
    for epoch, values in zip(epochs, shares[:, chosen], strict=True):
        epoch["shares"] = [[round(share, 4) for share in row] for row in values.tolist()]
    digits = [
        {"place": i, "label": data.test_labels[i].item(), "pixels": data.test_images[i].flatten().tolist()}
        for i in chosen
    ]
    return {"cells": cells, "torch": torch.__version__, "digits": digits, "epochs": epochs}


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--check", action="store_true", help="look whether the file is that of the chapter")
    if options.parse_args(arguments).check:
        fresh = FILE.exists() and json.loads(FILE.read_text("utf-8"))["cells"] == source()
        if not fresh:
            print(f"error: {FILE.name} is not of this chapter; run tools/export_run.py.", file=sys.stderr)
        return not fresh
    write_atomically(FILE, (json.dumps(run(source())) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
