"""Whole runs, from a recipe to a number: train, test once, and write down where the number came from."""

import dataclasses
import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.checkpoints import load_checkpoint, write_atomically
from vit_from_scratch.model.cost import count_parameters, forward_flops
from vit_from_scratch.settings import from_table
from vit_from_scratch.training.baselines import nearest_neighbour_accuracy
from vit_from_scratch.training.callbacks import Callback, ProgressBar
from vit_from_scratch.training.data import DataConfig, ImageData, data_folder, open_dataset
from vit_from_scratch.training.environment import environment
from vit_from_scratch.training.evaluation import Evaluation, evaluate_batches
from vit_from_scratch.training.loop import train
from vit_from_scratch.training.recipes import Recipe
from vit_from_scratch.training.run_folder import RunFolder, read_metrics, read_settings, writing
from vit_from_scratch.training.state import TrainingState
from vit_from_scratch.training.streaming import PhotoData

PER_SEED = ("seed", "test_accuracy", "test_loss", "seconds", "date")
"""What a summary takes over from each run's result."""

NUMBERS = (
    "test_accuracy",
    "test_loss",
    "test_images",
    "seed",
    "epochs",
    "seconds",
    "parameters",
    "forward_flops",
)
"""What every result has."""

ORIGIN = ("hardware", "versions", "commit")
"""Where a run's number came from; a summary says it once, and again for a run that differs."""


class Announcement(Callback):
    """Say what lies in the run's folder: a finished run, or one that was stopped and goes on."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say

    def on_start(self, state: TrainingState) -> None:
        """Say it, once the folder's settings were found to be these."""
        if state.finished:
            self.say(f"{self.folder} is finished.")
        elif state.epoch:
            self.say(f"{self.folder} was stopped after epoch {state.epoch} of {state.epochs}; it goes on.")


def run(
    recipe: Recipe,
    out_dir: Path,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
) -> dict[str, Any]:
    """Train a recipe with its own seed, test it once, and write result.json; go on if it was stopped.

    Args:
        recipe: what to run.
        out_dir: the run's folder.
        data_dir: where the data lie; see `load_dataset`.
        device: where to train.
        say: called with a sentence when there is a run in the folder already.

    Returns:
        What result.json holds.

    Raises:
        InputError: wrong data, a folder that holds something else or a run with other settings.
        DivergedError: the loss or a weight became infinite or not a number.
    """
    origin = environment(recipe.train.threads, device)  # of the code that trains, should it change meanwhile
    data = open_dataset(recipe.data, data_dir)
    seed = recipe.train.seed
    if recipe.neighbours > data.training_size:
        raise InputError(
            f"neighbours = {recipe.neighbours}: expected at most the {data.training_size:,} training images."
        )
    model, start = recipe.seeded(data).to(device), recipe.start()
    callbacks = [
        RunFolder(out_dir, start),
        Announcement(out_dir, say),
        ProgressBar(f"{recipe.name}, seed {seed}"),
    ]
    history = train(model, data, recipe.train, callbacks=callbacks)
    path = out_dir / "result.json"
    if path.exists():
        return read_result(out_dir)
    measured = evaluate_batches(model, data.to(device).batches("test", workers=recipe.train.workers))
    folder = data_folder(data_dir)
    result = {
        "test_accuracy": measured.accuracy,
        "test_loss": measured.loss,
        "test_images": data.size_of("test"),
        "seed": seed,
        "epochs": len(history),
        "seconds": sum(epoch.seconds for epoch in history),
        "parameters": count_parameters(model),
        "forward_flops": forward_flops(model.config),
        "data_dir": str(folder.resolve()) if folder else None,
        **start,
        **origin,
    }
    with writing(path):
        write_json(path, result)
    return result


def run_seeds(
    recipe: Recipe,
    out_dir: Path,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
    report: Callable[[Path, dict[str, Any]], None] = lambda folder, result: None,
) -> dict[str, Any]:
    """Run a recipe for each of its seeds, in `out_dir/seed-N`, and write `out_dir/summary.json`.

    Args:
        recipe: what to run.
        out_dir: the folder over the runs' folders.
        data_dir: where the data lie; see `load_dataset`.
        device: where to train.
        say: called with a sentence for each run that is in its folder already.
        report: called with each run's folder and result as it ends.

    Returns:
        What summary.json holds: every seed's accuracy and curve, mean and standard deviation, the
        baseline, the settings, hardware, versions, commit and date.
    """
    results, curves = [], []
    for seed in recipe.seeds:
        folder = out_dir / f"seed-{seed}"
        results.append(run(recipe.with_seed(seed), folder, data_dir, device, say))
        curves.append([dataclasses.asdict(epoch) for epoch in read_metrics(folder)])
        report(folder, results[-1])
    summary = summarise(recipe, results, curves, open_dataset(recipe.data, data_dir))
    with writing(out_dir):
        write_json(out_dir / "summary.json", summary)
    return summary


def summarise(
    recipe: Recipe,
    results: list[dict[str, Any]],
    curves: list[list[dict[str, Any]]],
    data: ImageData | PhotoData,
) -> dict[str, Any]:
    """Gather the results and curves of several seeds, and measure the recipe's baseline on the same split."""
    accuracies = [result["test_accuracy"] for result in results]
    origin = {key: results[-1][key] for key in ORIGIN}
    runs = [
        {key: result[key] for key in PER_SEED}
        | {key: result[key] for key in ORIGIN if result[key] != origin[key]}
        | {"curves": curve}
        for result, curve in zip(results, curves, strict=True)
    ]
    summary: dict[str, Any] = {
        "recipe": recipe.name,
        "claim": recipe.claim,
        "command": recipe.command,
        "expect": recipe.expect,
        "test_accuracy_mean": statistics.fmean(accuracies),
        "test_accuracy_std": statistics.stdev(accuracies) if len(runs) > 1 else None,
        "seconds_max": max(run["seconds"] for run in runs),
        "seeds": [run["seed"] for run in runs],
        "test_images": data.size_of("test"),
        "parameters": results[-1]["parameters"],
        "forward_flops": results[-1]["forward_flops"],
    }
    if recipe.neighbours and isinstance(data, ImageData):
        accuracy = nearest_neighbour_accuracy(data, recipe.neighbours)
        summary["baseline"] = {"nearest_neighbours": recipe.neighbours, "test_accuracy": accuracy}
    config = recipe.tables() | {key: results[-1][key] for key in ("start",) if key in results[-1]}
    return summary | {"config": config, "runs": runs} | origin | {"date": results[-1]["date"]}


def evaluate_run(
    folder: Path, data_dir: str | os.PathLike[str] | None = None, device: str = "cpu"
) -> tuple[Evaluation, dict[str, Any]]:
    """Load a finished run and measure it on its test set again.

    Args:
        folder: the run's folder.
        data_dir: where the data lie; without it, VIT_DATA_DIR, else where they lay when the run was trained.
        device: where to measure. Another device rounds otherwise, which may move the loss's last digits.

    Returns:
        The measurement, and what result.json says.

    Raises:
        InputError: the folder is no finished run, or its data cannot be found.
    """
    settings = read_settings(folder)
    result = read_result(folder)
    model = load_checkpoint(folder / "model.safetensors").to(device)
    there = data_folder(data_dir) or result.get("data_dir")
    data = open_dataset(from_table(DataConfig, settings["data"], "data"), there).to(device)
    return evaluate_batches(model, data.batches("test")), result


def read_result(folder: Path) -> dict[str, Any]:
    """Read a run's result.json.

    Raises:
        InputError: there is none yet, or it is damaged.
    """
    path = folder / "result.json"
    try:
        result = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"{folder} is not a finished run: expected result.json in it. "
            "Train it to the end with the same command, or name another folder."
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): expected a run's result. Restore it.") from error
    for key in NUMBERS:
        number = result.get(key) if isinstance(result, dict) else None
        if not isinstance(number, int | float):
            raise InputError(f"{path} has no number {key!r}: expected a run's result. Restore it.")
    return result


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON that a person can read, all or nothing."""
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
