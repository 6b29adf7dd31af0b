"""The directives `runs`, `study` and `between`: the log of what was tried, from the results."""

from collections.abc import Sequence
from fnmatch import fnmatch
from math import ceil, floor, sqrt
from statistics import fmean
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from vit_book.recipes import add_table, table
from vit_lab.experiments.packaged import load_result, packaged_names
from vit_lab.experiments.recipes import load_recipe
from vit_lab.experiments.records import Row, read_rows

RUN = ("run", "test", "aim", "held out", "training", "epochs", "minutes", "parameters")
TOLD = {
    "test_top5_accuracy_mean": " (Among its first five answers: {:.1%}.)",
    "test_flip_accuracy_mean": " (Averaged with mirror images: {:.1%}.)",
}
"""What is told of a run beside its claim, where it was measured."""


def runs_text(names: Sequence[str]) -> list[str]:
    """Write the runs whose names match in Markdown: a table, then what each was to show."""
    found = (name for name in packaged_names("results", ".json") if any(fnmatch(name, one) for one in names))
    runs = {name: result for name in found if "recipe" in (result := load_result(name))}
    if not runs:
        raise ExtensionError(f"{{runs}}: there is no result of a run called {' or '.join(names)}.")
    claims = []
    for name, result in runs.items():
        told = (words.format(result[key]) for key, words in TOLD.items() if result.get(key) is not None)
        claims.append(f"- `{name}` ({place(result)}): {result['claim']}{''.join(told)}{time_saved(result)}")
    rows = (run_cells(name, result) for name, result in runs.items())
    heading = (
        "Where and when each ran, what it was to show, in the words of its file, and what a curriculum saved:"
    )
    return [*table(RUN, rows), "", heading, "", *claims]


def run_cells(name: str, result: dict[str, Any]) -> list[str]:
    """Write a run's row under the headings RUN; a share that nobody measured stays empty.

    A run without labels has no test. Where nothing is right or wrong either, losses stand in place of shares.
    """
    curves = [run["curves"] for run in result["runs"]]
    kept = [kept_epoch(curve, result["config"]["train"]["patience"]) for curve in curves]
    epochs = {
        f"{len(curve)}, kept {end['epoch']}" if end is not curve[-1] else str(len(curve))
        for curve, end in zip(curves, kept, strict=True)
    }
    labelled = "test_accuracy_mean" in result
    test = spread(result["test_accuracy_mean"], result["test_accuracy_std"], len(curves)) if labelled else ""
    wanted = wanted_of(result)
    measured = "loss" if "validation_loss" in wanted else "accuracy"
    parts = ([epoch[f"{part}_{measured}"] for epoch in kept] for part in ("validation", "train"))
    return [
        f"`{name}`",
        test,
        *([reached([number], measured) for number in wanted.values()] or [""]),
        *(reached(numbers, measured) for numbers in parts),
        "; ".join(sorted(epochs)),
        f"{result['seconds_max'] / 60:.1f}",
        f"{result['parameters']:,}",
    ]


def wanted_of(result: dict[str, Any]) -> dict[str, float]:
    """Return what a run was to reach, by what is measured: its recipe's aim, or what its own file expected.

    What the recipe expects now is for repeats, and may have been written after the run.
    """
    known = result["recipe"] in packaged_names("recipes", ".toml")
    aim = load_recipe(result["recipe"]).aim if known else None
    return {key: aim or number for key, number in result["expect"].items()}


def reached(numbers: Sequence[float], measured: str) -> str:
    """Write the mean of what was measured: a "loss" as "loss 0.68", an "accuracy" as a share."""
    return f"loss {fmean(numbers):.2f}" if measured == "loss" else share(*numbers)


def place(result: dict[str, Any]) -> str:
    """Say when a run ended and on how many threads, or on which graphics card."""
    hardware = result["hardware"]
    threads = hardware["threads"]
    where = hardware["gpu"] or f"{threads} thread{'s' if threads > 1 else ''}"
    return f"{where}, {result['date'].partition('T')[0]}"


def time_saved(result: dict[str, Any]) -> str:
    """Say how long an epoch of a run's smallest images took beside a full one; "" if all were full.

    Also "" where epochs of one size differ by more than a fifth: then the machine had other work, too.
    """
    stages = result["config"]["train"]["curriculum"]
    if len(stages) < 2:
        return ""
    epochs = [epoch["seconds"] for epoch in result["runs"][0]["curves"]]
    small = epochs[: floor(stages[1][0] * len(epochs))]  # an epoch in which the size changes belongs to none
    full = epochs[ceil(stages[-1][0] * len(epochs)) :]
    if any(max(alike) > 1.2 * min(alike) for alike in (small, full)):
        return ""
    (_, first), *_, (_, last) = stages
    share = fmean(small) / fmean(full)
    return f" (An epoch at {first} pixels took {share:.0%} of the time of one at {last}.)"


def kept_epoch(curve: Sequence[dict[str, Any]], patience: int) -> dict[str, Any]:
    """Return the epoch whose weights a run kept: the last, or where it had patience the one of least loss."""
    return min(curve, key=lambda epoch: epoch["validation_loss"]) if patience else curve[-1]


def study_text(name: str) -> list[str]:
    """Write a study in Markdown: claim, command, and a table of what each row reached."""
    study = load_result(name)
    rows = read_rows(study)
    return [
        f"Its claim: {study['claim']}",
        "",
        f"Ended {study['date'].partition('T')[0]}: `{study['command']}`",
        "",
        *(swept_lines(rows) if rows[0].rates else compared_lines(rows, study["cumulative"])),
    ]


def compared_lines(rows: Sequence[Row], cumulative: bool) -> list[str]:
    """Write what rows reached, on which images, and how far counting alone blurs each."""
    found = [row.mean for row in rows]
    compared = [found[0], *found] if cumulative else [found[0]] * len(found)
    cells = [
        [
            row.name,
            str(max(len(run.curve) for run in row.runs)),
            share(*(run.curve[-1]["train_accuracy"] for run in row.runs)),
            spread(now, row.std, len(row.runs)),
            f"{round(100 * (now - before), 1) + 0.0:+.1f}" if number else "",  # not -0.0
        ]
        for number, (row, now, before) in enumerate(zip(rows, found, compared, strict=False))
    ]
    where = images_of(rows)
    photos = rows[0].facts["test_images"] if where == "test" else held_out_images(rows)
    counted = f"Counting {photos:,} {where.replace(' ', '-')} images puts"
    error = 100 * max(sqrt(p * (1 - p) / photos) for p in found)
    against = "to the row above" if cumulative else "to the first row"
    return [
        *table(("trial", "epochs", "training", where, f"points, {against}"), cells),
        "",
        f"{counted} a standard error of {error:.1f} points on a row.",
    ]


def swept_lines(rows: Sequence[Row]) -> list[str]:
    """Write what each row reached at its best rate, on which images, and the rates that were tried."""
    cells = []
    for row in rows:
        tried = (f"{one.rate:g}:\N{NO-BREAK SPACE}{share(one.validation_accuracy)}" for one in row.rates)
        lost = f", without {len(row.diverged)} that diverged" if row.diverged else ""
        best = spread(row.mean, row.std, len(row.runs)) + lost
        cells.append([row.task, row.name, best, f"{row.chosen:g}", "; ".join(tried)])
    head = ("task", "row", images_of(rows), "rate", f"rates tried, {held_out_images(rows):,} held out")
    first = 0 if any(row.task for row in rows) else 1
    return table(head[first:], [line[first:] for line in cells])


def images_of(rows: Sequence[Row]) -> str:
    """Return on which images rows are compared: "test" or "held out"."""
    return "test" if rows[0].measure == "test_accuracy" else "held out"


def held_out_images(rows: Sequence[Row]) -> int:
    """Return how many images every row was compared on."""
    return min(row.config["data"]["validation_size"] for row in rows)


def between_text(name: str) -> list[str]:
    """Write a mean that ships in Markdown: held-out photos along the way, test photos in the middle."""
    found = load_result(f"{name}_weights")
    first, five = found["test_accuracy"], found["test_top5_accuracy"]
    return [
        *table(("share of the way", *found["along"]), [["held out", *map(share, found["along"].values())]]),
        "",
        f"On {found['test_images']:,} test photos the middle, in half precision, is right for "
        f"{share(first)}, and among its first five answers for {share(five)}.",
    ]


def share(*values: float | None) -> str:
    """Write the mean of some shares as a percentage: "80.8%", and nothing where one was not measured."""
    measured = [value for value in values if value is not None]
    return f"{fmean(measured):.1%}" if len(measured) == len(values) else ""


def spread(mean: float, deviation: float | None, seeds: int) -> str:
    """Write a mean over seeds with its standard deviation: "80.8% ± 0.3 (3 seeds)"; alone for one seed."""
    return share(mean) + (f" ± {100 * deviation:.1f} ({seeds} seeds)" if deviation is not None else "")


def setup(app: Sphinx) -> None:
    """Register `{runs} NAMES`, in which a name may hold a `*`, `{study} NAME` and `{between} NAME`."""
    add_table(app, "runs", lambda names: runs_text(names.split()))
    add_table(app, "study", study_text)
    add_table(app, "between", between_text)
