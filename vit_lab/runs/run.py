"""A whole run, from a recipe to a number: train, test once, and write down where the number came from."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from vit_from_scratch.data.datasets import data_folder, open_dataset
from vit_from_scratch.data.in_memory import ImageData
from vit_from_scratch.data.streaming import PhotoData
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import sha256, write_json, writing
from vit_from_scratch.model.cost import count_parameters, forward_flops
from vit_from_scratch.training.callbacks import Callback, KeepEpochs, ProgressBar
from vit_from_scratch.training.evaluation import Evaluation, FlipAveraged
from vit_from_scratch.training.loop import train
from vit_from_scratch.training.outcomes import HeldOut
from vit_from_scratch.training.state import EpochMetrics, TrainingState, as_vit
from vit_lab.experiments.recipes import Recipe
from vit_lab.runs.distributed import measured_together
from vit_lab.runs.environment import environment
from vit_lab.runs.finished import read_result
from vit_lab.runs.origins import NoteOrigin, made_at
from vit_lab.runs.processes import Processes
from vit_lab.runs.run_folder import RunFolder


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
    opened: ImageData | PhotoData | None = None,
    keep: Sequence[int] = (),
) -> dict[str, Any]:
    """Train a recipe with its own seed, test it once, and write result.json; go on if it was stopped.

    A recipe without labels is measured on the held-out training images, and no test image is touched.

    Args:
        recipe: what to run.
        out_dir: the run's folder.
        data_dir: where the data lie; see `load_dataset`.
        device: where to train.
        say: called with a sentence when there is a run in the folder already, or when test photos were drawn.
        opened: the recipe's data, if they are open already.
        keep: epochs after which the model is kept, in `out_dir/epochs`; 0 is the untrained one.

    Returns:
        What result.json holds. Hardware, versions, commit and date are those of training; see `made_at`.

    Raises:
        InputError: wrong data; a folder that holds something else, a run with other settings or a damaged
            one; another process is at work in it.
        DivergedError: the loss or a weight became infinite or not a number.
    """
    here = environment(recipe.train.threads, device)  # of the code that trains, should it change meanwhile
    processes = Processes.current()
    data = opened or processes.first_of_machine_first(lambda: open_dataset(recipe.data, data_dir))
    if isinstance(data, PhotoData) and data.source.note:
        say(data.source.note)
    seed = recipe.train.seed
    if recipe.neighbours > data.training_size:
        raise InputError(
            f"neighbours = {recipe.neighbours}: expected at most the {data.training_size:,} training images."
        )
    part = "test" if recipe.objective == "classes" else "validation"
    if not data.size_of(part):
        raise InputError(
            f"{recipe.name} has no {part} images to measure on: expected some; set data.validation_size."
        )
    start = recipe.start()
    with RunFolder(out_dir, start) as run_folder:
        model, history = _trained(recipe, data, here, device, run_folder, say, keep)
        known = processes.from_first(
            lambda: read_result(out_dir, seed) if run_folder.result.exists() else None
        )
        if known is not None:
            return known
        on_device, workers = data.to(device), recipe.train.workers
        measured = measured_together(model, on_device, part, workers)
        result = _result(recipe, model, measured, history)
        if recipe.flip_test:
            both = measured_together(FlipAveraged(model), on_device, part, workers)
            assert isinstance(both, Evaluation)  # the recipe has classes
            result |= {"test_flip_accuracy": both.accuracy}
        folder = data_folder(data_dir)
        result |= {"data_dir": str(folder.resolve()) if folder else None}
        return processes.from_first(lambda: _written(run_folder, result | start, here))


def _written(folder: RunFolder, result: dict[str, Any], here: dict[str, Any]) -> dict[str, Any]:
    """Write a run's result.json, and return what it holds; `here` is what `environment` says."""
    result |= {"model_sha256": sha256(folder.model), **made_at(folder.path, here)}
    with writing(folder.result):
        write_json(folder.result, result)
    return result


def train_only(
    recipe: Recipe,
    out_dir: Path,
    data: ImageData | PhotoData,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
) -> list[EpochMetrics]:
    """Train a recipe with its own seed as `run` does, and leave the test images alone; `run` then goes on.

    Args:
        recipe: what to train.
        out_dir: the run's folder.
        data: the recipe's.
        device: where to train.
        say: as in `run`.

    Returns:
        The metrics of each epoch.

    Raises:
        InputError: as in `run`.
        DivergedError: as in `run`.
    """
    here = environment(recipe.train.threads, device)
    with RunFolder(out_dir, recipe.start()) as run_folder:
        return _trained(recipe, data, here, device, run_folder, say)[1]


def _trained(
    recipe: Recipe,
    data: ImageData | PhotoData,
    here: dict[str, Any],
    device: str,
    folder: RunFolder,
    say: Callable[[str], None],
    keep: Sequence[int] = (),
) -> tuple[nn.Module, list[EpochMetrics]]:
    """Train a recipe's model in a folder, or load what is finished there; return it and its epochs."""
    model = recipe.seeded(data).to(device)
    callbacks = [
        folder,
        NoteOrigin(folder.path, here),
        KeepEpochs(folder.path / "epochs", keep),
        Announcement(folder.path, say),
        ProgressBar(f"{recipe.name}, seed {recipe.train.seed}"),
    ]
    return model, train(model, data, recipe.train, callbacks=callbacks)


def _measurement(recipe: Recipe, measured: Evaluation | HeldOut) -> dict[str, Any]:
    """Return what was measured in the end, by the names that it has in result.json."""
    if isinstance(measured, HeldOut):
        numbers = {f"validation_{name}": number for name, number in dataclasses.asdict(measured).items()}
        return {"objective": recipe.objective, **numbers}
    top5 = {} if measured.top5_accuracy is None else {"test_top5_accuracy": measured.top5_accuracy}
    loss = {"test_loss": measured.loss, "test_images": measured.images}
    return {"test_accuracy": measured.accuracy, **top5, **loss}


def _result(
    recipe: Recipe, model: nn.Module, measured: Evaluation | HeldOut, history: Sequence[EpochMetrics]
) -> dict[str, Any]:
    """Return the numbers of a run that just ended; its size is the ViT's, without what only a task needs."""
    vit = as_vit(model, "a run")
    return {
        **_measurement(recipe, measured),
        "seed": recipe.train.seed,
        "epochs": len(history),
        "seconds": sum(epoch.seconds for epoch in history),
        "parameters": count_parameters(vit),
        "forward_flops": forward_flops(vit.config),
    }
