"""Measure what label smoothing does beside accuracy, on the finished runs of the study label_smoothing.

    python tools/measure_smoothing.py --data-dir DEST --runs FOLDER

For each seed, on the same held-out photos: the mean confidence (the largest probability) less the
accuracy; the expected calibration error over fifteen bins of equal width; and to how many tokens a query
attends, e to the entropy of its weights, as a share of all. The gradient norms are those of the first
hundred steps, trained once more at the rate that is best without smoothing: their standard deviation over
their mean. Writes the differences that the study's rule names, each with its interval over the seeds:
results/smoothing_found.json.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from measuring import options, write_result
from torch import Tensor

from vit_from_scratch.data import ImageData, open_dataset
from vit_from_scratch.inspection import layer_attention
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.training import StepLog, predict, train
from vit_from_scratch.training.state import TrainingState
from vit_lab.experiments.comparing import paired_interval
from vit_lab.experiments.packaged import load_result
from vit_lab.experiments.recipes import Recipe
from vit_lab.experiments.records import rate_folder, read_rows
from vit_lab.experiments.study import load_study
from vit_lab.runs.run_folder import MODEL

STUDY = "label_smoothing"
EARLY = 100
BINS = 15
LOOKED_AT = 500
"""Photos whose attention is looked at."""


class EnoughSteps(Exception):
    """The first steps are there."""


class FirstSteps(StepLog):
    """A log that ends the training after a hundred steps."""

    def on_step(self, state: TrainingState) -> None:
        """Add the step, and stop at the last."""
        super().on_step(state)
        if state.step == EARLY:
            raise EnoughSteps


def calibration(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Return confidence less accuracy, and the expected calibration error, of (N, K) logits."""
    confidence, guesses = logits.double().softmax(dim=1).max(dim=1)
    hits = (guesses == labels).double()
    bins = (confidence * BINS).long().clamp(max=BINS - 1)
    gaps = torch.zeros(BINS, dtype=torch.float64).index_add_(0, bins, confidence - hits)
    return {
        "overconfidence": (confidence - hits).mean().item(),
        "calibration_error": gaps.abs().sum().item() / len(labels),
    }


def attended(weights: Tensor) -> Tensor:
    """Return to what share of the tokens a query attends, on average over (B, h, T, T) weights."""
    entropy = -torch.xlogy(weights, weights).sum(dim=-1)  # (B, h, T)
    return entropy.exp().mean() / weights.shape[-1]


def unsteadiness(recipe: Recipe, data: ImageData) -> float:
    """Return the standard deviation over the mean of the first steps' gradient norms."""
    log = FirstSteps()
    with suppress(EnoughSteps):
        train(recipe.seeded(data), data, recipe.train, [log])
    norms = torch.tensor([step.gradient_norm for step in log.steps], dtype=torch.float64)
    return (norms.std() / norms.mean()).item()


def main() -> None:
    """Measure and write."""
    parser = options(__doc__)
    parser.add_argument("--runs", type=Path, required=True, help="the folder over the study's runs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    chosen = {row.name: row.chosen for row in read_rows(load_result(STUDY))}
    measured: dict[str, dict[str, list[float]]] = {}
    variants = load_study(STUDY).variants()
    data = open_dataset(variants[0].recipe.data, given.data_dir)
    assert isinstance(data, ImageData)  # and the same for both rows
    for variant in variants:
        images = data.normalise(data.validation_images[:LOOKED_AT])
        kept = measured.setdefault(variant.name, {})
        for seed in variant.recipe.seeds:
            folder = given.runs / variant.recipe.name / rate_folder(chosen[variant.name]) / f"seed-{seed}"
            model = load_checkpoint(folder / MODEL)
            logits = predict(model, data.validation_images, data.normalise)
            found = calibration(logits, data.validation_labels)
            layers = layer_attention(model, images, attended)
            found["attended"] = torch.stack(layers).mean().item()
            same = variant.recipe.with_seed(seed).with_rate(chosen["without"])
            found["unsteadiness"] = unsteadiness(same, data)
            print(variant.name, seed, found, flush=True)
            for name, value in found.items():
                kept.setdefault(name, []).append(value)
    without, smoothed = measured["without"], measured["with"]
    differences: dict[str, Any] = {
        name: paired_interval(smoothed[name], without[name])
        if name == "attended"
        else paired_interval(without[name], smoothed[name])
        for name in without
    }
    facts: dict[str, Any] = {"images": data.size_of("validation"), "looked_at": LOOKED_AT, "steps": EARLY}
    seeds = len(variants[0].recipe.seeds)
    facts["photos"] = (
        f"held-out photos of CIFAR-10 (attention: {LOOKED_AT} of them; gradients: the first {EARLY} steps of "
        f"training), {seeds} seeds a side"
    )
    write_result("smoothing_found", {**facts, "measured": measured, "differences": differences})


if __name__ == "__main__":
    main()
