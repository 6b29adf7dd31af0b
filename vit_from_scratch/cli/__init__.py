"""The command line, `vit COMMAND`: train, recipes, trials, evaluate, predict, inspect, cost."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import torch

from vit_from_scratch.cli import cost, evaluate, inspect, predict, recipes, train, trials
from vit_from_scratch.errors import InputError

WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130


OUT_OF_MEMORY = (
    "out of memory: the model or the batch is too large for this device. Try train.accumulation=2 or more, "
    "train.precision=bfloat16, a smaller batch or a smaller model; for a run, in another folder."
)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors read like all others: raised, and printed in one line by `main`."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        raise InputError(f"{message}. See `{self.prog} --help`.")


def build_parser() -> argparse.ArgumentParser:
    """Build the parser with one subcommand for each module beside this one."""
    parser = Parser(prog="vit", description="A Vision Transformer from scratch: train it, test it, cost it.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (train, recipes, trials, evaluate, predict, inspect, cost):
        module.add_parser(commands)
    return parser


def is_out_of_memory(error: Exception) -> bool:
    """Say whether an error means that a CPU's or GPU's memory is full; torch has no one type for it."""
    kinds = (MemoryError, torch.OutOfMemoryError)
    words = ("can't allocate memory", "not enough memory", "out of memory")
    return isinstance(error, kinds) or any(word in str(error) for word in words)


def reader_has_left() -> bool:
    """Say whether nobody reads what is printed any more, as after `vit recipes | head`."""
    try:
        print(flush=True)  # fails then, even if what failed before was not kept
    except BrokenPipeError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())  # or the interpreter fails again on leaving
        return True
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: as typed after `vit`; None for those of this process.

    Returns:
        The exit code: 0, 1 for a run that failed or whose reader left, 2 for wrong input, 130 after Ctrl-C.
    """
    try:
        chosen = build_parser().parse_args(arguments)
        chosen.run(chosen)
        sys.stdout.flush()
    except BrokenPipeError:
        if not reader_has_left():
            raise
        return FAILED
    except InputError as error:
        print(f"vit: {error}", file=sys.stderr)
        return WRONG_INPUT
    except train.FAILURES as error:
        print(f"vit: {error}", file=sys.stderr)
        return FAILED
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        print(f"vit: {OUT_OF_MEMORY}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt as stop:
        print(f"\nvit: {stop or 'stopped.'}", file=sys.stderr)
        return INTERRUPTED
    return 0
