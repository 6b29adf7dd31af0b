"""Photos of a folder into shards: byte for byte, the training photos shuffled, all or nothing."""

import io
import itertools
import os
import random
import shutil
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tqdm import tqdm

from vit_from_scratch.data.folders import open_folder
from vit_from_scratch.data.photos import open_photo
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import writing
from vit_from_scratch.progress import progress_shown
from vit_lab.large_data.shards import write_index

SHARD_SIZE = 256
"""Of a shard, in MB (10^6 bytes), unless told otherwise."""

AT_ONCE = 64
"""How many photos are read ahead, so that several threads check them."""


def pack(
    folder: Path, target: Path, shard_size: float = SHARD_SIZE, skip_damaged: bool = False
) -> list[InputError]:
    """Pack a folder of photos in class folders into shards, with their index.

    Args:
        folder: as `open_folder` takes it, with its parts.
        target: a new or empty folder. Until all is packed, the shards are in a folder beside it, whose name
            ends in `.part`.
        shard_size: in MB; a shard is larger only if a single photo is.
        skip_damaged: leave damaged photos out instead of refusing them.

    Returns:
        What was said about the photos that were left out.

    Raises:
        InputError: no such layout, a damaged photo, a wrong option, or a target that holds something else.
    """
    if not 0.001 <= shard_size <= 10**6:
        raise InputError(f"--shard-size {shard_size:g}: expected 0.001 to 1,000,000 MB.")
    source = open_folder(folder)
    top, place = os.path.realpath(folder), os.path.realpath(target)
    if os.path.commonpath([top, place]) == top:
        raise InputError(f"{target} is inside {folder}: expected another place. Choose another folder.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is there already: expected a new or empty folder. Choose another name.")
    part = target.with_name(target.name + ".part")
    if part.exists():
        raise InputError(
            f"{part} is there already, from a packing that is at work or was killed: expected nothing there. "
            "Wait for it, or remove that folder."
        )
    known = len(source.train) - source.validation
    numbers = {
        "train": random.Random(0).sample(range(known), known),
        "validation": range(known, len(source.train)),
        "test": range(len(source.train), len(source.train) + len(source.test)),
    }
    files = [Path(file) for photos in (source.train, source.test) for file in photos.files]  # type: ignore[arg-type]
    labels, left_out = [*source.train.labels, *source.test.labels], []
    with writing(part):
        part.mkdir(parents=True)
    try:
        with writing(part), tqdm(files, "packing", unit="photo", disable=not progress_shown()) as bar:
            for name, order in numbers.items():
                shards = _Shards(part, name, int(shard_size * 10**6))
                for number, content in _checked(files, order):
                    bar.update()
                    if isinstance(content, bytes):
                        shards.add(f"{number:09d}", files[number].suffix.lower(), content, labels[number])
                    elif skip_damaged:
                        left_out.append(content)
                    else:
                        raise InputError(f"{content} With --skip-damaged it is left out.")
                shards.close()
            write_index(part, source.class_names, source.note.replace(str(folder), "{root}"))
            part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return left_out


def _checked(files: list[Path], order: Iterator[int]) -> Iterator[tuple[int, bytes | InputError]]:
    """Yield the numbers of photos with their bytes, or with what is wrong with them; several threads look."""

    def read(number: int) -> tuple[int, bytes | InputError]:
        try:
            open_photo(files[number])  # decodes all of it
            return number, files[number].read_bytes()
        except InputError as error:
            return number, error

    waiting = iter(order)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        while some := list(itertools.islice(waiting, AT_ONCE)):
            yield from pool.map(read, some)


class _Shards:
    """Writes the tar files of a part, one after another."""

    def __init__(self, folder: Path, part: str, most: int) -> None:
        self.folder, self.part, self.most = folder, part, most
        self.count, self.tar = 0, None

    def add(self, key: str, ending: str, content: bytes, label: int) -> None:
        """Add a photo and its class."""
        blocks = -(-len(content) // tarfile.BLOCKSIZE) + 3  # of the photo, its class, and their heads
        if self.tar is None or (self.tar.offset and self.tar.offset + blocks * tarfile.BLOCKSIZE > self.most):
            self.close()
            self.tar = tarfile.open(self.folder / f"{self.part}-{self.count:06d}.tar", "w")
            self.count += 1
        for name, bytes_ in ((key + ".cls", str(label).encode()), (key + ending, content)):
            member = tarfile.TarInfo(name)
            member.size = len(bytes_)
            self.tar.addfile(member, io.BytesIO(bytes_))

    def close(self) -> None:
        """End the shard."""
        if self.tar is not None:
            self.tar.close()
        self.tar = None
