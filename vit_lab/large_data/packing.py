"""Photos of a folder into shards: byte for byte, the training photos shuffled, all or nothing."""

import io
import os
import random
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tqdm import tqdm

from vit_from_scratch.data.folders import open_folder
from vit_from_scratch.data.photos import PhotoFile, open_photo
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
    files = [*source.train.files, *source.test.files]
    labels, left_out = [*source.train.labels, *source.test.labels], []

    def checked(order: Sequence[int]) -> Iterator[tuple[str, bytes, int]]:
        for number, content in zip(order, _read(files, order), strict=True):
            bar.update()
            if isinstance(content, bytes):
                yield f"{number:09d}{Path(str(files[number])).suffix.lower()}", content, labels[number]
            elif skip_damaged:
                left_out.append(content)
            else:
                raise InputError(f"{content} With --skip-damaged it is left out.")

    with writing(part):
        part.mkdir(parents=True)
    try:
        with writing(part), tqdm(files, "packing", unit="photo", disable=not progress_shown()) as bar:
            for name, order in numbers.items():
                _write(part, name, checked(order), int(shard_size * 10**6))
            write_index(
                part, source.class_names, source.note and "{root}" + source.note.removeprefix(str(folder))
            )
            part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return left_out


def _read(files: Sequence[PhotoFile], order: Sequence[int]) -> Iterator[bytes | InputError]:
    """Yield the bytes of photos, or what is wrong with them; several threads look."""

    def read(number: int) -> bytes | InputError:
        try:
            open_photo(files[number])  # decodes all of it
            return Path(str(files[number])).read_bytes()
        except InputError as error:
            return error

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for first in range(0, len(order), AT_ONCE):
            yield from pool.map(read, order[first : first + AT_ONCE])


def _write(folder: Path, part: str, photos: Iterator[tuple[str, bytes, int]], most: int) -> None:
    """Write photos, by their names with their bytes and classes, to tar files of at most so many bytes."""
    count, tar = 0, None
    for name, content, label in photos:
        blocks = -(-len(content) // tarfile.BLOCKSIZE) + 3  # of the photo, its class, and their heads
        if tar is None or (tar.offset and tar.offset + blocks * tarfile.BLOCKSIZE > most):
            if tar is not None:
                tar.close()
            tar = tarfile.open(folder / f"{part}-{count:06d}.tar", "w")  # noqa: SIM115
            count += 1
        for file, held in ((Path(name).stem + ".cls", str(label).encode()), (name, content)):
            member = tarfile.TarInfo(file)
            member.size = len(held)
            tar.addfile(member, io.BytesIO(held))
    if tar is not None:
        tar.close()
