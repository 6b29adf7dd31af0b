"""Learning rates chosen on held-out images, as the paper chooses its own for fine-tuning (Table 4)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.errors import DivergedError, InputError
from vit_from_scratch.settings import require
from vit_from_scratch.training.state import best_epoch
from vit_lab.experiments.recipes import Recipe
from vit_lab.runs.environment import environment
from vit_lab.runs.finished import ORIGIN
from vit_lab.runs.origins import said_once, trained_at
from vit_lab.runs.processes import Processes
from vit_lab.runs.run import train_only


def sweep_rates(
    recipe: Recipe,
    rates: Sequence[float],
    out_dir: Path,
    data: DataSet,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
    report: Callable[[dict[str, Any]], None] = lambda row: None,
) -> list[dict[str, Any]]:
    """Train a recipe with its first seed at each learning rate; the test images are not touched.

    The runs lie where `run_seeds` looks for them, so that at the chosen rate only the other seeds are still
    to be trained: `run_seeds(with_rate(recipe, rate), rate_folder(out_dir, rate))`.

    Args:
        recipe: what to train.
        rates: the base learning rates.
        out_dir: the folder over the runs' folders.
        data: the recipe's.
        device: where to train.
        say: as in `run`.
        report: called with each rate's row as it is known.

    Returns:
        For each rate `rate`, `validation_accuracy` and `validation_loss` of what the run keeps, and
        `seconds`; None in place of a number where training diverged; and where it was trained, as
        `trained_at` says it.

    Raises:
        InputError: no rates, one of them twice, or no images are held out; as in `run`.
    """
    require(len(rates) > 0, "rates", list(rates), "at least one")
    require(len(set(rates)) == len(rates), "rates", list(rates), "each of them once")
    require(all(rate > 0 for rate in rates), "rates", list(rates), "numbers above 0")
    recipes = [with_rate(recipe, rate).with_seed(recipe.seeds[0]) for rate in rates]  # before any is run
    if not data.size_of("validation"):
        raise InputError(
            "a sweep of learning rates chooses on held-out images, and there are none: expected "
            "data.validation_size above 0; set it, or give one rate."
        )
    processes, rows = Processes.current(), []
    for rate, one in zip(rates, recipes, strict=True):
        row = dict.fromkeys(("validation_accuracy", "validation_loss", "seconds")) | {"rate": rate}
        folder = seed_folder(out_dir, rate, recipe.seeds[0])
        here = environment(recipe.train.threads, device)
        try:
            history = train_only(one, folder, data, device, say)
        except DivergedError as error:
            say(f"{rate:g}: {error}")
        else:
            kept = history[best_epoch(history) if recipe.train.patience else -1]
            row |= {
                "validation_accuracy": kept.validation_accuracy,
                "validation_loss": kept.validation_loss,
                "seconds": sum(epoch.seconds for epoch in history),
            }
        row |= processes.from_first(lambda folder=folder, here=here: trained_at(folder, here))
        rows.append(row)
        report(row)
    return rows


def best_rate(rows: Sequence[dict[str, Any]]) -> float:
    """Return the rate with the highest held-out accuracy, of equal ones the one with the lowest loss.

    Raises:
        InputError: training diverged at every rate.
    """
    converged = [row for row in rows if row["validation_accuracy"] is not None]
    if not converged:
        tried = ", ".join(f"{row['rate']:g}" for row in rows)
        raise InputError(f"training diverged at every learning rate ({tried}): expected lower ones.")
    return max(converged, key=lambda row: (row["validation_accuracy"], -row["validation_loss"]))["rate"]


def sweep_record(recipe: Recipe, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what sweep.json holds: which rates were tried on what, which one was chosen, and where.

    Args:
        recipe: what was trained at each rate, with its first seed.
        rows: as `sweep_rates` returns them.

    Raises:
        InputError: training diverged at every rate.
    """
    chosen, seed = best_rate(rows), recipe.seeds[0]
    origin = {key: rows[-1][key] for key in (*ORIGIN, "date")}
    return {
        "recipe": recipe.name,
        "weights": recipe.weights,
        "data": recipe.data.name,
        "seed": seed,
        "chosen": chosen,
        "rates": said_once(rows, origin),
        "config": with_rate(recipe, chosen).with_seed(seed).tables() | recipe.start(),
        **origin,
    }


def with_rate(recipe: Recipe, rate: float) -> Recipe:
    """Return a recipe at another base learning rate."""
    return replace(recipe, train=replace(recipe.train, learning_rate=rate))


def rate_folder(out_dir: Path, rate: float) -> Path:
    """Return where the runs of a rate lie."""
    return out_dir / f"rate-{rate:g}"


def seed_folder(out_dir: Path, rate: float, seed: int) -> Path:
    """Return where the run of a rate and a seed lies."""
    return rate_folder(out_dir, rate) / f"seed-{seed}"
