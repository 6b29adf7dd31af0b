"""Recipes: one run each, as a commented page of TOML with the claim it tests and what to expect."""

import hashlib
import json
import tomllib
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w
import torch

from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.settings import as_table, check_fields, from_table, merged, require
from vit_from_scratch.training.augmentation import Augmentation
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.data import DataConfig, ImageData
from vit_from_scratch.training.fine_tuning import adapted
from vit_from_scratch.training.paper import paper_names, paper_table
from vit_from_scratch.training.streaming import PhotoData

CLAIM = ("claim", "command", "expect", "aim")
"""What a recipe says of the run that it describes, and of no other."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A run, described so that anybody can repeat it.

    Attributes:
        name: the file's name without `.toml`.
        claim: what the run is to show, in a sentence.
        command: what to type.
        expect: the least that a repeat should reach, such as {"test_accuracy": 0.985}. It is written before
            the first run; if that misses it, it becomes what was reached, and `aim` keeps what was wanted.
        aim: the test accuracy that was wanted and missed; 0 if nothing was missed.
        seeds: the seeds that the claim is about; a file that names none means its `train.seed`.
        neighbours: k of the k-nearest-neighbour baseline measured beside the run; 0 for none.
        weights: a checkpoint to begin from (fine-tuning, section 3.2): its model with a zero head and resized
            positions; "" to begin from random weights.
        data: the [data] table.
        model: the [model] table: fields of `ViTConfig`; image size, channels and classes come from the data.
        train: the [train] table.

    Raises:
        InputError: a value of another type, or an unknown option of the model.
    """

    name: str
    claim: str = ""
    command: str = ""
    expect: dict[str, Any] = field(default_factory=dict)
    aim: float = 0.0
    seeds: tuple[int, ...] = (0,)
    neighbours: int = 0
    weights: str = ""
    data: DataConfig
    model: dict[str, Any] = field(default_factory=dict)
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        """Refuse an unknown option of the model now, not after the data were loaded."""
        check_fields(self, "")
        require(len(self.seeds) > 0, "seeds", list(self.seeds), "at least one")
        require(all(0 <= seed < 2**63 for seed in self.seeds), "seeds", list(self.seeds), "0 to 2^63 - 1")
        require(len(set(self.seeds)) == len(self.seeds), "seeds", list(self.seeds), "each of them once")
        known = self.train.seed in (0, *self.seeds)
        require(known, "train.seed", self.train.seed, f"one of seeds = {list(self.seeds)}")
        require(0 <= self.aim <= 1, "aim", self.aim, "a share from 0 to 1")
        require(self.neighbours >= 0, "neighbours", self.neighbours, "0 or more")
        for key in self.model:
            if key not in ViTConfig.__dataclass_fields__:
                raise unknown_name("option of [model]", key, ViTConfig.__dataclass_fields__)

    def with_seed(self, seed: int) -> "Recipe":
        """Return the same recipe for one seed."""
        return replace(self, train=replace(self.train, seed=seed), seeds=(seed,))

    def model_config(self, data: ImageData | PhotoData) -> ViTConfig:
        """Complete the [model] table by what the data decide: image size, channels, classes."""
        channels, height, width = data.image_shape
        decided = {
            "image_size": height if height == width else (height, width),
            "channels": channels,
            "num_classes": data.num_classes,
        }
        return ViTConfig.from_dict(decided | self.model)

    def build(self, data: ImageData | PhotoData) -> VisionTransformer:
        """Build the recipe's model; it draws its weights from torch's global generator.

        Raises:
            InputError: `weights` cannot be read, or do not fit.
        """
        if not self.weights:
            return VisionTransformer(self.model_config(data))
        channels, *size = data.image_shape
        pretrained = load_checkpoint(self.weights)
        if pretrained.config.channels != channels:
            theirs = pretrained.config.channels
            raise InputError(
                f"{self.weights} takes {theirs} channels and {self.data.name} has {channels}"
                ": expected as many; begin from other weights."
            )
        decided = {"image_size": (size[0], size[1]), "num_classes": data.num_classes}
        return adapted(pretrained, **(decided | self.model))

    def seeded(self, data: ImageData | PhotoData) -> VisionTransformer:
        """Build the recipe's model with the weights of its seed, drawn on the CPU whatever the device."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.train.seed)  # a GPU's own is left alone
            return self.build(data)

    def start(self) -> dict[str, Any]:
        """Return what tells the checkpoint that the run begins from, wherever it lies, as a table [start]."""
        if not self.weights:
            return {}
        return {"start": {"sha256": hashlib.sha256(Path(self.weights).read_bytes()).hexdigest()}}

    def tables(self) -> dict[str, Any]:
        """Return the three tables of settings: data, model, train."""
        return {"data": as_table(self.data), "model": dict(self.model), "train": as_table(self.train)}

    def to_toml(self) -> str:
        """Return the whole recipe, defaults written out, as TOML."""
        named = ("claim", "command", "aim", "neighbours", "weights", "expect")
        top = {key: value for key in named if (value := getattr(self, key))}
        return tomli_w.dumps(top | {"seeds": list(self.seeds)} | self.tables())


def recipe_names() -> list[str]:
    """Return the names of the recipes that ship with the package."""
    return _packaged_names("recipes", ".toml")


def recipe_rows() -> list[tuple[str, ...]]:
    """Return the table of recipes in words: a row of headings, then a row for each that ships.

    What a run reached is read from the result that it wrote; "not yet run" stands where there is none.
    """
    rows = [("recipe", "data", "reached", "expected at least", "aim if missed", "time of a run")]
    results = _packaged_names("results", ".json")
    for name in recipe_names():
        recipe = load_recipe(name)
        reached, time = "not yet run", ""
        if name in results:
            result = load_result(name)
            threads = result["hardware"]["threads"]
            where = result["hardware"]["gpu"] or f"CPU, {threads} thread{'s' if threads > 1 else ''}"
            reached = f"{result['test_accuracy_mean']:.1%}"
            time = f"{result['seconds_max'] / 60:.1f} min ({where})"
        expected = f"{recipe.expect['test_accuracy']:.1%}"
        rows.append(
            (name, recipe.data.name, reached, expected, f"{recipe.aim:.0%}" if recipe.aim else "", time)
        )
    return rows


def load_recipe(name: str, changes: dict[str, Any] | None = None) -> Recipe:
    """Read a recipe.

    Args:
        name: one of `recipe_names()`, or the path of a TOML file of your own.
        changes: nested tables laid over the recipe, such as {"train": {"epochs": 2}}. With any, the recipe's
            claim, command, expectation and aim are left out; with a `train.seed`, its other seeds, too.

    Raises:
        InputError: an unknown name, a file that is no TOML, or an unknown or wrong option in it.
    """
    if name in paper_names():
        return _from_tables(paper_table(name), changes or {}, name)
    if name.endswith(".toml"):
        path, title = Path(name), Path(name).stem
        if not path.is_file():
            raise InputError(f"no recipe at {path}: expected a TOML file. Known by name: {_quoted_names()}.")
        try:
            text = path.read_text("utf-8", errors="replace")
        except OSError as error:
            raise InputError(f"recipe {path} cannot be read ({error.strerror}). Check its rights.") from None
    elif name in recipe_names():
        text, title = packaged_text("recipes", f"{name}.toml"), name
    else:
        raise unknown_name("recipe", name, [*recipe_names(), *paper_names()])
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"recipe {name!r} is not TOML: {error}. Correct the file.") from error
    return _from_tables(table, changes or {}, title)


def _from_tables(table: dict[str, Any], changes: dict[str, Any], name: str) -> Recipe:
    """Lay changes over a recipe's tables; a recipe that is changed makes no claim any more."""
    for key in ("data", "model", "train"):
        for given in (table, changes):
            require(isinstance(given.get(key, {}), dict), key, given.get(key), "a table")
    train, changed = table.get("train", {}), changes.get("train", {})
    if changed.get("epochs") and train.get("steps") and "steps" not in changed:
        raise InputError(
            f"train.epochs = {changed['epochs']}: {name} counts steps, {train['steps']} of them. "
            "Expected a change of train.steps; train.steps=0 lets the epochs count."
        )
    preset = train.get("augmentation")
    if isinstance(preset, str) and isinstance(changed.get("augmentation"), dict):
        table = merged(table, {"train": {"augmentation": as_table(Augmentation.named(preset))}})
    if changes:
        table = {key: value for key, value in table.items() if key not in CLAIM}
    if "seed" in changed:
        table = {key: value for key, value in table.items() if key != "seeds"}
    table = merged(table, changes)
    seed = table.get("train", {}).get("seed", 0)
    return from_table(Recipe, {"seeds": [seed], **table, "name": name}, "")


def load_result(name: str) -> dict[str, Any]:
    """Read a result that ships with the package: what a recipe's run wrote.

    Args:
        name: the recipe's name.

    Raises:
        InputError: there is no such result.
    """
    names = _packaged_names("results", ".json")
    if name not in names:
        raise unknown_name("result", name, names)
    return json.loads(packaged_text("results", f"{name}.json"))


def packaged_text(folder: str, name: str) -> str:
    """Read a text file of the package."""
    return resources.files("vit_from_scratch").joinpath(folder, name).read_text("utf-8")


def _packaged_names(folder: str, ending: str) -> list[str]:
    files = resources.files("vit_from_scratch").joinpath(folder).iterdir()
    return sorted(file.name.removesuffix(ending) for file in files if file.name.endswith(ending))


def _quoted_names() -> str:
    return ", ".join(repr(name) for name in recipe_names())
