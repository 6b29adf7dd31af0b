"""Several processes that train one model together: who they are, and what they tell each other.

One process is the usual case, and then every function here does nothing or the obvious. Several are those of
torch's default process group: whoever has called `torch.distributed.init_process_group`, as the command `vit`
does under torchrun, trains with all of them.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch.distributed as dist
from torch import Tensor, nn

from vit_from_scratch.data.sharing import WHOLE, Share
from vit_from_scratch.errors import ElsewhereError

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

    def own_seed(self, seed: int) -> int:
        """Return the seed of this process's dropout: no two drop alike, and the first as if it were alone."""
        if self.rank == 0:
            return seed
        return int(np.random.SeedSequence((seed, self.rank)).generate_state(1, np.uint64)[0])

    @property
    def share(self) -> Share:
        """The part of each batch that is this process's."""
        return WHOLE if self.alone else Share(self.rank, self.size)

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

    def copy_from_first(self, tensor: Tensor) -> None:
        """Overwrite a tensor by that of the first process."""
        if not self.alone:
            dist.broadcast(tensor, src=0)


ALONE = Processes()


def is_sharded(model: nn.Module) -> bool:
    """Say whether each process holds a shard of a model's weights, as FSDP2 has it."""
    return hasattr(model, "set_requires_gradient_sync")


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor of which each process holds a shard as a whole one; all processes must ask for it."""
    return tensor.full_tensor() if is_shard(tensor) else tensor  # type: ignore[attr-defined]


def local(tensor: Tensor) -> Tensor:
    """Return what this process holds of a tensor; changes to it change the tensor."""
    return tensor.to_local() if is_shard(tensor) else tensor  # type: ignore[attr-defined]


def is_shard(tensor: Tensor) -> bool:
    """Say whether this is a DTensor, without loading what only several processes need."""
    return hasattr(tensor, "full_tensor")


def placed_like(tensor: Tensor, other: Tensor) -> Tensor:
    """Return a whole tensor, the same in all processes, on another's device and sharded as that one is."""
    tensor = tensor.to(other.device)
    if not is_shard(other):
        return tensor
    from torch.distributed.tensor import distribute_tensor  # imported here: one process needs none of it

    return distribute_tensor(tensor, other.device_mesh, other.placements, src_data_rank=None)  # type: ignore[attr-defined]
