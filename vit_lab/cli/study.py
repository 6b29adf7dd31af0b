"""`vit study`: a recipe with what varies over it, from a claim to a table."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_from_scratch.settings import flattened, merged, require
from vit_lab.cli.options import add_command, add_shared, chosen_device, parse_assignments, refuse_file
from vit_lab.cli.streams import complain
from vit_lab.cli.training import Results, add_places, affordable
from vit_lab.experiments.study import Study, load_study, study_names

if TYPE_CHECKING:
    from vit_lab.experiments.records import Row


def add_parser(commands: Any) -> None:
    """Add `study` to the commands."""
    parser = add_command(
        commands,
        "study",
        run,
        help="compare settings, or what a model may begin from",
        description="Train every row of a study with each seed, after a sweep of learning rates where the "
        "study has one, and compare them on held-out images. Test images are measured only where the study "
        "says so, once for each run. A study that was stopped goes on with the same command.",
    )
    names = ", ".join(study_names())
    parser.add_argument("study", metavar="NAME", help=f"{names}, or a TOML file of your own")
    add_shared(parser, "--data-dir", "--set")
    add_places(parser)
    parser.add_argument(
        "--at-once",
        type=int,
        default=1,
        metavar="N",
        help="train N runs at the same time, each in a process of its own, for models too small to fill the "
        "machine; on a GPU start NVIDIA's MPS first (nvidia-cuda-mps-control -d)",
    )


def run(options: argparse.Namespace) -> None:
    """Carry out `vit study`."""
    study, asked = load_study(options.study), parse_assignments(options.set)
    decided = decided_settings(study)
    for name, value in flattened(asked).items():
        expected = "a setting that the study leaves to --set; change this one in a copy of its file"
        require(name not in decided, f"--set {name}", value, expected)
    study = replace(study, changes=merged(study.changes, asked))
    folder = options.out or Path("runs") / study.name
    refuse_file(folder)
    require(options.at_once >= 1, "--at-once", options.at_once, "1 or more")
    device = chosen_device(options.device)
    study = affordable_study(study, options, device)
    from vit_lab import Place, run_study

    results = Results(options, study)
    place = Place(options.data_dir, device, print, at_once=options.at_once)
    summary = run_study(study, folder, place, report, results.rows)
    results.write(summary)
    compare(summary)
    print(f"summary: {folder / 'summary.json'}")


def decided_settings(study: Study) -> set[str]:
    """Return the settings that every row has from itself, its task or the rates, whatever lies below them."""
    each: list[set[str]] = []
    for one in study.variants():
        own = {*flattened(study.tasks.get(one.task, {})), *flattened(one.changes)}
        first = one.name == next(iter(study.rows))
        each.append(own if first or not study.cumulative else own | each[-1])
    return set.intersection(*each) | ({"train.learning_rate"} if study.rates else set())


def affordable_study(study: Study, options: argparse.Namespace, device: str) -> Study:
    """Return a study in a precision that the device computes in, unless it compares several.

    See `affordable`.
    """
    recipes = list(study.recipes().values())
    precisions = {one.train.precision for one in recipes}
    if len(precisions) > 1:
        _say_if_imitated(options, device)
        return study
    if affordable(recipes[0], options, device).train.precision in precisions:
        return study
    computed = {"train": {"precision": "float32"}}

    def changed(tables: dict[str, Any]) -> dict[str, Any]:
        named = {name for name, own in tables.items() if "precision" in own.get("train", {})}
        return {name: merged(own, computed) if name in named else own for name, own in tables.items()}

    tables = {"tasks": changed(study.tasks), "rows": changed(study.rows)}
    return replace(study, changes=merged(study.changes, computed), **tables)


def _say_if_imitated(options: argparse.Namespace, device: str) -> None:
    """Say that rows which differ in precision stay as they are, where the device only imitates bfloat16."""
    from vit_from_scratch.precisions import has_bfloat16_units
    from vit_lab.runs.processes import Processes

    insists = "precision" in parse_assignments(options.set).get("train", {})
    if not insists and not has_bfloat16_units(device) and Processes.current().rank == 0:
        complain(
            "this device has no units for bfloat16, which is slow on it; rows of the study differ in "
            "train.precision, so each stays in its own."
        )


def compare(summary: dict[str, Any]) -> None:
    """Print by how much each further row of a task differs from its first, over the seeds that both have."""
    from vit_lab.experiments.comparing import paired_interval, seed_by_seed
    from vit_lab.experiments.records import read_rows

    first: dict[str, Row] = {}
    for row in read_rows(summary):
        other = first.setdefault(row.task, row)
        if row is not other and len({run.seed for run in row.runs} & {run.seed for run in other.runs}) > 1:
            mean, low, high = (100 * bound for bound in paired_interval(*seed_by_seed(row, other)))
            print(
                f"{mean:+.1f} points, 95 % interval {low:+.1f} to {high:+.1f}: {row.label} over {other.name}"
            )


def report(row: "Row") -> None:
    """Print what a row reached."""
    print(
        f"{row.mean:.4f} {row.measure.replace('_', ' ')}"
        + (f" (standard deviation {row.std:.4f}, {len(row.runs)} seeds)" if row.std is not None else "")
        + (f" at rate {row.chosen:g}" if row.rates else "")
        + f": {row.label}"
        + (f"; diverged, and left out: seed {', '.join(map(str, row.diverged))}" if row.diverged else ""),
        flush=True,
    )
