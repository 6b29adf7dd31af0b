"""Studies: a base recipe, what varies over it, seeds, and a claim that is written before the runs.

Its result is a table with a row for each variation (times each task, if there are tasks). Settings are chosen
on held-out images; test images are touched only where `test` says so, once for each run. Where `rates` are
given, every row is tuned alike: as many learning rates, and the runs of all seeds at the best one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vit_from_scratch.data.config import IN_MEMORY, DataConfig
from vit_from_scratch.errors import InputError, shown
from vit_from_scratch.settings import check_fields, from_table, merged, require
from vit_lab.experiments.packaged import load_table, packaged_names
from vit_lab.experiments.recipes import Recipe, check_name_and_seeds, load_recipe, recipe_from_tables
from vit_lab.experiments.suited import OWN_RECIPES, SURVEYS


@dataclass(frozen=True)
class Variant:
    """A row of a study before it is run.

    `changes` are the row's own tables, `rates` the learning rates that are swept: () for the recipe's own.
    """

    task: str
    name: str
    changes: dict[str, Any]
    recipe: Recipe
    rates: tuple[float, ...]

    @property
    def label(self) -> str:
        """What messages call it: "TASK, NAME". Its folder is the slug of that."""
        return label_of(self.task, self.name)


@dataclass(frozen=True, kw_only=True)
class Study:
    """What varies over a recipe, and what is asked.

    Attributes:
        name: the file's name without `.toml`.
        claim: what is asked; the summary has it, and `command`, what to type.
        base: the recipe that all rows begin from; "" where `changes` hold a whole one.
        changes: nested tables laid over the base in every row.
        tasks: for each task, by name, tables laid over these; every row is run for each task.
        rows: for each row, by name and in order, the tables of its own changes, and `rates` where it wants
            others (as many).
        cumulative: whether a row keeps the changes of those before it.
        seeds: each row is run once for each of them.
        rates: base learning rates that every row is swept over with the first seed, on held-out images; none
            for the recipe's own rate.
        test: measure the runs of all seeds on the test images; otherwise held-out images compare them.

    Raises:
        InputError: a value of another type, no row, names that cannot be folders of their own, rows with
            unequal numbers of rates, or rates not above 0 or not all different.
    """

    name: str
    claim: str = ""
    command: str = ""
    base: str = ""
    changes: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, Any]
    cumulative: bool = False
    seeds: tuple[int, ...] = (0,)
    rates: tuple[float, ...] = ()
    test: bool = False

    def __post_init__(self) -> None:
        """Refuse what the class says."""
        check_fields(self, "")
        check_name_and_seeds(self.name, self.seeds)
        require(len(self.rows) > 0, "rows", self.rows, "at least one")
        for option in ("tasks", "rows"):
            for name, own in getattr(self, option).items():
                require(isinstance(own, dict), f"{option}.{name}", own, "a table of changes")
        check_folders([label_of(task, name) for task in self.tasks or [""] for name in self.rows])
        for name in self.rows:
            rates = self._rates_of(name)
            fits = isinstance(rates, tuple) and len(rates) == len(self.rates)
            require(fits, f"rows.{name}.rates", rates, f"{len(self.rates)} rates, as for the others")
            check_rates(rates, f"rows.{name}.rates" if "rates" in self.rows[name] else "rates")

    def variants(self) -> list[Variant]:
        """Return the rows, task by task, with their recipes."""
        variants = []
        for task, changed in (self.tasks or {"": {}}).items():
            kept = merged(self.changes, changed)
            for name, own in self.rows.items():
                here = merged(kept, {key: value for key, value in own.items() if key != "rates"})
                rates = self._rates_of(name)
                rate = {"train": {"learning_rate": rates[0]}} if rates else {}
                tables = merged(here, rate) | {"seeds": list(self.seeds)}
                if self.base:
                    recipe = load_recipe(self.base, tables)
                else:
                    recipe = recipe_from_tables(tables, {}, self.name)
                recipe = replace(recipe, name=slug(label_of(task, name)))
                variants.append(Variant(task, name, own, recipe, rates))
                kept = here if self.cumulative else kept
        return variants

    def recipes(self) -> dict[str, Recipe]:
        """Return each row's recipe by its label."""
        return {variant.label: variant.recipe for variant in self.variants()}

    def _rates_of(self, name: str) -> Any:
        own = self.rows[name].get("rates", self.rates)
        return tuple(own) if isinstance(own, list) else own


def study_names() -> list[str]:
    """Return the names of the studies that ship with the package."""
    return packaged_names("studies", ".toml")


def load_study(name: str) -> Study:
    """Read a study: one that ships with the package by name, or the path of a TOML file.

    Raises:
        InputError: no such study, a file that is not TOML, or an unknown option in it.
    """
    table, name = load_table("study", "studies", name)
    return from_table(Study, {**table, "name": name}, "")


def label_of(task: str, name: str) -> str:
    """Return what a row is called: by its name, after its task if there is one."""
    return f"{task}, {name}" if task else name


def slug(name: str) -> str:
    """Turn a row's name into one for a folder: "+ flip, shift" becomes "flip-shift"."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def check_rates(rates: Sequence[object], option: str) -> None:
    """Raise an `InputError` unless these are learning rates whose runs have folders of their own."""
    numbers = [rate for rate in rates if isinstance(rate, int | float) and rate > 0]
    require(len(numbers) == len(rates), option, list(rates), "numbers above 0")
    apart = {f"{rate:g}" for rate in numbers}
    require(len(apart) == len(rates), option, list(rates), "each of them once, to six digits")


def check_folders(names: Iterable[str]) -> None:
    """Raise an `InputError` if names of rows cannot be folders, each of its own, as `slug` makes them."""
    folders: dict[str, str] = {}
    for name in names:
        folder = slug(name)
        fits = re.search("[a-z0-9]", folder) and len(folder) <= 200 and folder != "summary.json"
        if not fits:
            raise InputError(
                f"row {shown(name)} cannot name a folder: expected letters from a to z or digits, "
                "200 at most. Rename it."
            )
        if folder in folders:
            raise InputError(
                f"rows {folders[folder]!r} and {name!r} would share the folder {folder!r}: "
                "expected names that differ in letters or digits. Rename one."
            )
        folders[folder] = name


def miniature(study: Study, rates: Mapping[str, float], images: int = 2000, epochs: int = 3) -> Study:
    """Cut a study down to some of its rows, its first task and few images, to be tried in minutes.

    The warm-up keeps its share of the steps.

    Args:
        study: the whole one.
        rates: names of rows, each with its learning rate, such as the one that a sweep chose.
        images: training images, where there are more; 0 for all.
        epochs: passes over them, where there are more; 0 for all.

    Raises:
        InputError: no such row, a study whose rows build upon each other, or photos of your own without
            data.train_size.
    """
    fits = bool(rates) and set(rates) <= set(study.rows)
    require(fits, "rates", list(rates), f"names of rows: {', '.join(study.rows)}")
    require(not study.cumulative, "cumulative", True, "a study whose rows stand on their own")
    task = next(iter(study.tasks), "")
    recipes = {one.name: one.recipe for one in study.variants() if one.task == task}
    rows = {}
    for name, rate in rates.items():
        short = _shortened(recipes[name], images, epochs) if images or epochs else {}
        own = {key: value for key, value in study.rows[name].items() if key != "rates"}
        rows[name] = merged(merged(own, short), {"train": {"learning_rate": rate}})
    tasks = {task: study.tasks[task]} if task else {}
    return replace(study, name=f"{study.name}-again", rows=rows, tasks=tasks, rates=())


def _shortened(recipe: Recipe, images: int, epochs: int) -> dict[str, Any]:
    """Return the tables that cut a recipe's images and epochs, and its warm-up as the steps."""
    config, most = recipe.train, _training_images(recipe.data)
    # of a whole data set each class leaves one behind
    left = SURVEYS[recipe.data.name].classes if recipe.data.train_size is None else 0
    kept = images if 0 < images <= most - left else most

    def steps(photos: int, passes: int) -> int:
        return passes * (photos // min(config.batch_size, photos))

    train: dict[str, Any] = {}
    if epochs and not config.steps:
        train = {"epochs": min(epochs, config.epochs)}
    elif epochs and steps(kept, epochs) < config.steps:
        train = {"steps": 0, "epochs": epochs}
    short = replace(config, **train)
    whole, fewer = (one.steps or steps(photos, one.epochs) for one, photos in ((config, most), (short, kept)))
    if config.warmup_steps and fewer < whole:
        train["warmup_steps"] = max(1, round(config.warmup_steps * fewer / whole))
    return {"train": train} | ({"data": {"train_size": kept}} if kept < most else {})


def _training_images(data: DataConfig) -> int:
    """Return how many images are trained on, as far as that is known of a data set that is not opened."""
    if data.train_size is not None:
        return data.train_size
    if data.name not in SURVEYS:
        raise InputError(
            f"data.name = {data.name!r} without data.train_size: expected the number of its training images, "
            "which is not known before they are opened. Set data.train_size in the study, or cut nothing "
            "(images = 0, epochs = 0)."
        )
    held_out = IN_MEMORY[data.name] if data.name in OWN_RECIPES else 0  # which `SURVEYS` leaves out
    return max(1, SURVEYS[data.name].photos + held_out - (data.validation_size or 0))
