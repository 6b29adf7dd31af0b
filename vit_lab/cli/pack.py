"""`vit pack`: photos of a folder into shards."""

import argparse
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path

EPILOG = """\
examples:
  vit pack photos packed                        (photos/CLASS/*.jpg, or photos/train/CLASS/*.jpg with test)
  vit pack photos packed --shard-size 1000 --skip-damaged
  vit pack --check packed                       compare every byte with the checksums
  vit pack --index others                       index shards that others made, so that they open at once
  vit train --data shards:packed

Files are copied byte for byte. A packing that was stopped goes on with the same command."""


def add_parser(commands: Any) -> None:
    """Add `pack` to the commands."""
    parser = commands.add_parser(
        "pack",
        help="pack a folder of photos into a few large files",
        description="Pack photos in class folders into shards: tar files as WebDataset has them, with an "
        "index. Millions of photos then open in seconds, from a few files.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=own_path, nargs="?", metavar="FOLDER", help="photos in class folders")
    parser.add_argument(
        "shards", type=own_path, nargs="?", metavar="SHARDS", help="a new folder for the shards"
    )
    parser.add_argument(
        "--shard-size", type=float, metavar="MB", help="size of a shard, 10^6 bytes (default: 256)"
    )
    parser.add_argument("--seed", type=int, help="of the order of the training photos (default: 0)")
    parser.add_argument(
        "--skip-damaged",
        action="store_true",
        help="leave damaged photos out and name them, instead of stopping",
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--index", type=own_path, metavar="SHARDS", help="write an index for others' shards")
    other.add_argument("--check", type=own_path, metavar="SHARDS", help="compare shards with their checksums")
    parser.set_defaults(run=pack_command)


def pack_command(options: argparse.Namespace) -> None:
    """Carry out `vit pack`."""
    there = options.index or options.check
    asked = (options.folder, options.shards, options.shard_size, options.seed, options.skip_damaged or None)
    if there is not None and any(option is not None for option in asked):
        raise InputError("--index and --check take a folder of shards alone: expected no other option.")
    if there is None and (options.folder is None or options.shards is None):
        raise InputError("expected two folders: vit pack FOLDER SHARDS, or one of --index and --check.")
    if options.index:
        write_index(options.index)
    elif options.check:
        check(options.check)
    else:
        pack_folder(options)


def pack_folder(options: argparse.Namespace) -> None:
    """Pack a folder, and say what was packed and what was left out."""
    from vit_lab.large_data.packing import SHARD_SIZE, pack  # imported here: it takes seconds

    size = SHARD_SIZE if options.shard_size is None else options.shard_size
    try:
        packed = pack(options.folder, options.shards, size, options.seed or 0, options.skip_damaged)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped. The shards that are whole are kept; the same command goes on from there."
        ) from None
    for path in packed.left_out:
        print(f"{path} is damaged: left out")
    if packed.found == len(packed.index.shards):
        print(f"{options.shards} was packed already")
    elif packed.found:
        print(f"{packed.found} shards were there already")
    report(options.shards, packed.index)
    print(f"next: vit train --data shards:{options.shards}")


def write_index(root: Path) -> None:
    """Write the index of shards that others made."""
    from vit_lab.large_data.shards import INDEX  # imported here, as all that needs NumPy
    from vit_lab.large_data.tars import index_tars, with_checksums

    if (root / INDEX).exists():
        raise InputError(f"{root} has an index: expected shards without. Remove {INDEX} to make another.")
    index = with_checksums(index_tars(root))
    index.write()
    report(root, index)


def check(root: Path) -> None:
    """Compare all shards with their checksums."""
    from tqdm import tqdm

    from vit_from_scratch.progress import progress_shown
    from vit_lab.large_data.shard_checks import check_shards
    from vit_lab.large_data.tars import open_shards

    index = open_shards(root)
    shards = len(index.shards)
    list(tqdm(check_shards(index), "checking", shards, unit="shard", disable=not progress_shown()))
    print(f"{root}: all {shards} shards are as they were written")


def report(root: Path, index: Any) -> None:
    """Print what is in a folder of shards."""
    train, validation, test = index.counts
    print(
        f"{root}: {train:,} train, {validation:,} validation, {test:,} test photos of {len(index.classes)} "
        f"classes in {len(index.shards)} shards, {sum(shard.bytes for shard in index.shards) / 1e6:,.1f} MB"
    )
