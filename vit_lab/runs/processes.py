"""Several processes that train one model together: who they are, what they tell each other and agree on.

Several are those of torch's default process group: whoever has called `init_process_group`, as the command
`vit` does under torchrun, trains with all of them. One alone is the usual case: then each asks only itself.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, get_args

import torch.distributed as dist
from torch import nn

from vit_from_scratch.data.config import Part
from vit_from_scratch.data.dataset import DataSet
from vit_from_scratch.data.sharing import Share
from vit_from_scratch.errors import InputError
from vit_from_scratch.settings import as_table
from vit_from_scratch.training.config import TrainConfig
from vit_lab.failures import ElsewhereError
from vit_lab.runs.run_settings import differences

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """The processes of a run, as one of them sees them.

    Attributes:
        rank: this process, counted from 0; number 0 is the one that reads, writes and prints.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls) -> "Processes":
        """Return those of torch's default process group; this one alone if there is no group."""
        if not (dist.is_available() and dist.is_initialized()):
            return ALONE
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def alone(self) -> bool:
        """Whether this is the only process."""
        return self.size == 1

    @property
    def share(self) -> Share:
        """The part of each batch that is this process's."""
        return Share(self.rank, self.size)

    def from_first(self, action: Callable[[], T]) -> T:
        """Do something in the first process only, and return its result, which can be pickled, in all.

        Raises:
            ElsewhereError: it failed; in the first process its own error is raised instead.
        """
        if self.alone:
            return action()
        box: list[tuple[bool, T | None]] = [(False, None)]
        if self.rank == 0:
            try:
                box = [(True, action())]
            finally:  # whatever happened, the others wait for word
                dist.broadcast_object_list(box, src=0)
        else:
            dist.broadcast_object_list(box, src=0)
        done, result = box[0]
        if not done:
            raise ElsewhereError("the first process of this run has failed.")
        return result  # type: ignore[return-value]  (T may be None)

    def first_of_machine_first(self, action: Callable[[], T]) -> T:
        """Do the same in all, after one process of each machine has done it: a download, for instance."""
        if self.alone:
            return action()
        leads = int(os.environ.get("LOCAL_RANK", self.rank)) == 0
        early = action() if leads else None
        self.gathered(None)
        return early if early is not None else action()

    def gathered(self, value: T) -> list[T]:
        """Return what each process has, in their order."""
        if self.alone:
            return [value]
        values: list[T] = [value] * self.size
        dist.all_gather_object(values, value)
        return values


ALONE = Processes()


def check_processes(processes: Processes, model: nn.Module, data: DataSet, config: TrainConfig) -> None:
    """Refuse settings that do not fit the number of processes, and processes that do not fit each other."""
    size, batch, images = processes.size, config.batch_size, data.training_size
    smallest = min(batch, images) // size

    def need(holds: bool, given: str, expected: str) -> None:
        if not holds:
            raise InputError(f"{given} on {size} processes: expected {expected}")

    whole_parts = (
        f"a multiple of {size}, since it is the batch of all together. "
        f"Take {max(size, batch // size * size)}, or another number of processes."
    )
    need(batch % size == 0, f"train.batch_size = {batch}", whole_parts)
    need(images >= size, f"{images} training images", "at least one for each. Start fewer.")
    pieces = f"at most {smallest}, the images of a batch that each of them gets."
    need(config.accumulation <= smallest, f"train.accumulation = {config.accumulation}", pieces)
    whole = "another, since Muon needs whole matrices. Take 'adamw', or train.sharding = 'none'."
    muon = "train.optimiser = 'muon' with train.sharding = 'full'"
    need(config.sharding == "none" or config.optimiser != "muon", muon, whole)
    # a folder of photos may be elsewhere on each machine
    settings = {
        "train": as_table(config),
        "weights": {name: list(parameter.shape) for name, parameter in model.named_parameters()},
        "images": {part: data.size_of(part) for part in get_args(Part)}
        | {"classes": list(data.class_names), "shape": list(data.image_shape)},
        "processes": {"sharding": config.sharding},
    }
    first, *others = processes.gathered(settings)
    for rank, theirs in enumerate(others, start=1):
        if changed := differences(first, theirs):
            raise InputError(
                f"process {rank} of this run has other settings than process 0: {'; '.join(changed[:3])} "
                "(there: process 0). Expected the same; start all of them with the same command and the same "
                "data."
            )
