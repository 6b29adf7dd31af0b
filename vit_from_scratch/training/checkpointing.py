"""The state of a run in one safetensors file: weights, optimiser and history, never pickle.

One file, written beside the old one and then renamed: whatever kills the process, what lies there is
whole. Schedules and random numbers need no room in it, since both follow from the step and the epoch.
"""

import dataclasses
import json
from pathlib import Path

import torch
from safetensors.torch import save as serialise
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.checkpoints import read_safetensors, write_atomically
from vit_from_scratch.training.state import EpochMetrics, TrainingState

FORMAT = "vit-training-state-1"


def save_state(path: Path, state: TrainingState) -> None:
    """Write the model's weights, the optimiser's state and the history to `path`, all or nothing."""
    tensors = {
        f"{kind}.{name}": tensor for kind, part in _weights(state).items() for name, tensor in part.items()
    }
    scalars: dict[str, float] = {}
    for index, values in state.optimiser.state_dict()["state"].items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{index}.{name}"] = value
            elif value is not None:
                scalars[f"{index}.{name}"] = value
    progress = {
        "epoch": state.epoch,
        "step": state.step,
        "optimiser_scalars": scalars,
        "history": [dataclasses.asdict(metrics) for metrics in state.history],
    }
    # Cloned: an average's first weights are the model's own, and safetensors refuses shared memory.
    tensors = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, serialise(tensors, {"format": FORMAT, "progress": json.dumps(progress)}))


def _weights(state: TrainingState) -> dict[str, dict[str, Tensor]]:
    """Return every set of weights that a run holds, by name."""
    parts = {"model": state.model.state_dict()}
    if state.average is not None:
        parts["average"] = state.average.state_dict()
    if state.best is not None:
        parts["best"] = state.best
    return parts


def restore_state(path: Path, state: TrainingState) -> None:
    """Bring a fresh state to where `save_state` left a run of the same settings.

    Raises:
        InputError: the file is damaged, is something else, or does not fit the model.
    """
    tensors, progress = _read(path)

    def part(kind: str) -> dict[str, Tensor]:
        first = kind + "."
        return {name.removeprefix(first): t for name, t in tensors.items() if name.startswith(first)}

    try:
        state.model.load_state_dict(part("model"))
        if state.average is not None:
            state.average.load_state_dict(part("average"))
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise InputError(f"{path} does not fit the model: {first} Start again in another folder.") from error
    best = {name: tensor.to(state.device) for name, tensor in part("best").items()}
    state.best = best or None
    parameters = [p for group in state.optimiser.param_groups for p in group["params"]]
    slots: dict[int, dict[str, Tensor | float]] = {}
    for name, value in [*part("optimiser").items(), *progress["optimiser_scalars"].items()]:
        index, key = name.split(".", 1)
        parameter = parameters[int(index)]
        if isinstance(value, Tensor) and value.shape == parameter.shape:
            # A fused step walks memory in its order, so this must be the parameter's (channels last, say).
            value = torch.empty_like(parameter).copy_(value)
        slots.setdefault(int(index), {})[key] = value
    groups = state.optimiser.state_dict()["param_groups"]
    state.optimiser.load_state_dict({"state": slots, "param_groups": groups})
    state.epoch, state.step = progress["epoch"], progress["step"]
    state.history[:] = [EpochMetrics(**metrics) for metrics in progress["history"]]


def _read(path: Path) -> tuple[dict[str, Tensor], dict]:
    expected = "the training state of this run. Restore the file, or start again in another folder"
    tensors, metadata = read_safetensors(path, expected)
    if metadata.get("format") != FORMAT:
        raise InputError(
            f"{path} is not the state of a run: expected the format {FORMAT!r}, found "
            f"{metadata.get('format')!r}. Restore the file, or start again in another folder."
        )
    return tensors, json.loads(metadata["progress"])
