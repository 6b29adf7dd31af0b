"""Photos through worker processes: batches in a given order, and one sentence where a worker fails.

What is asked of a worker is a pair of a seed and a photo's number, and its answer depends on nothing else. So
the same photos come out however many workers there are, and workers can stay from one epoch to the next.
"""

import contextlib
import multiprocessing
import signal
import sys
import traceback
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from vit_from_scratch.errors import InputError, reason

LOST = (RuntimeError, OSError, EOFError)
"""What torch raises where a worker is gone, or found no room for a batch."""

FORKS = sys.platform == "linux"
"""Whether workers are forks, which share what is decoded; to others it is sent, each photo as a file."""


@dataclass(frozen=True, eq=False)
class PhotoJobs(Dataset[Any]):
    """Photos and their N labels, a batch at a time.

    They are read by their number as bytes (3, h, w), and `transform`, which brings these to one size, has
    random numbers of its own for each.
    """

    read: Callable[[int], Tensor]
    labels: Sequence[int]
    transform: Callable[[Tensor], Tensor] | None = None

    def __getitem__(self, jobs: list[tuple[int, int]]) -> Any:
        """Return a batch by pairs of a seed and a photo's number: (B, 3, H, W) uint8, and labels.

        What goes wrong is returned, too: torch would wrap it in pages of traceback.
        """
        try:
            photos = [self._photo(*job) for job in jobs]
        except Exception as error:
            return error
        try:
            return default_collate(photos)  # in a worker, into shared memory
        except LOST as error:
            return _failed(error)

    def _photo(self, seed: int, number: int) -> tuple[Tensor, int]:
        pixels, label = self.read(number), self.labels[number]
        if self.transform is None:
            return pixels, label
        with torch.random.fork_rng(devices=[]):
            own = np.random.SeedSequence((seed, number)).generate_state(1, np.uint64)[0]
            torch.default_generator.manual_seed(int(own))  # a GPU's own, for dropout, is left alone
            return self.transform(pixels), label


class PhotoWorkers:
    """The worker processes of a data set; inside `with workers.kept():` they stay from pass to pass."""

    def __init__(self) -> None:
        self.idle: dict[Hashable, DataLoader] = {}
        self.processes: set[Any] = set()
        self.passes: weakref.WeakSet[Any] = weakref.WeakSet()
        self.keeping = False

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep workers until the block ends; if one of them died, the error is one sentence."""
        before, self.keeping = self.keeping, True
        try:
            with self._watched():
                yield
        finally:
            self.keeping = before
            for _ in range(0 if before else 2):
                with contextlib.suppress(*LOST):  # torch may tell of a death in here, once
                    for running in list(self.passes):  # an exception's frames may hold on to it
                        running.close()
                    self.idle.clear()

    def load(
        self,
        key: Hashable,
        jobs: Callable[[], PhotoJobs],
        batches: list[Tensor],
        seed: int,
        count: int,
        pin: bool,
    ) -> Iterator[Any]:
        """Yield batches of photos (B, 3, H, W) with labels (B,), by the photos' numbers.

        Args:
            key: what is the same for passes that may share workers, the transform above all.
            jobs: makes the data set, if there are no such workers yet.
            batches: the numbers.
            seed: decides the random changes.
            count: number of workers; 0 to load in this process.
            pin: whether to pin memory, so that copying a batch to a GPU does not hold up the host.

        Raises:
            InputError: a photo cannot be read, a worker died, or there is no room to hand batches over.
        """
        keep, key = self.keeping and count > 0, (key, count, pin)
        loader = self.idle.pop(key, None) if keep else None  # while it is in use, nobody else may take it
        loader = loader or DataLoader(
            jobs(),
            sampler=[],
            batch_size=None,  # `PhotoJobs` puts a batch together
            num_workers=count,
            pin_memory=pin,
            persistent_workers=keep,
            multiprocessing_context="fork" if count and FORKS else None,
            generator=torch.Generator(),  # torch's global random numbers stay untouched
            worker_init_fn=_leave_interrupts_to_the_parent,
        )
        asked = [[(seed, number) for number in batch.tolist()] for batch in batches if len(batch)]
        loader.sampler[:] = asked  # type: ignore[index]  # the list above
        running = self._pass(loader, key if keep else None)
        self.passes.add(running)
        return running

    def _pass(self, loader: DataLoader, key: Hashable) -> Iterator[Any]:
        """Yield what a loader fetches; under a key it is idle afterwards."""
        fetched = iter(loader)
        self.processes = set(multiprocessing.active_children())
        try:
            while True:
                with self._watched(fetching=loader.num_workers > 0):
                    batch = next(fetched, None)
                if batch is None:
                    break
                if isinstance(batch, Exception):
                    raise batch
                yield batch
        finally:
            if key:
                self.idle[key] = loader
            del loader, fetched  # or an exception's frames would hold on to dead workers

    @contextlib.contextmanager
    def _watched(self, fetching: bool = False) -> Iterator[None]:
        """Say in one sentence that a worker died, which torch may report at any point.

        While a batch is fetched any of `LOST` is a worker's: an error of a photo is returned instead.
        """
        try:
            yield
        except LOST as error:
            if fetching or any(process.exitcode for process in self.processes):
                raised: BaseException | None = error
                while raised:  # their frames would hold on to dead workers, too
                    traceback.clear_frames(raised.__traceback__)
                    raised = raised.__context__
                raise _failed(error) from None
            raise


def _failed(error: Exception) -> InputError:
    return InputError(
        f"a process that reads photos has failed ({reason(error).rstrip('.')}): expected room for it in "
        "memory and in /dev/shm (and outside Linux a script's calls below `if __name__ == '__main__':`). "
        "Give it room, in Docker with --shm-size=1g, or train with train.workers=0, without such processes."
    )


def _leave_interrupts_to_the_parent(worker: int) -> None:
    """Ignore Ctrl-C in a worker: the parent hears it, too, and ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
