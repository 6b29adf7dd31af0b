"""The process in which a student's code runs.

It does not know what is expected of it: it runs cells, calls functions and classes by their names, and sends
results and gradients back. Its limits are set before any of the student's code runs: memory, the size of
files, and where the system lets an ordinary user set a process apart, no network, no other process within
reach (/proc still lists them), and no file to write outside of a folder of its own.
"""

import os
import traceback
from collections.abc import Callable
from typing import IO, Any

import torch
from torch import Tensor, nn

from vit_classroom.assignments import wire
from vit_classroom.assignments.limits import limit_memory, write_only_in
from vit_classroom.checks.sandbox import Sandbox, place_of, takes, torchs_own_defaults

Reply = tuple[dict[str, Any], list[Tensor]]


class NoShell:
    """What `get_ipython()` returns: whatever it is asked for does nothing."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        """Any method, with any arguments."""
        return lambda *_arguments, **_named: None


class Student:
    """The student's names, and what was made of them.

    Args:
        held: which limits hold in this process.
    """

    def __init__(self, held: dict[str, bool]) -> None:
        self.held = held
        torch.set_num_threads(1)
        self.namespace: dict[str, Any] = {"__name__": "__main__", "display": print, "get_ipython": NoShell}
        self.modules: list[tuple[nn.Module, list[tuple[str, Tensor]]]] = []  # with the weights it began with
        self.graph: tuple[list[Tensor], list[Tensor]] = ([], [])  # of the last call: its leaves, its results

    def answer(self, message: dict[str, Any], given: list[Tensor]) -> Reply:
        """Do what a message asks for."""
        if message["do"] in ("start", "run"):
            return (self.start if message["do"] == "start" else self.run)(message, given)
        ways = (self.look, self.make, self.call, self.backward)
        with torchs_own_defaults():  # as where a check is called in a notebook
            return next(way for way in ways if way.__name__ == message["do"])(message, given)

    def start(self, message: dict[str, Any], _given: list[Tensor]) -> Reply:
        """Go to a folder, write nowhere else, and say which limits hold."""
        self.held["files"] = self.held["processes"] and write_only_in(message["folder"])
        os.chdir(message["folder"])
        return {"held": self.held}, []

    def run(self, message: dict[str, Any], _given: list[Tensor]) -> Reply:
        """Run a cell; what it prints goes nowhere."""
        try:
            exec(compile(message["source"], message["place"], "exec"), self.namespace)
        except BaseException as error:  # also SystemExit: the notebook goes on
            last = traceback.format_exception_only(error)[-1].strip()
            return {"error": last[:500]}, []
        return {}, []

    def look(self, message: dict[str, Any], _given: list[Tensor]) -> Reply:
        """Say what a name stands for."""
        name = message["name"]
        value = self.namespace.get(name)
        if callable(value):
            return {"callable": True, "object": isinstance(value, nn.Module)}, []
        tensors: list[Tensor] = []
        return {"missing": name not in self.namespace, "packed": wire.pack(value, tensors)}, tensors

    def make(self, message: dict[str, Any], given: list[Tensor]) -> Reply:
        """Call a class, and describe the module that comes of it."""
        arguments, named = wire.unpack(message["arguments"], given), message["named"]
        cls = self.namespace[message["name"]]
        reply, tensors, module = self._outcome(cls, message["answers"], arguments, named)
        if isinstance(module, nn.Module):
            self.modules.append((module, _weights(module)))
            described, weights = _described(module)
            reply["module"] = {**described, "number": len(self.modules) - 1, "first": len(tensors)}
            tensors = [*tensors, *weights]
        return reply, tensors

    def call(self, message: dict[str, Any], given: list[Tensor]) -> Reply:
        """Call a function, or a module with the weights that come along."""
        number, gradients = message["module"], message["gradients"]
        function: Any = self.namespace[message["name"]] if number is None else self.modules[number][0]
        weights: list[Tensor] = []
        if number is not None:
            module, began_with = self.modules[number]
            now = dict(began_with) | dict(_weights(module.train(message["training"])))
            weights = [now[name] for name, _ in began_with]
            with torch.no_grad():
                for own, sent in zip(weights, given[message["first"] :], strict=True):
                    if own.shape == sent.shape:  # not a buffer that the module has made anew
                        own.copy_(sent)
        arguments = wire.unpack(message["arguments"], given)
        leaves = [value for value in arguments if isinstance(value, Tensor)]
        before = [value.detach().clone() for value in (*leaves, *weights)]
        trained = [value for value in weights if isinstance(value, nn.Parameter)]
        if gradients:
            leaves = [value.requires_grad_(value.is_floating_point()) for value in leaves]
            arguments = [
                value * 1 if isinstance(value, Tensor) and value.requires_grad else value
                for value in arguments
            ]
        reply, tensors, result = self._outcome(function, message["answers"], arguments, {})
        results = _tensors_in(result)
        self.graph = ([], [])
        if gradients:
            self.graph = ([value for value in (*leaves, *trained) if value.requires_grad], results)
        reply["differentiable"] = [value.requires_grad for value in results]
        after = [value.detach() for value in (*leaves, *weights)]
        moved = [place for place, old in enumerate(before) if not torch.equal(old, after[place])]
        reply["moved"] = [[place, len(tensors) + count] for count, place in enumerate(moved)]
        return reply, [*tensors, *(after[place] for place in moved)]

    def backward(self, message: dict[str, Any], given: list[Tensor]) -> Reply:
        """Send gradients back through the last call."""
        leaves, results = self.graph
        try:  # of a sum: what is wanted of each result, passed on as such, would make torch import SymPy
            products = [
                (result * wanted).sum()
                for result, wanted in zip(results, given, strict=True)
                if result.requires_grad
            ]
            received = torch.autograd.grad(torch.stack(products).sum(), leaves, allow_unused=True)
        except RuntimeError as error:
            return {"error": str(error)[:500]}, []
        return {"none": [value is None for value in received]}, [v for v in received if v is not None]

    def _outcome(
        self, function: Callable[..., Any], answers: Any, arguments: Any, named: dict[str, Any]
    ) -> tuple[dict[str, Any], list[Tensor], object]:
        """Call, and put what came of it into a reply."""
        outcome = Sandbox({(file, name) for file, name in answers}).call(function, *arguments, **named)
        reply: dict[str, Any] = {"printed": outcome.printed, "copied": outcome.copied, "late": outcome.late}
        if outcome.error is not None:
            reply["error"] = str(outcome.error)[:2000] + place_of(outcome.error)
            reply["kind"] = type(outcome.error).__name__
            reply["takes"] = takes(function, *arguments, **named)
            return reply, [], None
        tensors: list[Tensor] = []
        return {**reply, "packed": wire.pack(outcome.value, tensors)}, tensors, outcome.value


def _tensors_in(value: object) -> list[Tensor]:
    """Return the tensors of a result, in the order in which `wire.pack` meets them."""
    if isinstance(value, Tensor):
        return [value] if value.device.type == "cpu" and value.layout == torch.strided else []
    parts = value[:8] if isinstance(value, tuple | list) else ()
    return [tensor for part in parts for tensor in _tensors_in(part)]


def _weights(module: nn.Module) -> list[tuple[str, Tensor]]:
    """Return parameters, then buffers, with those that are shared under each of their names."""
    return [
        *module.named_parameters(remove_duplicate=False),
        *(
            (name, value)
            for name, value in module.named_buffers(remove_duplicate=False)
            if name in module.state_dict()
        ),
    ]


def _described(module: nn.Module) -> Reply:
    """Describe a module: its weights, and what looks like one and is none."""
    weights = _weights(module)
    count = len(list(module.named_parameters(remove_duplicate=False)))
    owners: dict[int, int] = {}
    entries = [
        {
            "name": name,
            "trained": place < count,
            "requires_grad": value.requires_grad,
            "owner": owners.setdefault(id(value), place),
        }
        for place, (name, value) in enumerate(weights)
    ]
    loose = [
        [f"{path}.{name}" if path else name, isinstance(value, Tensor)]
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if isinstance(value, Tensor | list | tuple) and not name.startswith("_")
    ]
    return {"weights": entries, "loose": loose}, [value.detach() for _, value in weights]


def serve(incoming: IO[bytes], outgoing: IO[bytes], apart: bool, megabytes: int) -> None:
    """Answer messages until there are no more.

    Args:
        incoming: messages from the judge.
        outgoing: replies to it.
        apart: whether this process was set apart (see `set_apart`).
        megabytes: memory for the student's code.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.environ |= {
        "MPLBACKEND": "Agg",
        "CUDA_VISIBLE_DEVICES": "",
    }  # marks are the same with a GPU and without
    student = Student({"network": apart, "processes": apart, "memory": limit_memory(megabytes)})
    while True:
        try:
            message, given = wire.receive(incoming)
        except wire.BrokenWire:
            return
        echo = {"echo": message["echo"]}
        try:
            reply, tensors = student.answer(message, given)
            wire.send(outgoing, {**reply, **echo}, tensors)
        except (RuntimeError, ValueError, MemoryError) as error:  # a result that cannot be sent
            wire.send(outgoing, {"unsendable": str(error)[:300], **echo}, [])
