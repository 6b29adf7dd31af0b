"""A plain ViT with a teacher, in the half hour that it has without one (chapter 9).

    python benchmarks/half_hour_taught.py --data-dir DEST --results vit_lab/results/half_hour_taught.json

The teacher is the CNN of `half_hour_cnn.py`, at that file's best rate, and its training is part of the half
hour. What is left of it trains the ViT of the recipe `cifar10-half-hour-remedies`, in fewer epochs. Its
target for a photo is the mean of the label and of what the teacher says of this very view of the photo
(Touvron et al., 2021, with soft answers); these take the place of label smoothing. Test photos are measured
once a seed. What was done is kept after each run in --out; the same command goes on.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import half_hour_cnn
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_from_scratch.data import open_dataset
from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.files import write_json
from vit_from_scratch.model.cost import count_parameters, counted_flops, forward_flops
from vit_from_scratch.training import EpochMetrics, TrainConfig, evaluate_batches
from vit_from_scratch.training.loop import at_full_size, numerics, precision, shrink, train_step
from vit_from_scratch.training.state import Engine, TrainingState
from vit_lab import load_result, read_rows
from vit_lab.experiments.recipes import Recipe, load_recipe
from vit_lab.experiments.records import Row, SeedRun
from vit_lab.runs.environment import environment
from vit_lab.runs.progress_bar import ProgressBar
from vit_lab.runs.run import FlipAveraged

RECIPE = "cifar10-half-hour-remedies"
NAME, TEACHER = "plain ViT, taught", "its teacher, a small CNN"
COMMAND = (
    "python benchmarks/half_hour_taught.py --data-dir DEST --results vit_lab/results/half_hour_taught.json"
)
CLAIM = (
    "Taught by a CNN that learns in the same half hour, a plain ViT classifies 89 % of the CIFAR-10 test "
    "photos correctly."
)
TEACHER_EPOCHS, EPOCHS = 9, 15  # as many as fill the half hour


def recipe_of(epochs: int, seed: int) -> Recipe:
    """Return the recipe with as many epochs, without smoothing."""
    recipe = load_recipe(RECIPE)
    train = dataclasses.replace(recipe.train, epochs=epochs, seed=seed, label_smoothing=0.0)
    return dataclasses.replace(recipe, train=train, seeds=(seed,))


def taught_targets(teacher: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Return the means (B, K) of the labels (B,) and the teacher's probabilities for images (B, C, H, W)."""
    said = teacher(images).float().softmax(dim=1)
    return (F.one_hot(labels, said.shape[1]) + said) / 2


def taught_epoch(state: TrainingState, teacher: nn.Module) -> EpochMetrics:
    """Go through the training photos once, as `train_epoch` does, with the teacher's answers for targets."""
    start, config, data = time.perf_counter(), state.config, state.data
    seed = int(np.random.SeedSequence((config.seed, state.epoch)).generate_state(1, np.uint64)[0])
    whole = state.progress >= config.augment_until
    augmentation = config.augmentation.without_crops() if whole else config.augmentation
    state.model.train()
    losses, right = [], []
    for images, labels in data.training_batches(config.batch_size, augmentation, seed):
        images = data.normalise(images)
        with torch.no_grad(), precision(state):
            targets = taught_targets(teacher, images, labels)
        logits = train_step(state, shrink(state, images), targets)
        losses.append(state.loss)
        right.append((logits.argmax(dim=1) == labels).float().mean())
    state.epoch += 1
    state.model.resize_input(data.image_shape[1:])
    with precision(state):
        held_out = evaluate_batches(state.model, data.batches("validation"))
    return EpochMetrics(
        epoch=state.epoch,
        step=state.step,
        learning_rate=state.learning_rate,
        train_loss=torch.stack(losses).mean().item(),
        train_accuracy=torch.stack(right).mean().item(),
        validation_loss=held_out.loss,
        validation_accuracy=held_out.accuracy,
        seconds=time.perf_counter() - start,
    )


def taught(teacher: nn.Module, data: DataSet, recipe: Recipe) -> tuple[nn.Module, list[EpochMetrics]]:
    """Train the recipe's ViT with a teacher."""
    bar = ProgressBar(f"taught, seed {recipe.train.seed}")
    state = Engine().start(recipe.seeded(data), data, recipe.train)
    with at_full_size(state), numerics(state):
        bar.on_start(state)
        while not state.finished:
            state.history.append(taught_epoch(state, teacher))
            bar.on_epoch(state)
    bar.on_end(state)
    return state.model, state.history


def measured(model: nn.Module, data: DataSet, history: list[EpochMetrics]) -> dict[str, Any]:
    """Return what a model reaches on the test photos, as they are and with their mirror images, and how."""
    tested = evaluate_batches(model, data.batches("test"))
    return {
        "test_accuracy": tested.accuracy,
        "test_flip_accuracy": evaluate_batches(FlipAveraged(model), data.batches("test")).accuracy,
        "test_loss": tested.loss,
        "test_images": tested.images,
        "validation_accuracy": history[-1].validation_accuracy,
        "seconds": sum(epoch.seconds for epoch in history),
        "curves": [dataclasses.asdict(epoch) for epoch in history],
    }


def summary(
    found: list[dict[str, Any]], recipe: Recipe, teacher: TrainConfig, data: DataSet
) -> dict[str, Any]:
    """Return what ships: a row for the ViT, whose time holds the teacher's, and one for the teacher."""
    vit, cnn = recipe.build(data), half_hour_cnn.SmallCNN()
    flops = {NAME: forward_flops(vit.config), TEACHER: counted_flops(cnn, data.image_shape)}
    configs = {NAME: recipe, TEACHER: dataclasses.replace(recipe, model={}, whiten=False, train=teacher)}
    rows = [
        Row(
            name=name,
            runs=[SeedRun.of({**run, **run[name]}, run[name]["curves"]) for run in found],
            facts={
                "test_images": found[0][name]["test_images"],
                "parameters": count_parameters(model),
                "forward_flops": flops[name],
            },
            config=configs[name].tables(),
        )
        for name, model in ((NAME, vit), (TEACHER, cnn))
    ]
    facts = {
        "name": "half_hour_taught",
        "claim": CLAIM,
        "command": COMMAND,
        "base": RECIPE,
        "cumulative": False,
    }
    return facts | {"rows": [row.table() for row in rows]} | rows[0].made


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/half-hour-taught.json"),
        help="JSON file; what it holds is not run again",
    )
    parser.add_argument("--results", type=Path, help="also write a summary of all runs to this JSON file")
    parser.add_argument("--teacher-epochs", type=int, default=TEACHER_EPOCHS)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    data = open_dataset(load_recipe(RECIPE).data, options.data_dir)
    rate = read_rows(load_result("half_hour_cnn"))[0].chosen
    found: list[dict[str, Any]] = json.loads(options.out.read_text("utf-8")) if options.out.exists() else []
    for seed in options.seeds:
        if seed in [run["seed"] for run in found]:
            continue
        here = environment(2, "cpu")  # of the code that trains, should it change meanwhile
        settings = half_hour_cnn.settings(rate, options.teacher_epochs, seed)
        teacher, lessons = half_hour_cnn.trained(data, settings)
        model, history = taught(teacher.eval(), data, recipe_of(options.epochs, seed))
        rows = {NAME: measured(model, data, history), TEACHER: measured(teacher, data, lessons)}
        rows[NAME]["seconds"] += rows[TEACHER]["seconds"]
        found.append({"seed": seed, **rows, **here})
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.out, found)
    if options.results:
        first = options.seeds[0]
        teacher_config = half_hour_cnn.settings(rate, options.teacher_epochs, first)
        whole = summary(found, recipe_of(options.epochs, first), teacher_config, data)
        write_json(options.results, whole)


if __name__ == "__main__":
    main()
