"""Run a reader's code: within a time limit, and so that nothing of it stays behind."""

import contextlib
import ctypes
import inspect
import io
import linecache
import os
import random
import sys
import sysconfig
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, Protocol

import numpy as np
import torch

import vit_classroom
import vit_from_scratch

LIMIT_SECONDS = 10.0
"""How much processor time one call of a reader's function may take."""
PATIENCE = 6
"""How many times as long it may take by the clock, while other programs have the processor."""
LONGEST_OUTPUT = 10_000
"""Characters of what a reader's code prints that are kept."""
OWN_FOLDERS = tuple(str(Path(one.__path__[0]).resolve()) for one in (vit_classroom, vit_from_scratch))
"""Where an error arises that is not in a line of the reader's own."""


class CheckFailed(AssertionError):
    """A reader's piece differs from what was asked; the message says how.

    Attributes:
        parts: by name, how much of each part is right, from 0 to 1; empty where nothing is.
    """

    parts: Mapping[str, float] = {}

    def _render_traceback_(self) -> list[str]:  # notebooks show what is said, not where the check said it
        return [*str(self).splitlines(), *getattr(self, "__notes__", ())]


class _TimeIsUp(BaseException):
    """Raised inside a reader's code that runs too long."""


class Stopwatch:
    """Says when code has had its time; what other programs take on a busy machine does not count.

    Args:
        seconds: of processor time.
        used: says how much the code's process has taken so far.
    """

    def __init__(self, seconds: float, used: Callable[[], float] = time.process_time) -> None:
        self.seconds, self.used = seconds, used
        self.began = time.monotonic(), used()

    def is_up(self) -> bool:
        """Say whether the time is over. Several threads at once do not make it pass faster than the clock."""
        passed, taken = time.monotonic() - self.began[0], self.used() - self.began[1]
        return min(passed, taken) > self.seconds or passed > PATIENCE * self.seconds


class _Printed(io.StringIO):
    """Keeps the beginning of what is printed; an endless loop may print for ever."""

    def write(self, text: str, /) -> int:
        if self.tell() < LONGEST_OUTPUT:
            super().write(text[:LONGEST_OUTPUT])
        return len(text)


@dataclass
class Outcome:
    """What a call came to.

    Attributes:
        value: what it returned.
        error: what it raised instead.
        printed: what it printed.
        copied: whether the package's own answer ran inside it.
        late: whether it was stopped.
    """

    value: object = None
    error: BaseException | None = None
    printed: str = ""
    copied: bool = False
    late: bool = False


class Box(Protocol):
    """Something that calls a reader's code and says what came of it."""

    def call(self, function: Callable[..., Any], *arguments: object, **named: object) -> Outcome:
        """Call it."""
        ...


class Elsewhere(ABC):
    """A reader's piece that lives in another process, and brings along what calls it there."""

    @abstractmethod
    def box(self, answers: Collection[tuple[str, str]]) -> Box:
        """Return what calls it, and notices when it calls one of these answers."""


def box_for(piece: object, answers: Collection[CodeType]) -> Box:
    """Return what calls a reader's piece.

    Args:
        piece: the function or class.
        answers: code of the package that a reader is asked to write, and so may not call.
    """
    places = {(code.co_filename, code.co_qualname) for code in answers}
    return piece.box(places) if isinstance(piece, Elsewhere) else Sandbox(places)


@dataclass
class Sandbox:
    """Calls a reader's code in a thread of its own.

    Attributes:
        answers: file and name of each function that the code may not call.
    """

    answers: Collection[tuple[str, str]] = ()

    def call(self, function: Callable[..., Any], *arguments: object, **named: object) -> Outcome:
        """Call, and wait; nothing is raised but a KeyboardInterrupt of the reader's."""
        outcome, printed = Outcome(), _Printed()

        def watch(frame: FrameType, event: str, _argument: object) -> None:
            if event == "call" and (frame.f_code.co_filename, frame.f_code.co_qualname) in self.answers:
                outcome.copied = True

        def work() -> None:
            sys.setprofile(watch)
            try:
                outcome.value = function(*arguments, **named)
            except BaseException as error:  # also SystemExit: a reader's exit() ends no notebook
                # Where `watch` itself has no stack left, Python wraps the RecursionError.
                outcome.error = error.__cause__ if isinstance(error.__cause__, RecursionError) else error
            finally:
                if sys.getprofile() is not watch and outcome.error is None:  # somebody hid from it
                    outcome.copied = True
                sys.setprofile(None)

        thread = threading.Thread(target=work, daemon=True)
        with contextlib.redirect_stdout(printed):
            stopwatch = Stopwatch(LIMIT_SECONDS)
            thread.start()
            try:
                while thread.is_alive() and not stopwatch.is_up():
                    thread.join(0.05)
            except KeyboardInterrupt:
                _interrupt(thread)
                raise
            if thread.is_alive():
                _interrupt(thread)
                return Outcome(printed=printed.getvalue(), late=True)
        outcome.printed = printed.getvalue()
        return outcome


def _interrupt(thread: threading.Thread) -> None:
    """Stop a thread's Python code; what waits inside a library's call ends with the process."""
    for _ in range(20):
        if not thread.is_alive():
            return
        number = ctypes.c_ulong(thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(_TimeIsUp))
        thread.join(0.05)


@contextlib.contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Give back random states and defaults as they were; inside, the defaults are PyTorch's own."""
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002 - what a reader's code may use
    threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        with torchs_own_defaults():
            yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        np.random.set_state(states[2])  # noqa: NPY002
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        if torch.are_deterministic_algorithms_enabled() != deterministic:
            torch.use_deterministic_algorithms(deterministic)


@contextlib.contextmanager
def torchs_own_defaults() -> Iterator[None]:
    """Give back the usual type, device and gradients as they were; inside, they are PyTorch's own."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.enable_grad(), torch.device("cpu"):
            yield
    finally:
        torch.set_default_dtype(dtype)


def place_of(error: BaseException) -> str:
    """Say in which line of the reader's own code an error arose; "" if in none."""
    found, lib = "", os.path.normcase(sysconfig.get_paths()["stdlib"]) + os.sep
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        library = "site-packages" in file or "/lib/python" in file or os.path.normcase(file).startswith(lib)
        if not library and not file.startswith((*OWN_FOLDERS, "<the book's")):
            line = linecache.getline(file, trace.tb_lineno).strip()
            found = f" (in line {trace.tb_lineno}" + (f": {line})" if line else ")")
        trace = trace.tb_next
    return found


def takes(function: Callable[..., Any], *arguments: object, **named: object) -> bool:
    """Say whether a function can be called like this; true where Python cannot tell."""
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return False
    except ValueError:  # a function of C code that has no signature
        return True
    return True
