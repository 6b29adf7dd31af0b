"""Photos of a folder into shards, once: byte for byte, shuffled, and whole at every moment.

Each shard is written beside its place and then renamed, the index comes last. A packing that was stopped goes
on: the shards that are there are read through, and the next photo follows the last one in them.
"""

import contextlib
import hashlib
import json
import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from vit_from_scratch.data.config import Part
from vit_from_scratch.data.folders import FolderListing, Samples, list_folder
from vit_from_scratch.data.photos import check_photo
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import locked, sha256
from vit_from_scratch.progress import progress_shown
from vit_lab.large_data.packing_target import begin, check_target, compare, holds_something_else
from vit_lab.large_data.shard_checks import read_index
from vit_lab.large_data.shard_writer import ShardWriter
from vit_lab.large_data.shards import FORMAT, INDEX, PARTS, PLAN, ROW, Shard, ShardIndex
from vit_lab.large_data.tars import TarPhoto, read_tar

SHARD_SIZE = 256
"""Of a shard, in MB (10^6 bytes), unless told otherwise."""

AT_ONCE = 32
"""How many photos are read ahead, so that several threads check them."""


@dataclass
class Packed:
    """What a packing has come to.

    Attributes:
        index: of the shards.
        left_out: the damaged photos; empty if the packing had ended before.
        found: shards that were there already.
    """

    index: ShardIndex
    left_out: list[Path] = field(default_factory=list)
    found: int = 0


def pack(
    folder: Path,
    target: Path,
    shard_size: float = SHARD_SIZE,
    seed: int = 0,
    skip_damaged: bool = False,
    threads: int | None = None,
) -> Packed:
    """Pack a folder of photos in class folders into shards.

    Args:
        folder: as `list_folder` takes it, with its parts.
        target: a new or empty folder, or one where the same packing was stopped.
        shard_size: in MB; a shard is larger only if a single photo is, or by the 10 kB at most that fill the
            last record of a tar file.
        seed: of the order in which the training photos are packed; the others keep theirs.
        skip_damaged: leave damaged photos out instead of refusing them.
        threads: that check photos; None for as many as there are processors.

    Raises:
        InputError: no such layout, a damaged photo, a wrong option, or a target that holds something else.
    """
    if not 0.001 <= shard_size <= 10**6:
        raise InputError(f"--shard-size {shard_size:g}: expected 0.001 to 1,000,000 MB.")
    if not 0 <= seed < 2**63:
        raise InputError(f"--seed {seed}: expected 0 to 2^63 - 1.")
    listing = list_folder(folder)
    top, place = os.path.realpath(folder), os.path.realpath(target)
    if os.path.commonpath([top, place]) == top:
        raise InputError(
            f"{target} lies in {folder}: expected shards outside the photos. Choose another folder."
        )
    samples = [*listing.train, *listing.validation, *listing.test]
    names = [path.relative_to(folder).as_posix() for path, _ in samples]
    plan = {
        "format": FORMAT,
        "photos": _digest(listing, names),
        "seed": seed,
        "shard_size": float(shard_size),
    }
    check_target(target)
    with locked(target):
        if (target / INDEX).exists():
            index = read_index(target)
            compare(target, index.plan, plan)
            return Packed(index, found=len(index.shards))
        begin(target, plan)
        writer = _Packing(
            target, samples, int(shard_size * 10**6), skip_damaged, threads or os.cpu_count() or 1
        )
        with tqdm(total=len(samples), desc="packing", unit="photo", disable=not progress_shown()) as bar:
            ends = np.cumsum([0, len(listing.train), len(listing.validation), len(listing.test)]).tolist()
            for part, (first, end) in zip(PARTS, pairwise(ends), strict=True):
                order = list(range(first, end))
                if part == "train":
                    random.Random(seed).shuffle(order)
                writer.pack_part(part, order, bar)
        index = writer.index(target, listing, names, plan)
        index.write()
        with contextlib.suppress(OSError):
            (target / PLAN).unlink()
    return Packed(index, [samples[number][0] for number in sorted(writer.left_out)], writer.found)


class _Packing:
    """Writes shards, one after the other.

    Attributes:
        shards: those that are whole.
        places: of each packed photo, by its number: shard, first byte, size.
        left_out: numbers of damaged photos.
        found: how many shards were there already.
    """

    def __init__(self, target: Path, samples: Samples, most: int, skip_damaged: bool, threads: int) -> None:
        self.target, self.samples, self.most = target, samples, most
        self.skip_damaged, self.threads = skip_damaged, threads
        self.shards: list[Shard] = []
        self.places: dict[int, tuple[int, int, int]] = {}
        self.left_out: list[int] = []
        self.found = 0

    def pack_part(self, part: Part, order: list[int], bar: tqdm) -> None:
        """Pack photos in an order, after those that an earlier process packed."""
        count = 0
        while (path := self._path(part, count)).exists():
            order = order[self._take_over(path, order) :]
            count += 1
        bar.update(len(self.places) + len(self.left_out) - bar.n)
        tar = None
        try:
            for number, content in self._contents(order):
                bar.update(len(self.places) + len(self.left_out) - bar.n)
                if tar is not None and not tar.has_room(len(content), self.most):
                    self._keep(tar)
                    tar, count = None, count + 1
                if tar is None:
                    tar = ShardWriter(self._path(part, count))
                path, label = self.samples[number]
                offset = tar.add(f"{number:09d}", path.suffix.lower(), content, label)
                self.places[number] = len(self.shards), offset, len(content)
            if tar is not None:
                self._keep(tar)
                tar = None
        finally:
            if tar is not None:
                tar.drop()
        bar.update(len(self.places) + len(self.left_out) - bar.n)

    def index(
        self, target: Path, listing: FolderListing, names: Sequence[str], plan: dict[str, Any]
    ) -> ShardIndex:
        """Return the index of what was packed.

        Raises:
            InputError: a class has lost all its photos of a part.
        """
        parts = {"train": listing.train, "validation": listing.validation, "test": listing.test}
        first, counts = 0, []
        for part, samples in parts.items():
            kept = [label for number, (_, label) in enumerate(samples, first) if number in self.places]
            lost = {label for _, label in samples} - set(kept)
            if lost:
                raise InputError(
                    f"no photo of {listing.classes[min(lost)]} in {part} can be read: expected one at least. "
                    f"Put whole photos there; {target} then has to be packed anew."
                )
            counts.append(len(kept))
            first += len(samples)
        rows = [(*self.places[number], self.samples[number][1]) for number in sorted(self.places)]
        return ShardIndex(
            target,
            listing.classes,
            tuple(self.shards),
            (counts[0], counts[1], counts[2]),
            np.array(rows, dtype=ROW),
            listing.drawn,
            plan,
            [names[number] for number in sorted(self.places)],
        )

    def _contents(self, order: list[int]) -> Iterator[tuple[int, bytes]]:
        """Yield the files of photos in an order; damaged ones are left out, or refused."""
        with ThreadPoolExecutor(self.threads) as pool:
            for start in range(0, len(order), AT_ONCE):
                some = order[start : start + AT_ONCE]
                for number, read in zip(some, pool.map(self._read, some), strict=True):
                    if isinstance(read, bytes):
                        yield number, read
                    elif self.skip_damaged:
                        self.left_out.append(number)
                    else:
                        raise InputError(f"{read} With --skip-damaged it is left out.")

    def _read(self, number: int) -> bytes | InputError:
        """Return a photo's file if it is whole, else what is wrong with it."""
        path = self.samples[number][0]
        try:
            return check_photo(path)
        except InputError as error:
            return error

    def _take_over(self, path: Path, order: list[int]) -> int:
        """Take a shard that is there already; return how many photos of the order it has behind it."""
        inside = read_tar(path)
        places = {number: place for place, number in enumerate(order)}
        ends = [places.get(number, -1) for number in map(_number, inside)]
        if not ends or ends[0] < 0 or any(one >= two for one, two in pairwise(ends)):
            raise holds_something_else(self.target, path.name)
        packed = set(ends)
        missing = [order[place] for place in range(ends[-1]) if place not in packed]
        for number in missing:
            if not self.skip_damaged:
                raise InputError(
                    f"{self.samples[number][0]} was left out when {self.target} was begun: expected "
                    "--skip-damaged again. Add it, or choose another folder."
                )
        self.left_out += missing
        for photo in inside:
            self.places[_number(photo)] = len(self.shards), photo.offset, photo.size
        self.shards.append(Shard(path.name, len(inside), path.stat().st_size, sha256(path)))
        self.found += 1
        return ends[-1] + 1

    def _keep(self, tar: ShardWriter) -> None:
        """Give a shard its name, now that it is whole."""
        path = tar.finish()
        self.shards.append(Shard(path.name, tar.photos, path.stat().st_size, sha256(path)))

    def _path(self, part: Part, count: int) -> Path:
        return self.target / f"{part}-{count:06d}.tar"


def _number(photo: TarPhoto) -> int:
    """Return the number that the key of a photo packed by us says; -1 for another's."""
    return int(photo.key) if photo.key.isdigit() else -1


def _digest(listing: FolderListing, names: list[str]) -> str:
    """Return the checksum of what is to be packed: the photos' names, their classes and their parts."""
    counts = [len(listing.train), len(listing.validation), len(listing.test)]
    text = json.dumps([listing.classes, counts, names])
    return hashlib.sha256(text.encode()).hexdigest()
