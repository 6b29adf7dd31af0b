"""Functions and classes that live in a student's process, as the checks see them.

A check gets a `RemotePiece` in place of the student's function or class. What it calls is called over there;
results come back as plain tensors, gradients as well, through `torch.autograd.Function`. So nothing that a
student's code does to its own process, be it to `checks`, to torch or to the process itself, reaches what
decides.
"""

import contextlib
import inspect
import itertools
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vit_classroom.assignments import nursery, wire
from vit_classroom.assignments.limits import Limits
from vit_classroom.checks.sandbox import LIMIT_SECONDS, PATIENCE, Box, Elsewhere, Outcome, Stopwatch

START_SECONDS = 120
"""How long a student's process may take to import torch, on a machine that has much else to do."""
ENDED = "ended its process, as os._exit(), a crash or too much memory do"


class ProcessEnded(Exception):
    """The student's process is gone."""


class StudentProcess:
    """A process for one student's code. Close it in the end.

    Args:
        limits: for that code.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.numbers = itertools.count()
        self.folder = tempfile.TemporaryDirectory(prefix="vit-student-", ignore_cleanup_errors=True)
        self.alive = True
        """Whether it still answers."""
        self.process: subprocess.Popen[bytes] | None = None
        maker = nursery.nursery()
        if maker is not None:
            self.incoming, self.outgoing, self.number = maker.new(limits.megabytes)
        else:
            self.process = process = subprocess.Popen(
                [sys.executable, "-c", nursery.ALONE.format(megabytes=limits.megabytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=nursery.environment(),
            )
            assert process.stdin is not None
            assert process.stdout is not None
            self.incoming, self.outgoing, self.number = process.stdout, process.stdin, process.pid
        self.replies: queue.SimpleQueue[tuple[dict[str, Any], list[Tensor]] | None] = queue.SimpleQueue()
        self.asked = threading.Semaphore(0)
        """How many replies are read: what comes unasked waits where it was written."""
        threading.Thread(target=self._read, daemon=True).start()

    def ask(
        self, message: dict[str, Any], tensors: Sequence[Tensor] = (), seconds: float | None = None
    ) -> tuple[dict[str, Any], list[Tensor]]:
        """Send a message and wait for what comes back.

        Raises:
            TimeoutError: nothing came in time; the process is ended.
            ProcessEnded: it is gone, or talks nonsense.
        """
        echo = next(self.numbers)
        self.asked.release()
        seconds = seconds or self.limits.seconds
        patience = threading.Timer(PATIENCE * seconds, self.close)  # with a process that takes nothing in
        patience.start()
        try:
            wire.send(self.outgoing, {**message, "echo": echo}, list(tensors))
        except (OSError, ValueError):
            self.close()
            raise ProcessEnded(ENDED) from None
        finally:
            patience.cancel()
        stopwatch = Stopwatch(seconds, self._processor_time)
        while True:
            try:
                reply = self.replies.get(timeout=0.1)
                break
            except queue.Empty:
                if stopwatch.is_up():
                    self.close()
                    raise TimeoutError from None
        if reply is None or reply[0].get("echo") != echo:
            self.close()
            raise ProcessEnded(ENDED if reply is None else "answers what it was not asked")
        return reply

    def start(self) -> dict[str, bool]:
        """Wait until it is ready, and return which limits hold in it."""
        message = {"do": "start", "folder": self.folder.name}
        held = self.ask(message, seconds=START_SECONDS)[0]["held"]
        self.began = self._megabytes()
        return held

    def is_full(self) -> bool:
        """Say whether it keeps more than half of the memory that it may take; only Linux can tell."""
        return self._megabytes() - self.began > self.limits.megabytes / 2

    def _megabytes(self) -> float:
        try:
            with open(f"/proc/{self.number}/statm", encoding="ascii") as file:
                return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        except OSError:
            return 0

    def close(self) -> None:
        """End it, with everything that it started."""
        if not self.alive:
            return
        self.alive = False
        with contextlib.suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
            if hasattr(os, "killpg"):
                os.killpg(self.number, signal.SIGKILL)
            elif self.process is not None:  # Windows, which knows no process that has ended by its number
                self.process.kill()
                self.process.wait(5)  # until then its folder cannot be removed
        for stream in (self.incoming, self.outgoing):
            with contextlib.suppress(OSError, ValueError):  # what was still to be sent
                stream.close()
        self.asked.release()  # who waits there has nothing more to read
        self.folder.cleanup()

    def _processor_time(self) -> float:
        """Return the seconds that it has had a processor; elsewhere than on Linux, those of the clock."""
        try:
            with open(f"/proc/{self.number}/stat", encoding="utf-8", errors="replace") as file:
                values = file.read().rpartition(")")[2].split()
        except OSError:
            return time.monotonic()
        return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")

    def _read(self) -> None:
        while self.asked.acquire():
            try:
                self.replies.put(wire.receive(self.incoming))
            except Exception:  # whatever it is, or whoever asked would wait in vain
                self.replies.put(None)
                return


class RemotePiece(Elsewhere):
    """A function or class of the student's, by its name in the student's process."""

    def __init__(self, process: StudentProcess, name: str) -> None:
        self.process, self.name = process, name
        self.__signature__ = inspect.signature(lambda *arguments, **named: None)

    def box(self, answers: Collection[tuple[str, str]]) -> Box:
        """Return what calls it."""
        return RemoteBox(self, sorted(answers))

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Call it; its errors are raised here.

        Raises:
            TimeoutError: it takes too long.
        """
        return _value_of(RemoteBox(self, []).call(self, *arguments, **named))


class RemoteObject(RemotePiece, nn.Module):
    """A module of the student's: as good where a function was asked for, and not where a class was."""

    def __init__(self, process: StudentProcess, name: str) -> None:
        nn.Module.__init__(self)
        RemotePiece.__init__(self, process, name)


def remote_piece(process: StudentProcess, name: str) -> object:
    """Return a student's piece as a check gets it: a proxy of what can be called, else a value like it.

    Raises:
        LookupError: there is nothing of this name.
        ProcessEnded: the process is gone.
        TimeoutError: it does not answer.
    """
    reply, tensors = process.ask({"do": "look", "name": name})
    if reply.get("missing"):
        raise LookupError(name)
    if reply.get("callable"):
        return RemoteObject(process, name) if reply["object"] else RemotePiece(process, name)
    return wire.unpack(reply["packed"], tensors)


class RemoteBox:
    """Calls a student's piece, and the modules that come of it, in the student's process."""

    def __init__(self, piece: RemotePiece, answers: list[tuple[str, str]]) -> None:
        self.piece, self.process, self.answers = piece, piece.process, answers

    def call(self, function: object, *arguments: object, **named: object) -> Outcome:
        """Call a piece or a module; what goes wrong over there is in the outcome."""
        try:
            return self._call(function, arguments, named)
        except TimeoutError:
            return Outcome(late=True)
        except ProcessEnded as error:
            return Outcome(error=error)
        except (wire.BrokenWire, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
            self.process.close()
            return Outcome(error=ProcessEnded(f"it answers what makes no sense ({type(error).__name__})"))

    def _call(self, function: object, arguments: tuple[Any, ...], named: dict[str, object]) -> Outcome:
        module = function if isinstance(function, RemoteModule) else None
        makes = bool(named) or not any(isinstance(value, Tensor) for value in arguments)
        if module is None and makes:
            tensors: list[Tensor] = []
            message = {"do": "make", "arguments": wire.pack(list(arguments), tensors), "named": named}
            reply, received = self._ask(message, tensors)
            outcome = self._outcome(reply, received)
            if "module" in reply:
                outcome.value = RemoteModule(self.piece, reply["module"], received)
            return outcome
        inputs = [value for value in arguments if isinstance(value, Tensor)]
        weights = module._remote_weights() if module else []
        leaves = [value for value in inputs if value.is_floating_point()]
        leaves += [value for value in weights if isinstance(value, nn.Parameter) and value.requires_grad]
        gradients = any(value.requires_grad for value in inputs) or not inputs
        sent: list[Tensor] = []
        packed = wire.pack(list(arguments), sent)
        message = {
            "do": "call",
            "module": module._remote_number if module else None,
            "training": bool(module and module.training),
            "first": len(sent),
            "arguments": packed,
            "gradients": gradients,
        }
        reply, received = self._ask(message, [*sent, *weights])
        for place, number in reply.get("moved", []):
            with torch.no_grad():
                [*inputs, *weights][place].data = received[number]  # whose shape may be another
        results = received[: len(reply.get("differentiable", []))]
        if gradients and any(reply.get("differentiable", [])) and "packed" in reply:
            flat = _Remote.apply(self.process, results, reply["differentiable"], *leaves)
            received = [*flat, *received[len(results) :]]
        return self._outcome(reply, received)

    def _ask(self, message: dict[str, Any], tensors: Sequence[Tensor]) -> tuple[dict[str, Any], list[Tensor]]:
        whole = {**message, "name": self.piece.name, "answers": self.answers}
        return self.process.ask(whole, tensors, seconds=LIMIT_SECONDS + 5)

    def _outcome(self, reply: dict[str, Any], received: list[Tensor]) -> Outcome:
        if "unsendable" in reply:
            return Outcome(error=ValueError(f"its result cannot be read: {reply['unsendable']}"))
        error = None
        if "error" in reply:
            known = {"TypeError": TypeError, "SystemExit": SystemExit}
            kind = str(reply["kind"])
            error = known.get(kind, type(kind, (Exception,), {}))(reply["error"])
            if not reply["takes"]:
                self.piece.__signature__ = inspect.Signature()
        if reply["late"]:  # what waits inside a library's call goes on, and would be in the way of the next
            self.process.close()
        value = wire.unpack(reply["packed"], received) if "packed" in reply else None
        return Outcome(value, error, reply["printed"], reply["copied"], reply["late"])


class RemoteModule(nn.Module):
    """A student's module: its weights live here, its forward pass runs there.

    What it keeps for itself is called `_remote_...`: any other name may be that of a student's attribute.

    Args:
        piece: the class that it was made of.
        described: names and kinds of its weights.
        received: their values, from `described["first"]` on.
    """

    def __init__(self, piece: RemotePiece, described: dict[str, Any], received: list[Tensor]) -> None:
        super().__init__()
        self._remote_piece = piece
        self._remote_number = described["number"]
        self._remote_names = [entry["name"] for entry in described["weights"]]
        values = received[described["first"] :]
        made: list[Tensor] = []
        for entry, value in zip(described["weights"], values, strict=True):
            if entry["trained"]:
                value = nn.Parameter(value, requires_grad=entry["requires_grad"])
            made.append(made[entry["owner"]] if entry["owner"] < len(made) else value)
            *path, name = entry["name"].split(".")
            home = self._remote_home(path)
            if entry["trained"]:
                setattr(home, name, made[-1])
            else:
                home.register_buffer(name, made[-1])
        for name, is_tensor in described["loose"]:
            *path, last = name.split(".")
            object.__setattr__(self._remote_home(path), last, torch.zeros(()) if is_tensor else [])

    def _remote_home(self, path: list[str]) -> nn.Module:
        """Return the module at a path, made where there is none."""
        home: nn.Module = self
        for name in path:
            if name not in home._modules:
                home.add_module(name, nn.Module())
            home = home.get_submodule(name)
        return home

    def forward(self, *arguments: object) -> Any:
        """Call it where it lives; its errors are raised here."""
        return _value_of(RemoteBox(self._remote_piece, []).call(self, *arguments))

    def _remote_weights(self) -> list[Tensor]:
        """Return all of its weights, in the order of the other side."""
        trained = dict(self.named_parameters(remove_duplicate=False))
        kept = dict(self.named_buffers(remove_duplicate=False))
        return [trained[name] if name in trained else kept[name] for name in self._remote_names]


def _value_of(outcome: Outcome) -> Any:
    if outcome.late:
        raise TimeoutError(f"it did not come to an end within {LIMIT_SECONDS:g} seconds")
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


class _Remote(torch.autograd.Function):
    """Results that came from a student's process; gradients go back through it."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, process: StudentProcess, results: list[Tensor], flows: list[bool], *leaves: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.process, ctx.leaves = process, len(leaves)
        fresh = [result.clone() for result in results]
        ctx.mark_non_differentiable(*(value for value, flow in zip(fresh, flows, strict=True) if not flow))
        return tuple(fresh)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        reply, received = ctx.process.ask({"do": "backward"}, gradients, seconds=LIMIT_SECONDS + 5)
        if "none" not in reply or len(reply["none"]) != ctx.leaves:
            raise RuntimeError(reply.get("error", "gradients of other inputs than were sent"))
        values = iter(received)
        found = [None if none else next(values) for none in reply["none"]]
        return (None, None, None, *found)
