"""The state of a run in one safetensors file: weights, optimiser and history, never pickle.

One file, written beside the old one and then renamed: whatever kills the process, the file is whole. A
checksum tells when the disk did not keep it so. Schedules and random numbers need no room in it, since both
follow from the step and the epoch.
"""

import dataclasses
import json
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as serialise
from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically
from vit_from_scratch.model.checkpoints import read_safetensors
from vit_from_scratch.training.state import TrainingState
from vit_lab.runs.fingerprints import checksum
from vit_lab.runs.metrics import as_history
from vit_lab.runs.sharding import placed_like, whole

FORMAT = "vit-training-state"


def save_state(path: Path, state: TrainingState) -> None:
    """Write the model's weights, the optimiser's state and the history to `path`, all or nothing."""
    tensors = packed(state)
    history = [dataclasses.asdict(metrics) for metrics in state.history]
    progress = json.dumps({"epoch": state.epoch, "step": state.step, "history": history})
    metadata = {"format": FORMAT, "progress": progress, "checksum": checksum(progress, tensors)}
    write_atomically(path, serialise(tensors, metadata))


def packed(state: TrainingState, keep: bool = True) -> dict[str, Tensor]:
    """Return a state's tensors by name, whole and on the CPU; where they are so already, without a copy.

    If the state is sharded, all processes must ask at once; `keep` says whether they are wanted in this one.
    """
    parts: dict[str, Any] = {kind: module.state_dict() for kind, module in _modules(state).items()}
    parts["best"] = state.best or {}
    for index, (parameter, noted) in enumerate(_slots(state)):
        parts[f"optimiser.{index}"] = noted.get(parameter, {})
    kept, stores = {}, set()
    for kind, part in parts.items():
        for name, value in part.items():
            if value is None:  # of an optimiser that has no momentum, say
                continue
            tensor = whole(value.detach())
            if not keep:
                continue
            tensor = tensor.cpu().contiguous()
            if (store := tensor.untyped_storage().data_ptr()) in stores:
                tensor = tensor.clone()  # safetensors refuses two that share their memory
            stores.add(store)
            kept[f"{kind}.{name}"] = tensor
    return kept


def _modules(state: TrainingState) -> dict[str, nn.Module]:
    """Return what has weights in a state: the model, and its moving average if there is one."""
    return {"model": state.model} | ({} if state.average is None else {"average": state.average})


def _slots(state: TrainingState) -> Iterator[tuple[nn.Parameter, MutableMapping[Any, Any]]]:
    """Yield each parameter of the optimiser, or of those beside each other in it, and where it is noted."""
    optimisers: tuple[Any, ...] = getattr(state.optimiser, "optimisers", (state.optimiser,))
    for one in optimisers:
        for group in one.param_groups:
            for parameter in group["params"]:
                yield parameter, one.state


def restore_state(path: Path, state: TrainingState) -> None:
    """Bring a fresh state to where `save_state` left a run of the same settings.

    Raises:
        InputError: the file is damaged, is something else, or does not fit the model.
    """
    ours = "the training state of this run. Restore the file, or start again in another folder"
    damaged = InputError(
        f"{path} is damaged: expected what was written, and its checksum or its progress differs. "
        "Restore the file, or start again in another folder."
    )
    tensors, metadata = read_safetensors(path, ours)
    if metadata.get("format") != FORMAT:
        raise InputError(
            f"{path} is not the state of a run: its format is {metadata.get('format')!r}, expected {ours}."
        )
    text = metadata.get("progress", "")
    if metadata.get("checksum") != checksum(text, tensors):
        raise damaged
    try:
        unpack_weights(state, tensors)
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise InputError(f"{path} does not fit the model: {first} Start again in another folder.") from error
    try:
        unpack_optimiser(state, tensors)
        progress = json.loads(text)
        history = as_history(progress["history"])
        state.epoch, state.step = progress["epoch"], progress["step"]
        same = (state.epoch, state.step) == (history[-1].epoch, history[-1].step)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RuntimeError) as error:
        raise damaged from error
    if not same:
        raise damaged
    state.history[:] = history


def unpack_weights(state: TrainingState, tensors: dict[str, Tensor]) -> None:
    """Give a state the weights that `packed` returned; if it is sharded, each process takes its part."""
    for kind, module in _modules(state).items():
        module.load_state_dict(_placed(_part(tensors, kind), module))
    best = _placed(_part(tensors, "best"), state.model)
    # Without a copy they are parts of the file, on a CPU, and Windows replaces none that is in use.
    state.best = {name: tensor.clone() for name, tensor in best.items()} or None


def unpack_optimiser(state: TrainingState, tensors: dict[str, Tensor]) -> None:
    """Give the optimiser back what it had noted of each parameter, by "NUMBER.NAME"."""
    slots = list(_slots(state))
    for _, noted in slots:
        noted.clear()
    for name, value in _part(tensors, "optimiser").items():
        index, key = name.split(".", 1)
        parameter, noted = slots[int(index)]
        if value.shape == parameter.shape:
            # A fused step walks memory in its order, so this must be the parameter's (channels last, say).
            value = torch.empty_like(parameter).copy_(placed_like(value, parameter))
        else:
            value = value.to(parameter.device, copy=True)
        noted.setdefault(parameter, {})[key] = value


def _placed(tensors: dict[str, Tensor], module: nn.Module) -> dict[str, Tensor]:
    own = module.state_dict()
    return {name: placed_like(tensor, own.get(name, tensor)) for name, tensor in tensors.items()}


def _part(tensors: dict[str, Tensor], kind: str) -> dict[str, Tensor]:
    first = kind + "."
    return {name.removeprefix(first): t for name, t in tensors.items() if name.startswith(first)}
