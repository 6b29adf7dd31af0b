"""In which order an epoch reads its photos: at random, yet near together where they lie in large files.

A photo of a shard can be read at any place, but a network's disk, or a store that hands out files by the
piece, wants neighbours. So the shards are cut into blocks, the blocks are put in random order, and `AT_ONCE`
of them are read at a time, their photos at random. Each photo comes once. The order follows from the seed and
nothing else, and with no more blocks than that it is the order that a folder of files has.
"""

import torch
from torch import Tensor

BLOCK = 8 * 2**20
"""Bytes of a shard whose photos are read at about the same time."""

AT_ONCE = 128
"""How many blocks are read at a time: 1 GiB, which a machine keeps in memory meanwhile."""


def reading_order(numbers: Tensor, seed: int, blocks: Tensor | None = None) -> Tensor:
    """Return photos in the order in which an epoch reads them.

    Args:
        numbers: of the photos, (N,).
        seed: the epoch's.
        blocks: the block of every photo of the data set, by its number; None for files of their own.

    Returns:
        The numbers, (N,), each once.
    """
    generator = torch.Generator().manual_seed(seed)
    order = numbers[torch.randperm(len(numbers), generator=generator)]
    if blocks is None or not len(blocks):
        return order
    place = torch.randperm(int(blocks.max()) + 1, generator=generator)  # of each block in this epoch
    return order[torch.argsort(place[blocks[order]] // AT_ONCE, stable=True)]
