"""Whether shards and their index are whole and fit each other, asked before anything is trained on them."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.files import sha256
from vit_lab.large_data.shards import FORMAT, INDEX, ROW, TABLE, Shard, ShardIndex


def read_index(root: Path) -> ShardIndex:
    """Read the index of a folder of shards, and see that the shards fit it; no photo is opened.

    Of each shard the size is compared, and the head of its last photo. `check_shards` compares every byte.

    Raises:
        InputError: the index is damaged or of another version; a shard is missing, cut short or another one.
    """
    path = root / INDEX
    try:
        found = json.loads(path.read_text("utf-8"))
        version = found["format"]
    except OSError as error:
        raise InputError(f"{path} cannot be read ({reason(error)}). Check its rights.") from None
    except (ValueError, TypeError, KeyError):
        raise _damaged(path) from None
    if version != FORMAT:
        raise InputError(
            f"{path} is of the version {version!r}: expected {FORMAT!r}. Pack the photos again, or use the "
            "version of vit_from_scratch that packed them."
        )
    index = _parsed(root, found)
    if index is None or not _is_consistent(index):
        raise _damaged(path)
    _check_files(index)
    return index


def _parsed(root: Path, found: dict[str, Any]) -> ShardIndex | None:
    """Return what an index says; None if something is missing in it or of another type."""
    try:
        if sha256(root / TABLE) != found["table_sha256"]:
            raise _damaged(root / TABLE)
        return ShardIndex(
            root,
            tuple(found["classes"]),
            tuple(Shard(**shard) for shard in found["shards"]),
            (found["counts"]["train"], found["counts"]["validation"], found["counts"]["test"]),
            np.load(root / TABLE, allow_pickle=False),
            found["drawn"],
            found["plan"],
        )
    except OSError as error:
        raise InputError(
            f"{root / TABLE} cannot be read ({reason(error)}): expected it beside {INDEX}. "
            "Copy the whole folder again."
        ) from None
    except InputError:
        raise
    except (ValueError, TypeError, KeyError):
        return None


def check_shards(index: ShardIndex) -> Iterator[Shard]:
    """Compare each shard with its checksum; yield it when it is the same.

    Raises:
        InputError: a shard differs, or the index has no checksums.
    """
    for shard in index.shards:
        path = index.root / shard.name
        if not shard.sha256:
            raise InputError(
                f"{index.root} has no checksums: expected an index. Write it with `vit pack --index`."
            )
        if sha256(path) != shard.sha256:
            raise InputError(f"{path} is damaged: its checksum differs from that in {INDEX}. Copy it again.")
        yield shard


def _is_consistent(index: ShardIndex) -> bool:
    """Say whether the parts of an index fit each other."""
    table, shards = index.table, index.shards
    if table.dtype != ROW or table.ndim != 1 or sum(index.counts) != len(table) or not len(table):
        return False
    sizes = np.array([shard.bytes for shard in shards], dtype=np.uint64)
    photos = [shard.photos for shard in shards]
    return bool(
        table["label"].max() < len(index.classes)
        and table["shard"].max() < len(shards)
        and np.bincount(table["shard"], minlength=len(shards)).tolist() == photos
        and (table["offset"] + table["size"] <= sizes[table["shard"]]).all()
    )


def _check_files(index: ShardIndex) -> None:
    """Compare each shard's size, and the head of the photo that is last in it, with the index."""
    table = index.table
    order = np.lexsort((table["offset"], table["shard"]))
    last = order[np.searchsorted(table["shard"][order], np.arange(len(index.shards)), side="right") - 1]
    for shard, row in zip(index.shards, last.tolist(), strict=True):
        path = index.root / shard.name
        try:
            size = path.stat().st_size
            _, offset, length, _ = table[row].tolist()
            head = index.open_files.read(path, offset - tarfile.BLOCKSIZE, tarfile.BLOCKSIZE)
        except OSError as error:
            raise InputError(
                f"{path} cannot be read ({reason(error)}): expected all {len(index.shards)} shards that "
                f"{INDEX} names. Put it back, or copy the folder again."
            ) from None
        if size != shard.bytes:
            raise InputError(
                f"{path} has {size:,} bytes: expected {shard.bytes:,}, as {INDEX} says. Copy the shard again."
            )
        try:
            there = tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape").size
        except tarfile.HeaderError:
            there = -1
        if there != length:
            raise InputError(
                f"{path} is damaged or another file than when {INDEX} was written: expected a photo of "
                f"{length:,} bytes at byte {offset:,}. Copy the shard again."
            )


def _damaged(path: Path) -> InputError:
    return InputError(
        f"{path} is damaged: expected an index as `vit pack` writes it. Copy the folder again, or pack again."
    )
