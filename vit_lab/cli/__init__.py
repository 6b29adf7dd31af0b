"""The command line, `vit COMMAND`, a module for each command."""

import argparse
import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, NoReturn

from vit_from_scratch.errors import InputError
from vit_lab.cli.launch import Launch
from vit_lab.cli.streams import FAILED, INTERRUPTED, complain, explained, lost_output, safe_streams
from vit_lab.failures import ElsewhereError

RUNS = ("train", "finetune", "recipes", "study", "evaluate")
MODELS = ("predict", "inspect", "probe", "export", "cost")
COMMANDS = [import_module(f"vit_lab.cli.{name}") for name in (*RUNS, *MODELS)]
"""The modules beside this one, in the order of the help."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors read like all others: raised, and printed in one line by `main`.

    Options are typed in full: where only --data-dir is known, --data would be taken for it.
    """

    def __init__(self, **options: Any) -> None:
        """Build it, and any subcommand's, with argparse's options."""
        super().__init__(**options, allow_abbrev=False)
        self.color = False  # from Python 3.14 on: escapes, which are not printed

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        if len(message) > 1000:
            message = f"{message[:500]}... ({len(message):,} characters)"
        raise InputError(f"{message}. See `{self.prog} --help`.")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Leave after --help, once it is printed."""
        sys.stdout.flush()  # here, a full disk can still be reported
        super().exit(status, message)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print, and let what fails be reported, which argparse passes over."""
        (file or sys.stderr).write(message)


def build_parser(first: str = "") -> argparse.ArgumentParser:
    """Build the parser with the commands of the modules beside this one, and those of other packages.

    Other packages are not imported if `first`, what is typed first, is a command of this one.
    """
    parser = Parser(prog="vit", description="A Vision Transformer from scratch: train it, test it, use it.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    others = () if first in (*RUNS, *MODELS) else entry_points(group="vit.commands")
    for module in (*COMMANDS, *(one.load() for one in others)):
        module.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Whatever goes wrong is one sentence; with VIT_DEBUG=1, the traceback before it.

    Args:
        arguments: as typed after `vit`; None for those of this process.

    Returns:
        The exit code: 0, 1 for a run that failed or whose reader left, 2 for wrong input, 130 after Ctrl-C.
    """
    os.environ["MPLBACKEND"] = "agg"  # figures go to files, whatever was chosen for windows
    command, launch = None, Launch()
    with safe_streams():
        try:
            typed = sys.argv[1:] if arguments is None else list(arguments)
            chosen = build_parser(*typed[:1]).parse_args(typed)
            command = chosen.command
            with launch.joined(chosen):
                chosen.run(chosen)
            sys.stdout.flush()
        except ElsewhereError:
            return FAILED
        except (KeyboardInterrupt, Exception) as error:
            if os.environ.get("VIT_DEBUG", "0") not in ("", "0"):
                traceback.print_exc()
            if isinstance(error, OSError) and error.filename is None and (lost := lost_output()) is not None:
                closed = sys.platform == "win32" and lost.errno == errno.EINVAL  # as a pipe is there
                if not closed and not isinstance(lost, BrokenPipeError):
                    complain(f"cannot print: {lost.strerror}. Print to another place.")
                return FAILED
            sentence, code = explained(error, command)
            if launch.says():
                if code == INTERRUPTED:
                    print(file=sys.stderr)  # the terminal shows ^C there
                complain(sentence)
            return code
    return 0
