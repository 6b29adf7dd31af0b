"""Recipes: one run each, as a commented page of TOML with the claim it tests and what to expect."""

import copy
import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import tomli_w

from vit_from_scratch.data.augmentation import Augmentation
from vit_from_scratch.data.config import DataConfig
from vit_from_scratch.errors import InputError, unknown_name
from vit_from_scratch.files import sha256
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.settings import as_table, check_fields, from_table, merged, require
from vit_from_scratch.training.config import TrainConfig
from vit_lab.experiments.packaged import load_result, load_table, packaged_names
from vit_lab.experiments.paper import paper_names, paper_table
from vit_lab.runs.trained_models import KNOWN, TrainedModel, checkpoint_path, open_model

if TYPE_CHECKING:  # a recipe is read in a moment; PyTorch takes seconds
    from torch import Tensor

    from vit_from_scratch.data.dataset import DataSet
    from vit_from_scratch.model.patches import PatchEmbedding
    from vit_from_scratch.model.vit import VisionTransformer
    from vit_from_scratch.training.self_supervised import SelfSupervised

CLAIM = ("claim", "command", "expect", "aim")
"""What a recipe says of the run that it describes, and of no other."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A run, described so that anybody can repeat it.

    Attributes:
        name: the file's name without `.toml`.
        claim: what the run is to show, in a sentence.
        command: what to type.
        expect: the least that a repeat should reach, such as {"test_accuracy": 0.985}; without labels
            {"validation_accuracy": ...}, or a {"validation_loss": ...} at most. It is written before the
            first run; if that misses it, it becomes what was reached, and `aim` keeps what was wanted.
        aim: the test accuracy that was wanted and missed; 0 if nothing was missed.
        seeds: the seeds that the claim is about; a file that names none means its `train.seed`.
        neighbours: k of the k-nearest-neighbour baseline that `run_seeds` measures beside its runs, of images
            in memory alone; 0 for none.
        weights: what to begin from (fine-tuning, section 3.2), as `open_model` takes it: a trained model's
            name, a run's folder or a checkpoint. Its model gets a zero head and resized positions; "" to
            begin from random weights.
        flip_test: measure the test images once more, with the mean of the answers to each and to its mirror
            image; see `vit_lab.runs.run.FlipAveraged`. Both accuracies are noted.
        keep_head: begin from the head of `weights`, too: the same classes, trained further.
        whiten: let the patch embedding begin as `whiten_` has it, by the first 5,000 training images.
        objective: what is learned: "classes", or, without labels, "masked-patches" (appendix B.1.2) or
            "masked-pixels" (not the paper's).
        data: the [data] table.
        model: the [model] table: fields of `ViTConfig`; image size, channels and classes come from the data.
        train: the [train] table.

    Raises:
        InputError: a value of another type, an unknown option of the model, or sizes that no model has.
    """

    name: str
    claim: str = ""
    command: str = ""
    expect: dict[str, Any] = field(default_factory=dict)
    aim: float = 0.0
    seeds: tuple[int, ...] = (0,)
    neighbours: int = 0
    weights: str = ""
    keep_head: bool = False
    flip_test: bool = False
    whiten: bool = False
    objective: Literal["classes", "masked-patches", "masked-pixels"] = "classes"
    data: DataConfig
    model: dict[str, Any] = field(default_factory=dict)
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        """Refuse an unknown option of the model now, not after the data were loaded."""
        check_fields(self, "")
        check_name_and_seeds(self.name, self.seeds)
        labelled, without = self.objective == "classes", f"with objective = {self.objective!r}"
        known = self.train.seed in (0, *self.seeds)
        require(known, "train.seed", self.train.seed, f"one of seeds = {list(self.seeds)}")
        require(0 <= self.aim <= 1, "aim", self.aim, "a share from 0 to 1")
        require(self.neighbours >= 0, "neighbours", self.neighbours, "0 or more")
        require(labelled or not self.neighbours, "neighbours", self.neighbours, f"0 {without}")
        require(labelled or not self.flip_test, "flip_test", True, f"false {without}")
        begun = bool(self.weights) or not self.keep_head
        require(begun, "keep_head", True, "weights to begin from, or false")
        require(not (self.whiten and self.weights), "whiten", True, "false with weights to begin from")
        for key in self.model:
            if key not in ViTConfig.__dataclass_fields__:
                raise unknown_name("option of [model]", key, ViTConfig.__dataclass_fields__)
        if not self.weights:  # what does not depend on the data is refused before they are opened
            patch = self.model.get("patch_size", 16)
            fitting = self.data.image_size or (patch if type(patch) is int and patch > 0 else 16)
            ViTConfig.from_dict({"image_size": fitting, "num_classes": 10} | self.model)

    def with_seed(self, seed: int) -> "Recipe":
        """Return the same recipe for one seed."""
        return replace(self, train=replace(self.train, seed=seed), seeds=(seed,))

    def with_rate(self, rate: float) -> "Recipe":
        """Return the same recipe at another base learning rate."""
        return replace(self, train=replace(self.train, learning_rate=rate))

    def model_config(self, data: "DataSet") -> ViTConfig:
        """Complete the [model] table by what the data decide: image size, channels, classes."""
        return ViTConfig.from_dict(_decided_by(data) | self.model)

    def build(self, data: "DataSet") -> "VisionTransformer":
        """Build the recipe's model; it draws its weights from torch's global generator.

        Raises:
            InputError: `weights` cannot be read, or do not fit; the head to keep knows other classes.
        """
        from vit_from_scratch.model.vit import VisionTransformer
        from vit_from_scratch.training.fine_tuning import adapted

        if not self.weights:
            return VisionTransformer(self.model_config(data))
        trained = _opened(self.weights, *_file_of(self.weights))
        trained.check_colours(data.image_shape[0], self.data.name)
        if trained.normalisation not in (None, self.data.normalisation):
            raise InputError(
                f"data.normalisation = {self.data.normalisation!r}: expected {trained.normalisation!r}, "
                f"which {self.weights} was trained with; set data.normalisation to it."
            )
        if self.keep_head:
            trained.check_classes(data.class_names, self.data.name)
        start = copy.deepcopy(trained.model)  # which the next seed begins from, too
        return adapted(start, keep_head=self.keep_head, **(_decided_by(data) | self.model))

    def seeded(self, data: "DataSet") -> "VisionTransformer | SelfSupervised":
        """Build what the recipe trains, its weights drawn from its seed, on the CPU whatever the device.

        Without labels it is the model inside a self-supervised one.
        """
        import torch

        from vit_from_scratch.model.variants import whiten_
        from vit_from_scratch.training.pretraining import TASKS

        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.train.seed)  # a GPU's own is left alone
            model = self.build(data)
            if self.whiten:
                whiten_(plain_patches(model), first_images(data, 5000, self.train.workers))
            return model if self.objective == "classes" else TASKS[self.objective](model, data.normalise)

    def start(self) -> dict[str, Any]:
        """Return a table [start] with the checksum of the checkpoint that the run begins from."""
        if not self.weights:
            return {"start": {"whiten": True}} if self.whiten else {}
        path, modified = _file_of(self.weights)
        if path is None:
            start = {"name": self.weights, "sha256": _opened(self.weights, path, modified).sha256}
        else:
            start = {"sha256": _checksum(path, modified)}
        return {"start": start | ({"keep_head": True} if self.keep_head else {})}

    def tables(self) -> dict[str, Any]:
        """Return the three tables of settings: data, model, train."""
        return {"data": as_table(self.data), "model": dict(self.model), "train": as_table(self.train)}

    def to_toml(self) -> str:
        """Return the whole recipe, defaults written out, as TOML."""
        told = ("name", "seeds", *self.tables())
        top = {key: value for key, value in vars(self).items() if key not in told and value != UNSAID[key]}
        return tomli_w.dumps(top | {"seeds": list(self.seeds)} | self.tables())


UNSAID = {one.name: one.default for one in fields(Recipe)} | {"seeds": [0], "expect": {}}
"""What holds for a recipe that does not say it."""


def plain_patches(model: "VisionTransformer") -> "PatchEmbedding":
    """Return a model's patch embedding, or raise an `InputError` for another stem."""
    stem = model.config.stem.kind
    require(stem == "patch", "whiten", True, f"false with a {stem!r} stem, since it whitens plain patches")
    return cast("PatchEmbedding", model.patch_embedding)


def first_images(data: "DataSet", most: int, workers: int) -> "Tensor":
    """Return the first training images of a data set, (B, C, H, W), normalised."""
    import torch

    batches = itertools.islice(data.batches("train", 500, workers), math.ceil(most / 500))
    return torch.cat([images.cpu() for images, _ in batches])[:most]


def _decided_by(data: "DataSet") -> dict[str, Any]:
    """Return the fields of a model that its data decide."""
    channels, height, width = data.image_shape
    size = height if height == width else (height, width)
    return {"image_size": size, "channels": channels, "num_classes": data.num_classes}


def _file_of(weights: str) -> tuple[Path | None, int]:
    """Return the file that weights are in and when it was modified; no file where they have a name."""
    if weights in KNOWN:
        return None, 0
    path = checkpoint_path(weights, "weights")
    return path, path.stat().st_mtime_ns


@functools.lru_cache(maxsize=1)
def _opened(weights: str, path: Path | None, modified: int) -> TrainedModel:
    """Load weights once for all seeds, unless their file is modified."""
    return open_model(weights, "weights")


@functools.cache
def _checksum(path: Path, modified: int) -> str:
    return sha256(path)


def check_name_and_seeds(name: str, seeds: Sequence[int]) -> None:
    """Refuse a name that no folder in `runs` can have ("..", of `...toml`), and seeds that torch refuses."""
    require("/" not in name and name.strip(". ") != "", "the file's name", name, "one with letters or digits")
    require(len(seeds) > 0, "seeds", list(seeds), "at least one")
    require(all(0 <= seed < 2**63 for seed in seeds), "seeds", list(seeds), "0 to 2^63 - 1")
    require(len(set(seeds)) == len(seeds), "seeds", list(seeds), "each of them once")


def recipe_names() -> list[str]:
    """Return the names of the recipes that ship with the package."""
    return packaged_names("recipes", ".toml")


NOT_RUN = "not yet run"


def recipe_rows() -> list[tuple[str, ...]]:
    """Return the table of recipes in words: a row of headings, then a row for each that ships.

    `NOT_RUN` stands where there is no result.
    """
    rows = [("recipe", "data", "reached", "a repeat should reach", "aim that was missed", "time of a run")]
    results = packaged_names("results", ".json")
    for name in recipe_names():
        recipe = load_recipe(name)
        reached, time = NOT_RUN, ""
        if name in results:
            result = load_result(name)
            threads = result["hardware"]["threads"]
            where = result["hardware"]["gpu"] or f"CPU, {threads} thread{'s' if threads > 1 else ''}"
            reached = _reached(result)
            time = f"{result['seconds_max'] / 60:.1f} min ({where})"
        expected = _reached({f"{measure}_mean": least for measure, least in recipe.expect.items()})
        expected += " at most" if "validation_loss" in recipe.expect else ""
        aim = f"{recipe.aim:.0%}" if recipe.aim else ""
        rows.append((name, recipe.data.name, reached, expected, aim, time))
    return rows


def _reached(result: dict[str, Any]) -> str:
    """Say in a table's cell what a run reached: of test photos, or, without labels, of what was hidden."""
    if "test_accuracy_mean" in result:
        return f"{result['test_accuracy_mean']:.1%}"
    if "validation_accuracy_mean" in result:
        return f"{result['validation_accuracy_mean']:.1%} of corrupted patches"
    return f"a loss of {result['validation_loss_mean']:.2f}"


def load_recipe(name: str, changes: dict[str, Any] | None = None) -> Recipe:
    """Read a recipe: one of `recipe_names()` or `paper_names()`, or the path of a TOML file of your own.

    Args:
        name: of the recipe, or a path.
        changes: nested tables laid over it, such as {"train": {"epochs": 2}}. If one differs,
            the recipe's claim, command, expectation and aim are left out; with a `train.seed`, its other
            seeds, too.

    Raises:
        InputError: an unknown name, a file that is not TOML, or an unknown or wrong option in it.
    """
    if name in paper_names():
        return recipe_from_tables(paper_table(name), changes or {}, name)
    table, name = load_table("recipe", "recipes", name, paper_names())
    return recipe_from_tables(table, changes or {}, name)


def recipe_from_tables(table: dict[str, Any], changes: dict[str, Any], name: str) -> Recipe:
    """Lay changes over a recipe's tables, as `load_recipe` does; a changed one makes no claim any more."""
    for key in ("data", "model", "train"):
        for given in (table, changes):
            require(isinstance(given.get(key, {}), dict), key, given.get(key), "a table")
    train, changed = table.get("train", {}), changes.get("train", {})
    if changed.get("epochs") and (steps := changed.get("steps")):
        raise InputError(
            f"train.epochs = {changed['epochs']} with train.steps = {steps}: expected one of the two."
        )
    if changed.get("epochs") and train.get("steps") and "steps" not in changed:
        raise InputError(
            f"train.epochs = {changed['epochs']}: {name} counts steps, {train['steps']} of them. "
            "Expected a change of train.steps; train.steps=0 lets the epochs count."
        )
    preset = train.get("augmentation")
    if isinstance(preset, str) and isinstance(changed.get("augmentation"), dict):
        table = merged(table, {"train": {"augmentation": as_table(Augmentation.named(preset))}})
    stem = table.get("model", {}).get("stem")
    if isinstance(stem, str) and isinstance(changes.get("model", {}).get("stem"), dict):
        table = merged(table, {"model": {"stem": {"kind": stem}}})
    if {key: value for key, value in changes.items() if value != table.get(key, UNSAID.get(key))}:
        table = {key: value for key, value in table.items() if key not in CLAIM}
    if "seed" in changed:
        table = {key: value for key, value in table.items() if key != "seeds"}
    table = merged(table, changes)
    table.pop("images", None)  # a run's config.toml notes them; it is a recipe otherwise
    seed = table.get("train", {}).get("seed", 0)
    return from_table(Recipe, {"seeds": [seed], **table, "name": name}, "")
