"""Carry out a page of transfers: sweep, then train and test with every seed, pair by pair."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vit_from_scratch.data.datasets import open_dataset
from vit_from_scratch.files import locked, remove_leftovers, write_json, writing
from vit_lab.experiments.recipes import Recipe
from vit_lab.experiments.seed_runs import run_seeds
from vit_lab.experiments.summaries import SUMMARY, check_summary
from vit_lab.experiments.sweeps import best_rate, rate_folder, sweep_rates, with_rate
from vit_lab.experiments.transfers import Transfers
from vit_lab.runs.finished import ORIGIN
from vit_lab.runs.origins import NOTED, said_once, spelt_out

KEPT = ("rates", "chosen", "test_accuracy_mean", "test_accuracy_std", "seconds_max", "parameters", "config")
"""What a pair takes over from the summary of its seeds, beside where they were made."""

MADE = (*ORIGIN, "date")
"""What a summary says of where its last run was made, and a pair, where it differs."""


def run_transfers(
    page: Transfers,
    out_dir: Path,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
    report: Callable[[dict[str, Any]], None] = lambda pair: None,
    known: Mapping[tuple[str, str], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Run every pair of a page and write `out_dir/summary.json`; runs that are in their folders are kept.

    Learning rates are chosen on held-out images; only the runs at the chosen one are tested, once each. Where
    training diverges at that rate with another seed than the first, that seed has no number: the mean is of
    the others, and the pair says so. The summary is written after each pair.

    Args:
        page: what to run.
        out_dir: the folder over the pairs' folders.
        data_dir: where the data lie; see `load_dataset`.
        device: where to train.
        say: called with a sentence about what is in a folder already.
        report: called with each pair's entry as it is known.
        known: pairs, as `pairs_of` reads them: taken over, if all their seeds were run and they have no
            folder here.

    Returns:
        What summary.json holds: for each pair its task, start, swept rates, the chosen one, the runs with
        their curves, mean and standard deviation of their test accuracies, and the seeds that diverged. A
        pair, a rate and a run say where they were made, if what they stand in was made elsewhere.

    Raises:
        InputError: as in `run`; summary.json tells of other transfers, or training of a pair diverged at
            every rate.
    """
    path = out_dir / SUMMARY
    check_summary(path, page)
    with locked(out_dir):
        remove_leftovers(out_dir, [SUMMARY])
        recipes, pairs = page.pairs(), pairs_of(path)
        facts = {key: getattr(page, key) for key in ("name", "claim", "command", "seeds")}
        summary: dict[str, Any] = {}
        for (task, start), recipe in recipes.items():
            folder = out_dir / recipe.name
            pair = (known or {}).get((task, start))
            if pair is not None and _whole(pair, page) and not folder.exists():
                say(f"{task}, {start}: run before, and taken over.")
            else:
                found = _run_pair(recipe, page.rates_of(start), folder, data_dir, device, say)
                pair = {"task": task, "start": start} | found
            pairs[task, start] = pair
            # pairs of an earlier summary stay in it until it is their turn
            told = said_once([pairs[key] for key in recipes if key in pairs], pair)
            summary = facts | {"pairs": told} | {key: pair[key] for key in MADE}
            with writing(out_dir):
                write_json(path, json.loads(json.dumps(summary)))
            report(pair)
    return summary


def _run_pair(
    recipe: Recipe,
    rates: Sequence[float],
    folder: Path,
    data_dir: str | os.PathLike[str] | None,
    device: str,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Sweep a pair's rates and run every seed at the best one; return its entry, without its names."""
    data = open_dataset(recipe.data, data_dir)
    rows = sweep_rates(recipe, rates, folder, data, device, say)
    chosen = best_rate(rows)
    at_rate, under = with_rate(recipe, chosen), rate_folder(folder, chosen)
    found = run_seeds(at_rate, under, data_dir, device, say, rates=rows, past_divergence=True)
    pair = {key: found[key] for key in (*KEPT, *MADE)}
    return pair | {"diverged": found.get("diverged", []), "runs": [_short(run) for run in found["runs"]]}


def _whole(pair: dict[str, Any], page: Transfers) -> bool:
    """Say whether an entry tells of every seed of its page."""
    return sorted([*(run["seed"] for run in pair["runs"]), *pair["diverged"]]) == sorted(page.seeds)


def pairs_of(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the pairs of a summary, if there is one, by task and start; each says where it was made."""
    if not path.exists():
        return {}
    summary = json.loads(path.read_text("utf-8"))
    return {(pair["task"], pair["start"]): pair for pair in spelt_out(summary["pairs"], summary)}


def _short(run: dict[str, Any]) -> dict[str, Any]:
    """Return a run's numbers and where it was made; its curve is the held-out accuracy of each epoch."""
    curve = [epoch["validation_accuracy"] for epoch in run["curves"]]
    names = ("seed", "test_accuracy", "test_loss", "seconds", *NOTED)
    return {key: run[key] for key in names if key in run} | {"validation_accuracies": curve}
