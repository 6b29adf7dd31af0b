"""Carry out a page of transfers: sweep, then train and test with every seed, pair by pair."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vit_from_scratch.data.datasets import open_dataset
from vit_from_scratch.experiments.run_folder import ORIGIN
from vit_from_scratch.experiments.seed_runs import run_seeds
from vit_from_scratch.experiments.summaries import SUMMARY, check_summary
from vit_from_scratch.experiments.sweeps import best_rate, rate_folder, sweep_rates, with_rate
from vit_from_scratch.experiments.transfers import Transfers
from vit_from_scratch.files import locked, remove_leftovers, write_json, writing

KEPT = ("test_accuracy_mean", "test_accuracy_std", "seconds_max", "parameters", "config")
"""What a pair takes over from the summary of its seeds."""


def run_transfers(
    page: Transfers,
    out_dir: Path,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
    report: Callable[[dict[str, Any]], None] = lambda pair: None,
) -> dict[str, Any]:
    """Run every pair of a page and write `out_dir/summary.json`; runs that are in their folders are kept.

    Learning rates are chosen on held-out images; only the runs at the chosen one are tested, once each.

    Args:
        page: what to run.
        out_dir: the folder over the pairs' folders.
        data_dir: where the data lie; see `load_dataset`.
        device: where to train.
        say: called with a sentence about what is in a folder already.
        report: called with each pair's entry as it is known.

    Returns:
        What summary.json holds: for each pair its task, start, swept rates, the chosen one, the runs with
        their curves, and mean and standard deviation of their test accuracies.

    Raises:
        InputError: as in `run`; summary.json tells of other transfers.
        DivergedError: training diverged at a rate at which the first seed converged.
    """
    check_summary(out_dir / SUMMARY, page)
    with locked(out_dir):
        remove_leftovers(out_dir, [SUMMARY])
        recipes, pairs = page.pairs(), []
        origin: dict[str, Any] = {}
        for (task, start), recipe in recipes.items():
            folder = out_dir / recipe.name
            data = open_dataset(recipe.data, data_dir)
            rows = sweep_rates(recipe, page.rates_of(start), folder, data, device, say)
            chosen = best_rate(rows)
            at_rate = with_rate(recipe, chosen)
            found = run_seeds(at_rate, rate_folder(folder, chosen), data_dir, device, say)
            origin = {key: found[key] for key in (*ORIGIN, "date")}
            pair = {"task": task, "start": start, "rates": rows, "chosen": chosen}
            pair |= {key: found[key] for key in KEPT}
            pair["runs"] = [_short(run) for run in found["runs"]]
            pairs.append(pair)
            report(pair)
        facts = {key: getattr(page, key) for key in ("name", "claim", "command", "seeds")}
        summary = facts | {"pairs": pairs} | origin
        with writing(out_dir):
            write_json(out_dir / SUMMARY, json.loads(json.dumps(summary)))
    return summary


def _short(run: dict[str, Any]) -> dict[str, Any]:
    """Return a run's numbers with the held-out accuracy of each epoch for its curve."""
    curve = [epoch["validation_accuracy"] for epoch in run["curves"]]
    kept = {
        key: value for key, value in run.items() if key in ("seed", "test_accuracy", "test_loss", "seconds")
    }
    return kept | {"validation_accuracies": curve}
