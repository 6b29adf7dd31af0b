"""Train a page of trials and compare them on held-out images."""

import dataclasses
import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vit_from_scratch.data.datasets import open_dataset
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import locked, remove_leftovers, write_json, writing
from vit_from_scratch.model.cost import count_parameters
from vit_from_scratch.training.callbacks import ProgressBar
from vit_from_scratch.training.loop import train
from vit_from_scratch.training.state import best_epoch
from vit_lab.experiments.recipes import require_classes
from vit_lab.experiments.summaries import SUMMARY, check_summary
from vit_lab.experiments.trials import Trials
from vit_lab.runs.environment import environment
from vit_lab.runs.finished import ORIGIN
from vit_lab.runs.origins import NoteOrigin, said_once, trained_at
from vit_lab.runs.run_folder import RunFolder


def run_trials(
    page: Trials,
    out_dir: Path,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    report: Callable[[dict[str, Any]], None] = lambda trial: None,
) -> dict[str, Any]:
    """Train every trial and write `out_dir/summary.json`; runs that are in their folders already are kept.

    Args:
        page: what to try.
        out_dir: the folder over the trials' folders.
        data_dir: where the data lie; see `load_dataset`.
        device: where to train.
        report: called with each trial's entry as it ends.

    Returns:
        What summary.json holds: for each trial its changes, the mean of its seeds' validation accuracies with
        their standard deviation (None for one seed), and each run's seed, accuracy, seconds and curves, and
        where it was trained, if the last run was trained elsewhere.

    Raises:
        DivergedError: training of a trial diverged; those after it are not run.
        InputError: a trial holds no images out, or its settings do not fit; summary.json tells of other
            trials; another process is at work in the folder.
    """
    check_summary(out_dir / SUMMARY, page)
    with locked(out_dir):
        return _run_trials(page, out_dir, data_dir, device, report)


def _run_trials(
    page: Trials,
    out_dir: Path,
    data_dir: str | os.PathLike[str] | None,
    device: str,
    report: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Do what `run_trials` says, in a folder that no other process works in."""
    recipes, trials = page.recipes(), []
    remove_leftovers(out_dir, [SUMMARY])
    # of the code that trains, should it change meanwhile
    heres = {name: environment(recipe.train.threads, device) for name, recipe in recipes.items()}
    origin: dict[str, Any] = {}
    for name, recipe in recipes.items():
        require_classes(recipe, f"trial {name!r}, which compares accuracies")
        data = open_dataset(recipe.data, data_dir)
        if not data.size_of("validation"):
            raise InputError(f"trial {name!r} holds no images out: expected data.validation_size above 0.")
        runs, parameters, start = [], 0, recipe.start()
        for seed in page.seeds:
            seeded = recipe.with_seed(seed)
            model = seeded.seeded(data).to(device)
            parameters = count_parameters(model)
            folder = out_dir / recipe.name
            folder = folder / f"seed-{seed}" if len(page.seeds) > 1 else folder
            note, bar = NoteOrigin(folder, heres[name]), ProgressBar(f"{name}, seed {seed}")
            with RunFolder(folder, start) as run_folder:
                history = train(model, data, seeded.train, callbacks=[run_folder, note, bar])
            kept = best_epoch(history) if recipe.train.patience else -1
            run = {
                "seed": seed,
                "validation_accuracy": history[kept].validation_accuracy,
                "seconds": sum(epoch.seconds for epoch in history),
                **(origin := trained_at(folder, heres[name])),
                "curves": [dataclasses.asdict(epoch) for epoch in history],
            }
            runs.append(run)
        reached = [run["validation_accuracy"] for run in runs]
        entry = {
            "name": name,
            "changes": page.trials[name],
            "validation_accuracy": statistics.fmean(reached),
            "validation_accuracy_std": statistics.stdev(reached) if len(reached) > 1 else None,
            "seconds": sum(run["seconds"] for run in runs),
            "parameters": parameters,
            "config": recipe.tables() | start,
            "runs": runs,
        }
        trials.append(entry)
        report(entry)
    for entry in trials:
        entry["runs"] = said_once(entry["runs"], origin)
    facts = {key: getattr(page, key) for key in ("name", "claim", "command", "base", "cumulative", "changes")}
    summary = facts | {"trials": trials} | {key: origin[key] for key in (*ORIGIN, "date")}
    with writing(out_dir):
        write_json(out_dir / SUMMARY, json.loads(json.dumps(summary)))
    return summary
