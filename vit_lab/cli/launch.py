"""`vit` under torchrun: several processes that act as one command, print once and end together."""

import argparse
import contextlib
import datetime
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

from vit_from_scratch.errors import ElsewhereError, InputError, LostProcessError
from vit_lab.cli.options import STOPPED, shared_device

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun sets for each process."""

SHARED = ("train", "finetune")
"""The commands whose work several processes can share."""

TIMEOUT = datetime.timedelta(minutes=10)
"""After this a process that hangs ends the run. One that dies is noticed at once."""

LOST = ("closed by peer", "reset by peer", "Broken pipe", "Timed out", "timed out", "connectFullMesh", "NCCL")
"""What torch says in a plain RuntimeError when another process is gone."""


class Launch:
    """The processes that carry out one command: this one alone, unless torchrun started several."""

    def __init__(self) -> None:
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
        if not any(name in os.environ for name in VARIABLES[:4]) or options.command not in SHARED:
            refuse_several(options.command)
            yield
            return
        rank, size, local_rank, local_size = numbers()
        if size == 1:
            yield
            return
        if getattr(options, "sweep", None) is not None:
            raise InputError(
                f"--sweep in {size} processes: expected one. Sweep without torchrun, then train with --lr."
            )
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
        rank = os.environ.get("RANK", "0")
        if self.store is None:
            return rank == "0" or not all(name in os.environ for name in VARIABLES)
        try:
            return self.store.compare_set("vit: says why", "", rank) == rank.encode()
        except RuntimeError:  # whoever kept the store is gone
            return True

    def _join(self, rank: int, size: int, backend: str) -> None:
        """Form the process group, let the first process alone print, and end in order when told to."""
        import torch.distributed as dist  # imported here: it takes seconds
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
            self._explain(RuntimeError(f"{LOST[0]}: {error}"))

    def _stop(self, number: int, frame: object) -> NoReturn:
        """End once, however often torchrun and the terminal say it."""
        _deaf()
        self.stopped = True
        raise KeyboardInterrupt

    def _explain(self, error: RuntimeError) -> NoReturn:
        """Say in a sentence what it means that others are gone."""
        import torch.distributed as dist

        if self.stopped and not isinstance(error, ElsewhereError):
            raise KeyboardInterrupt(STOPPED) from None
        if isinstance(error, dist.DistError) or any(words in str(error) for words in LOST):
            raise LostProcessError(
                "another process of this run has ended or cannot be reached, so training has stopped. What "
                "the last finished epoch reached is kept; the same command goes on from there."
            ) from None
        raise error


def _deaf() -> None:
    """Ignore further signals to end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def numbers() -> list[int]:
    """Return rank, number of processes, and the same two of this machine, as torchrun sets them.

    Raises:
        InputError: some are missing, or make no sense.
    """
    if missing := [name for name in VARIABLES if name not in os.environ]:
        there = [name for name in VARIABLES if name in os.environ]
        raise InputError(
            f"{', '.join(there)} set and {', '.join(missing)} not: expected all of them or none. Start "
            "several processes with torchrun, which sets them, or unset them for one."
        )
    texts = [os.environ[name] for name in VARIABLES[:4]]
    values = [int(text) if text.isdecimal() else -1 for text in texts]
    if not (0 <= values[0] < values[1] and 0 <= values[2] < values[3] <= values[1]):
        said = ", ".join(f"{name} = {text}" for name, text in zip(VARIABLES, texts, strict=False))
        raise InputError(f"{said}: expected a rank below the number of processes. Start them with torchrun.")
    return values


def refuse_several(command: str) -> None:
    """Raise an `InputError` if torchrun started several processes for a command that knows only one."""
    size = os.environ.get("WORLD_SIZE", "1")
    if all(name in os.environ for name in VARIABLES) and size != "1":
        raise InputError(
            f"`vit {command}` in {size} processes: expected one. Start it without torchrun; several share "
            f"the work of {' and '.join(SHARED)}."
        )
