"""What the commands that train share: their options, the summary in --results, and the run of a recipe."""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_json, writing
from vit_from_scratch.settings import merged
from vit_lab.cli.options import add_shared, chosen_device, parse_assignments, refuse_file
from vit_lab.cli.streams import complain
from vit_lab.experiments.recipes import Recipe
from vit_lab.experiments.study import Study

if TYPE_CHECKING:
    from vit_lab.experiments.records import Row

DIRECT = ("epochs", "batch_size", "learning_rate", "seed")
"""The settings of [train] that have an option of their own."""


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options that change a recipe, and those that say where runs go and where they are computed."""
    changes = parser.add_argument_group("changes to the recipe")
    add_shared(changes, "--epochs", "--batch-size", "--lr", "--seed", "--seeds", "--set", "--show")
    add_places(parser)
    add_shared(parser, "--keep-epochs")


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where runs go and where they are computed."""
    where = parser.add_argument_group("where")
    add_shared(where, "--out", "--results", "--add-to-results", "--device")


def asked_changes(options: argparse.Namespace) -> dict[str, Any]:
    """Return the changes to a recipe that the options ask for, as nested tables.

    Raises:
        InputError: --seed and --seeds together, a setting given twice, or a --set that cannot be read.
    """
    if options.seed is not None and options.seeds is not None:
        raise InputError("expected --seed for one run or --seeds for several, not both.")
    direct = {name: value for name in DIRECT if (value := getattr(options, name)) is not None}
    assigned = parse_assignments(options.set)
    if twice := direct.keys() & assigned.get("train", {}):
        name = min(twice)
        option = "lr" if name == "learning_rate" else name.replace("_", "-")
        raise InputError(f"expected --{option} or --set train.{name}, not both.")
    changes = merged(assigned, {"train": direct} if direct else {})
    seeds = options.seeds if options.seed is None else [options.seed]
    return changes | ({"seeds": seeds} if seeds is not None else {})


class Results:
    """The summary that --results names, as it is before anything is run.

    What it claims and expects was written before its first run, so that stays when runs are added, whatever
    the recipe says by then.

    Args:
        options: as typed.
        made_by: the recipe or the study that the summary is to tell of.
        rates: that the recipe is swept over.

    Raises:
        InputError: the file is not a summary of these runs, or --add-to-results is without a file.
    """

    def __init__(
        self, options: argparse.Namespace, made_by: Recipe | Study, rates: Sequence[float] = ()
    ) -> None:
        from vit_lab.experiments.summaries import check_summary, read_summary

        self.path: Path | None = options.results
        self.rows: list[Row] = []
        self.stays: dict[str, Any] = {}
        if options.add_to_results and self.path is None:
            raise InputError("--add-to-results without a file: expected --results FILE, too.")
        if self.path is not None:
            check_summary(self.path, made_by, rates)
            check_writable(self.path)
        if options.add_to_results and self.path is not None and self.path.exists():
            self.rows = read_summary(self.path)[1]
            there = json.loads(self.path.read_text("utf-8"))
            self.stays = {key: there[key] for key in ("claim", "command", "expect") if there.get(key)}

    def write(self, summary: dict[str, Any]) -> None:
        """Write the new summary, by the first process, if --results asks for it."""
        from vit_lab.runs.processes import Processes

        if self.path is not None and Processes.current().rank == 0:
            write_json(self.path, summary | self.stays)


def affordable(recipe: Recipe, options: argparse.Namespace, device: str) -> Recipe:
    """Return a recipe in a precision that suits the device, unless --set names one, and say what changed."""
    from vit_from_scratch.precisions import has_bfloat16_units
    from vit_lab.runs.processes import Processes

    insists = "precision" in parse_assignments(options.set).get("train", {})
    if insists or recipe.train.precision != "bfloat16" or has_bfloat16_units(device):
        return recipe
    if Processes.current().rank == 0:
        complain(
            "this device has no units for bfloat16, so the run is in float32, which is faster on it; "
            "--set train.precision=bfloat16 insists."
        )
    return replace(recipe, train=replace(recipe.train, precision="float32"))


def train_recipe(
    recipe: Recipe, why: str, options: argparse.Namespace, many: bool, rates: Sequence[float] = ()
) -> None:
    """Show a recipe, or run it with its own seed or with each of its seeds, and print what it reached.

    Args:
        recipe: what to run.
        why: it was chosen; "" where it was named.
        options: as typed.
        many: whether to run every seed and write a summary.
        rates: learning rates to choose from.
    """
    if options.show:
        shown = recipe if many else recipe.with_seed(recipe.train.seed)
        print((f"# {why}\n" if why else "") + shown.to_toml(), end="")
        return
    latest, epochs = max(options.keep_epochs, default=0), recipe.train.epochs
    if not recipe.train.steps and latest > epochs:
        raise InputError(f"--keep-epochs {latest}: expected 0 to {epochs}, the epochs of the run.")
    device = chosen_device(options.device)
    from vit_lab import Place, run, run_seeds

    recipe = affordable(recipe, options, device)
    results = Results(options, recipe, rates)
    folder = options.out or Path("runs", recipe.name if many else f"{recipe.name}-seed-{recipe.train.seed}")
    if many:
        refuse_file(folder)
    if why:
        print(why, flush=True)
    if many:
        place = Place(options.data_dir, device, print, report, options.keep_epochs)
        summary = run_seeds(recipe, folder, place, rates, results.rows[0] if results.rows else None)
        results.write(summary)
        report_seeds(summary, recipe.objective == "classes")
        print(f"summary: {folder / 'summary.json'}")
        folder = folder / f"seed-{recipe.seeds[0]}"
    else:
        report(folder, run(recipe, folder, options.data_dir, device, print, keep=options.keep_epochs))
    if recipe.objective != "classes":
        words = ["vit", "finetune", "--weights", str(folder), "--data", recipe.data.name]
        words += ["--data-dir", str(options.data_dir)] if options.data_dir else []
        joined = subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
        print(f"fine-tune it: {joined}")


def report_seeds(summary: dict[str, Any], labelled: bool) -> None:
    """Print what the runs of several seeds reached together."""
    for row in summary.get("rates", []):
        accuracy = row["validation_accuracy"]
        said = "diverged" if accuracy is None else f"{accuracy:.4f} held out"
        print(f"rate {row['rate']:g}: {said}{', chosen' if row['rate'] == summary['chosen'] else ''}")
    name, meaning = ("test_accuracy", "test accuracy") if labelled else ("validation_loss", "held-out loss")
    spread = summary[f"{name}_std"]
    print(
        f"mean {meaning} {summary[f'{name}_mean']:.4f}"
        + (f" (standard deviation {spread:.4f})" if spread is not None else "")
        + f" over seeds {' '.join(map(str, summary['seeds']))}; longest run {summary['seconds_max']:.0f} s"
    )
    if "baseline" in summary:
        baseline = summary["baseline"]
        print(f"{baseline['nearest_neighbours']} nearest neighbours: {baseline['test_accuracy']:.4f}")


def report(folder: Path, result: dict[str, Any]) -> None:
    """Print what a run reached: on test images, or without labels on those held out."""
    if "test_accuracy" in result:
        measured: dict[str, Any] = {name: result.get(f"test_{name}") for name in TEST_NUMBERS}
        reached = test_numbers(**measured)
    else:
        right = result["validation_accuracy"]
        reached = (
            f"held-out loss {result['validation_loss']:.4f} on {result['validation_images']:,} images"
            + (f", accuracy {right:.4f} on the colours of corrupted patches" if right is not None else "")
        )
    print(f"{folder}: {reached}; {result['epochs']} epochs in {result['seconds']:.0f} s")


TEST_NUMBERS = ("accuracy", "images", "top5_accuracy", "loss")


def test_numbers(accuracy: float, images: int, top5_accuracy: float | None, loss: float) -> str:
    """Return what was measured on test images as commands print it."""
    five = "" if top5_accuracy is None else f"top-5 accuracy {top5_accuracy:.4f}, "
    return f"test accuracy {accuracy:.4f} on {images:,} images, {five}test loss {loss:.4f}"


def check_writable(path: Path) -> None:
    """Raise, before long work, the `InputError` that writing a file there would end in."""
    with writing(path):
        there = next(folder for folder in path.absolute().parents if folder.exists())
        tempfile.TemporaryFile(dir=there).close()
