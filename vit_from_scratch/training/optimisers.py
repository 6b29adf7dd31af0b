"""Optimisers of torch, and Muon, with weight decay only on weight matrices.

The paper pre-trains with Adam and a high weight decay, and fine-tunes with SGD and momentum (section 4.1).
It does not say whether the decay is decoupled, or on which parameters it acts. Here biases, norms, the
class token and the position embedding are left alone: decay pulls towards zero, and for a norm's scale or
a position zero is not a simpler value.
"""

from collections import defaultdict
from itertools import takewhile
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from vit_from_scratch.errors import InputError
from vit_from_scratch.training.config import TrainConfig

if TYPE_CHECKING:
    from vit_from_scratch.training.muon import MuonBesideAdamW

    Optimiser = torch.optim.Optimizer | MuonBesideAdamW

SPARED = (nn.LayerNorm, nn.GroupNorm, _NormBase, nn.RMSNorm, nn.Embedding)
"""Modules whose weights do not decay."""


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Sort the parameters that need a gradient into two groups: with weight decay and without.

    Decay acts on the matrices and kernels called "weight"; the class token and the position embedding have
    names of their own.
    """
    decays: dict[nn.Parameter, bool] = {}
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            matrix = name.split("_")[-1] == "weight" and not isinstance(module, SPARED)
            if parameter.requires_grad:
                decays.setdefault(parameter, matrix)  # a shared one counts where it comes first
    return [
        {"params": [p for p, does in decays.items() if does], "weight_decay": weight_decay},
        {"params": [p for p, does in decays.items() if not does], "weight_decay": 0.0},
    ]


def split_by_layer(model: nn.Module, groups: list[dict], rate: float, layer_decay: float) -> list[dict]:
    """Split groups of parameters by layer, each layer with `layer_decay` times the rate of the one above.

    What stands before the blocks is below the first; what stands after them, or around the ViT, has the whole
    rate (Clark et al., 2020; BEiT and MAE fine-tune so).

    Raises:
        InputError: a model without blocks.
    """
    from vit_from_scratch.model.vit import VisionTransformer  # few runs want it

    vit = getattr(model, "vit", model)
    stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    # a hybrid's stem is a stack, too
    blocks = vit.encoder.blocks if isinstance(vit, VisionTransformer) else max(stacks, key=len, default=())
    if not len(blocks):
        raise InputError(
            f"layer_decay = {layer_decay} for a {type(model).__name__}: expected a model with blocks; set 1."
        )
    top = len(blocks) + 1
    inside = {p: number for number, block in enumerate(blocks, start=1) for p in block.parameters()}
    before = takewhile(lambda p: p not in inside, vit.parameters())  # in the order in which a model uses them
    layer = dict.fromkeys(model.parameters(), top) | dict.fromkeys(before, 0) | inside
    split: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
    for place, group in enumerate(groups):
        for parameter in group["params"]:
            split[place, layer[parameter]].append(parameter)
    return [
        groups[place] | {"params": parameters, "lr": rate * layer_decay ** (top - number)}
        for (place, number), parameters in split.items()
    ]


def build_optimiser(
    model: nn.Module, config: TrainConfig, muon_dtype: torch.dtype | None = None
) -> "Optimiser":
    """Build the optimiser that `config.optimiser` names over the model's decay groups.

    "adamw" decays weights apart from the gradient (decoupled); "adam" adds the decay to the gradient as an
    L2 penalty, where Adam's own scaling then distorts it; "sgd" has momentum; "muon" is `MuonBesideAdamW`,
    which works in `muon_dtype`. Each group remembers its base rate as "base_lr", from which the loop sets
    "lr" before every step.

    Raises:
        InputError: "muon" for a model without dense layers in blocks, or layer_decay for one without blocks.
    """
    groups, rate, betas = decay_groups(model, config.weight_decay), config.learning_rate, config.betas
    if config.layer_decay < 1:
        groups = split_by_layer(model, groups, rate, config.layer_decay)
    optimiser: Optimiser
    match config.optimiser:
        case "adamw":  # fused: one kernel over all parameters, where the default walks them in Python
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
    for group in optimiser.param_groups:
        group["base_lr"] = group["lr"]
    return optimiser
