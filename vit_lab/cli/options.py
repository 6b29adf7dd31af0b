"""Options that several commands share, and what they mean."""

import argparse
import contextlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.paths import own_path, stat_of
from vit_from_scratch.settings import merged, parse_toml

DEVICE = re.compile(r"cpu|mps|(cuda|xpu)(:\d{1,3})?")

STOPPED = "stopped. What the last finished epoch reached is kept; the same command goes on from there."


def own_weights(text: str) -> str:
    """Take the path of a checkpoint from the command line, as a recipe has it."""
    return str(own_path(text))


def refuse_existing(files: Iterable[Path], instead: str = "name another folder with --out DIR") -> None:
    """Raise an `InputError` if a file that is to be written exists or cannot be made, or two are the same.

    Args:
        files: what is to be written.
        instead: what to do where moving the file away is not wanted.
    """
    seen: set[str] = set()
    for file in files:
        if (place := os.path.realpath(file)) in seen:
            raise InputError(
                f"{file} would be written for two of the pictures: expected one for each. Rename a picture, "
                "or run them apart, each with --out DIR."
            )
        seen.add(place)
        if os.path.lexists(file):
            raise InputError(f"{file} exists: expected no such file. Move it away, or {instead}.")
        above = next(folder for folder in file.absolute().parents if folder.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise InputError(
                f"cannot write {file}: {above} is no folder that you may write to. Choose another place."
            )


def refuse_file(folder: Path) -> None:
    """Raise an `InputError` if --out names something that is no folder."""
    if stat_of(folder) is not None and not folder.is_dir():
        raise InputError(f"--out {folder} is a file: expected a folder. Choose another name.")


def add_data_dir(parser: argparse._ActionsContainer, then: str = "a download") -> None:
    """Add --data-dir, and say where data are looked for without it."""
    parser.add_argument(
        "--data-dir",
        type=own_path,
        metavar="DEST",
        help=f"folder that holds the data set (default: VIT_DATA_DIR, else {then})",
    )


def add_device(parser: argparse._ActionsContainer) -> None:
    """Add --device."""
    parser.add_argument(
        "--device", help="cpu, cuda, cuda:1, mps, xpu (default: cuda where there is one, else cpu)"
    )


def add_keep_epochs(parser: argparse._ActionsContainer) -> None:
    """Add --keep-epochs."""
    parser.add_argument(
        "--keep-epochs",
        type=int,
        nargs="+",
        default=[],
        metavar="N",
        help="keep the model after these epochs, too, in the run's folder; 0 is the untrained one",
    )


def chosen_device(name: str | None) -> str:
    """Return a device that works here.

    Raises:
        InputError: no such device.
    """
    if name is not None and not DEVICE.fullmatch(name):
        raise InputError(f"--device {name}: expected cpu, cuda, cuda:1, mps or xpu. Choose one of them.")
    import torch  # imported here: it takes seconds, and a mistyped option should be answered at once

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        on_gpu = name != "cpu" and torch.cuda.is_available()
        return f"cuda:{torch.cuda.current_device()}" if on_gpu else "cpu"
    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        if name == "mps" and not torch.backends.mps.is_available():
            raise RuntimeError("There is none here.")  # what torch says is about its kernels
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"--device {name}: {reason(error).rstrip('.')}. Expected a device of this machine, such as cpu."
        ) from None
    return name


def shared_device(name: str | None, local_rank: int, local_size: int) -> str:
    """Give each of several processes a GPU of its own, if they use any, and return how they are to talk.

    Args:
        name: the option --device.
        local_rank: the number of this process on its machine.
        local_size: how many there are on it.

    Returns:
        The backends of torch's process group.

    Raises:
        InputError: there are fewer GPUs than processes, or one GPU is asked for.
    """
    if name not in (None, "cpu", "cuda"):
        raise InputError(
            f"--device {name} with several processes: expected cpu or cuda; each process takes a GPU of its "
            "own. Leave it out."
        )
    import torch  # as above

    if name == "cpu" or not torch.cuda.is_available():
        return "cpu:gloo"
    if local_size > (count := torch.cuda.device_count()):
        raise InputError(
            f"{local_size} processes on this machine and {count} GPU{'s' if count > 1 else ''}: expected at "
            f"most one process for each. Take torchrun --nproc-per-node={count}, or --device cpu."
        )
    torch.cuda.set_device(local_rank)
    return "cpu:gloo,cuda:nccl"


@contextlib.contextmanager
def resumable() -> Iterator[None]:
    """Let Ctrl-C during a run say how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(STOPPED) from None


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """Turn `--set model.dim=64 train.optimiser=sgd` into nested tables.

    A value is read as TOML (64, 0.1, true, [0.9, 0.99]); what is no TOML is a string.

    Raises:
        InputError: no "=", a key outside the tables data, model and train, or a value that is too large or
            too deep to be read.
    """
    tables: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        path = key.strip().split(".")
        if not equals or len(path) < 2 or path[0] not in ("data", "model", "train") or not all(path):
            raise InputError(
                f"--set {assignment[:200]}: expected TABLE.OPTION=VALUE with one of the tables data, model, "
                "train; for instance --set model.dim=64."
            )
        try:
            value = parse_toml(f"value = {text}", f"--set {key}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()
        nested = {path[-1]: value}
        for name in reversed(path[:-1]):
            nested = {name: nested}
        tables = merged(tables, nested)
    return tables
