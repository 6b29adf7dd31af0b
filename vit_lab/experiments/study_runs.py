"""Run a recipe with each of its seeds, or every row of a study, and write a summary of them all."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from vit_from_scratch.data.dataset import DataSet, ImageData
from vit_from_scratch.data.datasets import open_dataset
from vit_from_scratch.errors import DivergedError, InputError
from vit_from_scratch.files import remove_leftovers, write_json
from vit_from_scratch.settings import require
from vit_lab.experiments.at_once import train_at_once
from vit_lab.experiments.recipes import Recipe
from vit_lab.experiments.records import Rate, Row, SeedRun, best_rate, rate_folder, said_once
from vit_lab.experiments.study import Study, Variant, check_rates
from vit_lab.experiments.summaries import SUMMARY, check_summary, read_summary
from vit_lab.probes import neighbours_accuracy
from vit_lab.runs.locks import locked
from vit_lab.runs.metrics import read_metrics
from vit_lab.runs.origins import trained_at
from vit_lab.runs.processes import Processes
from vit_lab.runs.run import run
from vit_lab.runs.run_settings import CONFIG


@dataclass(frozen=True)
class Place:
    """Where runs are computed, and who is told.

    Attributes:
        data_dir: where the data are; see `load_dataset`.
        device: where to train.
        say: called with a sentence, such as that a run is in its folder already.
        report: called with each measured run's folder and result as it ends.
        keep: epochs after which the model is kept, as in `run`.
        at_once: runs of a study that are trained at the same time, each in a process of its own.
    """

    data_dir: str | os.PathLike[str] | None = None
    device: str = "cpu"
    say: Callable[[str], None] = lambda sentence: None
    report: Callable[[Path, dict[str, Any]], None] = lambda folder, result: None
    keep: Sequence[int] = ()
    at_once: int = 1


HERE = Place()
"""The processor, silently."""


def run_seeds(
    recipe: Recipe, out_dir: Path, place: Place = HERE, rates: Sequence[float] = (), known: Row | None = None
) -> dict[str, Any]:
    """Run a recipe for each of its seeds, in `out_dir/seed-N`, and write `out_dir/summary.json`.

    Args:
        recipe: what to run.
        out_dir: the folder over the runs' folders.
        place: where to compute.
        rates: base learning rates to choose from on held-out images; the runs are then in
            `out_dir/rate-R/seed-N`, and only those at the best one are tested.
        known: the row of an earlier summary: its runs are taken over, if they have no folder here and were
            trained at the rate that is chosen now.

    Returns:
        What summary.json holds: the recipe's claim, and the table of its `Row`.

    Raises:
        InputError: as in `run` and `run_row`; summary.json tells of other settings, or of seeds or rates that
            are not asked for.
        DivergedError: training diverged.
    """
    processes = Processes.current()
    processes.from_first(lambda: _check_folder(out_dir, recipe, rates))
    # once for all seeds, and before anything is written
    data = processes.first_of_machine_first(lambda: open_dataset(recipe.data, place.data_dir))
    with _summary_in(out_dir) as write:
        row = run_row(recipe, out_dir, data, place, rates, known=known, past_divergence=bool(rates))
        said = {key: getattr(recipe, key) for key in ("claim", "command", "expect")}
        return write({"recipe": recipe.name, **said, **row.table()})


def _check_folder(out_dir: Path, made_by: Recipe | Study, rates: Sequence[float] = ()) -> None:
    """Refuse a folder that is to be over runs if it is a run's own, or if its summary would be lost."""
    if (out_dir / CONFIG).exists():
        raise InputError(
            f"{out_dir} is the folder of a run: expected one for the folders of several runs. Nothing was "
            "written; choose another folder."
        )
    check_summary(out_dir / SUMMARY, made_by, rates)


@contextlib.contextmanager
def _summary_in(out_dir: Path) -> Iterator[Callable[[dict[str, Any]], dict[str, Any]]]:
    """Hold a folder over runs; what is yielded writes its summary, and returns it as JSON has it."""
    path, processes = out_dir / SUMMARY, Processes.current()

    def write(summary: dict[str, Any]) -> dict[str, Any]:
        processes.from_first(lambda: write_json(path, summary))
        return json.loads(json.dumps(summary))

    with contextlib.ExitStack() as held:
        processes.from_first(lambda: held.enter_context(locked(out_dir)))
        processes.from_first(lambda: remove_leftovers(out_dir, [SUMMARY]))
        yield write


def run_study(
    study: Study,
    out_dir: Path,
    place: Place = HERE,
    report: Callable[[Row], None] = lambda row: None,
    known: Sequence[Row] = (),
) -> dict[str, Any]:
    """Run every row of a study and write `out_dir/summary.json`, anew after each row.

    Runs that are in their folders are kept. Where training diverges with some of a row's seeds, these have no
    number: the mean is of the others, and the row says so.

    Args:
        study: what to run.
        out_dir: the folder over the rows' folders.
        place: where to compute.
        report: called with each row as it is known.
        known: rows of an earlier summary: whole ones, of all seeds and rates, are taken over, if they have no
            folder here.

    Returns:
        What summary.json holds.

    Raises:
        DivergedError: training of a row diverged with every seed; those after it are not run.
        InputError: as in `run_row`; a row holds no images out; summary.json tells of other rows.
    """
    _check_folder(out_dir, study)
    told = {(row.task, row.name): row for row in known}
    summary: dict[str, Any] = {}
    with _summary_in(out_dir) as write:
        variants = study.variants()
        for variant in variants:
            if (objective := variant.recipe.objective) != "classes":
                raise InputError(
                    f"row {variant.label!r} has objective = {objective!r}: expected 'classes', since a study "
                    "compares accuracies. Run it with `vit train`, and fine-tune what it leaves."
                )
        rows = {(row.task, row.name): row for row in read_summary(out_dir / SUMMARY)[1]}

        def taken_over(variant: Variant) -> bool:
            row, folder = told.get((variant.task, variant.name)), out_dir / variant.recipe.name
            return row is not None and not folder.exists() and row.is_whole(study.seeds, variant.rates)

        missing = [one for one in variants if not taken_over(one)]
        _check_rows(missing, place)
        if place.at_once > 1:
            train_at_once(missing, out_dir, place.at_once, place.data_dir, place.device, place.say)
        for variant in variants:
            recipe, key, folder = variant.recipe, (variant.task, variant.name), out_dir / variant.recipe.name
            if taken_over(variant):
                place.say(f"{variant.label}: run before, and taken over.")
                rows[key] = told[key]
            else:
                data = open_dataset(recipe.data, place.data_dir)
                row = run_row(recipe, folder, data, place, variant.rates, None, study.test, True)
                rows[key] = replace(row, task=variant.task, name=variant.name, changes=variant.changes)
            made = rows[key].made
            # rows of an earlier summary stay in it until it is their turn
            kept = [rows[one.task, one.name] for one in variants if (one.task, one.name) in rows]
            facts = {key: getattr(study, key) for key in ("name", "claim", "command", "base", "cumulative")}
            facts |= {"changes": study.changes, "seeds": list(study.seeds), "rows": said_once(kept, made)}
            summary = write(facts | made)
            report(rows[key])
    return summary


def _check_rows(variants: Sequence[Variant], place: Place) -> None:
    """Refuse a row that cannot be run before the first is; rows that share their data follow each other.

    Raises:
        InputError: a model that its data do not fit, or data without held-out images.
    """
    for config, alike in groupby(variants, key=lambda variant: variant.recipe.data):
        data = open_dataset(config, place.data_dir)
        for variant in alike:
            try:
                if not data.size_of("validation"):
                    raise InputError("no images held out: expected data.validation_size above 0, say 200.")
                if not variant.recipe.weights:
                    variant.recipe.model_config(data)
            except InputError as error:
                raise InputError(f"row {variant.label!r}: {error}") from error


def run_row(
    recipe: Recipe,
    folder: Path,
    data: DataSet,
    place: Place,
    rates: Sequence[float] = (),
    known: Row | None = None,
    test: bool = True,
    past_divergence: bool = False,
) -> Row:
    """Run a recipe with each of its seeds, at the best of some learning rates if any are given.

    With `test` the runs are measured by `run`, otherwise by held-out images, on the models they keep. With
    `past_divergence` it goes on to the next seed where training diverges, unless it does with every seed.
    """
    tried = sweep_rates(recipe, rates, folder, data, place) if rates else []
    if tried:
        chosen = best_rate(tried)
        recipe, folder = recipe.with_rate(chosen), folder / rate_folder(chosen)
    runs, diverged, processes = [], [], Processes.current()
    before = {}
    if known and (not tried or known.chosen == recipe.train.learning_rate):
        before = {run.seed: run for run in known.runs}
    part = "test" if test and recipe.objective == "classes" else "validation"
    facts = {f"{part}_images": data.size_of(part)} | (known.facts if known else {})
    for seed in recipe.seeds:
        one, under = recipe.with_seed(seed), folder / f"seed-{seed}"
        if seed in before and not processes.from_first(under.exists):
            place.say(f"seed {seed} was run before, and is taken over.")
            runs.append(before[seed])
            continue
        try:
            result = run(one, under, place.data_dir, place.device, place.say, data, place.keep, test)
        except DivergedError as error:
            diverged.append(seed)
            if not past_divergence or len(diverged) == len(recipe.seeds):
                raise
            place.say(f"seed {seed}: {error}")
            continue
        if test:
            place.report(under, result)
        else:
            del result["validation_loss"]  # accuracies are compared
        facts |= {name: result[name] for name in ("parameters", "forward_flops")}
        epochs = processes.from_first(lambda under=under: read_metrics(under))
        runs.append(SeedRun.of(result, [dataclasses.asdict(epoch) for epoch in epochs]))
    if recipe.neighbours and test and isinstance(data, ImageData):
        accuracy = nearest_neighbour_accuracy(data, recipe.neighbours)
        facts["baseline"] = {"nearest_neighbours": recipe.neighbours, "test_accuracy": accuracy}
    settings = {"objective": recipe.objective, "config": recipe.tables() | recipe.start()}
    chosen = recipe.train.learning_rate
    return Row(runs=runs, diverged=diverged, rates=tried, chosen=chosen, facts=facts, **settings)


def sweep_rates(
    recipe: Recipe, rates: Sequence[float], out_dir: Path, data: DataSet, place: Place = HERE
) -> list[Rate]:
    """Train a recipe with its first seed at each learning rate, as the paper chooses its own (Table 4).

    The test images are not touched. The runs are where `run_row` looks for them.

    Raises:
        InputError: one of the rates twice, no images are held out, or nothing to choose by; as in `run`.
    """
    check_rates(rates, "rates")
    labels = recipe.objective != "masked-pixels"
    require(labels, "rates", list(rates), "none with masked pixels, which give no accuracy to choose by")
    recipes = [recipe.with_rate(rate).with_seed(recipe.seeds[0]) for rate in rates]  # before any is run
    if not data.size_of("validation"):
        raise InputError(
            "a sweep of learning rates chooses on held-out images, and there are none: expected "
            "data.validation_size above 0; set it, or give one rate."
        )
    rows = []
    for rate, one in zip(rates, recipes, strict=True):
        folder, row = out_dir / rate_folder(rate) / f"seed-{one.train.seed}", Rate(rate)
        try:
            found = run(one, folder, device=place.device, say=place.say, opened=data, test=False)
        except DivergedError as error:
            place.say(f"rate {rate:g}: {error}")
        else:
            row = Rate.of(rate, found)
            place.say(f"rate {rate:g}: held-out accuracy {row.validation_accuracy:.4f}")
        rows.append(replace(row, made=trained_at(folder)))
    return rows


def nearest_neighbour_accuracy(data: ImageData, neighbours: int = 3) -> float:
    """Return the share of test images that a vote of their nearest training images classifies correctly.

    Distances are Euclidean, between bytes. Nothing is learned and nothing chosen, so training and validation
    images both vote.
    """
    images = torch.cat([data.train_images, data.validation_images]).flatten(1).cpu()
    labels = torch.cat([data.train_labels, data.validation_labels]).cpu()
    asked = data.test_images.flatten(1).cpu(), data.test_labels.cpu()
    return neighbours_accuracy((images, labels), asked, neighbours, "euclidean", "uniform")
