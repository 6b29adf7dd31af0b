"""The training loop in a folder, with as many processes as there are."""

import contextlib
import os
from collections.abc import Sequence

from torch import nn

from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.training import loop
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.state import Callback, EpochMetrics
from vit_lab.runs.distributed import current_engine
from vit_lab.runs.run_folder import RunFolder


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
        out_dir: the run's folder, for checkpoints, metrics and curves; a run that was stopped there goes
            on, a finished one is loaded. None keeps everything in memory.
        callbacks: as the loop has them, after those of the folder.

    Returns:
        The metrics of each epoch.

    Raises:
        DivergedError: as in the loop.
        InputError: as in the loop; or the folder holds something else, a run with other settings or a damaged
            one, or another process is at work in it.
    """
    with RunFolder(out_dir) if out_dir is not None else contextlib.nullcontext() as folder:
        hooks = [*([folder] if folder is not None else []), *callbacks]
        return loop.train(model, data, config, hooks, current_engine())
