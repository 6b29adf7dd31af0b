"""Optimisers from `torch.optim`, with weight decay on weight matrices alone.

The paper pre-trains with Adam and a high weight decay, and fine-tunes with SGD and momentum (section 4.1).
It does not say whether the decay is decoupled, or on which parameters it acts. Here biases, norms, the
class token and the position embedding are left alone: decay pulls towards zero, and for a norm's scale or
a position zero is no simpler a value.

Muon (`vit_from_scratch.training.muon`) is newer than the paper. It is meant for the matrices inside the
blocks; embeddings, head, norms and biases stay with AdamW beside it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.training.config import TrainConfig

if TYPE_CHECKING:
    from vit_from_scratch.training.muon import MuonBesideAdamW

    Optimiser = torch.optim.Optimizer | MuonBesideAdamW

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


def build_optimiser(
    model: nn.Module, config: TrainConfig, muon_dtype: torch.dtype | None = None
) -> "Optimiser":
    """Build the optimiser that `config.optimiser` names over the model's decay groups.

    "adamw" decays weights apart from the gradient (decoupled); "adam" adds the decay to the gradient as an
    L2 penalty, where Adam's own scaling then distorts it; "sgd" has momentum; "muon" is `MuonBesideAdamW`.
    Each group remembers its base rate as "base_lr", from which the loop sets "lr" before every step.

    Args:
        model: what is trained.
        config: the settings.
        muon_dtype: in which Muon works; None for what the device is fastest in.

    Raises:
        InputError: "muon" for a model without dense layers in blocks.
    """
    groups, rate, betas = decay_groups(model, config.weight_decay), config.learning_rate, config.betas
    optimiser: Optimiser
    match config.optimiser:
        case "adamw":
            # Fused: one kernel over all parameters, where the default walks them one by one in Python.
            optimiser = torch.optim.AdamW(groups, lr=rate, betas=betas, fused=True)
        case "adam":
            optimiser = torch.optim.Adam(groups, lr=rate, betas=betas, fused=True)
        case "sgd":
            sharded = any(hasattr(parameter, "full_tensor") for parameter in model.parameters())
            # torch has no fused step of SGD for shards
            optimiser = torch.optim.SGD(groups, lr=rate, momentum=config.momentum, fused=not sharded)
        case "muon":
            from vit_from_scratch.training.muon import MuonBesideAdamW  # most runs need none of it

            optimiser = MuonBesideAdamW(model, groups, config, muon_dtype)
        case other:
            raise InputError(f"optimiser = {other!r}: expected 'adamw', 'adam', 'sgd' or 'muon'.")
    for group in optimiser.param_groups:
        group["base_lr"] = group["lr"]
    return optimiser


def set_learning_rate(optimiser: "Optimiser", factor: float) -> None:
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
