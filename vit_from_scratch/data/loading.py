"""Photos through worker processes: batches in a given order, and one sentence where a worker fails.

What is asked of a worker is a pair of a seed and a photo's number, and its answer depends on nothing else. So
the same photos come out however many workers there are, and workers can stay from one epoch to the next.
"""

import contextlib
import signal
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from vit_from_scratch.data.sharing import WHOLE, Share
from vit_from_scratch.errors import InputError

Job = tuple[int | None, int]
"""The seed of a photo's random changes (None for none), and the photo's number."""

FAILURES = (
    "exited unexpectedly",
    "killed by signal",
    "shared memory",
    "No space left on device",
    "Too many open files",
    "Cannot allocate memory",
    "unable to write to file </torch_",
    "ancdata",
)
"""What torch says when a worker process died or found no room to hand over its photos."""


class WorkersError(InputError):
    """The processes that read photos cannot go on."""


LOST = (ConnectionError, FileNotFoundError, EOFError)
"""What a batch ends in whose worker died between filling it and handing it over."""


class PhotoJobs(Dataset[tuple[Tensor, int]]):
    """Photos through a transform with random numbers of their own: indexed with a `Job`."""

    def __init__(
        self, read: Callable[[int], Tensor], labels: Tensor, transform: Callable[[Tensor], Tensor] | None
    ) -> None:
        """Name where photos come from.

        Args:
            read: from a photo's number to its bytes, (3, h, w) uint8.
            labels: (N,).
            transform: from these bytes to those of one size.
        """
        self.read, self.labels, self.transform = read, labels.tolist(), transform

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


class _Passes:
    """Tells a loader the batches of its next pass."""

    def __init__(self) -> None:
        self.batches: list[list[Job]] = []

    def __iter__(self) -> Iterator[list[Job]]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


class PhotoWorkers:
    """The worker processes of a data set; inside `with workers.kept():` they stay from pass to pass."""

    def __init__(self) -> None:
        self.loaders: dict[Hashable, tuple[DataLoader, _Passes]] = {}
        self.busy: set[Hashable] = set()
        self.keeping = False

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep workers until the end of the block, where they end whatever happened in it.

        Raises:
            WorkersError: a worker died, whatever the block was doing at that moment.
        """
        before, self.keeping = self.keeping, True
        try:
            with explained():
                yield
        finally:
            self.keeping = before
            if not before:
                self.stop()

    def stop(self) -> None:
        """End all workers now; an iterator that an exception's frames hold on to cannot keep them."""
        for loader, _ in self.loaders.values():
            if loader._iterator is not None:
                # torch has no public name for it, and the type it gives its iterator lacks this method
                loader._iterator._shutdown_workers()  # type: ignore[attr-defined]
        self.loaders.clear()
        self.busy.clear()

    def load(
        self, key: Hashable, jobs: Callable[[], PhotoJobs], batches: list[list[Job]], count: int, pin: bool
    ) -> Iterator[list[Tensor]]:
        """Yield batches of photos (B, 3, H, W) with labels (B,).

        Args:
            key: what is the same for passes that may share workers, the transform above all.
            jobs: makes the data set, if there are no such workers yet.
            batches: what to load.
            count: the number of workers; 0 to load here.
            pin: put them into memory that a GPU can fetch them from meanwhile.

        Raises:
            InputError: a photo cannot be read.
            WorkersError: a worker died, or there is no room to hand batches over.
        """
        key = (key, count, pin)
        keep = self.keeping and count > 0 and key not in self.busy
        if keep and key in self.loaders:
            loader, passes = self.loaders[key]
        else:
            passes = _Passes()
            loader = photo_loader(
                jobs(), batch_sampler=passes, workers=count, pin_memory=pin, persistent_workers=keep
            )
        if keep:
            self.loaders[key] = loader, passes
            self.busy.add(key)
        passes.batches = batches
        try:
            with explained(LOST if count else ()):
                yield from loader
        finally:
            if keep:
                self.busy.discard(key)


def photo_loader(photos: Dataset[Any], workers: int, **options: Any) -> DataLoader:
    """Return torch's loader for some photos; the global random numbers stay untouched."""
    return DataLoader(
        photos,
        num_workers=workers,
        generator=torch.Generator(),
        worker_init_fn=_leave_interrupts_to_the_parent,
        **options,
    )


def training_jobs(numbers: Tensor, seed: int, batch_size: int, share: Share = WHOLE) -> list[list[Job]]:
    """Return the jobs of an epoch: photos in the order of their numbers (N,), with the epoch's seed.

    Of each batch they are the share that is asked for.
    """
    batches = numbers.split(batch_size) if len(numbers) else ()
    return [[(seed, number) for number in share.of(batch).tolist()] for batch in batches]


def measuring_jobs(numbers: Tensor, batch_size: int, share: Share = WHOLE) -> list[list[Job]]:
    """Return the jobs of a pass in which nothing is random: the share of the photos that is asked for."""
    batches = share.passes(len(numbers), batch_size)
    return [[(None, number) for number in numbers[batch].tolist()] for batch in batches]


@contextlib.contextmanager
def explained(lost: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn what torch says of a worker's failure into one sentence.

    Args:
        lost: errors that mean a worker is gone, whatever they say. While a batch is fetched they are `LOST`.
    """
    try:
        yield
    except InputError as error:  # from a worker, it comes with that process's traceback
        if "in DataLoader worker process" not in str(error):
            raise
        raise InputError(str(error).rstrip().splitlines()[-1].rpartition("InputError: ")[2]) from None
    except (RuntimeError, OSError, EOFError) as error:
        lines = [line for line in str(error).splitlines() if any(words in line for words in FAILURES)]
        if not lines and not isinstance(error, lost):
            raise
        reason = lines[0].strip() if lines else f"its photos did not arrive, {type(error).__name__}"
        raise WorkersError(
            f"a process that reads photos has failed ({reason}): expected room for it in memory and in "
            "/dev/shm. Set train.workers=0 to read photos without such processes."
        ) from None


def _leave_interrupts_to_the_parent(worker: int) -> None:
    """Ignore Ctrl-C in a worker: the parent hears it, too, and ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
