"""What several processes that train together have to agree on."""

from typing import get_args

from torch import nn

from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.errors import InputError
from vit_from_scratch.settings import as_table
from vit_from_scratch.training.config import TrainConfig
from vit_lab.runs.processes import Processes
from vit_lab.runs.run_settings import differences


def check_processes(processes: Processes, model: nn.Module, data: DataSet, config: TrainConfig) -> None:
    """Refuse settings that do not fit the number of processes, and processes that do not fit each other."""
    size, batch = processes.size, config.batch_size
    if batch % size:
        raise InputError(
            f"train.batch_size = {batch} on {size} processes: expected a multiple of {size}, since it is the "
            f"batch of all together. Take {max(size, batch // size * size)}, or another number of processes."
        )
    if (images := data.training_size) < size:
        raise InputError(
            f"{images} training images for {size} processes: expected at least one for each. Start fewer."
        )
    smallest = min(batch, images) // size
    if config.accumulation > smallest:
        raise InputError(
            f"train.accumulation = {config.accumulation} on {size} processes: expected at most {smallest}, "
            "the images of a batch that each of them gets."
        )
    if config.sharding == "full" and config.optimiser == "muon":
        raise InputError(
            "train.optimiser = 'muon' with train.sharding = 'full': expected another, since Muon needs whole "
            "matrices and each process holds a part. Take 'adamw', or train.sharding = 'none'."
        )
    tables = processes.gathered(_settings(model, data, config))
    for rank, theirs in enumerate(tables):
        if changed := differences(tables[0], theirs):
            first = "; ".join(changed[:3])
            raise InputError(
                f"process {rank} of this run has other settings than process 0: {first} (there: process 0). "
                "Expected the same; start all of them with the same command and the same data."
            )


def _settings(model: nn.Module, data: DataSet, config: TrainConfig) -> dict[str, dict]:
    """Say what has to be the same in all processes; a folder of photos may be elsewhere on each machine."""
    images = {part: data.size_of(part) for part in get_args(Part)}
    return {
        "train": as_table(config),
        "weights": {name: list(parameter.shape) for name, parameter in model.named_parameters()},
        "images": images | {"classes": list(data.class_names), "shape": list(data.image_shape)},
        "processes": {"sharding": config.sharding},
    }
