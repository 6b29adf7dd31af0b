"""Pages of transfers: starting points against tasks, each pair fine-tuned at a swept rate and tested.

A page is TOML. Every start is tuned alike: the same number of learning rates, the same held-out images, the
same steps. What ships with the package answers whether pre-training pays, and which (chapters 10 and
10).
"""

from dataclasses import dataclass
from typing import Any

from vit_from_scratch.settings import check_fields, from_table, merged, require
from vit_lab.experiments.packaged import packaged_names, page_table
from vit_lab.experiments.recipes import Recipe, check_name, recipe_from_tables
from vit_lab.experiments.trials import check_folders, slug


@dataclass(frozen=True, kw_only=True)
class Transfers:
    """A page of transfers.

    Attributes:
        name: the file's name without `.toml`.
        claim: what is asked.
        command: what to type.
        seeds: of the final runs; the first one also sweeps the rates.
        rates: base learning rates that each start is swept over, unless it has its own (as many).
        data: the [data] table that all share.
        train: the [train] table that all share.
        tasks: for each task, by name, tables laid over these.
        starts: for each starting point, by name, tables laid over those: `weights` or [model], and `rates`
            where its optimiser wants others.

    Raises:
        InputError: a value of another type, no task or start, names that are no folders of their own, or
            starts with unequal numbers of rates.
    """

    name: str
    claim: str
    command: str
    seeds: tuple[int, ...] = (0, 1, 2)
    rates: tuple[float, ...]
    data: dict[str, Any]
    train: dict[str, Any]
    tasks: dict[str, Any]
    starts: dict[str, Any]

    def __post_init__(self) -> None:
        """Refuse an empty page, names that are no folders, and a page that does not tune its starts alike."""
        check_fields(self, "")
        check_name(self.name)
        for option in ("seeds", "rates", "tasks", "starts"):
            require(len(getattr(self, option)) > 0, option, getattr(self, option), "at least one")
        for option in ("tasks", "starts"):
            for name, own in getattr(self, option).items():
                require(isinstance(own, dict), f"{option}.{name}", own, "a table")
            check_folders(option.removesuffix("s"), getattr(self, option))
        check_folders("pair", [f"{task}, {start}" for task in self.tasks for start in self.starts])
        for name in self.starts:
            rates = self.rates_of(name)
            fits = isinstance(rates, tuple) and len(rates) == len(self.rates)
            require(fits, f"starts.{name}.rates", rates, f"{len(self.rates)} rates, as for the others")

    def rates_of(self, start: str) -> tuple[float, ...]:
        """Return the learning rates that a start is swept over."""
        own = self.starts[start].get("rates", self.rates)
        return tuple(own) if isinstance(own, list | tuple) else own

    def pairs(self) -> dict[tuple[str, str], Recipe]:
        """Return the recipe of each pair of a task and a start; its rate is the first to be swept."""
        recipes = {}
        for task, changed in self.tasks.items():
            for start, own in self.starts.items():
                shared = {"data": self.data, "train": self.train, "seeds": list(self.seeds)}
                tables = merged(merged(shared, changed), {k: v for k, v in own.items() if k != "rates"})
                tables = merged(tables, {"train": {"learning_rate": self.rates_of(start)[0]}})
                recipes[task, start] = recipe_from_tables(tables, {}, slug(f"{task}, {start}"))
        return recipes


def transfer_names() -> list[str]:
    """Return the names of the pages that ship with the package."""
    return packaged_names("transfers", ".toml")


def load_transfers(name: str) -> Transfers:
    """Read a page of transfers: one that ships with the package by name, or the path of a TOML file.

    Raises:
        InputError: no such page, no TOML, or an unknown option in it.
    """
    return from_table(Transfers, page_table("transfers", name), "")
