"""Two pages of studies with short runs, and what a test does with a page."""

import json

from vit_lab import load_study

TRIED = """
claim = "Width and rate."
command = "vit study mine.toml"
base = "digits"
cumulative = true

[changes.data]
train_size = 100
validation_size = 100
[changes.model]
dim = 8
heads = 2
depth = 1
[changes.train]
epochs = 1

[rows."as it is"]
[rows."+ wider".model]
dim = 16
[rows."+ faster".train]
learning_rate = 0.01
"""

SWEPT = """
claim = "A start helps."
command = "vit study mine.toml"
seeds = [0, 1]
rates = [0.1, 0.01]
test = true
[changes.data]
name = "digits"
[changes.train]
epochs = 1
batch_size = 20
threads = 1
optimiser = "sgd"
[tasks.few]
data = { train_size = 40 }
[tasks.more]
data = { train_size = 80 }
[rows."from scratch"]
model = { patch_size = 4, dim = 16, depth = 1, heads = 2, mlp_dim = 16 }
rates = [0.003, 0.001]
train = { optimiser = "adamw" }
[rows.same]
model = { patch_size = 4, dim = 16, depth = 1, heads = 2, mlp_dim = 16 }
"""


class Page:
    """A study's file, a folder for its runs and a file for its results."""

    def __init__(self, folder):
        self.path, self.out, self.results = folder / "mine.toml", folder / "out", folder / "results.json"

    def write(self, text: str, *changes: tuple[str, str]) -> "Page":
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        self.path.write_text(text)
        return self

    def load(self):
        return load_study(str(self.path))

    def command(self, *more: str, out=None) -> list[str]:
        where = ["--out", str(out or self.out), "--results", str(self.results)]
        return ["study", str(self.path), *where, *more]

    def told(self) -> list[tuple[str, str]]:
        rows = json.loads((self.out / "summary.json").read_text())["rows"]
        return [(row["task"], row["name"]) for row in rows]
