"""`vit pack`: photos of a folder into shards."""

import argparse
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path

EPILOG = """\
examples:
  vit pack photos packed                        (photos/CLASS/*.jpg, or photos/train/CLASS/*.jpg with test)
  vit pack photos packed --shard-size 1000 --skip-damaged
  vit pack --index others                       index tar files that others made
  vit train --data shards:packed

Files are copied byte for byte."""


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
        "--shard-size", type=float, metavar="MB", help="of a shard, 10^6 bytes (default: 256)"
    )
    parser.add_argument(
        "--skip-damaged",
        action="store_true",
        help="leave damaged photos out and name them, instead of stopping",
    )
    parser.add_argument("--index", type=own_path, metavar="SHARDS", help="write an index for others' shards")
    parser.set_defaults(run=pack_command)


def pack_command(options: argparse.Namespace) -> None:
    """Carry out `vit pack`."""
    from vit_lab.large_data.packing import SHARD_SIZE, pack  # imported here: other commands need no NumPy
    from vit_lab.large_data.shards import INDEX, open_shards, write_index

    root = options.index or options.shards
    if options.index:
        if options.folder or options.shards or options.shard_size or options.skip_damaged:
            raise InputError("--index takes a folder of shards alone: expected no other option.")
        if (root / INDEX).exists():
            raise InputError(f"{root} has an index: expected none. Remove {INDEX} to write another.")
        write_index(root)
    elif root is None:
        raise InputError("expected two folders: vit pack FOLDER SHARDS; or --index SHARDS.")
    else:
        size = SHARD_SIZE if options.shard_size is None else options.shard_size
        for said in pack(options.folder, root, size, options.skip_damaged):
            print(f"left out: {said}")
    source = open_shards(root)
    print(
        f"{root}: {len(source.train) - source.validation:,} train, {source.validation:,} validation, "
        f"{len(source.test):,} test photos of {len(source.class_names)} classes"
    )
    print(f"next: vit train --data shards:{root}")
