"""Optimisers from `torch.optim`, with weight decay on weight matrices alone.

The paper pre-trains with Adam and a high weight decay, and fine-tunes with SGD and momentum (section 4.1).
It does not say whether the decay is decoupled, or on which parameters it acts. Here biases, norms, the
class token and the position embedding are left alone: decay pulls towards zero, and for a norm's scale or
a position zero is no simpler a value.

Muon (`vit_from_scratch.training.muon`) is newer than the paper. It is meant for the matrices inside the
blocks; embeddings, head, norms and biases stay with AdamW beside it.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.attention import MultiHeadSelfAttention
from vit_from_scratch.precisions import has_bfloat16_units
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.muon import Muon
from vit_lab.runs.processes import Processes, is_sharded

NORMS = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm2d, nn.RMSNorm)


def decays(module: nn.Module, parameter_name: str) -> bool:
    """Say whether weight decay acts on a module's own parameter: on matrices and kernels called "weight".

    The class token and the position embedding hang on the model under names of their own, so they are out.
    """
    return parameter_name.split("_")[-1] == "weight" and not isinstance(module, (*NORMS, nn.Embedding))


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Sort the parameters that need a gradient into two groups: with weight decay and without.

    Returns:
        [{"params": ..., "weight_decay": weight_decay}, {"params": ..., "weight_decay": 0.0}], each parameter
        in exactly one of them.
    """
    decayed: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    for module, name, parameter in _own_parameters(model):
        (decayed if decays(module, name) else spared).append(parameter)
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": spared, "weight_decay": 0.0},
    ]


def _agreed_dtype(device: str) -> torch.dtype:
    """Return bfloat16 if all processes have units for it: copies of a model must take the same steps."""
    return torch.bfloat16 if all(Processes.current().gathered(has_bfloat16_units(device))) else torch.float32


class MuonBesideAdamW:
    """Two optimisers that look like one: Muon for the matrices of the blocks, AdamW for everything else.

    Attributes:
        optimisers: the two.
        param_groups: the groups of both, Muon's first.
    """

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        """Share the model's parameters out.

        Raises:
            InputError: the model has no blocks with weight matrices.
        """
        matrices = block_matrices(model)
        if not matrices:
            raise InputError(
                "optimiser = 'muon': expected a model with matrices in blocks, as VisionTransformer has; "
                "take 'adamw' for this one."
            )
        rest = decay_groups(model, config.weight_decay)
        for group in rest:
            group["params"] = [p for p in group["params"] if p not in matrices]
        self.optimisers: tuple[torch.optim.Optimizer, ...] = (
            Muon(
                matrices,
                lr=config.learning_rate,
                weight_decay=config.weight_decay,
                momentum=config.momentum,
                dtype=_agreed_dtype(str(next(iter(matrices)).device)),
            ),
            torch.optim.AdamW(rest, lr=config.adamw_learning_rate, betas=config.betas, fused=True),
        )
        self.param_groups = [group for one in self.optimisers for group in one.param_groups]

    def step(self) -> None:
        """Take a step with both."""
        for one in self.optimisers:
            one.step()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for one in self.optimisers:
            one.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """Return both states, the parameters numbered through."""
        state, groups, first = {}, [], 0
        for one in self.optimisers:
            part = one.state_dict()
            state |= {first + index: values for index, values in part["state"].items()}
            groups += part["param_groups"]
            first += sum(len(group["params"]) for group in part["param_groups"])
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` returned."""
        first, groups = 0, list(state_dict["param_groups"])
        for one in self.optimisers:
            own, groups = groups[: len(one.param_groups)], groups[len(one.param_groups) :]
            count = sum(len(group["params"]) for group in own)
            state = {i - first: v for i, v in state_dict["state"].items() if first <= i < first + count}
            one.load_state_dict({"state": state, "param_groups": own})
            first += count
        self.param_groups = [group for one in self.optimisers for group in one.param_groups]


Optimiser = torch.optim.Optimizer | MuonBesideAdamW


def block_matrices(model: nn.Module) -> dict[Tensor, int]:
    """Find the weights of the dense layers inside the model's blocks: what Muon is meant for.

    Returns:
        For each weight, how many matrices it holds one above the other: 3 where queries, keys and values are
        one layer, else 1.
    """
    blocks = [part for module in model.modules() if isinstance(module, nn.ModuleList) for part in module]
    inside = [module for block in blocks for module in block.modules()]
    fused = {module.qkv.weight for module in inside if isinstance(module, MultiHeadSelfAttention)}
    weights = [module.weight for module in inside if isinstance(module, nn.Linear)]
    return {weight: 3 if weight in fused else 1 for weight in weights if weight.requires_grad}


def build_optimiser(model: nn.Module, config: TrainConfig) -> Optimiser:
    """Build the optimiser that `config.optimiser` names over the model's decay groups.

    "adamw" decays weights apart from the gradient (decoupled); "adam" adds the decay to the gradient as an
    L2 penalty, where Adam's own scaling then distorts it; "sgd" has momentum; "muon" is `MuonBesideAdamW`.
    Each group remembers its base rate as "base_lr", from which the loop sets "lr" before every step.

    Raises:
        InputError: "muon" for a model without dense layers in blocks.
    """
    groups = decay_groups(model, config.weight_decay)
    optimiser: Optimiser
    match config.optimiser:
        case "adamw":
            # Fused: one kernel over all parameters, where the default walks them one by one in Python.
            optimiser = torch.optim.AdamW(groups, lr=config.learning_rate, betas=config.betas, fused=True)
        case "adam":
            optimiser = torch.optim.Adam(groups, lr=config.learning_rate, betas=config.betas, fused=True)
        case "sgd":
            fused = not is_sharded(model)  # torch has no fused step of SGD for shards
            optimiser = torch.optim.SGD(
                groups, lr=config.learning_rate, momentum=config.momentum, fused=fused
            )
        case "muon":
            optimiser = MuonBesideAdamW(model, config)
        case other:
            raise InputError(f"optimiser = {other!r}: expected 'adamw', 'adam', 'sgd' or 'muon'.")
    for group in optimiser.param_groups:
        group["base_lr"] = group["lr"]
    return optimiser


def set_learning_rate(optimiser: Optimiser, factor: float) -> None:
    """Set every group's rate to its base rate times the schedule's factor."""
    for group in optimiser.param_groups:
        group["lr"] = group["base_lr"] * factor


def _own_parameters(model: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:
    """Yield each trainable parameter once, with the module that owns it and its name there."""
    seen: set[int] = set()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.requires_grad and id(parameter) not in seen:
                seen.add(id(parameter))
                yield module, name, parameter
