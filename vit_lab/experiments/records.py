"""What results and summaries hold, as typed records, and the one layout in which JSON keeps them.

A row is a recipe that was run with several seeds, perhaps after a sweep of learning rates. A recipe's result
is a single row; a study's result is a list of them. What a table says of where and when it was made holds for
the tables in it, unless these say otherwise.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from vit_from_scratch.errors import InputError
from vit_lab.experiments.study import label_of
from vit_lab.runs.origins import NOTED, ORIGIN

MEASURES = (
    "test_accuracy",
    "test_top5_accuracy",
    "test_flip_accuracy",
    "validation_loss",
    "validation_accuracy",
)
"""What is averaged over the seeds, if it was measured: few classes have no top-5 accuracy, few recipes test
mirror images, a run without labels has nothing tested, and of pixels none is right or wrong."""

MADE = (*ORIGIN, "date")
"""What a record says of where and when it was made."""

FACTS = ("test_images", "validation_images", "parameters", "forward_flops", "baseline")


@dataclass(frozen=True)
class SeedRun:
    """One run of a row.

    Attributes:
        seed: its seed.
        measured: numbers by name: some of `MEASURES`, and "test_loss".
        seconds: of training.
        made: where and when it was trained, as in its result.json.
        curve: an entry for each epoch.
    """

    seed: int
    measured: dict[str, float]
    seconds: float
    made: dict[str, Any]
    curve: list[dict[str, Any]]

    @classmethod
    def of(cls, result: Mapping[str, Any], curve: list[dict[str, Any]]) -> "SeedRun":
        """Take over a run from its result.json, or from a summary, where the curve is taken from."""
        names = (*MEASURES, "test_loss")
        measured = {name: float(result[name]) for name in names if result.get(name) is not None}
        return cls(int(result["seed"]), measured, float(result["seconds"]), _picked(result, NOTED), curve)

    def table(self) -> dict[str, Any]:
        """Return what JSON holds, its origin spelt out."""
        numbers = {"seed": self.seed, **self.measured, "seconds": self.seconds}
        return numbers | self.made | {"curves": self.curve}


@dataclass(frozen=True)
class Rate:
    """A learning rate that was tried with a row's first seed; its numbers are None where training diverged.

    Attributes:
        rate: the base learning rate.
        validation_accuracy: of what the run keeps, on held-out images.
        validation_loss: likewise.
        seconds: of training.
        made: where and when it was trained.
    """

    rate: float
    validation_accuracy: float | None = None
    validation_loss: float | None = None
    seconds: float | None = None
    made: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rate: float, result: Mapping[str, Any]) -> Self:
        """Return what the result of a run at this rate says."""
        return cls(rate, *(result[name] for name in ("validation_accuracy", "validation_loss", "seconds")))

    def table(self) -> dict[str, Any]:
        """Return what JSON holds, its origin spelt out."""
        return {key: value for key, value in vars(self).items() if key != "made"} | self.made


def rate_folder(rate: float) -> str:
    """Return the name of the folder of the runs at a learning rate, inside a row's."""
    return f"rate-{rate:g}"


def best_rate(rows: Sequence[Rate]) -> float:
    """Return the rate with the highest held-out accuracy, of equal ones the one with the lowest loss.

    Raises:
        InputError: training diverged at every rate.
    """
    converged = [row for row in rows if row.validation_accuracy is not None]
    if not converged:
        tried = ", ".join(f"{row.rate:g}" for row in rows)
        raise InputError(f"training diverged at every learning rate ({tried}): expected lower ones.")
    return max(converged, key=lambda row: (row.validation_accuracy, -(row.validation_loss or 0))).rate


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the runs of one recipe with several seeds reached.

    Attributes:
        task: of a study; "" without tasks.
        name: of the row in its study; "" for a recipe's own result.
        changes: what the row changes in its study.
        objective: what was learned, as in `Recipe`.
        runs: one for each seed that did not diverge.
        diverged: seeds with which training diverged at the chosen rate; the means are of the others.
        rates: those that were swept, if any; `chosen` is the best of them.
        chosen: the learning rate of `runs`.
        facts: the images measured, parameters, operations of a forward pass, and the baseline, by name.
        config: every setting, and [start], what the runs began from.
    """

    task: str = ""
    name: str = ""
    changes: dict[str, Any] = field(default_factory=dict)
    objective: str = "classes"
    runs: list[SeedRun]
    diverged: list[int] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)
    chosen: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any]

    @property
    def label(self) -> str:
        """What messages call it."""
        return label_of(self.task, self.name)

    @property
    def seeds(self) -> list[int]:
        """All seeds that were run, those with which training diverged included."""
        return [*(run.seed for run in self.runs), *self.diverged]

    def is_whole(self, seeds: Sequence[int], rates: Sequence[float]) -> bool:
        """Whether it was run with these seeds and tried at these rates, and with no others."""
        return sorted(self.seeds) == sorted(seeds) and sorted(one.rate for one in self.rates) == sorted(rates)

    @property
    def made(self) -> dict[str, Any]:
        """Where and when the last run was made."""
        return {key: self.runs[-1].made.get(key) for key in MADE}

    @property
    def measure(self) -> str:
        """The number that counts: `test_accuracy`, `validation_accuracy` or `validation_loss`."""
        if self.objective != "classes":
            return "validation_loss"
        return "test_accuracy" if "test_accuracy" in self.runs[0].measured else "validation_accuracy"

    def values(self, measure: str = "") -> list[float]:
        """Return a number of each run; by default the one that counts."""
        return [run.measured[measure or self.measure] for run in self.runs]

    @property
    def mean(self) -> float:
        """The mean of the number that counts."""
        return statistics.fmean(self.values())

    @property
    def std(self) -> float | None:
        """The standard deviation of the number that counts over the seeds; None for a single one."""
        return statistics.stdev(self.values()) if len(self.runs) > 1 else None

    def table(self) -> dict[str, Any]:
        """Return what JSON holds; runs and rates say where they were made if the last run differs."""
        measured = [name for name in MEASURES if name in self.runs[0].measured]
        rates = said_once(self.rates, self.made)
        return {
            **{key: value for key in ("task", "name", "changes") if (value := getattr(self, key))},
            **({} if self.objective == "classes" else {"objective": self.objective}),
            **{f"{name}_mean": statistics.fmean(self.values(name)) for name in measured},
            f"{self.measure}_std": self.std,
            "seconds_max": max(run.seconds for run in self.runs),
            "seeds": [run.seed for run in self.runs],
            **({"diverged": self.diverged} if self.diverged else {}),
            **({"chosen": self.chosen, "rates": rates} if rates else {}),
            **self.facts,
            "config": self.config,
            "runs": said_once(self.runs, self.made),
            **self.made,
        }


def read_row(table: Mapping[str, Any]) -> Row:
    """Read what `Row.table` returned; the table says where it was made.

    Raises:
        KeyError, TypeError, ValueError, OverflowError: it is not a row.
    """
    made, config = {key: table[key] for key in MADE}, table["config"]
    tables = {name: dict(config[name]) for name in ("data", "model", "train")}
    numbers = ("rate", "validation_accuracy", "validation_loss", "seconds")
    runs = [SeedRun.of(run, run["curves"]) for run in _spelt_out(table["runs"], made)]
    if not runs:
        raise ValueError("a row without runs")
    return Row(
        **_picked(table, ("task", "name", "changes", "objective")),
        runs=runs,
        diverged=list(table.get("diverged", [])),
        rates=[
            Rate(**{key: rate[key] for key in numbers}, made=_picked(rate, NOTED))
            for rate in _spelt_out(table.get("rates", []), made)
        ],
        chosen=float(table.get("chosen", 0)),
        facts=_picked(table, FACTS),
        config=config | tables,
    )


def read_rows(summary: Mapping[str, Any]) -> list[Row]:
    """Read the rows of a result or a summary: those of a study, or a recipe's single one."""
    if "rows" not in summary:
        return [read_row(summary)]
    return [read_row(row) for row in _spelt_out(summary["rows"], {key: summary[key] for key in MADE})]


def said_once(records: Sequence[Row | Rate | SeedRun], made: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tables of records without what the table over them says for all: where they were made."""
    return [
        {key: value for key, value in record.table().items() if key not in ORIGIN or value != made[key]}
        for record in records
    ]


def _spelt_out(tables: Sequence[Mapping[str, Any]], made: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**made, **table} for table in tables]


def _picked(table: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: table[key] for key in keys if key in table}
