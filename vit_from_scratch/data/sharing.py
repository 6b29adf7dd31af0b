"""Which images are a process's own, where several train one model together.

What is random about a batch is drawn for the whole of it by every process, from the same seed. So the parts,
put together, are the batch that one process alone would see.
"""

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor


@dataclass(frozen=True)
class Share:
    """The part with an index, from 0 on, of `count` consecutive parts; their sizes differ by one at most."""

    index: int = 0
    count: int = 1

    def place(self, length: int) -> slice:
        """Return where this part is in something of this length."""
        return _cuts(length, self.count)[self.index]

    def of(self, values: Tensor) -> Tensor:
        """Return this part of a batch (B, ...)."""
        return values[self.place(len(values))]

    def passes(self, length: int, batch_size: int) -> list[slice]:
        """Cut this part of something into batches, for a pass in which nothing is random.

        Every part has as many batches as any other, none of them empty if there is an image for each part.
        """
        if self.count == 1:
            return [slice(first, first + batch_size) for first in range(0, length, batch_size)]
        own, smallest, largest = self.place(length), length // self.count, -(-length // self.count)
        batches = _cuts(own.stop - own.start, min(-(-largest // batch_size), max(1, smallest)))
        return [slice(own.start + batch.start, own.start + batch.stop) for batch in batches]


WHOLE = Share()
"""The share of a process that is alone."""


def _cuts(length: int, count: int) -> list[slice]:
    """Cut a length into parts whose sizes differ by one at most, the larger ones first."""
    size, more = divmod(length, count)
    ends = [number * size + min(number, more) for number in range(count + 1)]
    return [slice(*ends) for ends in pairwise(ends)]
