"""Training in a folder; and a whole run, from a recipe to a number.

A run trains, tests once, and writes down where the number came from.
"""

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.data.datasets import data_folder, open_dataset
from vit_from_scratch.data.streaming import PhotoData
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import sha256, write_json
from vit_from_scratch.model.cost import count_parameters, forward_flops
from vit_from_scratch.training import loop
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.evaluation import Evaluation
from vit_from_scratch.training.self_supervised import HeldOut
from vit_from_scratch.training.state import Callback, EpochMetrics, as_vit, best_epoch
from vit_lab.experiments.recipes import Recipe
from vit_lab.runs.distributed import current_engine
from vit_lab.runs.environment import environment
from vit_lab.runs.finished import read_result
from vit_lab.runs.origins import differs, trained_at
from vit_lab.runs.processes import Processes
from vit_lab.runs.progress_bar import ProgressBar
from vit_lab.runs.run_folder import RunFolder
from vit_lab.runs.run_settings import CONFIG


def train(
    model: nn.Module,
    data: DataSet,
    config: TrainConfig,
    out_dir: str | os.PathLike[str] | None = None,
    callbacks: Sequence[Callback] = (),
) -> list[EpochMetrics]:
    """Train a model as `vit_from_scratch.training.train` does, kept in a folder, in one process or several.

    With several processes (see `vit_lab.runs.distributed`) all call this at once.

    Args:
        model: a ViT, or a self-supervised model that holds it; without a folder any that the loop takes.
        data: images and labels.
        config: the settings.
        out_dir: the run's folder; a run that was stopped there goes on, a finished one is loaded. None keeps
            everything in memory.
        callbacks: as the loop has them, after those of the folder.

    Returns:
        The metrics of each epoch.

    Raises:
        DivergedError, InputError: as in the loop and in `RunFolder.on_start`.
    """
    with RunFolder(out_dir) if out_dir is not None else contextlib.nullcontext() as folder:
        hooks = [*([folder] if folder is not None else []), *callbacks]
        return loop.train(model, data, config, hooks, current_engine())


def run(
    recipe: Recipe,
    out_dir: Path,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
    opened: DataSet | None = None,
    keep: Sequence[int] = (),
    test: bool = True,
) -> dict[str, Any]:
    """Train a recipe with its own seed, test it once, and write result.json; go on if it was stopped.

    A recipe without labels is measured on the held-out training images, and no test image is touched.

    Args:
        recipe: what to run.
        out_dir: the run's folder.
        data_dir: where the data are; see `load_dataset`.
        device: where to train.
        say: called with a sentence when there is a run in the folder already, or when test photos were drawn.
        opened: the recipe's data, if they are open already.
        keep: epochs after which the model is kept, in `out_dir/epochs`; 0 is the untrained one.
        test: measure, and write result.json; otherwise no test image is touched, and the held-out numbers
            of the model that the run keeps are returned.

    Returns:
        What result.json holds. Hardware, versions, commit and date are those of training, and "measured_by"
        names this process if it is another.

    Raises:
        InputError: wrong data; a folder that holds something else, a run with other settings or a damaged
            one; another process is at work in it.
        DivergedError: the loss became huge, or it or a weight is not a finite number.
    """
    here = environment(recipe.train.threads, device)  # of the code that trains, should it change meanwhile
    processes, engine = Processes.current(), current_engine()
    data = opened or processes.first_of_machine_first(lambda: open_dataset(recipe.data, data_dir))
    if test and isinstance(data, PhotoData) and data.source.note:
        say(data.source.note)
    if recipe.neighbours > data.training_size:
        raise InputError(
            f"neighbours = {recipe.neighbours}: expected at most the {data.training_size:,} training images."
        )
    part = "test" if test and recipe.objective == "classes" else "validation"
    if not data.size_of(part):
        raise InputError(
            f"{recipe.name} has no {part} images to measure on: expected some; set data.validation_size."
        )
    start = recipe.start()
    if test and isinstance(data, PhotoData) and not (out_dir / CONFIG).exists():
        _check_photos(data, part, recipe.train.workers, processes)
    with RunFolder(out_dir, start, keep, here, say) as folder:
        model, bar = recipe.seeded(data).to(device), ProgressBar(f"{recipe.name}, seed {recipe.train.seed}")
        history = train(model, data, recipe.train, callbacks=[folder, bar])
        vit = as_vit(model, "a run")  # its size is the result's, without what only a task needs
        facts = {
            "seed": recipe.train.seed,
            "epochs": len(history),
            "seconds": sum(epoch.seconds for epoch in history),
            "parameters": count_parameters(vit),
            "forward_flops": forward_flops(vit.config),
        }
        if not test:
            kept = history[best_epoch(history) if recipe.train.patience else -1]
            held_out = {name: getattr(kept, name) for name in ("validation_accuracy", "validation_loss")}
            return held_out | facts | trained_at(out_dir)
        known = processes.from_first(
            lambda: read_result(out_dir, recipe.train.seed) if folder.result.exists() else None
        )
        if known is not None:
            return known
        data, workers = data.to(device), recipe.train.workers
        result = _measurement(recipe, engine.measure(model, data, part, workers)) | facts
        if recipe.flip_test:
            both = engine.measure(FlipAveraged(model), data, part, workers)
            assert isinstance(both, Evaluation)  # the recipe has classes
            result |= {"test_flip_accuracy": both.accuracy}
        there = data_folder(data_dir)
        result |= {"data_dir": str(there.resolve()) if there else None, **start}

        def written() -> dict[str, Any]:
            trained = trained_at(out_dir)
            elsewhere = {"measured_by": here} if differs(trained, here) else {}
            whole = result | {"model_sha256": sha256(folder.model)} | trained | elsewhere
            write_json(folder.result, whole)
            return whole

        return processes.from_first(written)


def _check_photos(data: PhotoData, part: Part, workers: int, processes: Processes) -> None:
    """Let each process open its share of the photos of a part, and all stop if one cannot be read."""
    wrong = ""
    try:
        data.shared(processes.share).check(part, workers)
    except InputError as error:
        wrong = str(error)
    if found := next(filter(None, processes.gathered(wrong)), ""):
        raise InputError(found)


class FlipAveraged(nn.Module):
    """A classifier that averages the probabilities of each image as it is and mirrored.

    It costs twice the work, and fits images whose class a mirror does not change: photos, not digits.

    Args:
        model: (B, C, H, W) floats to (B, K) logits.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """Return the logarithms of the mean probabilities, (B, K), for images (B, C, H, W)."""
        views = (images, images.flip(-1))
        both = torch.stack([F.log_softmax(self.model(view).float(), dim=1) for view in views])  # (2, B, K)
        return both.logsumexp(dim=0) - math.log(2)


def _measurement(recipe: Recipe, measured: Evaluation | HeldOut) -> dict[str, Any]:
    """Return what was measured in the end, by the names that it has in result.json."""
    numbers = dataclasses.asdict(measured)
    if isinstance(measured, HeldOut):
        return {"objective": recipe.objective} | {f"validation_{name}": n for name, n in numbers.items()}
    # few classes have no top-5 accuracy
    return {f"test_{name}": n for name, n in numbers.items() if n is not None}
