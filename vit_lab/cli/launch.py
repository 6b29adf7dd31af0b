"""`vit` under torchrun: several processes that act as one command, print once and end together."""

import argparse
import contextlib
import datetime
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

from vit_from_scratch.errors import InputError, shown
from vit_lab.cli.streams import TRAINS, is_out_of_memory
from vit_lab.failures import ElsewhereError, LostProcessError
from vit_lab.runs.allocator import keeping_freed_memory

NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT")
VARIABLES = (*NUMBERS, "MASTER_ADDR")
"""What torchrun sets for each process."""

SHARED = ("train", "finetune")
"""The commands whose work several processes can share."""

TIMEOUT = datetime.timedelta(minutes=10)
"""After this a process that hangs ends the run. One that dies is noticed at once."""

ANSWER = datetime.timedelta(seconds=20)
"""How long the others may take to say that they are still there."""


class Launch:
    """The processes that carry out one command: this one alone, unless torchrun started several."""

    def __init__(self) -> None:
        self.numbers = numbers()
        self.store: Any = None
        self.stopped = False

    @contextlib.contextmanager
    def joined(self, options: argparse.Namespace) -> Iterator[None]:
        """Join the other processes, if there are any, for as long as the command runs.

        Raises:
            InputError: torchrun's variables are set in part or wrongly; the command cannot be shared; there
                are fewer GPUs than processes.
            LostProcessError: another process has ended meanwhile.
        """
        shared = options.command in SHARED
        said = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        if shared and self.numbers is None and said.keys() & {*NUMBERS[:4]}:
            raise InputError(
                f"{', '.join(f'{name} = {shown(text)}' for name, text in said.items())}: expected "
                f"{', '.join(VARIABLES)}, a rank below the number of processes and a port among them. Start "
                "several processes with torchrun, which sets them all, or unset them for one."
            )
        rank, size, local_rank, local_size = self.numbers or (0, 1, 0, 1)
        swept = getattr(options, "sweep", None) is not None
        if size > 1 and (swept or not shared):
            raise InputError(
                f"`vit {options.command}{' --sweep' if swept else ''}` in {size} processes: expected one. "
                f"Start it without torchrun; several share the work of {' and '.join(SHARED)} at one rate."
            )
        with keeping_freed_memory(options.command in TRAINS):
            if size == 1:
                yield
                return
            self._join(rank, size, shared_device(options.device, local_rank, local_size))
            try:
                yield
            except RuntimeError as error:
                self._explain(error)
            else:
                import torch.distributed as dist

                dist.destroy_process_group()  # after an error it might wait for those that are gone
            finally:
                _deaf()  # what is left to do is to say why and to leave

    def says(self) -> bool:
        """Whether it is this process that says why the command failed: of several the first that asks."""
        rank = str(self.numbers[0]) if self.numbers else "0"
        if self.store is None:
            return rank == "0"
        try:
            return self.store.compare_set("vit: says why", "", rank) == rank.encode()
        except RuntimeError:  # whoever kept the store is gone
            return True

    def _join(self, rank: int, size: int, backend: str) -> None:
        """Form the process group, let the first process alone print, and end in order when told to."""
        import torch.distributed as dist
        from torch.distributed.rendezvous import rendezvous

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        if rank > 0:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (it stays open to the end)
            os.environ["VIT_PROGRESS"] = "0"
            warnings.simplefilter("ignore")
        try:
            self.store, rank, size = next(rendezvous("env://", timeout=TIMEOUT))
            dist.init_process_group(backend, store=self.store, rank=rank, world_size=size, timeout=TIMEOUT)
        except (RuntimeError, ValueError) as error:
            self._explain(dist.DistNetworkError(str(error)))

    def _stop(self, number: int, frame: object) -> NoReturn:
        """End once, however often torchrun and the terminal say it."""
        _deaf()
        self.stopped = True
        raise KeyboardInterrupt

    def _explain(self, error: RuntimeError) -> NoReturn:
        """Say in a sentence what it means that others are gone; gloo says so in a `RuntimeError` like any."""
        import torch.distributed as dist

        if self.stopped and not isinstance(error, ElsewhereError):
            raise KeyboardInterrupt from None
        unknown = type(error) is RuntimeError and not is_out_of_memory(error)
        if isinstance(error, dist.DistError) or (unknown and not all_answer()):
            raise LostProcessError(
                "another process of this run has ended or cannot be reached, so training has stopped. What "
                "the last finished epoch reached is kept; the same command goes on from there."
            ) from error
        raise error


def all_answer() -> bool:
    """Say whether all processes of the group are still there to add up a number."""
    import torch

    try:
        return torch.distributed.all_reduce(torch.zeros(1), async_op=True).wait(ANSWER)
    except RuntimeError:
        return False


def _deaf() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def numbers() -> tuple[int, int, int, int] | None:
    """Return rank, number of processes, and the same two of this machine; None if they make no sense."""
    texts = [os.environ.get(name, "") for name in NUMBERS]
    if "MASTER_ADDR" not in os.environ or not all(re.fullmatch(r"[0-9]{1,9}", text) for text in texts):
        return None
    rank, size, local_rank, local_size, _ = map(int, texts)
    return (rank, size, local_rank, local_size) if rank < size and local_rank < local_size <= size else None


def shared_device(name: str | None, local_rank: int, local_size: int) -> str:
    """Give each of several processes a GPU of its own, if they use any, and return how they are to talk.

    Args:
        name: the option --device.
        local_rank: the number of this process on its machine.
        local_size: how many there are on it.

    Returns:
        The backends of torch's process group.

    Raises:
        InputError: there are fewer GPUs than processes, one GPU is asked for, or GPUs where there are none.
    """
    if name not in (None, "cpu", "cuda"):
        raise InputError(
            f"--device {name} with several processes: expected cpu or cuda; each process takes a GPU of its "
            "own. Leave it out."
        )
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: no GPU here. Expected a device of this machine, or no --device.")
    if name == "cpu" or not torch.cuda.is_available():
        return "cpu:gloo"
    if local_size > (count := torch.cuda.device_count()):
        raise InputError(
            f"{local_size} processes on this machine and {count} GPU{'s' if count > 1 else ''}: expected at "
            f"most one process for each. Take torchrun --nproc-per-node={count}, or --device cpu."
        )
    torch.cuda.set_device(local_rank)
    return "cpu:gloo,cuda:nccl"
