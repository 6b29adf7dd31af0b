"""A recipe run with each of its seeds, and the summary that tells of them all."""

import contextlib
import dataclasses
import json
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.data.datasets import open_dataset
from vit_from_scratch.data.in_memory import ImageData
from vit_from_scratch.errors import DivergedError
from vit_from_scratch.files import locked, remove_leftovers, write_json, writing
from vit_lab.experiments.baselines import nearest_neighbour_accuracy
from vit_lab.experiments.recipes import Recipe
from vit_lab.experiments.summaries import SUMMARY, check_summary
from vit_lab.runs.finished import ORIGIN
from vit_lab.runs.metrics import read_metrics
from vit_lab.runs.origins import NOTED, said_once, spelt_out
from vit_lab.runs.processes import Processes
from vit_lab.runs.run import run

AVERAGED = (
    "test_accuracy",
    "test_top5_accuracy",
    "test_flip_accuracy",
    "validation_loss",
    "validation_accuracy",
)
"""What a summary averages over the seeds, if it is there: few classes have no top-5 accuracy, few recipes
test mirror images, and a run without labels has nothing tested; of pixels none is right or wrong."""

PER_SEED = ("seed", *AVERAGED, "test_loss", "seconds")
"""What a summary takes over from each run's result, if it is there, beside where the run was made."""


@dataclasses.dataclass(frozen=True)
class Run:
    """What a summary tells of one run.

    Attributes:
        result: its numbers and where it was made, as in its result.json.
        curve: an entry for each epoch.
    """

    result: dict[str, Any]
    curve: list[dict[str, Any]]


def known_runs(path: Path) -> dict[int, Run]:
    """Read the runs that a summary tells of, by seed; none if it is not there. See `check_summary`."""
    if not path.exists():
        return {}
    summary = json.loads(path.read_text("utf-8"))
    facts = {key: summary[key] for key in ("parameters", "forward_flops", "date")}
    facts |= {key: summary["config"][key] for key in ("start",) if key in summary["config"]}
    runs = [facts | run for run in spelt_out(summary["runs"], summary)]
    return {run["seed"]: Run(run, run.pop("curves")) for run in runs}


def promised(path: Path) -> dict[str, Any]:
    """Read what a summary claims, expects and how it was made; nothing if it is not there.

    That was written before its first run, so it stays when runs are added, whatever the recipe says by then.
    """
    summary = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {key: summary[key] for key in ("claim", "command", "expect") if summary.get(key)}


def run_seeds(
    recipe: Recipe,
    out_dir: Path,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
    report: Callable[[Path, dict[str, Any]], None] = lambda folder, result: None,
    keep: Sequence[int] = (),
    rates: Sequence[dict[str, Any]] = (),
    past_divergence: bool = False,
    known: Mapping[int, Run] | None = None,
) -> dict[str, Any]:
    """Run a recipe for each of its seeds, in `out_dir/seed-N`, and write `out_dir/summary.json`.

    Args:
        recipe: what to run.
        out_dir: the folder over the runs' folders.
        data_dir: where the data lie; see `load_dataset`.
        device: where to train.
        say: called with a sentence for each run that is in its folder already.
        report: called with each run's folder and result as it ends.
        keep: as in `run`.
        rates: the rows of the sweep that chose the recipe's learning rate; see `sweep_rates`.
        past_divergence: go on to the next seed where training diverges, and count those that did.
        known: runs by seed, as `known_runs` reads them: taken over, if they have no folder here.

    Returns:
        What summary.json holds: every seed's numbers and curve, means, the accuracy's standard deviation,
        the baseline, the settings, hardware, versions, commit and date; after a sweep `rates` and `chosen`;
        `diverged`, the seeds without a number, if there are any.

    Raises:
        InputError: as in `run`; summary.json tells of other settings, or of seeds that the recipe lacks.
        DivergedError: as in `run`; with `past_divergence`, training diverged with every seed.
    """
    path = out_dir / SUMMARY
    processes = Processes.current()
    processes.from_first(lambda: check_summary(path, recipe))
    # once for all seeds, and before anything is written
    data = processes.first_of_machine_first(lambda: open_dataset(recipe.data, data_dir))
    results, curves, diverged = [], [], []
    with contextlib.ExitStack() as held:
        processes.from_first(lambda: held.enter_context(locked(out_dir)))
        processes.from_first(lambda: remove_leftovers(out_dir, [SUMMARY]))
        for seed in recipe.seeds:
            folder = out_dir / f"seed-{seed}"
            if known and seed in known and not processes.from_first(folder.exists):
                say(f"seed {seed} was run before, and is taken over.")
                results.append(known[seed].result)
                curves.append(known[seed].curve)
                continue
            try:
                results.append(run(recipe.with_seed(seed), folder, data_dir, device, say, data, keep))
            except DivergedError as error:
                diverged.append(seed)
                if not past_divergence or len(diverged) == len(recipe.seeds):
                    raise
                say(f"seed {seed}: {error}")
                continue
            epochs = processes.from_first(lambda folder=folder: read_metrics(folder))
            curves.append([dataclasses.asdict(epoch) for epoch in epochs])
            report(folder, results[-1])
        summary = summarise(recipe, results, curves, data, rates, diverged)
        with writing(path):
            processes.from_first(lambda: write_json(path, summary))
    return summary


def summarise(
    recipe: Recipe,
    results: list[dict[str, Any]],
    curves: list[list[dict[str, Any]]],
    data: DataSet,
    rates: Sequence[dict[str, Any]] = (),
    diverged: Sequence[int] = (),
) -> dict[str, Any]:
    """Gather the results and curves of several seeds, and measure the recipe's baseline on the same split."""
    origin = {key: results[-1][key] for key in ORIGIN}
    runs: list[dict[str, Any]] = [
        {key: result[key] for key in PER_SEED if result.get(key) is not None}
        | {key: result[key] for key in NOTED if key in result}
        | {"curves": curve}
        for result, curve in zip(said_once(results, origin), curves, strict=True)
    ]
    numbers = {name: [run[name] for run in runs] for name in AVERAGED if name in runs[0]}
    labelled = recipe.objective == "classes"
    part, first = ("test", "test_accuracy") if labelled else ("validation", "validation_loss")
    summary: dict[str, Any] = {
        "recipe": recipe.name,
        "claim": recipe.claim,
        "command": recipe.command,
        "expect": recipe.expect,
        **({} if labelled else {"objective": recipe.objective}),
        **{f"{name}_mean": statistics.fmean(values) for name, values in numbers.items()},
        f"{first}_std": statistics.stdev(numbers[first]) if len(runs) > 1 else None,
        "seconds_max": max(run["seconds"] for run in runs),
        "seeds": [run["seed"] for run in runs],
        **({"diverged": list(diverged)} if diverged else {}),
        **({"chosen": recipe.train.learning_rate, "rates": said_once(rates, origin)} if rates else {}),
        f"{part}_images": data.size_of(part),
        "parameters": results[-1]["parameters"],
        "forward_flops": results[-1]["forward_flops"],
    }
    if recipe.neighbours and isinstance(data, ImageData):
        accuracy = nearest_neighbour_accuracy(data, recipe.neighbours)
        summary["baseline"] = {"nearest_neighbours": recipe.neighbours, "test_accuracy": accuracy}
    config = recipe.tables() | {key: results[-1][key] for key in ("start",) if key in results[-1]}
    return summary | {"config": config, "runs": runs} | origin | {"date": results[-1]["date"]}
