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
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from vit_from_scratch.errors import InputError, reason

Job = tuple[int | None, int]
"""The seed of a photo's random changes (None for none), and the photo's number."""

LOST = (RuntimeError, OSError, EOFError)
"""What fetching a batch ends in if its worker is gone or found no room for it.

No error of ours can be among them: what goes wrong with a photo in a worker comes back as a value.
"""


class WorkersError(InputError):
    """The processes that read photos cannot go on."""


class PhotoJobs(Dataset[Any]):
    """Photos through a transform with random numbers of their own, a batch at a time."""

    def __init__(
        self,
        read: Callable[[int], Tensor],
        labels: Sequence[int],
        transform: Callable[[Tensor], Tensor] | None = None,
        join: Callable[[list[tuple[Tensor, int]]], Any] = default_collate,
    ) -> None:
        """Name where photos come from.

        Args:
            read: from a photo's number to its bytes, (3, h, w) uint8.
            labels: N class numbers.
            transform: from these bytes to those of one size.
            join: puts the photos and labels of a batch together.
        """
        self.read, self.labels, self.transform, self.join = read, labels, transform, join

    def __getitem__(self, job: Job) -> tuple[Tensor, int]:
        """Return a photo (3, H, W) uint8, and its label."""
        seed, number = job
        pixels, label = self.read(number), self.labels[number]
        if self.transform is None:
            return pixels, label
        with torch.random.fork_rng(devices=[]):
            if seed is not None:
                own = np.random.SeedSequence((seed, number)).generate_state(1, np.uint64)[0]
                torch.default_generator.manual_seed(int(own))  # a GPU's own, for dropout, is left alone
            return self.transform(pixels), label

    def __getitems__(self, jobs: list[Job]) -> Any:
        """Return a batch, or the error that came of it."""
        try:
            photos = [self[job] for job in jobs]
        except Exception as error:
            return error
        try:
            return self.join(photos)  # in a worker, into shared memory
        except LOST as error:
            return _lost(error)


class PhotoWorkers:
    """The worker processes of a data set; inside `with workers.kept():` they stay from pass to pass."""

    def __init__(self) -> None:
        self.loaders: dict[Hashable, tuple[DataLoader, list[list[Job]]]] = {}
        self.passes: weakref.WeakSet[Generator] = weakref.WeakSet()
        self.processes: set[Any] = set()
        self.keeping = False

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep workers until the end of the block, where they end whatever happened in it.

        Raises:
            WorkersError: a worker died, whatever the block was doing at that moment.
        """
        before, self.keeping = self.keeping, True
        try:
            yield
        except RuntimeError as error:  # torch raises it in the middle of anything
            if any(process.exitcode for process in self.processes):
                raise _lost(error) from None
            raise
        finally:
            self.keeping = before
            if not before:
                self.stop()

    def stop(self) -> None:
        """End all workers now."""
        for running in list(self.passes):  # an exception's frames may hold on to it
            running.close()
        self.loaders.clear()
        self.processes.clear()

    def load(
        self,
        key: Hashable,
        jobs: Callable[[], PhotoJobs],
        batches: list[list[Job]],
        count: int,
        pin: bool = False,
        steady: bool = False,
    ) -> Iterator[Any]:
        """Yield batches of photos (B, 3, H, W) with labels (B,).

        Args:
            key: what is the same for passes that may share workers, the transform above all; None for none.
            jobs: makes the data set, if there are no such workers yet.
            batches: what to load.
            count: the number of workers; 0 to load here.
            pin: put them into memory that a GPU can fetch them from meanwhile.
            steady: go on here if the workers cannot, and say so.

        Raises:
            InputError: a photo cannot be read.
            WorkersError: a worker died, or there is no room to hand batches over.
        """
        loaded = self._pass((key, count, pin), jobs, batches, steady)
        self.passes.add(loaded)
        return loaded

    def _pass(
        self,
        key: tuple[Hashable, int, bool],
        jobs: Callable[[], PhotoJobs],
        batches: list[list[Job]],
        steady: bool,
    ) -> Generator[Any, None, None]:
        _, count, pin = key
        keep = self.keeping and count > 0 and key[0] is not None
        kept = self.loaders.pop(key, None) if keep else None  # while it is in use, nobody else may take it
        loader, asked = kept or _loader(jobs(), count, pin, keep)
        asked[:] = batches
        done = 0
        try:
            for batch in self._fetched(loader):
                yield _checked(batch)
                done += 1
        except WorkersError as error:
            keep = False
            if not steady:
                raise
            print(f"{error} Going on without them, slower.", file=sys.stderr)
            here = jobs()
            for batch in batches[done:]:
                yield _checked(here.__getitems__(batch))
        finally:
            if keep:
                self.loaders[key] = loader, asked

    def _fetched(self, loader: DataLoader) -> Iterator[Any]:
        """Yield what a loader fetches; where a worker is lost, say so."""
        before = set(multiprocessing.active_children())
        try:
            fetched = iter(loader)
            self.processes |= set(multiprocessing.active_children()) - before
            yield from fetched
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # they hold on to the workers
            if loader.num_workers and isinstance(error, LOST):
                raise _lost(error) from None
            raise


def jobs_of(batches: Iterable[Tensor], seed: int | None = None) -> list[list[Job]]:
    """Return the jobs of a pass: batches of photos by their numbers, with the epoch's seed if it has one."""
    return [[(seed, number) for number in batch.tolist()] for batch in batches if len(batch)]


def _loader(jobs: PhotoJobs, count: int, pin: bool, keep: bool) -> tuple[DataLoader, list[list[Job]]]:
    """Return torch's loader for some photos, and the list of the batches that it loads next.

    The global random numbers stay untouched.
    """
    asked: list[list[Job]] = []
    loader = DataLoader(
        jobs,
        batch_sampler=asked,
        num_workers=count,
        collate_fn=_as_it_is,
        pin_memory=pin,
        persistent_workers=keep,
        generator=torch.Generator(),
        worker_init_fn=_leave_interrupts_to_the_parent,
    )
    return loader, asked


def _as_it_is(batch: Any) -> Any:
    return batch  # `PhotoJobs` has put it together


def _checked(batch: Any) -> Any:
    """Return a batch; raise the error that came in its place."""
    if isinstance(batch, Exception):
        raise batch
    return batch


def _lost(error: Exception) -> WorkersError:
    """Say in one sentence that a worker is gone, or found no room."""
    return WorkersError(
        f"a process that reads photos has failed ({reason(error).rstrip('.')}): expected room for it in "
        "memory and in /dev/shm. Set train.workers=0 to read photos without such processes."
    )


def _leave_interrupts_to_the_parent(worker: int) -> None:
    """Ignore Ctrl-C in a worker: the parent hears it, too, and ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
